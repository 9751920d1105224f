//! Drives that fail, rot and come back empty; frames behind a hole; copies that are added.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::kit::{ID, format, marks, media, record, recover, regions, run};
use crate::common::{CrashDrive, Medium, MediumHandle, Owner};
use tier0_journal::{CopyState, Position, Recovered, Ring, RingError, Settings};
use tier0_units::Nanos;
use tier0_world::{IoError, PayloadWidth, Random, VirtualRuntime, World};

const BLOCK: usize = 4096;

/// Flips a byte of ring block `block`, counted from the start of the ring proper.
fn rot(medium: &MediumHandle, block: usize) {
    medium.borrow_mut().stable[(2 + block) * BLOCK + 20] ^= 1;
}

async fn append_all(ring: &Ring, marks: impl IntoIterator<Item = u8>) {
    for mark in marks {
        ring.append(record(mark, 1)).await.expect("appends");
    }
}

async fn recover_only(world: &World, media: &[MediumHandle], copy: usize) -> Result<Recovered, RingError> {
    let regions = regions(world, media).into_iter().enumerate();
    let regions = regions.map(|(i, region)| (i == copy).then_some(region)).collect();
    Ring::recover(world, regions, ID, Settings::default(), Owner::of_good_copies(world)).await
}

#[test]
fn nothing_is_acknowledged_before_the_loss_of_a_copy_is_durable() {
    run(|world| async move {
        let media = media(2, 64);
        let lost = Rc::new(RefCell::new(vec![false; 2]));
        let owner = Owner::new(&world, &lost, Nanos::from_secs(1));
        let ring = Ring::format(&world, regions(&world, &media), ID, Settings::default(), owner)
            .await
            .expect("formats");
        append_all(&ring, [1]).await;
        media[0].borrow_mut().gone = true;
        let begin = world.now();
        append_all(&ring, [2]).await;
        assert!(
            world.now().0 - begin.0 >= 1_000_000_000 && lost.borrow()[0],
            "it was acknowledged too early"
        );
        assert_eq!(ring.copies(), [CopyState::Lost, CopyState::Live]);
        append_all(&ring, [3]).await;
        let recovered = recover_only(&world, &media, 1).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
    });
}

#[test]
fn each_single_write_that_fails_costs_the_copy() {
    for failing in 0..40 {
        run(move |world| async move {
            let media = media(2, 8);
            let ring = format(&world, &media, Settings::default()).await.expect("formats");
            let formatted = media[0].borrow().writes;
            media[0].borrow_mut().failing_write = Some(formatted + failing);
            // Frames of three blocks in a ring of eight: some reach around the end and take two writes.
            for mark in 0..40 {
                let position = ring.append(record(mark, 2)).await.expect("appends").position;
                ring.release(position);
                // Headers are written in the background.
                world.sleep(Nanos::from_millis(1)).await;
                let lost = ring.copies()[0] == CopyState::Lost;
                assert!(
                    lost || media[0].borrow().writes <= formatted + failing,
                    "write {failing}, record {mark}"
                );
            }
            assert_eq!(ring.copies(), [CopyState::Lost, CopyState::Live]);
        });
    }
}

#[test]
fn without_copies_everything_fails_and_the_last_copy_is_not_called_lost() {
    run(|world| async move {
        let media = media(2, 16);
        let lost = Rc::new(RefCell::new(vec![false; 2]));
        let owner = Owner::new(&world, &lost, Nanos(1000));
        let ring = Ring::format(&world, regions(&world, &media), ID, Settings::default(), owner)
            .await
            .expect("formats");
        append_all(&ring, [1, 2, 3]).await;
        media.iter().for_each(|medium| medium.borrow_mut().gone = true);
        let appends: Vec<_> = (4..40).map(|mark| ring.append(record(mark, 3))).collect();
        let error = RingError::AllCopiesLost { source: IoError::Medium };
        for append in appends {
            assert_eq!(append.await, Err(error.clone()));
        }
        assert_eq!(ring.append(record(40, 0)).await, Err(error.clone()));
        assert_eq!(ring.persist_tail().await, Err(error.clone()));
        assert_eq!(ring.failure(), Some(error));
        world.sleep(Nanos::from_millis(1)).await;
        let survivor = lost.borrow().iter().position(|lost| !lost).expect("one copy must not be called lost");
        media[survivor].borrow_mut().gone = false;
        let recovered = recover_only(&world, &media, survivor).await.expect("recovers");
        assert_eq!(marks(&recovered.entries)[..3], [(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
    });
}

#[test]
fn rot_is_made_good_from_whatever_copy_is_sound() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        append_all(&ring, 1..=4).await;
        let sound = media[0].borrow().stable.clone();
        // Each frame has a header block and a page: the first frame's page here and its header there, and so on.
        [1, 2, 6].iter().for_each(|block| rot(&media[0], *block));
        [0, 3, 7].iter().for_each(|block| rot(&media[1], *block));
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 4, 1)]);
        assert_eq!(recovered.report.frames_repaired, 6);
        for medium in &media {
            assert!(medium.borrow().stable[2 * BLOCK..] == sound[2 * BLOCK..], "the copies are equal again");
        }
    });
}

#[test]
fn an_empty_copy_is_filled_and_then_suffices() {
    run(|world| async move {
        let media = media(3, 16);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        for mark in 1..30 {
            append_all(&ring, [mark]).await;
            ring.release(Position(u64::from(mark).saturating_sub(4)));
        }
        media[1].borrow_mut().stable.fill(0);
        let all = marks(&recover(&world, &media).await.expect("recovers").entries);
        assert_eq!(all.last(), Some(&(28, 29, 1)));
        let recovered = recover_only(&world, &media, 1).await.expect("the filled copy recovers alone");
        assert_eq!(marks(&recovered.entries), all);
    });
}

#[test]
fn an_acknowledged_frame_that_no_copy_holds_is_not_passed_over() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        append_all(&ring, 1..=3).await;
        media.iter().for_each(|medium| rot(medium, 2));
        let damaged = |position| Some(RingError::Damaged { from: Position(position) });
        assert_eq!(
            recover(&world, &media).await.err(),
            damaged(1),
            "the third frame says that the second was stable"
        );
        media.iter().for_each(|medium| rot(medium, 2));
        recover(&world, &media).await.expect("recovers");
        media.iter().for_each(|medium| rot(medium, 5));
        assert_eq!(
            recover(&world, &media).await.err(),
            damaged(2),
            "the header says that the third was stable"
        );
    });
}

/// Three frames, the second and the third under way at once.
async fn overlapping_frames(world: &World, ring: &Ring) {
    append_all(ring, [1]).await;
    let second = ring.append(record(2, 1));
    world.sleep(Nanos(1)).await;
    let third = ring.append(record(3, 1));
    assert_eq!((second.await.is_ok(), third.await.is_ok()), (true, true));
}

#[test]
fn a_frame_behind_a_hole_is_never_believed() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        overlapping_frames(&world, &ring).await;
        assert_eq!(ring.space().live, 6 * 8, "there are three frames");
        let headers = media.clone().into_iter().map(|medium| medium.borrow().stable[..2 * BLOCK].to_vec());
        let headers: Vec<_> = headers.collect();
        // As after a power cut that lost the second frame and kept the third.
        media.iter().for_each(|medium| rot(medium, 3));
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(0, 1, 1)]);
        // The very same record fills the hole exactly.
        append_all(&recovered.ring, [2]).await;
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(0, 1, 1), (1, 2, 1)]);
        // Not even if the headers that know of it rot: the chain is enough.
        media
            .iter()
            .zip(headers)
            .for_each(|(medium, header)| medium.borrow_mut().stable[..2 * BLOCK].copy_from_slice(&header));
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(0, 1, 1), (1, 2, 1)]);
    });
}

#[test]
fn a_frame_that_was_once_given_up_does_not_come_back() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        overlapping_frames(&world, &ring).await;
        media.iter().for_each(|medium| rot(medium, 3));
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(recovered.entries.len(), 1);
        media.iter().for_each(|medium| rot(medium, 3));
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(recovered.entries.len(), 1, "both frames are whole again, and still not believed");
    });
}

#[test]
fn what_cannot_be_read_is_not_taken_for_the_end() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        append_all(&ring, 1..=4).await;
        let sector = (2 + 4) * 8 + 3;
        media[0].borrow_mut().unreadable = sector..sector + 1;
        // The drive is there: recovery must not take it for lost.
        let error = Some(RingError::Unreadable { copy: 0, source: IoError::Medium });
        assert_eq!(recover_only(&world, &media, 0).await.err(), error);
        media[1].borrow_mut().unreadable = sector..sector + 1;
        assert_eq!(recover(&world, &media).await.err(), error);
        media[1].borrow_mut().unreadable = 0..0;
        let recovered = recover(&world, &media).await.expect("the other copy has it");
        assert_eq!((recovered.entries.len(), recovered.report.frames_repaired), (4, 1));
        media[0].borrow_mut().unreadable = 0..8;
        recover_only(&world, &media, 0).await.expect("the header's other place is good");
        media[0].borrow_mut().unreadable = 0..16;
        assert_eq!(recover_only(&world, &media, 0).await.err(), error);
    });
}

#[test]
fn a_newer_format_is_refused() {
    run(|world| async move {
        let media = media(2, 64);
        format(&world, &media, Settings::default()).await.expect("formats");
        media[1].borrow_mut().stable[8] = 2;
        let error = recover(&world, &media).await.err().expect("it is refused");
        assert_eq!(error, RingError::TooNew { found: 2, known: 1 });
        assert!(error.to_string().contains("use a newer program"));
    });
}

#[test]
fn a_copy_is_added_while_the_ring_goes_round() {
    run(|world| async move {
        let media = media(3, 16);
        let ring = format(&world, &media[..2], Settings::default()).await.expect("formats");
        append_all(&ring, 1..=6).await;
        let (writer, writing) = (ring.clone(), world.clone());
        let writer = world.spawn(async move {
            for mark in 7..200 {
                let position = writer.append(record(mark, 1)).await.expect("appends").position;
                writer.release(Position(position.0.saturating_sub(3)));
                writing.sleep(Nanos(10_000)).await;
            }
        });
        let region = CrashDrive::region(&world, &media[2], 9);
        assert_eq!(ring.add_copy(0, region.clone()).await, Err(RingError::BadCopy { copy: 0 }));
        let small = tier0_journal::Region { sectors: 80, ..region.clone() };
        assert!(matches!(ring.add_copy(2, small).await, Err(RingError::BadRegion { copy: 2, .. })));
        media[2].borrow_mut().flush_errors = 1;
        let error = RingError::Drive { copy: 2, source: IoError::Medium };
        assert_eq!(ring.add_copy(2, region.clone()).await, Err(error), "a failed flush poisons the copy");
        assert_eq!(ring.copies()[2], CopyState::Lost);
        ring.add_copy(2, region).await.expect("joins");
        assert_eq!(ring.copies()[2], CopyState::Unconfirmed);
        ring.confirm_copy(2).expect("counts");
        ring.drop_copy(0);
        ring.drop_copy(1);
        writer.await;
        let end = ring.stable().0;
        let recovered = recover_only(&world, &media, 2).await.expect("recovers");
        let all = marks(&recovered.entries);
        assert_eq!(all.last().map(|last| (last.0 + 1, last.1)), Some((end, 199)));
    });
}

/// Two halves went on without each other, and the copy of the one joined the other: its newer headers and frames were taken
/// for what the ring had lost, or for its own.
#[test]
fn a_copy_that_went_on_by_itself_joins_and_counts_for_nothing() {
    for (openings, records, is_wiped) in
        [(1, 1, false), (1, 20, false), (6, 5, false), (6, 5, true), (0, 9, false)]
    {
        run(move |world| async move {
            let media = media(2, 64);
            let ring = format(&world, &media, Settings::default()).await.expect("formats");
            append_all(&ring, 1..=3).await;
            drop(ring);
            // The second goes on alone.
            for _ in 0..openings {
                let alone = recover_only(&world, &media, 1).await.expect("recovers");
                append_all(&alone.ring, 100..100 + records).await;
                alone.ring.release(alone.ring.stable());
                alone.ring.persist_tail().await.expect("persists");
            }
            let own = recover_only(&world, &media, 0).await.expect("recovers");
            append_all(&own.ring, [4]).await;
            if is_wiped {
                media[1].borrow_mut().stable[..2 * BLOCK].fill(0);
            }
            own.ring.add_copy(1, CrashDrive::region(&world, &media[1], 9)).await.expect("joins");
            own.ring.confirm_copy(1).expect("counts");
            append_all(&own.ring, 5..=6).await;
            let expected: Vec<(u64, u8, usize)> = (0..6).map(|n| (n, n as u8 + 1, 1)).collect();
            for which in [vec![0, 1], vec![1], vec![0]] {
                let regions = regions(&world, &media).into_iter().enumerate();
                let regions = regions.map(|(i, region)| which.contains(&i).then_some(region)).collect();
                let found = Ring::inspect(&world, regions, ID).await;
                let found = found.unwrap_or_else(|error| panic!("{openings} openings, {which:?}: {error}"));
                assert_eq!(marks(&found.entries), expected, "{openings} openings, {which:?}");
            }
        });
    }
}

#[test]
fn the_ring_does_not_live_on_an_unconfirmed_copy() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media[..1], Settings::default()).await.expect("formats");
        append_all(&ring, 1..=3).await;
        ring.add_copy(1, CrashDrive::region(&world, &media[1], 9)).await.expect("joins");
        media[0].borrow_mut().gone = true;
        let error = RingError::AllCopiesLost { source: IoError::Medium };
        assert_eq!(ring.append(record(4, 1)).await, Err(error));
    });
}

#[test]
fn a_copy_that_fails_while_it_joins_leaves_no_trace() {
    run(|world| async move {
        let media = media(2, 64);
        let lost = Rc::new(RefCell::new(vec![false; 2]));
        let owner = Owner::new(&world, &lost, Nanos(0));
        let one = vec![CrashDrive::region(&world, &media[0], 0)];
        let ring = Ring::format(&world, one, ID, Settings::default(), owner).await.expect("formats");
        append_all(&ring, 1..=20).await;
        media[1].borrow_mut().write_errors = 1;
        let region = CrashDrive::region(&world, &media[1], 9);
        let error = RingError::Drive { copy: 1, source: IoError::Medium };
        assert_eq!(ring.add_copy(1, region.clone()).await, Err(error));
        append_all(&ring, [21]).await;
        assert_eq!((ring.copies()[1], lost.borrow()[1]), (CopyState::Lost, false));
        let given_up = world.spawn({
            let (ring, region) = (ring.clone(), region.clone());
            async move { ring.add_copy(1, region).await }
        });
        world.sleep(Nanos(1000)).await;
        assert_eq!(ring.copies()[1], CopyState::Joining);
        assert_eq!(ring.add_copy(1, region.clone()).await, Err(RingError::Joining));
        drop(given_up);
        world.sleep(Nanos::from_millis(1)).await;
        assert_eq!(ring.copies()[1], CopyState::Lost);
        ring.add_copy(1, region).await.expect("joins at last");
    });
}

/// What was released before a copy joined is not on it.
#[test]
fn a_copy_that_joined_a_released_log_is_not_overwritten() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media[..1], Settings::default()).await.expect("formats");
        append_all(&ring, 1..=5).await;
        ring.release(ring.stable());
        ring.add_copy(1, CrashDrive::region(&world, &media[1], 9)).await.expect("joins");
        ring.confirm_copy(1).expect("counts");
        assert!(!ring.is_overwritten(1).await);
        append_all(&ring, [6]).await;
        assert!(!ring.is_overwritten(1).await);
        rot(&media[1], 10);
        assert!(ring.is_overwritten(1).await);
    });
}

/// One that was dropped while it joined, and noticed that while the next one joined, let go of the frames that the next one
/// was copying: old frames came over new ones there.
#[test]
fn a_copy_that_was_dropped_while_it_joined_does_not_disturb_the_next() {
    for seed in 0..400 {
        let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let mut random = Random::new(seed, 1);
            let media = media(3, 12);
            media[0].borrow_mut().latency_max = 20_000;
            let ring = format(&world, &media[..1], Settings::default()).await.expect("formats");
            let acked = Rc::new(Cell::new(0));
            world.spawn(append_for_ever(ring.clone(), acked.clone())).detach();
            let join = |copy: usize| {
                let (ring, region) = (ring.clone(), CrashDrive::region(&world, &media[copy], copy as u64));
                world.spawn(async move { ring.add_copy(copy, region).await })
            };
            media[1].borrow_mut().latency_max = 1 + random.below(4_000_000);
            let first = join(1);
            world.sleep(Nanos(random.below(2_000_000))).await;
            if ring.copies()[1] != CopyState::Joining {
                return;
            }
            ring.drop_copy(1);
            world.spawn(now_and_then_slow(world.clone(), media[2].clone())).detach();
            let second = join(2);
            if random.chance(0.5) {
                world.sleep(Nanos(random.below(2_000_000))).await;
                drop(first);
            } else {
                first.detach();
            }
            second.await.expect("joins");
            ring.confirm_copy(2).expect("counts");
            world.sleep(Nanos(random.below(60_000))).await;
            let acked = acked.get();
            media[2].borrow_mut().power_cut(&mut random);
            let after = [media[2].borrow().stable.clone()].map(Medium::of);
            let recovered = recover(&world, &after).await;
            let recovered = recovered.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(recovered.ring.stable().0 >= acked, "seed {seed}: {acked} were acknowledged");
        });
    }
}

/// Each record is released when two more are acknowledged.
async fn append_for_ever(ring: Ring, acked: Rc<Cell<u64>>) {
    while let Ok(appended) = ring.append(record(1, (acked.get() % 3) as u32)).await {
        acked.set(appended.position.0 + 1);
        ring.release(Position(appended.position.0.saturating_sub(1)));
    }
}

async fn now_and_then_slow(world: World, medium: MediumHandle) {
    let mut random = world.random(2);
    loop {
        medium.borrow_mut().latency_max = if random.chance(0.15) { 8_000_000 } else { 10_000 };
        world.sleep(Nanos(1 + random.below(20_000))).await;
    }
}
