//! What the array is made of, of the metadata. No drive and no file system is asked: one that hangs would hold up everybody.

use std::path::PathBuf;

use super::{Control, Guarded};
use crate::admin::PoolFacts;

impl Control {
    /// What every pool is.
    pub(super) fn describe(&self) -> Vec<PoolFacts> {
        let facts = |pool: &Guarded| {
            let state = pool.metadata.state();
            let path_of = |place: u32| {
                let serves = pool.metadata.drive(place).is_some();
                let path = state.member(place).filter(|_| serves).map(|member| &member.path);
                path.filter(|path| !path.is_empty()).map(PathBuf::from)
            };
            PoolFacts { space: Some(pool.space_rules.borrow().clone()), ..PoolFacts::of(&state, path_of) }
        };
        self.pools.iter().map(|pool| facts(&pool.guarded)).collect()
    }
}
