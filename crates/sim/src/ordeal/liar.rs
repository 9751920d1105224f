//! A drive that acknowledges flushes and durable writes, and persists nothing: until the life ends, or the array is healed.
//!
//! Stays within what redundancy makes up for ([`crate::atlas`]): where all copies lie, nothing can be promised.

use std::rc::Rc;

use tier0_units::Nanos;

use crate::config::{log_uniform, pick};
use crate::life::Life;
use crate::shelf::Whereabouts;
use crate::system::Running;

/// Share of the lives in which one lies.
const SHARE: f64 = 0.5;
/// The pause before, nanoseconds.
const PAUSE: (u64, u64) = (1_000_000, 5_000_000_000);

/// One drive begins to lie.
pub(crate) async fn lie<R: Running>(life: &Rc<Life<R>>) {
    let session = &life.session;
    let mut random = session.random(0x11a5);
    if !random.chance(SHARE) {
        return;
    }
    life.world.sleep(Nanos(log_uniform(PAUSE.0, PAUSE.1, &mut random))).await;
    life.status().await;
    let present = session.shelf.borrow().names(Whereabouts::In);
    if present.is_empty() || life.done.get() || session.mishaps.is_active() {
        return;
    }
    let name = pick(&present, &mut random);
    if !session.atlas.borrow_mut().strike(&name) {
        return;
    }
    session.note(&life.world, format!("{name} lies about its flushes"));
    session.count("drives that lie about flushes");
    session.damaged.set(true);
    session.shelf.borrow().medium(&name).begin_to_lie();
}
