//! The power fails at every single write and flush of a scripted life, whatever is kept of what was not stable: nothing
//! that was acknowledged is lost, nothing half done is found, and opening itself may be interrupted.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{
    EXTENT_SECTORS, Essence, Rack, create, essence, extent, member, only_pool, open, slot, volume,
};
use tier0_drive::DriveHandle;
use tier0_pool::metadata::{Commit, Metadata, Standing, survey};
use tier0_pool::{ChunkletAddress, DriveClass, Member, MemberState, MetaRecord, PoolState, ScrubCursor};
use tier0_world::{IoError, PlantedBug, Random, World, plant};

/// What the auditor knows: the states in the order of the commits, and how far they were acknowledged.
#[derive(Default)]
struct Known {
    /// The state after all commits.
    state: RefCell<Option<PoolState>>,
    states: RefCell<Vec<Essence>>,
    acknowledged: RefCell<usize>,
    created: RefCell<bool>,
    lost: RefCell<Vec<u32>>,
    added: RefCell<Vec<u32>>,
}

impl Known {
    /// Commits, and acknowledges when that ends well.
    async fn commit(&self, metadata: &Metadata, records: Vec<MetaRecord>) {
        let (number, commit) = self.begin(metadata, records);
        commit.await.expect("accepted");
        self.note_acknowledged(number);
    }

    /// Begins a commit: the number of the state after it.
    fn begin(&self, metadata: &Metadata, records: Vec<MetaRecord>) -> (usize, Commit) {
        self.apply(&records);
        (self.states.borrow().len(), metadata.commit(records))
    }

    fn apply(&self, records: &[MetaRecord]) {
        let mut state = self.state.borrow_mut();
        let state = state.as_mut().expect("the pool is created");
        state.apply_all(records).expect("sound");
        self.states.borrow_mut().push(essence(state));
    }

    fn note_acknowledged(&self, number: usize) {
        let mut acknowledged = self.acknowledged.borrow_mut();
        *acknowledged = number.max(*acknowledged);
    }
}

/// A life with a bit of everything: single commits and many at once, checkpoints, a lost carrier, a new drive, a rebuild.
async fn live(world: World, drives: Vec<DriveHandle>, known: Rc<Known>) {
    let metadata = create(&world, drives.clone(), 4).await;
    *known.created.borrow_mut() = true;
    *known.state.borrow_mut() = Some(metadata.state().clone());
    known.states.borrow_mut().push(essence(&metadata.state()));
    known.note_acknowledged(1);
    for i in 0..12 {
        let slot = slot(u64::from(i) * 3, u64::from(i) + 1);
        known.commit(&metadata, vec![MetaRecord::map([(extent(0, i * 5 % 64), slot)])]).await;
    }
    // Many at once: the journal makes few frames of them; a checkpoint is due in between.
    for round in 0u32..6 {
        let mut commits = Vec::new();
        for i in 0..4 {
            let record = match round % 2 {
                0 => MetaRecord::map([(
                    extent(0, 50 + i),
                    slot(u64::from(40 + i), u64::from(100 * round + i + 100)),
                )]),
                _ => MetaRecord::unmap([extent(0, 50 + i)]),
            };
            // 50 and 55 may be mapped by the loop above.
            let records = vec![record];
            if metadata.state().check(&records[0]).is_err() {
                continue;
            }
            commits.push(known.begin(&metadata, records));
        }
        for (number, commit) in commits {
            commit.await.expect("accepted");
            known.note_acknowledged(number);
        }
    }
    // Large records fill the journal: several checkpoints.
    for round in 0..5u32 {
        let name = format!("{round}{}", "x".repeat(200));
        let mut records =
            vec![MetaRecord::VolumeCreated(tier0_pool::Volume { name, ..volume(1 + round, 9) })];
        for pass in 0..60u64 {
            let next_slot = pass % 7;
            records.push(MetaRecord::ScrubCursor(ScrubCursor {
                next_slot,
                passes: u64::from(round) * 100 + pass,
            }));
            records
                .push(MetaRecord::VolumeResized { volume: 1 + round, sectors: (pass + 1) * EXTENT_SECTORS });
        }
        known.commit(&metadata, records).await;
    }
    // A carrier is lost, and another drive takes its place.
    let lost = metadata.carriers()[0];
    metadata.lose(lost, IoError::Timeout).await.expect("others are left");
    known.lost.borrow_mut().push(lost);
    known.apply(&[MetaRecord::MemberLost { member: lost }]);
    known.commit(&metadata, vec![MetaRecord::ScrubCursor(ScrubCursor { next_slot: 9, passes: 9_000 })]).await;
    // It is faster than the others that carry, and takes over from one of them too.
    let faster = Member { class: DriveClass::Flash, ..member(4) };
    let added = metadata.add_member(drives[4].clone(), faster.clone()).await.expect("added");
    known.added.borrow_mut().push(added);
    known.apply(&[MetaRecord::MemberAdded(faster)]);
    let columns: Vec<(u32, u32)> = metadata.state().lost_columns().collect();
    for (set, column) in columns {
        let target = metadata.state().choose_spare(set, column).expect("there are spares");
        known.commit(&metadata, vec![MetaRecord::ColumnRebuilding { set, column, target }]).await;
        for index in 0..crate::common::SLOTS_PER_SET / 4 {
            let ranges = vec![index * 4..index * 4 + 4];
            known.commit(&metadata, vec![MetaRecord::SlotsRebuilt { set, column, ranges }]).await;
        }
        known
            .commit(&metadata, vec![MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false }])
            .await;
    }
    metadata.remove_member(lost).await.expect("it holds nothing");
    known.commit(&metadata, vec![MetaRecord::VolumeDeleted { volume: 2 }]).await;
}

/// What is found after the crash must be one of the known states, not older than what was acknowledged.
fn check(metadata: &Metadata, known: &Known, story: &str) {
    let state = metadata.state();
    state.verify().expect("sound");
    let found = essence(&state);
    let states = known.states.borrow();
    let acknowledged = *known.acknowledged.borrow();
    let number = states.iter().rposition(|state| *state == found);
    let number = number.unwrap_or_else(|| panic!("{story}: the state is none of those that were"));
    assert!(
        number + 1 >= acknowledged,
        "{story}: state {number} was found and {acknowledged} were acknowledged"
    );
    for lost in known.lost.borrow().iter() {
        assert!(!state.is_active(*lost), "{story}: drive {lost} was lost and is believed");
    }
    for added in known.added.borrow().iter() {
        assert!(state.member(*added).is_some(), "{story}: drive {added} was added and is unknown");
    }
}

/// Crashes at command `at`, then in the middle of opening, then opens; the number of commands if the life ended before.
fn crash(at: u64, seed: u64) -> Option<u64> {
    let story = format!("seed {seed}, command {at}");
    let rack = Rack::new(5, seed);
    let known = Rc::new(Known::default());
    rack.switch.arm(at);
    let kept = known.clone();
    let ended = rack.run(0, |world, drives| live(world, drives, kept));
    let commands = rack.switch.changes();
    rack.power_cut();
    // Opening is interrupted as well, somewhere.
    let mut random = Random::new(seed, at);
    for life in 1..1 + random.below(3) {
        rack.switch.arm(1 + random.below(40));
        let story = story.clone();
        rack.run(life, |world, drives| async move {
            if let Some(found) = only_pool(survey(drives).await)
                && found.problem.is_none()
            {
                found
                    .open(&world, crate::common::no_hook())
                    .await
                    .unwrap_or_else(|error| panic!("{story}: {error}"));
            }
        });
        rack.power_cut();
    }
    let kept = known.clone();
    rack.run(99, |world, drives| async move {
        let found = only_pool(survey(drives).await);
        if !*kept.created.borrow() {
            return;
        }
        let found = found.unwrap_or_else(|| panic!("{story}: the pool is gone"));
        assert_eq!(found.standing(Standing::Missing).count(), 0, "{story}: {:?}", found.notes());
        let metadata = found
            .open(&world, crate::common::no_hook())
            .await
            .unwrap_or_else(|error| panic!("{story}: {error}"));
        check(&metadata, &kept, &story);
        // Life goes on.
        let passes = metadata.state().scrub().passes + 1;
        let record = MetaRecord::ScrubCursor(ScrubCursor { next_slot: 1, passes });
        metadata.commit(vec![record]).await.unwrap_or_else(|error| panic!("{story}: {error}"));
        let usable = metadata.state().members().iter().filter(|m| m.state == MemberState::Active).count();
        assert_eq!(metadata.carriers().len(), usable.min(3), "{story}");
    })
    .expect("the power stays on");
    ended.map(|()| commands)
}

#[test]
fn nothing_is_lost_at_any_command() {
    let mut crashes = 0;
    for seed in 0..6 {
        let commands = (1..).find_map(|at| {
            crashes += 1;
            crash(at, seed)
        });
        assert!(commands.is_some_and(|commands| commands > 150), "{commands:?}");
    }
    println!("{crashes} crashes");
}

/// A harness that does not find bugs proves nothing.
#[test]
fn planted_bugs_are_found() {
    let bugs = [
        PlantedBug::MetadataBeforeStable,
        PlantedBug::CheckpointInPlace,
        PlantedBug::RootBeforePages,
        PlantedBug::WrongChunkletAfterRebuild,
        PlantedBug::ForgetLoss,
    ];
    std::panic::set_hook(Box::new(|_| {}));
    let missed: Vec<PlantedBug> = bugs
        .into_iter()
        .filter(|bug| {
            let _planted = plant(*bug);
            let found = std::panic::catch_unwind(|| {
                (1..6).for_each(|seed| _ = (1..3000).find_map(|at| crash(at, seed)));
            });
            found.is_ok()
        })
        .collect();
    let _ = std::panic::take_hook();
    assert_eq!(missed, []);
}

#[test]
fn a_pool_half_created_is_refused_or_sound() {
    // Commands of a creation: until the first commit.
    for at in 1..60 {
        let rack = Rack::new(5, at);
        rack.switch.arm(at);
        let created = rack.run(0, |world, drives| async move {
            create(&world, drives, 4).await;
        });
        rack.power_cut();
        rack.run(1, |world, drives| async move {
            let found = only_pool(survey(drives).await);
            match found {
                Some(found) if found.problem.is_none() => {
                    found.open(&world, crate::common::no_hook()).await.expect("all of it is there");
                }
                Some(_) | None => assert!(created.is_none(), "created and not found"),
            }
        });
        // It can be created again.
        rack.run(2, |world, drives| async move {
            let metadata = create(&world, drives.clone(), 4).await;
            drop(metadata);
            open(&world, drives).await.expect("it is found");
        });
    }
}

#[test]
fn a_wrong_chunklet_is_told_from_the_right_one() {
    let rack = Rack::new(5, 1);
    rack.run(0, |world, drives| async move {
        let metadata = create(&world, drives, 4).await;
        metadata.lose(2, IoError::Gone).await.expect("others are left");
        let (set, column) = metadata.state().lost_columns().next().expect("drive 2 had columns");
        let target = metadata.state().choose_spare(set, column).expect("there are spares");
        assert_ne!(target, ChunkletAddress { drive: 2, index: target.index });
        metadata.commit(vec![MetaRecord::ColumnRebuilding { set, column, target }]).await.expect("accepted");
        let whole = vec![0..crate::common::SLOTS_PER_SET];
        let records = vec![
            MetaRecord::SlotsRebuilt { set, column, ranges: whole },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false },
        ];
        metadata.commit(records).await.expect("accepted");
        assert_eq!(metadata.state().column(set, column), target);
    });
}
