//! One run: an array is created, lives and dies as often as its options say, and is judged to the end.

use std::rc::Rc;

use tier0_drive::sim::PowerCut;
use tier0_units::{Lba, Nanos};
use tier0_world::{PayloadWidth, Random, VirtualRuntime};

use crate::client;
use crate::config::{Crash, LifeEnd, LifePlan, SimConfig, pick};
use crate::course::{Ended, live};
use crate::coverage::Coverage;
use crate::failure::Failure;
use crate::heal::heal;
use crate::incident;
use crate::life::Life;
use crate::scratch;
use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::starts::{self, Attempt};
use crate::system::{Running, System};
use crate::verify::verify;

/// Within this discarded space must be free.
const RECLAIM_MAX: Nanos = Nanos::from_secs(600);

/// What a clean run tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunReport {
    /// The hash of all events; two runs of one seed and one commit agree in it.
    pub hash: u64,
    /// What it reached.
    pub coverage: Coverage,
    /// What was done to the array, and what was injected into its drives.
    pub events: Vec<String>,
    /// Writes, discards and flushes of all drives after the array's creation.
    pub changes: u64,
}

/// Runs a system through everything that the options say.
///
/// # Errors
/// The first thing that broke.
pub fn run<S: System>(system: &S, config: &SimConfig) -> Result<RunReport, Box<Failure>> {
    system.run(config)
}

/// The run itself, whose clients reach the system as it is.
pub(crate) fn run_all<S: System>(system: &S, config: &SimConfig) -> Result<RunReport, Box<Failure>> {
    let mut run = Run { system: system.clone(), session: Rc::new(Session::new(config)), hash: 0, created: 0 };
    let done = run.all();
    let mut events = run.session.events();
    events.extend(run.session.shelf.borrow().ledger());
    done.map_err(|sentence| Box::new(Failure::of_run(config, sentence, events.clone())))?;
    let mut coverage = run.session.coverage.borrow().clone();
    coverage.add("sectors verified", run.session.auditor.borrow().sectors_verified());
    Ok(RunReport { hash: run.hash, coverage, events, changes: run.session.switch.changes() - run.created })
}

/// A life in which the users work to their end.
pub(crate) fn peace() -> LifePlan {
    LifePlan {
        end: LifeEnd::Done,
        from_opening: false,
        crash: Crash::Power(PowerCut::Any),
        heals: false,
        verified_share: 1.0,
    }
}

pub(crate) struct Run<S> {
    pub(crate) system: S,
    pub(crate) session: Rc<Session>,
    hash: u64,
    /// Changes of the drives when the array had been created.
    created: u64,
}

impl<S: System> Run<S> {
    fn all(&mut self) -> Result<(), String> {
        self.cut_creations()?;
        self.create()?;
        for plan in self.session.config.lives.clone() {
            let heals = plan.heals;
            self.live(&plan, async move |life| if heals { heal(&life).await } else { Ok(()) })?;
            self.between();
            incident::between(&self.session);
            self.halves_alone()?;
            self.copy_served_elsewhere()?;
            self.refused_starts()?;
            self.last_resort()?;
            self.change_shards()?;
        }
        if self.session.config.stop_after_lives {
            return Ok(());
        }
        let last = |verified_share| LifePlan { heals: true, verified_share, ..peace() };
        self.live(&last(0.3), async |life| end_in_peace(&life).await)?;
        self.live(&last(1.0), async |life| give_back(&life).await)
    }

    pub(crate) fn runtime(&self) -> VirtualRuntime {
        let seed = Random::new(self.session.config.seed, 0x11fe + self.session.life.get()).bits();
        VirtualRuntime::new(seed, PayloadWidth::REAL)
    }

    fn create(&mut self) -> Result<(), String> {
        let runtime = self.runtime();
        let world = runtime.world().clone();
        let (system, session) = (self.system.clone(), self.session.clone());
        let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
        let created = runtime.run(async move {
            if session.config.has_ordeals() {
                system.clear(&handles).await?;
            }
            system.create(&world, &session.config.array, handles).await
        });
        self.bury(runtime, Crash::Power(PowerCut::Any));
        self.created = self.session.switch.changes();
        created.map_err(|error| format!("the array cannot be created: {error}"))
    }

    /// One life and its end.
    pub(crate) fn live<A>(&mut self, plan: &LifePlan, after: A) -> Result<(), String>
    where
        A: AsyncFnOnce(Rc<Life<S::Running>>) -> Result<(), String> + 'static,
    {
        let runtime = self.runtime();
        let course =
            live(runtime.world().clone(), self.system.clone(), self.session.clone(), plan.clone(), after);
        let ended = runtime.run(course);
        self.session.note(runtime.world(), format!("{ended:?}, then {:?}", plan.crash));
        self.session.count(match (ended.as_ref(), plan.crash) {
            (Ok(Ended::Crashed), Crash::Power(_)) => "power cuts under load",
            (Ok(Ended::Crashed), Crash::Kill) => "processes killed under load",
            _ => "power cuts at rest",
        });
        self.bury(runtime, plan.crash);
        ended.map(|_| ())
    }

    pub(crate) fn bury(&mut self, runtime: VirtualRuntime, crash: Crash) {
        self.hash = self.hash.rotate_left(17) ^ runtime.world().event_hash();
        let now = runtime.world().now();
        drop(runtime);
        self.session.mishaps.end_all(&self.session.shelf.borrow(), now);
        self.session.mishaps.forget();
        self.session.shelf.borrow_mut().crash(crash);
        let auditor = &self.session.auditor;
        self.session.scratch.borrow_mut().crash(|ticket| auditor.borrow().end_clone(ticket));
        auditor.borrow_mut().crash();
        self.session.forget_requests();
        self.session.hung.set(false);
        self.session.life.set(self.session.life.get() + 1);
    }

    /// Starts with too few drives, or with stale ones alone: they must be refused, and write nothing.
    fn refused_starts(&mut self) -> Result<(), String> {
        let mut random = self.session.random(0x4ef);
        if !random.chance(self.session.config.faults.refused_share) {
            return Ok(());
        }
        let attempts = starts::attempts(&self.session, &mut random);
        attempts.iter().try_for_each(|attempt| self.refused_start(attempt))
    }

    pub(crate) fn refused_start(&mut self, attempt: &Attempt) -> Result<(), String> {
        let runtime = self.runtime();
        let (world, session, system) = (runtime.world().clone(), self.session.clone(), self.system.clone());
        let changes = self.session.switch.changes();
        let before = self.session.shelf.borrow().fingerprints();
        let away = attempt.connect(&self.session);
        let tried = runtime.run(starts::attempt(world, system, session, attempt.clone()));
        self.bury(runtime, Crash::Kill);
        let written = self.session.switch.changes() - changes;
        away.iter().for_each(|medium| medium.disconnect());
        attempt.judge(tried, written, &before, &self.session)
    }

    /// While the array is down, drives are taken out, and others come back with what they held.
    fn between(&mut self) {
        let session = &self.session;
        let mut random = session.random(0xbe);
        let mut shelf = session.shelf.borrow_mut();
        for name in shelf.names(Whereabouts::Out) {
            if random.chance(session.config.faults.return_share) {
                shelf.put(&name, Whereabouts::In);
                session.count("stale drives brought back");
            }
        }
        if random.chance(session.config.faults.missing_share) {
            let name = pick(&shelf.names(Whereabouts::In), &mut random);
            if session.atlas.borrow_mut().strike(&name) {
                shelf.put(&name, Whereabouts::Gone);
                session.count("drives missing at a start");
            }
        }
    }
}

/// Faults end; the array heals; every byte is there; and it is there after one more power cut.
async fn end_in_peace<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    heal(life).await?;
    verify(life, 1.0).await?;
    for volume in 0..life.volumes.len() {
        client::flush(life, volume).await?;
    }
    Ok(())
}

/// What is discarded is free again, and reads as zeros.
async fn give_back<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    heal(life).await?;
    if !life.session.config.gives_space_back {
        return Ok(());
    }
    if life.session.config.mixture.clones {
        scratch::delete_all(life).await?;
    }
    for volume in 0..life.volumes.len() {
        let sectors = life.session.auditor.borrow().sectors(volume);
        client::discard(life, volume, Lba(0), sectors).await?;
        client::flush(life, volume).await?;
    }
    verify(life, 1.0).await?;
    scratch::delete_all(life).await?;
    if life.session.config.array.volumes.iter().all(|volume| volume.thin) {
        become_empty(life).await?;
    }
    Ok(())
}

async fn become_empty<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let began = life.world.now();
    loop {
        match life.status().await.used_sectors {
            None | Some(0) => return Ok(()),
            Some(used) if life.world.now() - began > RECLAIM_MAX => {
                return Err(format!("{used} sectors stay allocated after everything was discarded"));
            }
            Some(_) => life.world.sleep(Nanos::from_millis(200)).await,
        }
    }
}
