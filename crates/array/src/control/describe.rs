//! What the array is made of, of the metadata.

use std::path::{Path, PathBuf};

use super::{Control, Guarded};
use crate::admin::PoolFacts;

impl Control {
    /// What every pool with metadata is.
    pub(super) fn describe(&self) -> Vec<PoolFacts> {
        let guarded = self.pools.iter().filter_map(|pool| pool.guarded.as_ref());
        let facts = |pool: &Guarded| PoolFacts {
            space: Some(pool.space_rules.borrow().clone()),
            ..PoolFacts::of(&pool.metadata.state(), |place| path_of(pool, place))
        };
        guarded.map(facts).collect()
    }
}

/// Where a member that serves is. A file or device is called by its path; others have none.
fn path_of(pool: &Guarded, place: u32) -> Option<PathBuf> {
    let drive = pool.metadata.drive(place)?;
    let path = Path::new(&drive.info().name);
    path.exists().then(|| std::path::absolute(path).ok()).flatten()
}
