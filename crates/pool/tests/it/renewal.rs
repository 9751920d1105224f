//! A pool that was renewed drive by drive still knows a half of it that went on by itself.

use crate::common::{DRIVE_SECTORS, Rack, member, new_state, no_hook, only_pool, open};
use tier0_drive::DriveHandle;
use tier0_pool::metadata::{Metadata, survey, survey_without};
use tier0_pool::{DriveClass, Member, MetaRecord, PoolError, PoolState};
use tier0_units::Nanos;
use uuid::Uuid;

/// Two drives without sets: both can leave at any time.
fn bare() -> PoolState {
    let geometry = new_state(2).geometry().clone();
    let members = (0..2).map(member).collect();
    PoolState::new("lab", "pool0", Uuid::from_u128(7), geometry, members).expect("valid")
}

fn newcomer(number: u32) -> Member {
    Member { sectors: DRIVE_SECTORS, ..member(number) }
}

async fn use_it(metadata: &Metadata) {
    let end = metadata.state().allocation_end() + 10;
    metadata.commit(vec![MetaRecord::AllocationsReserved { end }]).await.expect("accepted");
}

/// Disks carry the metadata; when flash joins it takes over, as far as there is some, and a disk stays for the third copy.
#[test]
fn metadata_move_to_faster_drives_that_join() {
    let rack = Rack::new(5, 92);
    let carriers = rack.run(0, |world, drives| async move {
        let disks = (0..3).map(|number| Member { class: DriveClass::Disk, ..member(number) }).collect();
        let state = PoolState::new("lab", "pool0", Uuid::from_u128(7), bare().geometry().clone(), disks);
        let first = drives.iter().take(3).cloned().collect();
        let metadata =
            Metadata::create(&world, first, state.expect("valid"), no_hook()).await.expect("created");
        use_it(&metadata).await;
        assert_eq!(metadata.carriers(), [0, 1, 2]);
        for joins in [3, 4] {
            let flash = Member { class: DriveClass::Flash, ..newcomer(joins) };
            metadata.add_member(drives[joins as usize].clone(), flash).await.expect("it joins");
        }
        // They are made in the background.
        world.sleep(Nanos::from_secs(10)).await;
        use_it(&metadata).await;
        metadata.carriers()
    });
    assert_eq!(carriers.expect("the power stays"), [3, 4, 0]);
    rack.run(1, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("it opens");
        assert_eq!(metadata.carriers(), [3, 4, 0]);
    });
}

/// What is wrong with the pool that these drives hold.
fn problem(rack: &Rack, life: u64, which: &'static [usize]) -> Option<PoolError> {
    let found = rack.run(life, move |_, drives| async move {
        let drives: Vec<DriveHandle> = which.iter().map(|drive| drives[*drive].clone()).collect();
        only_pool(survey(drives).await).expect("there is a pool").problem
    });
    found.expect("the power stays")
}

/// The first drive goes on without the second, is joined by two others, and leaves; the second is taken out, or only known
/// as lost. Meanwhile the second serves elsewhere, by itself, or lies in a drawer.
fn renewed(is_taken_out: bool, served_elsewhere: bool) -> Rack {
    let rack = Rack::new(4, 91);
    rack.run(0, |world, drives| async move {
        let first = drives.into_iter().take(2).collect();
        use_it(&Metadata::create(&world, first, bare(), no_hook()).await.expect("created")).await;
    });
    rack.run(1, move |world, drives| async move {
        let metadata = open(&world, vec![drives[0].clone()]).await.expect("the first goes on");
        use_it(&metadata).await;
        for joins in [2, 3] {
            metadata.add_member(drives[joins].clone(), newcomer(joins as u32)).await.expect("it joins");
        }
        let leave: &[u32] = if is_taken_out { &[1, 0] } else { &[0] };
        for member in leave {
            metadata.remove_member(*member).await.expect("it leaves");
        }
        use_it(&metadata).await;
    });
    if served_elsewhere {
        rack.run(2, |world, drives| async move {
            let metadata = open(&world, vec![drives[1].clone()]).await.expect("the second goes on");
            use_it(&metadata).await;
        });
    }
    rack
}

#[test]
fn a_half_that_went_on_by_itself_is_a_split_though_it_was_taken_out() {
    for is_taken_out in [false, true] {
        let rack = renewed(is_taken_out, true);
        let found = problem(&rack, 3, &[1, 2, 3]);
        assert!(matches!(found, Some(PoolError::Split { .. })), "taken out: {is_taken_out}: {found:?}");
    }
}

#[test]
fn a_half_that_did_nothing_meanwhile_is_no_split() {
    for is_taken_out in [false, true] {
        let rack = renewed(is_taken_out, false);
        let found = problem(&rack, 3, &[1, 2, 3]);
        assert!(found.is_none(), "taken out: {is_taken_out}: {found:?}");
        rack.run(4, |world, drives| async move {
            let metadata = open(&world, drives[1..].to_vec()).await.expect("opens");
            let serving: Vec<bool> = metadata.state().members().iter().map(Member::is_active).collect();
            assert_eq!(serving, [false, false, true, true]);
        });
    }
}

/// The side that was renewed is given up: the other one knows none of its drives, and was asked for it again at every start.
#[test]
fn a_side_that_the_other_does_not_know_stays_given_up() {
    let rack = renewed(true, true);
    rack.run(3, |world, drives| async move {
        let without = ["drive2", "drive3"].map(str::to_owned);
        let found = survey_without(drives[1..].to_vec(), &without).await;
        let found = only_pool(found).expect("there is a pool");
        assert_eq!(found.given_up.len(), 2);
        use_it(&found.open(&world, no_hook()).await.expect("the second goes on")).await;
    });
    for which in [&[1, 2, 3][..], &[1, 3], &[2, 1]] {
        let found = problem(&rack, 4, which);
        assert!(found.is_none(), "{which:?}: {found:?}");
    }
    rack.run(5, |world, drives| async move {
        let metadata = open(&world, drives[1..].to_vec()).await.expect("opens");
        let serving: Vec<bool> = metadata.state().members().iter().map(Member::is_active).collect();
        assert_eq!(serving, [false, true]);
        use_it(&metadata).await;
    });
    // By themselves they are what they were.
    assert!(problem(&rack, 6, &[2, 3]).is_none());
}
