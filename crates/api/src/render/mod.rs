//! The sentences of events and findings, and the commands that they advise. All of them are made here, so that the same fact
//! reads the same everywhere. Programs use ids and subjects; these texts may change with every version.
//!
//! An event has a fact and a remedy. Its subject is told before the fact (`drive d0: answers again`), so the fact does not
//! repeat it. A finding stands alone, so its fact names its subject.

mod event;
mod finding;
mod shared;
mod tier;

pub use event::{ENDED, LEFT, RECOVERED, event};
pub use finding::finding;
pub use shared::{add_command, remove_command, replace_command};

use tier0_units::named;

use crate::Subject;

/// A subject as a text: `drive d0`, `pool pool0, group fast`.
pub fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Array { name } => format!("array {name}"),
        Subject::Pool { name } => format!("pool {name}"),
        Subject::Group { pool, name } => format!("pool {pool}, group {name}"),
        Subject::Drive { name } => format!("drive {name}"),
        Subject::Drives { names } => named("drive", names),
    }
}
