//! Ordeals: what an array goes through beside mishaps ([`crate::SimConfig::ordeals`]).
//!
//! | ordeal | what must hold |
//! |---|---|
//! | the power fails while the array is created ([`founding`]) | it opens and is empty, or the start is refused, writes nothing, and it can be created again; once every drive has a superblock, it opens |
//! | a drive acknowledges flushes, persists nothing, and the power fails ([`liar`]) | nothing acknowledged is lost where the level makes up for a drive |
//! | an operator begins something, and the power fails soon after ([`operator`]) | as after any power cut |
//! | more drives are away than the level allows, and lost ones are there ([`last_resort`]) | believed again, the array opens, and all is right that is not in the list of what may be lost |
//! | it moves to another number of shards, and the power fails ([`shards`]) | as after any power cut, on the old number or on the new one |

mod founding;
mod last_resort;
mod liar;
mod operator;
mod shards;

use std::rc::Rc;

use crate::config::LifeEnd;
use crate::life::Life;
use crate::system::Running;

/// Has ordeals happen that need an array with users.
pub(crate) async fn happen<R: Running>(life: Rc<Life<R>>, end: LifeEnd) {
    if !life.session.config.has_ordeals() {
        return;
    }
    liar::lie(&life).await;
    if end == LifeEnd::Done {
        // A life that is to end in peace must get there.
        return;
    }
    if let Err(sentence) = operator::begin_and_fail(&life).await {
        life.break_off(sentence);
    }
}
