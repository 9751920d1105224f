//! The fault model, sentence by sentence.

use std::collections::BTreeSet;
use std::future::Future;

use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{BufMut, IoError, PayloadWidth, VirtualRuntime};

use super::*;
use crate::{DriveHandle, Fault, FaultPlan, conformance};

const WIDTH: PayloadWidth = PayloadWidth::new(4);

fn medium(seed: u64) -> SimMedium {
    let options = SimOptions { width: WIDTH, ..SimOptions::new("sim", SectorCount(1000), seed) };
    SimMedium::new(options, &PowerSwitch::new())
}

/// Runs `act` with the medium's drive in a world of its own.
fn with<F: Future<Output: 'static> + 'static>(
    medium: &SimMedium,
    act: impl FnOnce(DriveHandle) -> F,
) -> F::Output {
    let runtime = VirtualRuntime::new(1, WIDTH);
    let drive = medium.open(runtime.world());
    runtime.run(act(drive))
}

fn filled(sectors: u32, mark: u8) -> tier0_world::Buf {
    let mut buf = BufMut::new(sectors, WIDTH);
    buf.as_mut_slice().fill(mark);
    buf.freeze()
}

/// The marks of sectors, each of which must be whole.
fn marks(medium: &SimMedium, lba: u64, sectors: usize) -> Vec<u8> {
    let mut bytes = vec![0; sectors * WIDTH.bytes()];
    medium.peek(Lba(lba), &mut bytes);
    let sectors = bytes.chunks_exact(WIDTH.bytes());
    sectors
        .map(|sector| {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is atomic: {sector:?}");
            sector[0]
        })
        .collect()
}

/// Runs until the switch is off, with writes 1, 2, … of 4 sectors to one place, all at once.
fn overlapping_writes_then_cut(seed: u64, manner: PowerCut) -> Vec<u8> {
    let medium = medium(seed);
    let runtime = VirtualRuntime::new(1, WIDTH);
    let drive = medium.open(runtime.world());
    medium.switch().arm(4);
    for mark in 1..=4 {
        let drive = drive.clone();
        let write = async move { drive.write(Lba(8), filled(4, mark), false).await };
        runtime.world().spawn(write).detach();
    }
    let switch = medium.switch().clone();
    runtime.run(async move { switch.wait_off().await });
    drop((runtime, drive));
    medium.power_cut(manner);
    medium.switch().restore();
    marks(&medium, 8, 4)
}

#[test]
fn it_conforms_with_and_without_a_cache() {
    for (seed, volatile_cache, discard_zeroes) in [(1, true, true), (2, false, true), (3, true, false)] {
        for width in [PayloadWidth::REAL, PayloadWidth::NONE, WIDTH] {
            let mut options = SimOptions::new("sim", SectorCount(4000), seed);
            options.width = width;
            options.info.volatile_cache = volatile_cache;
            options.info.discard_zeroes = discard_zeroes;
            options.info.block_sectors = 8;
            let medium = SimMedium::new(options, &PowerSwitch::new());
            let runtime = VirtualRuntime::new(seed, width);
            let drive = medium.open(runtime.world());
            if width.bytes() > 0 {
                runtime.run(async move { conformance::run(&drive, seed).await });
            } else {
                runtime.run(async move { drive.flush().await.expect("a flush") });
            }
        }
    }
}

#[test]
fn a_flush_makes_stable_what_completed_before_it_was_submitted() {
    for seed in 0..50 {
        let medium = medium(seed);
        with(&medium, |drive| async move {
            drive.write(Lba(0), filled(4, 1), false).await.expect("a write");
            let flush = drive.flush();
            let write = drive.write(Lba(10), filled(4, 2), false);
            // Polled in this order: the flush is submitted first.
            let (flushed, written) = futures_util::future::join(flush, write).await;
            flushed.and(written).expect("both succeed");
        });
        medium.power_cut(PowerCut::KeepNothing);
        assert_eq!((marks(&medium, 0, 4), marks(&medium, 10, 4)), (vec![1; 4], vec![0; 4]), "seed {seed}");
    }
}

#[test]
fn a_durable_write_is_stable_when_it_completes_and_what_lay_under_it_is_past() {
    for seed in 0..50 {
        let medium = medium(seed);
        with(&medium, |drive| async move {
            drive.write(Lba(0), filled(4, 1), false).await.expect("a write");
            drive.write(Lba(1), filled(2, 2), true).await.expect("a write");
        });
        medium.power_cut(PowerCut::Any);
        let kept = marks(&medium, 0, 4);
        assert_eq!(kept[1..3], [2, 2]);
        assert!(kept.iter().all(|mark| *mark <= 2));
    }
}

#[test]
fn a_power_cut_keeps_any_subset_of_what_was_under_way() {
    let seen: BTreeSet<Vec<u8>> =
        (0..2000).map(|seed| overlapping_writes_then_cut(seed, PowerCut::Any)).collect();
    assert!(seen.contains(&vec![0; 4]), "nothing");
    for mark in 1..=4 {
        assert!(seen.contains(&vec![mark; 4]), "any write may be the last: {mark}");
    }
    assert!(seen.iter().any(|marks| marks.contains(&0) && marks.iter().any(|m| *m > 0)), "torn");
    let mixed = |marks: &Vec<u8>| marks.iter().collect::<BTreeSet<_>>().len() >= 3;
    assert!(seen.iter().any(mixed), "a mixture of several");
    assert_eq!(overlapping_writes_then_cut(7, PowerCut::KeepNothing), [0; 4]);
}

#[test]
fn a_seed_reproduces_the_cut_and_the_event_hash() {
    let run = |seed| {
        let medium = medium(seed);
        let hash = with(&medium, |drive| async move {
            conformance::run(&drive, 3).await;
            drive.write(Lba(0), filled(200, 9), false).await.expect("a write");
            drive.world().event_hash()
        });
        medium.power_cut(PowerCut::Any);
        (hash, marks(&medium, 0, 1000))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn the_power_fails_at_the_nth_change_and_nothing_completes_after_it() {
    for count in 1..=6 {
        let medium = medium(count);
        let runtime = VirtualRuntime::new(1, WIDTH);
        let (drive, switch) = (medium.open(runtime.world()), medium.switch().clone());
        switch.arm(count);
        let acknowledged = runtime.run(async move {
            let mut acknowledged = 0;
            for step in 0..3 {
                for change in 0..2 {
                    let command = async {
                        match change {
                            0 => drive.write(Lba(step), filled(1, 1), false).await,
                            _ => drive.flush().await,
                        }
                    };
                    let off = std::pin::pin!(switch.wait_off());
                    let command = std::pin::pin!(command);
                    match futures_util::future::select(command, off).await {
                        futures_util::future::Either::Left((result, _)) => result.expect("it succeeds"),
                        futures_util::future::Either::Right(_) => return acknowledged,
                    }
                    acknowledged += 1;
                }
            }
            acknowledged
        });
        assert_eq!(acknowledged, count - 1, "the {count}th change is under way");
        drop(runtime);
        medium.power_cut(PowerCut::KeepNothing);
        let flushed = (count - 1) / 2;
        let expected: Vec<u8> = (0..3).map(|step| u8::from(step < flushed)).collect();
        assert_eq!(marks(&medium, 0, 3), expected);
        assert_eq!(medium.switch().changes(), count);
    }
}

#[test]
fn a_killed_process_leaves_the_cache() {
    let medium = medium(4);
    with(&medium, |drive| async move { drive.write(Lba(0), filled(4, 1), false).await.expect("a write") });
    medium.kill();
    assert_eq!(marks(&medium, 0, 4), [1; 4]);
    assert_eq!(medium.cached_sectors(), 4);
    medium.power_cut(PowerCut::KeepNothing);
    assert_eq!(marks(&medium, 0, 4), [0; 4]);
}

#[test]
fn a_drive_that_is_unplugged_returns_with_what_it_held_or_wiped() {
    let medium = medium(5);
    let other = medium.clone();
    with(&medium, |drive| async move {
        drive.write(Lba(0), filled(4, 1), true).await.expect("a write");
        let under_way = drive.world().spawn({
            let drive = drive.clone();
            async move { drive.write(Lba(4), filled(4, 2), false).await }
        });
        drive.world().sleep(Nanos(1)).await;
        other.unplug();
        assert_eq!(under_way.await, Err(IoError::Gone));
        assert!(drive.is_cut_short(), "of this seed: as Linux tells of a disk that it took away");
        assert_eq!(drive.flush().await, Err(IoError::Os(libc::EIO)));
        assert_eq!(drive.write(Lba(4), filled(4, 2), false).await, Err(IoError::NoSpace));
        assert_eq!(drive.read(Lba(4), BufMut::new(4, WIDTH)).await.0, Err(IoError::OutOfRange));
        other.reconnect();
        other.disconnect();
        assert!(!drive.is_cut_short());
        assert_eq!(drive.flush().await, Err(IoError::Gone));
        other.reconnect();
        assert_eq!(drive.flush().await, Ok(()));
    });
    assert_eq!(marks(&medium, 0, 4), [1; 4]);
    medium.wipe();
    assert_eq!(marks(&medium, 0, 8), [0; 8]);
}

#[test]
fn unreadable_sectors_are_cured_by_writes_and_rot_strikes_the_stable() {
    let medium = medium(6);
    let other = medium.clone();
    with(&medium, |drive| async move {
        drive.write(Lba(0), filled(8, 1), false).await.expect("a write");
        assert!(!other.rot(Lba(3)), "it is in the cache");
        drive.flush().await.expect("a flush");
        assert!(other.rot(Lba(3)));
        other.make_unreadable(5..7);
        let (result, buf) = drive.read(Lba(0), BufMut::new(5, WIDTH)).await;
        result.expect("rot is silent");
        let flipped: u32 = buf.as_slice().iter().map(|byte| (byte ^ 1).count_ones()).sum();
        assert_eq!(flipped, 1);
        let (result, buf) = drive.read(Lba(0), BufMut::new(8, WIDTH)).await;
        assert_eq!(result, Err(IoError::Medium));
        assert!(!buf.as_slice().contains(&1), "a failed read leaves no content");
        drive.write(Lba(5), filled(1, 2), false).await.expect("a write");
        assert_eq!(drive.read(Lba(5), BufMut::new(1, WIDTH)).await.0, Ok(()));
        assert_eq!(drive.read(Lba(6), BufMut::new(1, WIDTH)).await.0, Err(IoError::Medium));
    });
}

#[test]
fn faults_of_commands_do_what_they_say_and_are_in_the_ledger() {
    let medium = medium(7);
    let other = medium.clone();
    with(&medium, |drive| async move {
        let ones = filled(8, 1);
        other.inject(FaultPlan::once(Fault::LostWrite));
        drive.write(Lba(0), ones.clone(), true).await.expect("acknowledged");
        assert_eq!(marks(&other, 0, 8), [0; 8]);
        other.inject(FaultPlan::once(Fault::TornWrite));
        drive.write(Lba(0), ones.clone(), true).await.expect("acknowledged");
        assert!(marks(&other, 0, 8).contains(&0));
        other.inject(FaultPlan::once(Fault::MisdirectedWrite));
        drive.write(Lba(500), ones.clone(), true).await.expect("acknowledged");
        let elsewhere = other.ledger().last().expect("it is in the ledger").lba;
        assert_eq!(marks(&other, elsewhere.0, 8), [1; 8]);
        other.inject(FaultPlan::once(Fault::WriteError));
        assert_eq!(drive.write(Lba(0), ones.clone(), false).await, Err(IoError::Medium));
        other.inject(FaultPlan::once(Fault::FlushError));
        assert_eq!(drive.flush().await, Err(IoError::Medium));
        other.inject(FaultPlan::once(Fault::ReadError));
        assert_eq!(drive.read(Lba(0), BufMut::new(1, WIDTH)).await.0, Err(IoError::Medium));
        other.inject(FaultPlan::once(Fault::Latency(HANG)));
        let before = drive.world().now();
        drive.flush().await.expect("a flush, in the end");
        assert!(drive.world().now() - before >= HANG);
    });
    let kinds: Vec<Injection> = medium.ledger().iter().map(|entry| entry.injection).collect();
    assert!(matches!(
        kinds[..],
        [
            Injection::LostWrite,
            Injection::TornWrite,
            Injection::MisdirectedWrite { intended: Lba(500) },
            Injection::WriteError,
            Injection::FlushError,
            Injection::ReadError,
            Injection::Delay,
        ]
    ));
}

#[test]
fn a_drive_that_lies_loses_what_it_was_told_to_keep_and_keeps_it_once_it_is_honest() {
    let write = |drive: DriveHandle| async move {
        drive.write(Lba(3), filled(2, 7), true).await.unwrap();
        drive.write(Lba(5), filled(2, 7), false).await.unwrap();
        drive.flush().await.unwrap();
    };
    let lost = (0..40).filter(|seed| {
        let liar = medium(*seed);
        liar.begin_to_lie();
        with(&liar, write);
        liar.power_cut(PowerCut::Any);
        marks(&liar, 3, 4) != [7; 4]
    });
    assert!(lost.count() > 10);
    for seed in 0..40 {
        let honest = medium(seed);
        honest.begin_to_lie();
        with(&honest, write);
        honest.come_clean();
        honest.power_cut(PowerCut::Any);
        assert_eq!(marks(&honest, 3, 4), [7; 4]);
    }
}

#[test]
fn what_a_drive_holds_has_one_fingerprint_in_its_cache_and_on_its_medium() {
    let medium = medium(1);
    let blank = medium.fingerprint();
    with(&medium, |drive| async move { drive.write(Lba(3), filled(2, 7), false).await.unwrap() });
    let written = medium.fingerprint();
    assert_ne!(written, blank);
    with(&medium, |drive| async move { drive.flush().await.unwrap() });
    assert_eq!(medium.fingerprint(), written);
    medium.make_unreadable(4..5);
    assert_ne!(medium.fingerprint(), written);
    medium.wipe();
    assert_eq!(medium.fingerprint(), blank);
}

#[test]
fn handles_are_revived_each_by_itself_until_the_drive_is_accepted() {
    let medium = medium(1);
    let outage = medium.clone();
    with(&medium, move |drive| async move {
        let other = drive.another().expect("it has others");
        outage.lose_power();
        outage.reconnect();
        drive.revive().await.expect("it is back");
        assert_eq!((drive.flush().await.is_ok(), other.flush().await.is_ok()), (true, false));
        drive.accept();
        assert_eq!(other.flush().await, Ok(()));
    });
}
