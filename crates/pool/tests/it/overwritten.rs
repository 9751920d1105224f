//! What overwrites the front of a drive, as partitioning and formatting do, leaves the superblock near its end.

use tier0_pool::metadata::{Standing, survey};
use tier0_pool::{MemberState, PoolError};
use tier0_units::Lba;
use tier0_world::{BufMut, PayloadWidth};

use crate::common::{Rack, create, essence, no_hook, only_pool, open};

const MEMBERS: usize = 4;
/// Both copies at the front and what lies before them, and no journal.
const FRONT: u32 = 384;

fn rack() -> Rack {
    let rack = Rack::new(MEMBERS, 21);
    let created = rack.run(0, |world, drives| async move {
        create(&world, drives, MEMBERS as u32).await;
    });
    assert!(created.is_some(), "the power stays");
    rack
}

/// Zeros the front of these drives, this many sectors.
fn overwrite(rack: &Rack, drives: std::ops::Range<usize>, sectors: u32) {
    let done = rack.run(1, |_, all| async move {
        for drive in &all[drives] {
            let zeros = BufMut::zeroed(sectors, PayloadWidth::REAL).freeze();
            drive.write(Lba(0), zeros, true).await.expect("it is written");
        }
    });
    assert!(done.is_some(), "the power stays");
}

#[test]
fn an_overwritten_drive_is_known_and_not_used() {
    let rack = rack();
    overwrite(&rack, 0..1, 2048);
    let opened = rack.run(2, |world, drives| async move {
        let found = only_pool(survey(drives).await).expect("the pool is there");
        assert!(found.problem.is_none(), "{:?}", found.problem);
        assert_eq!(found.members[0].standing, Standing::Overwritten);
        assert!(found.notes()[0].contains("overwritten"), "{:?}", found.notes());
        let metadata = found.open(&world, no_hook()).await.expect("it opens without the drive");
        assert_eq!(metadata.state().members()[0].state, MemberState::Lost);
    });
    assert!(opened.is_some());
}

#[test]
fn where_all_are_overwritten_no_start_believes_them_and_the_last_resort_does() {
    let rack = rack();
    let before = rack.run(1, |world, drives| async move {
        essence(&open(&world, drives).await.expect("it opens").state())
    });
    overwrite(&rack, 0..MEMBERS, FRONT);
    let after = rack.run(2, |world, drives| async move {
        let mut found = only_pool(survey(drives).await).expect("the pool is there");
        assert!(matches!(found.problem, Some(PoolError::NoQuorum { .. })), "{:?}", found.problem);
        assert_eq!(found.readmit_overwritten(), [0, 1, 2, 3]);
        assert!(found.problem.is_none(), "{:?}", found.problem);
        essence(&found.open(&world, no_hook()).await.expect("it opens").state())
    });
    assert_eq!(before, after);
    // The front is whole again.
    let again = rack.run(3, |world, drives| async move {
        essence(&open(&world, drives).await.expect("it opens").state())
    });
    assert_eq!(before, again);
}

#[test]
fn the_last_resort_is_taken_again_where_the_power_failed_in_it() {
    let whole = {
        let rack = rack();
        let read = async |world: tier0_world::World, drives| {
            essence(&open(&world, drives).await.expect("it opens").state())
        };
        rack.run(1, read).expect("the power stays")
    };
    let mut commands = 1;
    loop {
        let rack = rack();
        overwrite(&rack, 0..MEMBERS, FRONT);
        let recover = |rack: &Rack, life| {
            rack.run(life, |world, drives| async move {
                let mut found = only_pool(survey(drives).await).expect("the pool is there");
                found.readmit_overwritten();
                assert!(found.problem.is_none(), "{:?}", found.problem);
                found.open(&world, no_hook()).await.map(|metadata| essence(&metadata.state()))
            })
        };
        rack.switch.arm(commands);
        let first = recover(&rack, 2);
        rack.power_cut();
        let again = recover(&rack, 3).expect("the power stays").expect("it opens");
        assert_eq!(again, whole, "after {commands} commands");
        if first.is_some() {
            break;
        }
        commands += 1;
    }
    assert!(commands > 20, "{commands} commands");
}

/// The half that was left behind must not win because the front of the other one was overwritten.
#[test]
fn who_was_lost_to_an_overwritten_drive_is_not_believed_either() {
    let rack = Rack::new(2, 22);
    let lost = rack.run(0, |world, drives| async move {
        let metadata = create(&world, drives, 2).await;
        metadata.lose(0, tier0_world::IoError::Gone).await.expect("it is recorded");
    });
    assert!(lost.is_some());
    overwrite(&rack, 1..2, 2048);
    let opened = rack.run(2, |_, drives| async move {
        let found = only_pool(survey(drives).await).expect("the pool is there");
        assert_eq!(found.members[0].standing, Standing::Stale);
        assert_eq!(found.members[1].standing, Standing::Overwritten);
        assert!(matches!(found.problem, Some(PoolError::NoQuorum { .. })), "{:?}", found.problem);
    });
    assert!(opened.is_some());
}
