//! Extents that move between the groups of a pool while the users work.
//!
//! Invariants: nothing that a user sees changes by it, so the auditor expects what it expects of the same seed without this.

use std::rc::Rc;

use tier0_units::Nanos;

use crate::administrator::ask;
use crate::life::Life;
use crate::system::{Admin, Running};

/// Pauses of a user that one of these is as long as.
const THINKS: u64 = 2;
/// Extents that are asked for at once, at most.
const EXTENTS_MAX: u64 = 8;
/// The first of them, at most: more than a volume has wraps around.
const FIRST_MAX: u64 = 64;

/// So often in a life, at most: users may wait for hours.
const REQUESTS_MAX: u32 = 2_000;

/// Moves extents of any volume to any group until the users are done.
pub(crate) async fn move_about<R: Running>(life: Rc<Life<R>>) {
    let mut random = life.session.random(0x6d07);
    let pause = life.session.config.load.think.0.saturating_mul(THINKS) as f64;
    let volumes = life.session.config.array.volumes.len() as u64;
    for _ in 0..REQUESTS_MAX {
        if life.done.get() {
            return;
        }
        let wish = Admin::MoveExtents {
            volume: random.below(volumes) as usize,
            first: random.below(FIRST_MAX) as u32,
            count: 1 + random.below(EXTENTS_MAX) as u32,
            group: random.below(2) as u32,
        };
        if let Err(sentence) = ask(&life, wish, "extents asked to another group").await {
            return life.break_off(sentence);
        }
        life.world.sleep(Nanos(random.exponential(pause) as u64)).await;
    }
}
