//! A drive that has forgotten its part of the metadata, and has not told, has it again once they are renewed.

use crate::common::{Rack, create, essence, extent, new_state, open, slot};
use tier0_drive::DriveHandle;
use tier0_pool::MetaRecord;
use tier0_units::Lba;
use tier0_world::{Buf, BufMut, PayloadWidth};

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

/// An administrator puts all drives' fronts back to an older moment of the same superblocks: the journal then ends earlier,
/// and the next start would go on with less than was acknowledged.
#[test]
fn a_front_that_was_put_back_behind_the_same_superblock_is_seen() {
    for checkpoints_between in [false, true] {
        let rack = new_rack();
        let sectors = new_state(MEMBERS as u32).geometry().area.data_start_sectors as u32;
        let record = |index: u64| MetaRecord::map([(extent(0, index as u32), slot(index, index + 1))]);
        let known = rack.run(1, |world, drives| async move {
            let metadata = open(&world, drives).await.expect("opens");
            let own = async || {
                let looks = (0..MEMBERS as u32).map(|member| metadata.has_own_front(member));
                futures_util::future::join_all(looks).await
            };
            metadata.commit(vec![record(1)]).await.expect("accepted");
            assert_eq!(own().await, [true; MEMBERS]);
            let mut before = Vec::new();
            for member in 0..MEMBERS as u32 {
                let drive = metadata.drive(member).expect("it serves");
                let buf = BufMut::new(sectors, PayloadWidth::REAL);
                let (result, buf) = drive.read(Lba(0), buf).await;
                result.expect("it is read");
                before.push((drive, buf.freeze()));
            }
            let put_back = |(drive, buf): &(DriveHandle, Buf)| {
                let (drive, buf) = (drive.clone(), buf.clone());
                async move { drive.write(Lba(0), buf, true).await.expect("it is written") }
            };
            let generation = metadata.generation();
            // Forty records take more than half of the journal.
            for index in 2..if checkpoints_between { 42 } else { 3 } {
                metadata.commit(vec![record(index)]).await.expect("accepted");
            }
            assert_eq!(own().await, [true; MEMBERS]);
            futures_util::future::join_all(before.iter().map(put_back)).await;
            let carriers = metadata.carriers();
            let expected: Vec<bool> = (0..MEMBERS as u32).map(|member| !carriers.contains(&member)).collect();
            assert_eq!(metadata.generation(), generation, "the superblocks are the same");
            assert_eq!(own().await, expected);
            metadata.renew().await.expect("the drives take it");
            assert_eq!(own().await, [true; MEMBERS]);
            essence(&metadata.state())
        });
        let after = rack.run(2, |world, drives| async move {
            essence(&open(&world, drives).await.expect("opens").state())
        });
        assert_eq!(known, after, "{checkpoints_between}");
    }
}
