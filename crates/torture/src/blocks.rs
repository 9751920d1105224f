//! The campaign over NBD: our own client with its ledger on one volume, fio with its checksums on another, and the
//! server killed under both.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tier0_units::Nanos;
use tier0_world::Random;

use crate::TortureError;
use crate::client::{Action, Wait, check, load};
use crate::faults::Fault;
use crate::fio::Fio;
use crate::ledger::Ledger;
use crate::plan::Context;
use crate::report::Campaign;
use crate::server::Server;
use crate::shape::{Shape, Site};

/// Drives of 64 chunklets of 4 MiB: room for metadata, log, both volumes and spares, and small enough that a log of the
/// default size wraps within a run.
const DRIVE_MIB: u64 = 256;
/// The volume of our client, and that of fio.
const VOLUMES: [(&str, u64); 2] = [("ledger", 32), ("fio", 32)];
/// Sectors of a MiB.
const MIB_SECTORS: u64 = 2048;
/// Half of the kills come after a random time up to this,
const KILL_AFTER: Nanos = Nanos::from_millis(700);
/// the other half after a random number of acknowledged requests up to this, or this long.
const KILL_AFTER_ACKNOWLEDGED: u64 = 4000;
const KILL_AFTER_MOST: Nanos = Nanos::from_secs(6);
/// A load goes on after a drive was damaged: so many requests are acknowledged, or it takes this long. A request that gets
/// no answer fails by itself.
const GOES_ON: Wait = Wait::Acknowledged(500, Nanos::from_secs(10));
/// How long an ending server gets at most before it is killed.
const ENDING: Duration = Duration::from_millis(30);

/// A campaign.
pub(crate) struct Blocks<'a, 'b> {
    context: &'a mut Context<'b>,
    campaign: &'a mut Campaign,
    site: Site,
    ledger: Rc<RefCell<Ledger>>,
    random: Random,
    /// fio's job of the last round, to be verified after the next start.
    written_by_fio: Option<Fio>,
    /// Loads that have been run.
    rounds: u32,
    /// What is done to drives, and to which it has been done.
    fault: Option<Fault>,
    damaged: Vec<usize>,
    /// Drives that will return, and the round in which they went.
    away: Vec<(usize, u32)>,
}

impl<'a, 'b> Blocks<'a, 'b> {
    /// Makes an array of this shape in `directory`.
    pub(crate) fn new(
        directory: &Path,
        shape: Shape,
        seed: u64,
        context: &'a mut Context<'b>,
        campaign: &'a mut Campaign,
    ) -> Result<Blocks<'a, 'b>, TortureError> {
        let site = Site::describe(directory, shape, DRIVE_MIB, &VOLUMES)?;
        context.program.create(&site)?;
        let ledger = Ledger::new(VOLUMES[0].1 * MIB_SECTORS, seed, shape.keeps_acknowledged());
        Ok(Blocks {
            context,
            campaign,
            site,
            ledger: Rc::new(RefCell::new(ledger)),
            random: Random::new(seed, 0),
            written_by_fio: None,
            rounds: 0,
            fault: None,
            damaged: Vec::new(),
            away: Vec::new(),
        })
    }

    /// Kills it `kills` times, damaging drives on the way where a fault is given, and checks it a last time.
    pub(crate) fn run(mut self, kills: u32, fault: Option<Fault>) -> Result<(), TortureError> {
        self.fault = fault;
        let mut server = self.context.program.serve(&self.site)?.0;
        while self.campaign.kills < kills && self.context.has_time() {
            self.round(server)?;
            if self.campaign.kills < kills && self.random.chance(0.25) {
                self.kill_while_starting()?;
            }
            self.return_drives()?;
            server = self.restart()?;
            (self.context.tell)(&format!(
                "{}: {} kills, {} acknowledged",
                self.campaign.name, self.campaign.kills, self.campaign.acknowledged
            ));
        }
        server.stop()?;
        let (server, _) = self.context.program.serve(&self.site)?;
        self.check()?;
        server.stop()
    }

    /// One load until the server is gone.
    fn round(&mut self, server: Server) -> Result<(), TortureError> {
        let shared = Rc::new(RefCell::new(server));
        let fio = self.start_fio()?;
        let mut actions = self.damage();
        let killed = Rc::new(Cell::new(false));
        actions.push((self.some_time(), self.end(shared, killed.clone())));
        let seed = self.random.bits();
        let uri = self.site.uri(VOLUMES[0].0);
        let tally = load(&uri, &self.ledger, seed, actions)?;
        self.rounds += 1;
        self.campaign.kills += u32::from(killed.get());
        self.campaign.acknowledged += tally.acknowledged;
        self.campaign.reads_judged += tally.reads;
        if let Some((fio, mut running)) = fio {
            // It ends by itself when its connection does, with an error that means nothing.
            running.ends()?;
            self.written_by_fio = Some(fio);
        }
        Ok(())
    }

    /// How the round ends: mostly by a kill under load, sometimes by one while the server is ending.
    fn end(
        &mut self,
        server: Rc<RefCell<Server>>,
        killed: Rc<Cell<bool>>,
    ) -> Box<dyn FnOnce() -> Result<(), TortureError>> {
        if !self.random.chance(0.1) {
            return Box::new(move || {
                killed.set(true);
                server.borrow_mut().kill()
            });
        }
        let after = ENDING.mul_f64(self.random.unit());
        Box::new(move || {
            killed.set(server.borrow_mut().kill_while_ending(after)?);
            Ok(())
        })
    }

    /// What is done to drives in this round: in the first one nothing, then one drive after the other.
    fn damage(&mut self) -> Vec<Action> {
        let Some(fault) = self.fault else { return Vec::new() };
        let (at_risk, may_lose) = self.site.shape.drives_at_risk();
        let most = fault.drives(may_lose);
        if self.rounds == 0 || self.damaged.len() >= most {
            return Vec::new();
        }
        let drive = loop {
            let drive = at_risk.start + self.random.below(at_risk.len() as u64) as usize;
            if !self.damaged.contains(&drive) {
                break drive;
            }
        };
        self.damaged.push(drive);
        (self.context.tell)(&format!("{}: drive {}", self.campaign.name, self.site.drive_name(drive)));
        if fault == Fault::Return {
            self.away.push((drive, self.rounds));
        }
        let (site, mut random) = (self.site.clone(), Random::new(self.random.bits(), 1));
        let when = self.some_time();
        let goes_on: Action = (GOES_ON, Box::new(|| Ok(())));
        vec![(when, Box::new(move || fault.apply(&site, drive, &mut random))), goes_on]
    }

    /// A drive that missed a whole run of the server comes back.
    fn return_drives(&mut self) -> Result<(), TortureError> {
        let Some(fault) = self.fault else { return Ok(()) };
        let missed_one = |(_, went): &(usize, u32)| went + 1 < self.rounds;
        for (drive, _) in self.away.extract_if(.., |away| missed_one(away)) {
            fault.undo(&self.site, drive)?;
        }
        Ok(())
    }

    fn kill_while_starting(&mut self) -> Result<(), TortureError> {
        let usual = self.campaign.recovery_ms.last().copied().unwrap_or(100.0);
        let server = self.context.program.launch(&self.site)?;
        crate::clock::pause(Duration::from_secs_f64(usual * 1.2e-3 * self.random.unit()));
        let killed = u32::from(server.kill_at_once()?);
        self.campaign.kills += killed;
        self.campaign.kills_while_starting += killed;
        Ok(())
    }

    /// Starts it after a kill and checks everything.
    fn restart(&mut self) -> Result<Server, TortureError> {
        let (server, took_ms) = self.context.program.serve(&self.site)?;
        self.campaign.recovery_ms.push(took_ms);
        self.check()?;
        Ok(server)
    }

    fn check(&mut self) -> Result<(), TortureError> {
        check(&self.site.uri(VOLUMES[0].0), &self.ledger)?;
        self.campaign.checks += 1;
        self.campaign.reads_from_flash += self.context.program.reads_from_flash(&self.site)?;
        if let Some(fio) = self.written_by_fio.take()
            && fio.verify()?
        {
            self.campaign.second_opinions += 1;
        }
        Ok(())
    }

    /// fio believes every answer, as it may where the cache is not volatile.
    fn start_fio(&mut self) -> Result<Option<(Fio, crate::process::Running)>, TortureError> {
        if !Fio::is_there() || !self.site.shape.keeps_acknowledged() {
            return Ok(None);
        }
        // fio reads its seeds as signed numbers.
        let fio = Fio::new(&self.site, VOLUMES[1].0, self.random.bits() >> 2);
        let running = fio.start()?;
        Ok(Some((fio, running)))
    }

    fn some_time(&mut self) -> Wait {
        if self.random.chance(0.5) {
            Wait::Time(Nanos(self.random.below(KILL_AFTER.0)))
        } else {
            Wait::Acknowledged(self.random.below(KILL_AFTER_ACKNOWLEDGED), KILL_AFTER_MOST)
        }
    }
}
