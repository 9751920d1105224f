//! A member that was lost serves again by decision, also when the power fails while that is written.

use tier0_drive::DriveHandle;
use tier0_pool::metadata::{FoundPool, Metadata, Standing, survey};
use tier0_pool::{ChunkletAddress, MemberState, MetaRecord, PoolError};
use tier0_world::{IoError, World};

use crate::common::{Essence, Rack, create, essence, extent, no_hook, only_pool, open, slot};

const MEMBERS: usize = 4;
/// The member that is lost last, and believed again.
const LAST: u32 = 2;
/// Of its columns, the one that is made anew where it lies.
const COLUMN: (u32, u32) = (2, 0);

/// A pool that lost members 1 and 2, one after the other; what it holds.
fn rack_with_losses(seed: u64) -> (Rack, Essence) {
    let rack = Rack::new(MEMBERS, seed);
    let known = rack.run(0, |world, drives| async move {
        let metadata = create(&world, drives, MEMBERS as u32).await;
        metadata.commit(vec![MetaRecord::map([(extent(0, 3), slot(3, 1))])]).await.expect("accepted");
        metadata.lose(1, IoError::Gone).await.expect("recorded");
        metadata.lose(LAST, IoError::Gone).await.expect("recorded");
        metadata.commit(vec![MetaRecord::map([(extent(0, 4), slot(4, 2))])]).await.expect("accepted");
        essence(&metadata.state())
    });
    (rack, known.expect("the power stays"))
}

async fn found(drives: Vec<DriveHandle>) -> FoundPool {
    only_pool(survey(drives).await).expect("there is a pool")
}

/// Believes the member again.
async fn readmit(world: &World, drives: Vec<DriveHandle>) -> Result<Metadata, PoolError> {
    let mut found = found(drives).await;
    assert!(found.readmit(LAST), "{found:?}");
    let mut inspected = found.inspect(world).await?;
    inspected.rebuild_in_place(&[COLUMN])?;
    inspected.open(world, no_hook()).await
}

#[test]
fn what_left_when_is_known() {
    let (rack, _) = rack_with_losses(1);
    rack.run(1, |_, drives| async move {
        let mut found = found(drives).await;
        let left: Vec<u64> = (0..MEMBERS as u32).map(|place| found.left_in(place)).collect();
        assert!(left[1] < left[2] && left[2] < u64::MAX, "{left:?}");
        assert_eq!((left[0], left[3]), (u64::MAX, u64::MAX));
        let unbelieved: Vec<u32> = found.unbelieved().iter().map(|member| member.place).collect();
        assert_eq!(unbelieved, [1, 2]);
        assert!(!found.readmit(0), "who serves is not readmitted");
    });
}

/// After every crash in the middle the pool either has the member, or can be given it again; nothing else changes.
#[test]
fn a_crash_in_the_middle_leaves_what_can_be_decided_again() {
    let (mut finished, mut interrupted) = (false, 0);
    for writes in (1..).take_while(|writes| *writes < 400) {
        let (rack, known) = rack_with_losses(2);
        rack.switch.arm(writes);
        let done = rack.run(1, |world, drives| async move {
            readmit(&world, drives).await.expect("readmitted");
        });
        rack.power_cut();
        interrupted += u32::from(done.is_none());
        let kept = rack.run(2, |world, drives| async move {
            let found = found(drives.clone()).await;
            if found.problem.is_none() && found.members[LAST as usize].standing == Standing::Present {
                let metadata = open(&world, drives.clone()).await.expect("opens");
                if metadata.state().is_active(LAST) {
                    return true;
                }
                drop(metadata);
            }
            readmit(&world, drives).await.expect("readmitted the second time");
            false
        });
        rack.power_cut();
        assert!(kept.is_some() && (done.is_none() || kept == Some(true)), "{writes} writes: {kept:?}");
        let after = rack.run(3, |world, drives| async move {
            let metadata = open(&world, drives).await.expect("opens");
            let state = metadata.state();
            state.verify().expect("sound");
            let states: Vec<MemberState> = state.members().iter().map(|member| member.state).collect();
            let target = state.rebuild(COLUMN.0, COLUMN.1).map(|rebuild| rebuild.target);
            (states, target, essence(&state).volumes)
        });
        let (states, target, volumes) = after.expect("the power stays");
        use MemberState::{Active, Lost};
        assert_eq!(states, [Active, Lost, Active, Active], "{writes} writes");
        assert_eq!(target, Some(ChunkletAddress { drive: LAST, index: 0 }), "{writes} writes");
        assert_eq!(volumes, known.volumes, "{writes} writes");
        if done.is_some() {
            finished = true;
            break;
        }
    }
    assert!(finished && interrupted > 10, "{interrupted} were interrupted");
}

/// A column that is made anew where it lies becomes whole there, or goes elsewhere when its drive is lost again.
#[test]
fn a_column_that_is_made_anew_in_place_ends_as_any_other() {
    for is_lost_again in [false, true] {
        let (rack, _) = rack_with_losses(3);
        rack.run(1, move |world, drives| async move {
            let metadata = readmit(&world, drives).await.expect("readmitted");
            let (set, column) = COLUMN;
            if is_lost_again {
                metadata.lose(LAST, IoError::Gone).await.expect("recorded");
                let target = metadata.state().choose_spare(set, column).expect("there is room");
                let record = MetaRecord::ColumnRebuilding { set, column, target };
                metadata.commit(vec![record]).await.expect("accepted");
            }
            metadata.state().verify().expect("sound");
            let ranges = std::iter::once(0..16).collect();
            metadata.commit(vec![MetaRecord::SlotsRebuilt { set, column, ranges }]).await.expect("accepted");
            metadata
                .commit(vec![MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false }])
                .await
                .expect("accepted");
            let state = metadata.state();
            state.verify().expect("sound");
            assert_eq!(state.column(set, column).drive == LAST, !is_lost_again);
        });
    }
}

/// A recovery without a drive that had everything was broken off before it served; then that drive came back. What it holds
/// counted as older than what the recovery had begun, which was nothing.
#[test]
fn a_drive_that_a_broken_off_recovery_went_without_holds_all() {
    let is_missing = 3;
    let mut broken_off = 0;
    for writes in (1..).take_while(|writes| *writes < 400) {
        let (rack, _) = rack_with_losses(4);
        rack.switch.arm(writes);
        let done = rack.run(1, |world, mut drives| async move {
            drives.remove(is_missing);
            readmit(&world, drives).await.expect("readmitted");
        });
        rack.power_cut();
        let whole = rack.run(2, |_, drives| async move {
            let found = found(drives).await;
            let place = is_missing as u32;
            let is_aside = found.is_half_recovered && found.left_in(place) != u64::MAX;
            is_aside.then(|| found.holds_until(place) == found.left_in(place))
        });
        broken_off += match whole.expect("the power stays") {
            Some(is_whole) => {
                assert!(is_whole, "{writes} writes");
                1
            }
            None => 0,
        };
        if done.is_some() {
            break;
        }
    }
    assert!(broken_off > 5, "{broken_off}");
}
