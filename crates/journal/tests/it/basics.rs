//! What the ring does when nothing goes wrong, and what it refuses.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::Owner;
use crate::common::kit::{ID, format, marks, media, record, recover, regions, run};
use tier0_journal::{Position, Record, Region, Ring, RingError, Settings};
use tier0_units::Nanos;
use tier0_world::{IoError, PayloadWidth, VirtualRuntime};
use uuid::Uuid;

#[test]
fn what_was_appended_comes_back_and_what_was_released_does_not() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        for mark in 1..=5 {
            let appended = ring.append(record(mark, u32::from(mark) % 3)).await.expect("appends");
            assert_eq!(appended.position, Position(u64::from(mark) - 1));
        }
        let recovered = recover(&world, &media).await.expect("recovers");
        let all = [(0, 1, 1), (1, 2, 2), (2, 3, 0), (3, 4, 1), (4, 5, 2)];
        assert_eq!(marks(&recovered.entries), all);
        recovered.ring.release(Position(3));
        recovered.ring.persist_tail().await.expect("persists");
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), all[3..]);
        assert_eq!(recovered.report.frames_repaired, 0);
        recovered.ring.append(record(6, 0)).await.expect("appends");
        recovered.ring.release(Position(6));
        recovered.ring.append(record(7, 0)).await.expect("appends");
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(6, 7, 0)], "the frame carries the tail");
    });
}

#[test]
fn appends_of_one_turn_share_a_frame() {
    run(|world| async move {
        let media = media(2, 64);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        let before = media[0].borrow().writes;
        let appends: Vec<_> = (0..20).map(|mark| ring.append(record(mark, 1))).collect();
        for append in appends {
            append.await.expect("appends");
        }
        assert_eq!(media[0].borrow().writes - before, 1);
        assert_eq!(ring.space().live, (1 + 20) * 8);
    });
}

#[test]
fn a_full_ring_waits_for_release_and_urgent_records_do_not() {
    run(|world| async move {
        let media = media(1, 16);
        let settings = Settings { headroom_sectors: 4 * 8, ..Settings::default() };
        let ring = format(&world, &media, settings).await.expect("formats");
        for mark in 0..4 {
            ring.append(record(mark, 2)).await.expect("12 blocks are free for it");
        }
        let order = Rc::new(RefCell::new(Vec::new()));
        for mark in 4..6 {
            let (ring, order) = (ring.clone(), order.clone());
            world
                .spawn(async move {
                    ring.append(record(mark, 2)).await.expect("appends later");
                    order.borrow_mut().push(mark);
                })
                .detach();
        }
        world.sleep(Nanos::from_millis(10)).await;
        assert_eq!(*order.borrow(), [0u8; 0], "there is no room");
        assert!(ring.space().level() > 1.0);
        let urgent = ring.append_urgent(record(9, 0)).await.expect("the headroom has room");
        assert_eq!(urgent.position, Position(4));
        ring.release(Position(1));
        world.sleep(Nanos::from_millis(10)).await;
        assert_eq!(*order.borrow(), [0u8; 0], "two blocks are free besides the headroom, three are needed");
        ring.release(Position(2));
        world.sleep(Nanos::from_millis(10)).await;
        assert_eq!(
            *order.borrow(),
            [4, 5],
            "five blocks are free besides the headroom, and one frame holds both"
        );
    });
}

#[test]
fn a_record_takes_the_whole_ring_at_most() {
    run(|world| async move {
        let media = media(2, 8);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        let error = ring.append(record(1, 8)).await.expect_err("one block too many");
        assert_eq!(error, RingError::RecordTooLarge { sectors: 72, room: 64 });
        for mark in 0..20 {
            let position = ring.append(record(mark, 7)).await.expect("it fills the ring").position;
            let recovered = recover(&world, &media).await.expect("recovers");
            assert_eq!(marks(&recovered.entries), [(u64::from(mark), mark, 7)]);
            ring.release(position.next());
        }
    });
}

#[test]
fn what_is_not_acknowledged_cannot_be_released() {
    run(|world| async move {
        let media = media(2, 16);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        ring.append(record(1, 1)).await.expect("appends");
        let second = ring.append(record(2, 1));
        world.sleep(Nanos(1)).await;
        ring.release(Position(1000));
        assert_eq!(ring.tail(), Position(1));
        second.await.expect("appends");
        ring.persist_tail().await.expect("persists");
        let recovered = recover(&world, &media).await.expect("recovers");
        assert_eq!(marks(&recovered.entries), [(1, 2, 1)]);
    });
}

#[test]
fn futures_may_be_dropped_at_any_time() {
    run(|world| async move {
        let media = media(2, 16);
        let ring = format(&world, &media, Settings::default()).await.expect("formats");
        for mark in 0..100 {
            drop(ring.append(record(mark, 1)));
            let persist = world.spawn({
                let ring = ring.clone();
                async move { ring.persist_tail().await }
            });
            world.sleep(Nanos(u64::from(mark) * 3000)).await;
            drop(persist);
            ring.release(ring.stable());
        }
        let last = ring.append(record(100, 1)).await.expect("appends");
        assert_eq!(last.position, Position(100), "no append is undone");
    });
}

#[test]
fn formatting_again_forgets_all_even_under_the_same_name() {
    run(|world| async move {
        let media = media(2, 64);
        for _ in 0..3 {
            let ring = format(&world, &media, Settings::default()).await.expect("formats");
            let recovered = recover(&world, &media).await.expect("recovers");
            assert_eq!(recovered.entries.len(), 0);
            drop(ring);
            for mark in 1..4 {
                recovered.ring.append(record(mark, 1)).await.expect("appends");
            }
        }
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    run(|world| async move {
        let media = media(2, 64);
        assert!(matches!(recover(&world, &media).await, Err(RingError::NoRing)));
        let owner = || Owner::of_good_copies(&world);
        let settings = Settings::default();
        let one = || regions(&world, &media).remove(0);
        let none = Ring::format(&world, vec![], ID, settings, owner()).await.err();
        assert_eq!(none, Some(RingError::BadCopy { copy: 0 }));
        let crooked = Region { first: tier0_units::Lba(4), sectors: 128, ..one() };
        let crooked = Ring::format(&world, vec![crooked], ID, settings, owner()).await.err();
        assert!(matches!(crooked, Some(RingError::BadRegion { copy: 0, .. })), "{crooked:?}");
        format(&world, &media, settings).await.expect("formats");
        let other = Uuid::from_u128(43);
        let found = Ring::recover(&world, vec![None, Some(one())], other, settings, owner()).await.err();
        assert_eq!(found, Some(RingError::WrongRing { copy: 1 }));
        let cut = Region { sectors: 264, ..one() };
        let found = Ring::recover(&world, vec![Some(cut)], ID, settings, owner()).await.err();
        assert!(matches!(found, Some(RingError::BadRegion { needed: 528, .. })), "{found:?}");
        media[1].borrow_mut().gone = true;
        let found = format(&world, &media, settings).await.err();
        assert_eq!(found, Some(RingError::Drive { copy: 1, source: IoError::Medium }));
    });
}

#[test]
fn a_world_without_payload_does_the_same_io_and_recovers_the_same_records() {
    let io = |width| {
        let runtime = VirtualRuntime::new(3, width);
        let world = runtime.world().clone();
        runtime.run(async move {
            let drive = |i| {
                let name = format!("d{i}");
                let drive = tier0_drive::StoreDrive::new(&world, &name, tier0_units::SectorCount(8 * 66));
                let drive = tier0_drive::FaultDrive::new(tier0_drive::DriveHandle::new(drive), i);
                drive.inject(tier0_drive::FaultPlan::share(tier0_drive::Fault::Latency(Nanos(5000)), 1.0));
                tier0_drive::DriveHandle::new(drive)
            };
            let region = |i| Region { drive: drive(i), first: tier0_units::Lba(0), sectors: 8 * 66 };
            let owner = Owner::of_good_copies(&world);
            let (kept, joined) = (region(1), region(2));
            let ring =
                Ring::format(&world, vec![region(0), kept.clone()], ID, Settings::default(), owner).await;
            let ring = ring.expect("formats");
            for mark in 0..100 {
                let mut buf = world.buffer(24);
                buf.as_mut_slice().fill(mark);
                let record = Record { header: vec![0; 50], pages: vec![buf.freeze()] };
                let position = ring.append(record).await.expect("appends").position;
                if mark % 5 == 4 {
                    ring.release(position);
                }
            }
            ring.drop_copy(0);
            ring.add_copy(0, joined.clone()).await.expect("joins");
            ring.confirm_copy(0).expect("counts");
            let (end, space) = (world.now(), ring.space());
            drop(ring);
            let owner = Owner::of_good_copies(&world);
            let regions = vec![Some(kept), Some(joined)];
            let found = Ring::recover(&world, regions, ID, Settings::default(), owner).await;
            let found = found.expect("finds what was appended");
            let shape = |entry: tier0_journal::Entry| {
                let sectors: u32 = entry.pages.iter().map(tier0_world::Buf::sectors).sum();
                (entry.position, entry.header, sectors)
            };
            (end, space, found.entries.into_iter().map(shape).collect::<Vec<_>>())
        })
    };
    let kept = io(PayloadWidth::NONE);
    assert!(!kept.2.is_empty(), "what was not released is there");
    assert_eq!(io(PayloadWidth::REAL), kept);
}
