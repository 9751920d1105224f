//! What the array is made of, of the metadata. No drive and no file system is asked: one that hangs would hold up all requests.

use std::path::{Path, PathBuf};

use tier0_description::facts::{DriveFacts, DriveState, PoolFacts};

use crate::{Control, Damage, RelocatedDrive};

impl Control {
    /// What every pool is.
    pub(crate) async fn describe(&self) -> Vec<PoolFacts> {
        self.membership.look_at_moved_drives().await;
        let facts = |number: usize| {
            let state = self.context.pool(number).metadata.state();
            let path_of = |place: u32| {
                let path = state.member(place).map(|member| &member.path);
                path.filter(|path| !path.is_empty()).map(PathBuf::from)
            };
            PoolFacts {
                space: Some(self.space.core(number).rules.borrow().clone()),
                ..PoolFacts::of(&state, path_of)
            }
        };
        let mut pools: Vec<PoolFacts> = (0..self.context.pools.len()).map(facts).collect();
        let Some(opener) = &self.membership.opener else { return pools };
        let (moved, damaged) = (self.membership.relocated.borrow(), opener.damaged());
        let drives = pools.iter_mut().flat_map(|pool| &mut pool.drives);
        drives
            .filter(|drive| drive.state == DriveState::Active)
            .for_each(|drive| put_in_place(drive, &moved, &damaged));
        pools
    }
}

/// What became of a drive's file since it was opened.
fn put_in_place(drive: &mut DriveFacts, moved: &[RelocatedDrive], damaged: &[(PathBuf, Damage)]) {
    let is_it = |path: &Path| drive.path.as_deref() == Some(path);
    for (_, damage) in damaged.iter().filter(|(path, _)| is_it(path)) {
        match damage {
            Damage::Deleted { is_replaced } => (drive.deleted, drive.replaced) = (true, *is_replaced),
            Damage::CutShort => drive.cut_short = true,
        }
    }
    if let Some(moved) = moved.iter().find(|moved| is_it(&moved.from)) {
        if let Some(to) = &moved.to {
            drive.moved_from = drive.path.replace(to.clone());
        }
        drive.replaced = moved.is_replaced;
    }
}
