//! Prints how many commands per second of processor time the flash model simulates.
//!
//! `cargo bench -p tier0-drive --bench flash_rate -- [DRIVES]`: 8 KiB random commands in a closed loop of
//! 32 per drive, over that many drives in turn (default 1), so that the tables of many compete for the caches.

use std::time::Instant;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tier0_drive::flash::{FlashCommand, FlashModel, FlashParameters, Precondition, ReadScheduling};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};

/// A 400 GB SAS drive of 2013 with round figures: 64 dies on 8 channels.
fn parameters() -> FlashParameters {
    FlashParameters {
        capacity: ByteCount::gb(400),
        over_provisioning: 0.28,
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 2,
        page_bytes: 8192,
        mapping_bytes: 4096,
        pages_per_block: 256,
        read_time: Nanos::from_micros(75),
        read_time_spread: 0.2,
        program_time: Nanos::from_micros(1_300),
        erase_time: Nanos::from_millis(4),
        channel_bytes_per_second: 200_000_000,
        read_scheduling: ReadScheduling::BetweenOperations,
        controller_cores: 4,
        controller_read_time: Nanos::from_micros(70),
        controller_write_time: Nanos::from_micros(70),
        interface_bytes_per_second: 600_000_000,
        interface_full_duplex: true,
        controller_read_bytes_per_second: 500_000_000,
        controller_write_bytes_per_second: 400_000_000,
        write_buffer: ByteCount::mib(64),
        power_loss_protected: true,
        queue_depth: 64,
        endurance_cycles: 30_000,
        modelled_span: ByteCount::mib(256),
    }
}

const COMMANDS: u64 = 4_000_000;
const DEPTH: usize = 32;
const SECTORS: u64 = 16;

/// Drives each command's place in the loop: the drive's earliest completion is not sought, its slots take
/// turns, which costs the loop nothing and the model the same.
fn run(drives: &mut [FlashModel], start: Nanos, read_percent: u32) -> (f64, Nanos) {
    let mut random = Pcg64Mcg::seed_from_u64(11);
    let mut slots = vec![start; drives.len() * DEPTH];
    let mut latest = vec![start; drives.len()];
    let places = drives[0].capacity().0 / SECTORS;
    let started = now();
    for number in 0..COMMANDS as usize {
        let drive = number % drives.len();
        let slot = drive * DEPTH + number / drives.len() % DEPTH;
        let at = slots[slot].max(latest[drive]);
        let draw = random.next_u64();
        let read = (draw & 0xffff) * 100 < u64::from(read_percent) << 16;
        let command = if read { FlashCommand::Read } else { FlashCommand::Write };
        let place = ((u128::from(draw) * u128::from(places)) >> 64) as u64;
        slots[slot] = drives[drive].submit(at, command, Lba(place * SECTORS), SectorCount(SECTORS));
        latest[drive] = at;
    }
    let rate = COMMANDS as f64 / started.elapsed().as_secs_f64();
    (rate, slots.into_iter().max().unwrap_or(start))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock")]
fn now() -> Instant {
    Instant::now()
}

fn main() {
    let count = std::env::args()
        .nth(1)
        .filter(|text| text != "--bench")
        .map_or(1, |text| text.parse().expect("give a number of drives"));
    let mut first = FlashModel::new(parameters(), 1).expect("the parameters are in range");
    let started = now();
    let amplification = first.precondition(Precondition::Random(ByteCount::kib(8)));
    let seconds = started.elapsed().as_secs_f64();
    println!("preconditioned in {seconds:.3} s to a write amplification of {amplification:.2}");
    let mut drives: Vec<_> = (0..count).map(|seed| first.clone_with_seed(seed)).collect();
    println!("{count} drives, {} host pages on each modelled one", first.scale());
    let mut at = Nanos::ZERO;
    for read_percent in [100, 70, 0] {
        let rate;
        (rate, at) = run(&mut drives, at, read_percent);
        println!("{read_percent:3} % reads: {:.2} million/s, {:.0} ns each", rate / 1e6, 1e9 / rate);
    }
}
