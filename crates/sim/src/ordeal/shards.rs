//! The array moves to another number of shards, and the power may fail in the midst of it.

use tier0_drive::sim::PowerCut;

use crate::config::{Crash, log_uniform};
use crate::run::Run;
use crate::shelf::Whereabouts;
use crate::system::{System, SystemError};

/// Share of the ends of lives after which that happens.
const SHARE: f64 = 0.35;
/// Share of the moves that are cut off, and after how many changes of the drives.
const CUT_OFF_SHARE: f64 = 0.6;
const CHANGES: (u64, u64) = (1, 2_000);
/// Most shards.
const SHARDS_MAX: u64 = 4;

impl<S: System> Run<S> {
    /// Has the next life run on another number of shards, if the array lacks no drive.
    pub(crate) fn change_shards(&mut self) -> Result<(), String> {
        let session = self.session.clone();
        let mut random = session.random(0x5a4d);
        if !session.config.has_ordeals() || !random.chance(SHARE) {
            return Ok(());
        }
        let shards = 1 + random.below(SHARDS_MAX) as usize;
        let cut_after = random.chance(CUT_OFF_SHARE).then(|| log_uniform(CHANGES.0, CHANGES.1, &mut random));
        let lacks_drives = !session.shelf.borrow().names(Whereabouts::Gone).is_empty();
        let runtime = self.runtime();
        let world = runtime.world().clone();
        session.note(&world, format!("to {shards} shards, power cut after {cut_after:?} changes"));
        let handles = session.shelf.borrow_mut().open(&world, &mut session.random(0x0a));
        if let Some(changes) = cut_after {
            session.switch.arm(changes);
        }
        let system = self.system.clone();
        let switch = session.switch.clone();
        let moved = runtime.run(async move {
            let off = std::pin::pin!(switch.wait_off());
            let moving = std::pin::pin!(system.move_to(&world, handles, shards));
            match futures_util::future::select(off, moving).await {
                futures_util::future::Either::Left(_) => None,
                futures_util::future::Either::Right((moved, _)) => Some(moved),
            }
        });
        self.bury(runtime, Crash::Power(PowerCut::Any));
        match moved {
            None => session.count("moves to other shards cut off"),
            Some(Ok(true)) => session.count("moves to other shards"),
            Some(Ok(false) | Err(SystemError::Refused(_))) => {
                session.count("moves to other shards left out");
            }
            Some(Err(_)) if lacks_drives => session.count("moves to other shards left out"),
            Some(Err(error)) => return Err(format!("the array cannot move to {shards} shards: {error}")),
        }
        Ok(())
    }
}
