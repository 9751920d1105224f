//! A drive that has forgotten its part of the metadata, and has not told, has it again once they are renewed.

use crate::common::{Rack, create, essence, extent, new_state, open, slot};
use tier0_pool::MetaRecord;

const MEMBERS: usize = 4;

/// The metadata are used, one drive forgets all it has of them, they are renewed or not, and used again; who serves after
/// the next start, and whether nothing was lost.
fn forget_and_reopen(rack: &Rack, life: u64, drive: usize, renews: bool) -> Option<(Vec<bool>, bool)> {
    let medium = rack.media[drive].clone();
    let end = new_state(MEMBERS as u32).geometry().area.data_start_sectors;
    let known = rack.run(life, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        medium.forget(0..end);
        if renews {
            metadata.renew().await.expect("the drives take it");
        }
        let record = MetaRecord::map([(extent(0, life as u32), slot(life, life + 1))]);
        metadata.commit(vec![record]).await.expect("accepted");
        essence(&metadata.state())
    })?;
    rack.run(life + 1, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        let state = metadata.state();
        let serves = state.members().iter().map(|member| member.is_active()).collect();
        (serves, !state.members().iter().all(|member| member.is_active()) || essence(&state) == known)
    })
}

fn new_rack() -> Rack {
    let rack = Rack::new(MEMBERS, 12);
    rack.run(0, |world, drives| async move { create(&world, drives, MEMBERS as u32).await });
    rack
}

#[test]
fn renewed_metadata_are_on_the_drive_that_had_forgotten_them() {
    let rack = new_rack();
    for drive in 0..MEMBERS {
        let found = forget_and_reopen(&rack, 1 + 2 * drive as u64, drive, true);
        assert_eq!(found, Some((vec![true; MEMBERS], true)), "drive {drive}");
    }
}

#[test]
fn a_drive_that_has_forgotten_its_superblock_is_no_member_at_the_next_start() {
    let (serves, _) = forget_and_reopen(&new_rack(), 1, 2, false).expect("the power stays");
    assert_eq!(serves, [true, true, false, true]);
}
