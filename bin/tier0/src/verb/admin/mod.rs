//! The verbs that ask a running array to change something: `tier0 drive`, `pool`, `scrub` and `volume`, a module each.

mod drive;
mod pool;
mod rate;
mod scrub;
mod volume;

use std::path::{Path, PathBuf};

pub(crate) use self::drive::{Drive, drive};
pub(crate) use self::pool::{Pool, pool};
pub(crate) use self::scrub::{Scrub, scrub};
pub(crate) use self::volume::{Volume, volume};

use crate::failure::Failure;

/// The same path for a server that runs in another directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::Input(format!("{path:?} is not a path: {error}; correct it")))
}
