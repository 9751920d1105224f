//! A bad sector in the metadata area of a drive costs the drive nothing: the pool is opened from what the other copies
//! hold, no member is lost, and what cannot be read is written again where it is still in use.

use crate::common::{DRIVE_SECTORS, Rack, create, essence, extent, open, slot};
use tier0_pool::MetaRecord;

const MEMBERS: usize = 4;
/// Sectors that fail together, and between the starts of two such stretches.
const STRETCH: u64 = 3;
const STEP: u64 = 5;
/// The superblock's first copy.
const FIRST: u64 = 128;

fn used_rack() -> Rack {
    let rack = Rack::new(MEMBERS, 11);
    let filled = rack.run(0, |world, drives| async move {
        let metadata = create(&world, drives, MEMBERS as u32).await;
        for i in 0..20 {
            let record = MetaRecord::map([(extent(0, i), slot(u64::from(i), u64::from(i) + 1))]);
            metadata.commit(vec![record]).await.expect("accepted");
        }
    });
    assert!(filled.is_some(), "the power stays");
    rack
}

#[test]
fn a_bad_sector_in_the_metadata_loses_no_member_and_is_written_again() {
    let rack = used_rack();
    let known = rack.run(1, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        (essence(&metadata.state()), metadata.carriers())
    });
    let (known, carriers) = known.expect("the power stays");
    assert_eq!(carriers.len(), 3);
    let end = crate::common::new_state(MEMBERS as u32).geometry().area.data_start_sectors;
    assert!(end < DRIVE_SECTORS && end > FIRST);
    let (mut life, mut superblocks) = (2, 0);
    for (number, first) in (FIRST..end - STRETCH).step_by(STEP as usize).enumerate() {
        // Another drive each time, one that carries nothing but a superblock among them.
        let medium = &rack.media[number % MEMBERS];
        medium.make_unreadable(first..first + STRETCH);
        let opened = rack.run(life, |world, drives| async move {
            let metadata = open(&world, drives).await.expect("opens");
            let state = metadata.state();
            let lost = state.members().iter().filter(|member| !member.is_active()).count();
            (essence(&state), lost, metadata.carriers().len())
        });
        assert_eq!(opened, Some((known.clone(), 0, 3)), "sectors {first}+{STRETCH}");
        // The first 4 KiB of each copy hold the whole superblock here.
        if [FIRST, FIRST + 128].iter().any(|copy| (*copy..copy + 8).contains(&(first + STRETCH - 1))) {
            assert!(medium.is_readable(first.max(FIRST)..first + STRETCH), "sectors {first}+{STRETCH}");
            superblocks += 1;
        }
        life += 1;
    }
    assert!(superblocks > 2, "{superblocks} superblocks were hit");
}

#[test]
fn both_copies_of_a_superblock_unreadable_lose_that_member_alone() {
    let rack = used_rack();
    rack.media[1].make_unreadable(FIRST..FIRST + 1);
    rack.media[1].make_unreadable(FIRST + 128..FIRST + 129);
    let lost = rack.run(1, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        let members = metadata.state().members().to_vec();
        members.iter().map(|member| member.is_active()).collect::<Vec<_>>()
    });
    assert_eq!(lost, Some(vec![true, false, true, true]));
}

/// A sector of the journal that no carrier could read made the opening call all carriers lost, one after the other, and end
/// with "no drive holds a journal". The drives are there, so it is refused, and goes on when one of them reads again.
#[test]
fn a_journal_that_no_carrier_can_read_loses_none_of_them() {
    let rack = used_rack();
    let first = crate::common::new_state(MEMBERS as u32).geometry().area.journal_start().0 + 16;
    rack.media.iter().for_each(|medium| medium.make_unreadable(first..first + 8));
    let before: Vec<Vec<u8>> = rack.images();
    let error = rack.run(1, |world, drives| async move { open(&world, drives).await.err() });
    let error = error.flatten().expect("it is refused").to_string();
    assert!(error.contains("no copy of the log is readable"), "{error}");
    let after: Vec<Vec<u8>> = rack.images();
    assert!(before == after, "a refused opening has written");
}
