//! An operator who begins something and is interrupted: the power fails in the midst of it.

use std::rc::Rc;

use tier0_units::Nanos;

use crate::administrator::{ask, replace};
use crate::chaos::empty;
use crate::config::{log_uniform, pick};
use crate::life::Life;
use crate::scratch;
use crate::shelf::Whereabouts;
use crate::system::{Admin, Running};

/// Share of the lives in which that happens.
const SHARE: f64 = 0.4;
/// The pause before, nanoseconds.
const PAUSE: (u64, u64) = (1_000_000, 20_000_000_000);
/// Changes of the drives until the power fails.
const CHANGES: (u64, u64) = (1, 3_000);

/// Begins something; the power fails soon.
pub(crate) async fn begin_and_fail<R: Running>(life: &Rc<Life<R>>) -> Result<(), String> {
    let session = &life.session;
    let mut random = session.random(0x0be7);
    if !random.chance(SHARE) {
        return Ok(());
    }
    life.world.sleep(Nanos(log_uniform(PAUSE.0, PAUSE.1, &mut random))).await;
    life.status().await;
    let present = session.shelf.borrow().names(Whereabouts::In);
    if present.is_empty() || life.done.get() || session.mishaps.is_active() {
        return Ok(());
    }
    let drive = pick(&present, &mut random);
    let (counted, begins) = match random.below(5) {
        0 => ("interrupted: a drive was being emptied", empty(life, &drive).await?),
        1 => {
            scratch::grow(life, &mut random).await?;
            ("interrupted: a pool grew", true)
        }
        2 => ("interrupted: a scrub", ask(life, Admin::Scrub, "scrubs asked for").await?),
        _ if !session.atlas.borrow_mut().strike(&drive) => return Ok(()),
        3 => {
            replace(life, &drive).await?;
            ("interrupted: a drive was being replaced", true)
        }
        _ => {
            let begins = ask(life, Admin::Fail { drive }, "drives failed by an administrator").await?;
            ("interrupted: a drive was being rebuilt", begins)
        }
    };
    if begins && !life.done.get() {
        session.count(counted);
        session.note(&life.world, counted);
        session.switch.arm(log_uniform(CHANGES.0, CHANGES.1, &mut random));
    }
    Ok(())
}
