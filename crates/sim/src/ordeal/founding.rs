//! The power fails while an array is created, once or again and again.

use tier0_block::BlockTarget;
use tier0_drive::sim::PowerCut;
use tier0_units::Lba;
use tier0_world::World;

use crate::config::Crash;
use crate::run::Run;
use crate::system::{Running, System, SystemError};

/// Creations that are cut at most.
const CUTS: u64 = 3;
/// Sectors of one read.
const READ_SECTORS: u64 = 128;

impl<S: System> Run<S> {
    /// Cuts creations of the array, and looks at what they leave. What is created afterwards finds blank drives, or what
    /// the last one left.
    pub(crate) fn cut_creations(&mut self) -> Result<(), String> {
        if !self.session.config.has_ordeals() {
            return Ok(());
        }
        let mut random = self.session.random(0xf0d);
        let blank = self.session.shelf.borrow().images();
        let changes = self.found(None)?;
        for cut in 0..1 + random.below(CUTS) {
            let is_first = cut == 0 || random.chance(0.5);
            if is_first {
                self.session.shelf.borrow().restore(&blank);
            }
            // The last changes are the second copies of the superblocks.
            let drives = self.session.config.array.drives as u64;
            let last = random.below(drives);
            let point = if random.chance(0.5) { changes - last } else { 1 + random.below(changes) };
            self.found(Some(point))?;
            self.session.count("creations cut");
            let must_open = is_first && point > changes - drives;
            self.look(must_open).map_err(|sentence| {
                format!("a creation of {changes} changes of the drives was cut at {point}: {sentence}")
            })?;
        }
        if random.chance(0.5) {
            self.session.shelf.borrow().restore(&blank);
        }
        Ok(())
    }

    /// Creates the array until the power fails; how many changes that took.
    fn found(&mut self, cut_at: Option<u64>) -> Result<u64, String> {
        let runtime = self.runtime();
        let world = runtime.world().clone();
        let (system, session) = (self.system.clone(), self.session.clone());
        let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
        let before = session.switch.changes();
        if let Some(point) = cut_at {
            session.switch.arm(point);
        }
        let created = runtime.run(async move {
            let switch = session.switch.clone();
            let off = std::pin::pin!(switch.wait_off());
            let creation = std::pin::pin!(async {
                system.clear(&handles).await?;
                system.create(&world, &session.config.array, handles.clone()).await
            });
            match futures_util::future::select(off, creation).await {
                futures_util::future::Either::Left(_) => Ok(()),
                futures_util::future::Either::Right((created, _)) => created,
            }
        });
        let changes = self.session.switch.changes() - before;
        self.bury(runtime, Crash::Power(PowerCut::Any));
        created.map_err(|error| format!("the array cannot be created: {error}"))?;
        Ok(changes)
    }

    /// Opens what a creation has left.
    fn look(&mut self, must_open: bool) -> Result<(), String> {
        let runtime = self.runtime();
        let world = runtime.world().clone();
        let (system, session) = (self.system.clone(), self.session.clone());
        let before = session.shelf.borrow().fingerprints();
        let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
        let looked = runtime.run(async move {
            match system.open(&world, &session.config.array, handles, Vec::new()).await {
                Ok(running) => Ok(is_empty(&world, &running).await),
                Err(error) => Err(error),
            }
        });
        self.bury(runtime, Crash::Kill);
        self.judge_founding(must_open, looked, || self.session.shelf.borrow().fingerprints() == before)
    }

    fn judge_founding(
        &self,
        must_open: bool,
        looked: Result<Result<(), String>, SystemError>,
        is_untouched: impl FnOnce() -> bool,
    ) -> Result<(), String> {
        match looked {
            Ok(is_empty) => {
                self.session.count("creations cut that open");
                is_empty
            }
            Err(error) if must_open => {
                Err(format!("every drive has its superblock, and the array does not open: {error}"))
            }
            Err(error) if !is_untouched() => Err(format!("the start is refused ({error}) and has written")),
            Err(_) => Ok(()),
        }
    }
}

/// A new array holds nothing.
async fn is_empty<R: Running>(world: &World, running: &R) -> Result<(), String> {
    for (number, volume) in running.volumes().iter().enumerate() {
        let sectors = volume.info().sectors.0;
        for lba in (0..sectors).step_by(READ_SECTORS as usize) {
            let buf = world.buffer(READ_SECTORS.min(sectors - lba) as u32);
            let (result, buf) = volume.read(Lba(lba), buf).await;
            result.map_err(|error| format!("volume {number} of the new array cannot be read: {error}"))?;
            if buf.as_slice().iter().any(|byte| *byte != 0) {
                return Err(format!("volume {number} of the new array is not empty at {lba}"));
            }
        }
    }
    Ok(())
}
