//! The mapping under arbitrary commands: one page, one slot, nothing lost; wear; determinism.

use crate::flash_common::{Load, parameters};
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tier0_drive::flash::{FlashCommand, FlashModel, FlashParameters, FlashParametersError, Precondition};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};

fn shapes() -> impl Strategy<Value = FlashParameters> {
    let shape = (1_u32..5, 1_u32..5, 1_u32..4, prop_oneof![Just(4096_u32), Just(8192), Just(16384)]);
    let rest = (0.02_f64..0.5, 16_u32..200, 1_u64..40, 16_u64..64, any::<bool>(), 0_u64..4);
    (shape, rest).prop_map(|((channels, dies_per_channel, planes_per_die, page_bytes), rest)| {
        let (over_provisioning, pages_per_block, capacity, span, power_loss_protected, buffer) = rest;
        FlashParameters {
            capacity: ByteCount(capacity * 3_000_000 + 7 * 512),
            over_provisioning,
            channels,
            dies_per_channel,
            planes_per_die,
            page_bytes,
            pages_per_block,
            power_loss_protected,
            write_buffer: ByteCount::mib(buffer),
            modelled_span: ByteCount::mib(span),
            ..parameters()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pages_and_slots_pair_one_to_one(p in shapes(), seed: u64, writes in 1_000_u64..60_000, full: bool) {
        let mut drive = FlashModel::new(p, seed).expect("the parameters are in range");
        if full {
            drive.precondition(Precondition::default());
        }
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let capacity = drive.capacity().0;
        let mut now = Nanos::ZERO;
        for _ in 0..writes {
            let sectors = 1 + random.next_u64() % 64;
            let lba = Lba(random.next_u64() % (capacity - sectors));
            let command = match random.next_u32() % 16 {
                0..3 => FlashCommand::Read,
                3 => FlashCommand::Discard,
                4 if random.next_u32().is_multiple_of(8) => FlashCommand::Flush,
                _ => FlashCommand::Write,
            };
            let done = drive.submit(now, command, lba, SectorCount(sectors));
            prop_assert!(done > now, "{command:?} took no time");
            now += Nanos(random.next_u64() % 100_000);
        }
        drive.assert_consistent();
        drive.submit(now, FlashCommand::Discard, Lba(0), SectorCount(capacity));
        drive.assert_consistent();
        prop_assert!(drive.scale() > 1 || drive.statistics().mapped_share == 0.0, "discard left pages mapped");
    }
}

#[test]
fn a_seed_determines_every_completion() {
    let run = |seed| {
        let p = FlashParameters { read_time_spread: 0.2, ..parameters() };
        let mut drive = FlashModel::new(p, seed).expect("the parameters are in range");
        drive.precondition(Precondition::default());
        let measured = Load::random(16, 70, 50_000).run(&mut drive);
        (measured.ended, drive.statistics())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn wear_stays_even_where_one_part_is_written_only() {
    let p = FlashParameters { capacity: ByteCount::mib(256), over_provisioning: 0.15, ..parameters() };
    let mut drive = FlashModel::new(p, 1).expect("the parameters are in range");
    drive.precondition(Precondition::Sequential);
    let pages = drive.capacity().0 / 8;
    let mut random = Pcg64Mcg::seed_from_u64(2);
    let mut now = Nanos::ZERO;
    // All writes go to a tenth of the drive; without static wear levelling nine tenths would never be erased.
    for _ in 0..60 * pages {
        now =
            drive.submit(now, FlashCommand::Write, Lba(random.next_u64() % (pages / 10) * 8), SectorCount(8));
    }
    let statistics = drive.statistics();
    println!("{statistics:?}");
    assert!(statistics.erases_mean > 40.0, "the test wears the drive: mean {}", statistics.erases_mean);
    // Wear levelling begins at a spread of 32 and catches up within as much again.
    assert!(statistics.erases_max - statistics.erases_min <= 64, "erases spread too far: {statistics:?}");
    assert!(statistics.write_amplification() < 1.3, "wear levelling amplifies: {statistics:?}");
    let by_hand = 100.0 * statistics.erases_mean / 3_000.0;
    assert!((statistics.wear_percent - by_hand).abs() < 1e-9, "wear gauge {}", statistics.wear_percent);
}

#[test]
fn the_wear_gauge_of_a_folded_drive_refers_to_the_whole_drive() {
    let p =
        FlashParameters { capacity: ByteCount::gb(40), modelled_span: ByteCount::mib(256), ..parameters() };
    let mut drive = FlashModel::new(p.clone(), 1).expect("the parameters are in range");
    drive.precondition(Precondition::default());
    let writes = 1_000_000;
    Load::random(32, 0, writes).run(&mut drive);
    let statistics = drive.statistics();
    // 4 KiB a write, amplified, over 40 GB x 1.28 of flash.
    let by_hand = writes as f64 * 4096.0 * statistics.write_amplification() / (40e9 * 1.28);
    let ratio = statistics.erases_mean / by_hand;
    assert!((ratio - 1.0).abs() < 0.05, "{} erases of each block, by hand {by_hand}", statistics.erases_mean);
}

#[test]
fn a_folded_drive_discards_what_it_is_told() {
    let p =
        FlashParameters { capacity: ByteCount::gb(40), modelled_span: ByteCount::mib(256), ..parameters() };
    let mut drive = FlashModel::new(p, 1).expect("the parameters are in range");
    drive.precondition(Precondition::Sequential);
    // Every second mebibyte.
    let stripe = 2_048;
    for start in (0..drive.capacity().0 - stripe).step_by(2 * stripe as usize) {
        drive.submit(Nanos::ZERO, FlashCommand::Discard, Lba(start), SectorCount(stripe));
    }
    let half = drive.statistics().mapped_share;
    assert!((half - 0.5).abs() < 0.01, "half of the drive is discarded, {half} mapped");
    drive.submit(Nanos::ZERO, FlashCommand::Discard, Lba(0), drive.capacity());
    // The last group of chunks may be ragged.
    assert!(drive.statistics().mapped_share < 0.02, "all is discarded: {:?}", drive.statistics());
    drive.assert_consistent();
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refuse = |p: FlashParameters| FlashModel::new(p, 1).expect_err("out of range").to_string();
    let message = refuse(FlashParameters { channels: 0, ..parameters() });
    assert_eq!(message, "flash parameter channels is 0; give a value from 1 to 256");
    let message = refuse(FlashParameters { over_provisioning: f64::NAN, ..parameters() });
    assert!(message.contains("over_provisioning is NaN"), "{message}");
    let error = FlashModel::new(FlashParameters { mapping_bytes: 12288, ..parameters() }, 1)
        .expect_err("no power of two");
    assert!(matches!(error, FlashParametersError::MappingBytes { mapping_bytes: 12288, .. }), "{error}");
}
