//! Drives that have left a pool. They keep what they hold but for their superblocks, so that the pool's own record alone says
//! what lies where they were.

use std::path::Path;

use tier0_pool::{Member, MemberState, PoolState};

/// The member that lay at a path and was the last one to leave from there.
pub fn departed_from<'a>(state: &'a PoolState, path: &Path) -> Option<&'a Member> {
    let has_left = |member: &&Member| member.state == MemberState::Removed && Path::new(&member.path) == path;
    state.members().iter().rfind(has_left)
}
