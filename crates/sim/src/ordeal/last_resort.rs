//! More drives are away than the level allows, some of those that are there are stale, and the administrator decides to
//! believe them again. Drives may have been put back to what they were before the others went on.
//!
//! All of it is tried and taken back: drives and auditor are put back to what they were.

use std::ops::Range;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerCut, SimMedium};
use tier0_units::Lba;
use tier0_world::{IoError, Random, World};

use crate::config::{Crash, pick};
use crate::run::Run;
use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::system::{LINES_FOUND, Recovered, Running, System, SystemError};

/// Share of the ends of lives after which it is tried.
const SHARE: f64 = 0.7;
/// Share of the last resorts that are cut off, and after how many changes of the drives at most.
const CUT_OFF_SHARE: f64 = 0.4;
const CHANGES_MAX: u64 = 120;
/// Share of the drives that went on which are put back to what they were before.
const PUT_BACK_SHARE: f64 = 0.15;
/// Writes to each volume while a drive is away, and their sectors.
const WRITES: u64 = 12;
const WRITE_SECTORS: u64 = 32;
/// Sectors of one read.
const READ_SECTORS: u64 = 64;

impl<S: System> Run<S> {
    /// Tries the last resort, and puts everything back.
    pub(crate) fn last_resort(&mut self) -> Result<(), String> {
        let mut random = self.session.random(0x1a57);
        let session = self.session.clone();
        // What silent damage does to drives that are believed again cannot be listed.
        if !session.config.has_ordeals() || session.damaged.get() || !random.chance(SHARE) {
            return Ok(());
        }
        let mut there = session.shelf.borrow().names(Whereabouts::In);
        if there.len() < 2 {
            return Ok(());
        }
        let lost = pick(&there, &mut random);
        there.retain(|name| *name != lost);
        let (images, audit) = (session.shelf.borrow().images(), session.auditor.borrow().clone());
        let opened = self.go_on_without(&lost, &there, &mut random);
        let stale = session.shelf.borrow().names(Whereabouts::Out);
        for _ in 0..1 + random.below(2) {
            let away = pick(&there, &mut random);
            if there.len() > 1 {
                there.retain(|name| *name != away);
            }
        }
        let is_put_back = |name: &&String| there.contains(name) && random.chance(PUT_BACK_SHARE);
        let put_back: Vec<&String> = images.keys().filter(is_put_back).collect();
        let carriers = opened.as_deref().unwrap_or_default();
        // One at least knows what was.
        let knows = |name: &String| there.contains(name) && !put_back.contains(&name);
        if carriers.iter().any(knows) && !put_back.is_empty() {
            session.count("last resorts with drives that were put back");
            session.shelf.borrow().restore(put_back.into_iter().map(|name| (name, &images[name])));
        }
        there.push(lost);
        there.extend(stale);
        let media: Vec<SimMedium> = there.iter().map(|name| session.shelf.borrow().medium(name)).collect();
        let gone: Vec<&SimMedium> = media.iter().filter(|medium| medium.is_gone()).collect();
        gone.iter().for_each(|medium| medium.reconnect());
        let tried = match opened {
            Ok(carriers) if carriers.is_empty() => Ok(()),
            Ok(_) => self.believe_again(&media, &mut random),
            Err(sentence) => Err(sentence),
        };
        gone.iter().for_each(|medium| medium.disconnect());
        session.shelf.borrow().restore(&images);
        *session.auditor.borrow_mut() = audit;
        tried.map_err(|sentence| format!("the last resort with {}: {sentence}", there.join(" ")))
    }

    /// The others go on without a drive, and write, until the power fails: those that carry the metadata then, none where
    /// they do not go on.
    fn go_on_without(
        &mut self,
        lost: &str,
        others: &[String],
        random: &mut Random,
    ) -> Result<Vec<String>, String> {
        let runtime = self.runtime();
        let (world, system, session) = (runtime.world().clone(), self.system.clone(), self.session.clone());
        let media = others.iter().map(|name| session.shelf.borrow().medium(name));
        let drives: Vec<DriveHandle> = media.map(|medium| medium.open(&world)).collect();
        let (without, mut draws) = (vec![lost.to_owned()], Random::new(random.bits(), 0x1057));
        let written = runtime.run(async move {
            let Ok(running) = system.open(&world, &session.config.array, drives, without).await else {
                return Ok(Vec::new());
            };
            write(&world, &session, &running, &mut draws).await?;
            Ok(running.status().await.metadata)
        });
        self.bury(runtime, Crash::Power(PowerCut::Any));
        written
    }

    /// The power fails while the last resort is being carried out. What was decided can be decided again; what it was said
    /// to lose may be lost.
    fn cut_off(&mut self, media: &[SimMedium], changes: u64) -> Losses {
        let runtime = self.runtime();
        let world = runtime.world().clone();
        let drives: Vec<DriveHandle> = media.iter().map(|medium| medium.open(&world)).collect();
        let (system, session) = (self.system.clone(), self.session.clone());
        let losses = runtime.run(async move {
            let said = system.recover(&world, drives.clone(), false).await;
            session.switch.arm(changes);
            let switch = session.switch.clone();
            let off = std::pin::pin!(switch.wait_off());
            let recovered = std::pin::pin!(system.recover(&world, drives, true));
            futures_util::future::select(off, recovered).await;
            said.map_or_else(|_| Vec::new(), |said| said.losses)
        });
        self.session.count("last resorts cut off");
        self.bury(runtime, Crash::Power(PowerCut::Any));
        losses
    }

    fn believe_again(&mut self, media: &[SimMedium], random: &mut Random) -> Result<(), String> {
        let mut said = Vec::new();
        while random.chance(CUT_OFF_SHARE) {
            said.push(self.cut_off(media, 1 + random.below(CHANGES_MAX)));
        }
        let before = self.session.shelf.borrow().fingerprints();
        let runtime = self.runtime();
        let world = runtime.world().clone();
        let drives: Vec<DriveHandle> = media.iter().map(|medium| medium.open(&world)).collect();
        let system = self.system.clone();
        let recovered = runtime.run(async move { system.recover(&world, drives, true).await });
        self.bury(runtime, Crash::Power(PowerCut::Any));
        let mut recovered = match recovered {
            Ok(recovered) => recovered,
            Err(SystemError::Refused(_)) => return Ok(()),
            Err(SystemError::Failed(why) | SystemError::Unfinished(why)) => {
                return Err(format!("it fails: {why}"));
            }
        };
        if let Some(obstacle) = recovered.obstacle {
            self.session.count("last resorts that did nothing");
            return match self.session.shelf.borrow().fingerprints() == before {
                true => Ok(()),
                false => Err(format!("it does nothing ({obstacle}), and has written")),
            };
        }
        self.session.count("last resorts");
        if recovered.losses.iter().all(|losses| losses.as_ref().is_some_and(Vec::is_empty)) {
            self.session.count("last resorts that lose nothing");
        }
        for earlier in said {
            add_losses(&mut recovered.losses, earlier);
        }
        for opening in 0..1 + random.below(2) {
            let runtime = self.runtime();
            let (world, system, session) =
                (runtime.world().clone(), self.system.clone(), self.session.clone());
            let drives: Vec<DriveHandle> = media.iter().map(|medium| medium.open(&world)).collect();
            let losses = recovered.clone();
            let opened = runtime.run(async move {
                let running = system.open(&world, &session.config.array, drives, Vec::new()).await;
                let running = running.map_err(|error| format!("it does not open afterwards: {error}"))?;
                if opening == 0 {
                    expect_cold(&running).await?;
                }
                verify(&world, &session, &running, &losses).await
            });
            self.bury(runtime, Crash::Power(PowerCut::Any));
            opened?;
        }
        Ok(())
    }
}

/// What the flash cache holds may be newer than what the drives do, and reads would go back when it gives way.
async fn expect_cold<R: Running>(running: &R) -> Result<(), String> {
    let counters = running.counters().await;
    let found = counters.into_iter().find(|(name, _)| *name == LINES_FOUND).map_or(0, |(_, lines)| lines);
    match found {
        0 => Ok(()),
        lines => Err(format!("it finds {lines} lines in a flash cache that nobody may believe")),
    }
}

/// By volume: the sectors that may be lost; none where that may be anywhere.
type Losses = Vec<Option<Vec<Range<u64>>>>;

/// What was said to be lost before may be so too.
fn add_losses(losses: &mut Losses, earlier: Losses) {
    for (volume, earlier) in losses.iter_mut().zip(earlier) {
        match (volume.as_mut(), earlier) {
            (Some(ranges), Some(earlier)) => {
                ranges.extend(earlier);
                ranges.sort_by_key(|range| range.start);
            }
            _ => *volume = None,
        }
    }
}

/// Writes here and there; a write may find no room, or be lost with its connection.
async fn write<R: Running>(
    world: &World,
    session: &Session,
    running: &R,
    random: &mut Random,
) -> Result<(), String> {
    for (number, volume) in running.volumes().iter().enumerate() {
        let sectors = volume.info().sectors.0;
        for _ in 0..WRITES {
            let count = WRITE_SECTORS.min(sectors);
            let lba = Lba(random.below((sectors - count) / count + 1) * count);
            let mut buf = world.buffer(count as u32);
            let ticket = session.auditor.borrow_mut().begin_write(number, lba, buf.as_mut_slice(), |_| false);
            let result = volume.write(lba, buf.freeze(), true).await;
            session.auditor.borrow_mut().end_write(ticket, result.is_ok(), true);
            match result {
                Ok(()) | Err(IoError::NoSpace) => {}
                Err(IoError::Gone) if running.may_lose_requests() => {}
                Err(error) => return Err(format!("a write of volume {number} at {lba} fails: {error}")),
            }
        }
    }
    Ok(())
}

/// Everything that is not said to be lost is right; what is said to be reads the same twice.
async fn verify<R: Running>(
    world: &World,
    session: &Rc<Session>,
    running: &R,
    recovered: &Recovered,
) -> Result<(), String> {
    for (number, volume) in running.volumes().iter().enumerate() {
        let Some(losses) = recovered.losses.get(number).cloned().flatten() else { continue };
        let sectors = volume.info().sectors.0;
        for range in pieces(sectors, &losses) {
            let count = (range.end - range.start) as u32;
            let (lba, may_be_lost) = (Lba(range.start), is_among(range.start, &losses));
            let ticket = session.auditor.borrow().begin_read(number, lba, u64::from(count));
            let (result, buf) = volume.read(lba, world.buffer(count)).await;
            if may_be_lost {
                let (again, second) = volume.read(lba, world.buffer(count)).await;
                if result.is_ok() && again.is_ok() && buf.as_slice() != second.as_slice() {
                    return Err(format!("volume {number} gives two answers at {lba}"));
                }
                continue;
            }
            if let Err(error) = result {
                return Err(format!("volume {number} at {lba} is not said to be lost, and: {error}"));
            }
            let judged = session.auditor.borrow_mut().end_read(&ticket, buf.as_slice());
            judged.map_err(|finding| format!("what is not said to be lost is wrong: {finding}"))?;
            session.count("reads verified after a last resort");
        }
    }
    Ok(())
}

fn is_among(sector: u64, ranges: &[Range<u64>]) -> bool {
    ranges.iter().any(|range| range.contains(&sector))
}

/// A volume in pieces that are listed wholly or not at all.
fn pieces(sectors: u64, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut bounds: Vec<u64> = (0..sectors).step_by(READ_SECTORS as usize).collect();
    bounds.extend(ranges.iter().flat_map(|range| [range.start, range.end]));
    bounds.push(sectors);
    bounds.retain(|bound| *bound <= sectors);
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}
