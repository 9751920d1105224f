//! A drive for the tests, and a closed loop of outstanding commands to drive it with.
//!
//! Each test file uses a part of this.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tier0_drive::flash::{FlashCommand, FlashModel, FlashParameters, ReadScheduling};
use tier0_units::{ByteCount, Lba, Nanos, SectorCount};

/// Eight dies on four channels; round figures, to compute with by hand.
pub(crate) fn parameters() -> FlashParameters {
    FlashParameters {
        capacity: ByteCount::gib(1),
        over_provisioning: 0.28,
        channels: 4,
        dies_per_channel: 2,
        planes_per_die: 2,
        page_bytes: 8192,
        mapping_bytes: 4096,
        pages_per_block: 64,
        read_time: Nanos::from_micros(50),
        read_time_spread: 0.0,
        program_time: Nanos::from_micros(800),
        erase_time: Nanos::from_millis(3),
        // 4 KiB in 10.24 us.
        channel_bytes_per_second: 400_000_000,
        read_scheduling: ReadScheduling::BetweenOperations,
        controller_cores: 8,
        controller_read_time: Nanos::from_micros(20),
        controller_write_time: Nanos::from_micros(15),
        // 4 KiB in 5.12 us.
        interface_bytes_per_second: 800_000_000,
        interface_full_duplex: true,
        controller_read_bytes_per_second: 800_000_000,
        controller_write_bytes_per_second: 800_000_000,
        write_buffer: ByteCount::mib(8),
        power_loss_protected: true,
        queue_depth: 64,
        endurance_cycles: 3_000,
        modelled_span: ByteCount::gib(2),
    }
}

/// What a closed loop measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) iops: f64,
    pub(crate) read_latency_ns_mean: f64,
    pub(crate) write_latency_ns_mean: f64,
    pub(crate) ended: Nanos,
}

/// A closed loop: `depth` commands outstanding, each of `sectors`, aligned to its size.
pub(crate) struct Load {
    pub(crate) depth: usize,
    pub(crate) sectors: u64,
    pub(crate) read_percent: u32,
    pub(crate) sequential: bool,
    pub(crate) commands: u64,
    pub(crate) start: Nanos,
}

impl Load {
    /// Random 4 KiB.
    pub(crate) fn random(depth: usize, read_percent: u32, commands: u64) -> Load {
        Load { depth, sectors: 8, read_percent, sequential: false, commands, start: Nanos::ZERO }
    }

    /// 128 KiB in sequence.
    pub(crate) fn sequential(depth: usize, read_percent: u32, commands: u64) -> Load {
        Load { depth, sectors: 256, read_percent, sequential: true, commands, start: Nanos::ZERO }
    }

    /// Runs the load; the first quarter of it is not counted.
    pub(crate) fn run(&self, drive: &mut FlashModel) -> Measured {
        let mut random = Pcg64Mcg::seed_from_u64(7);
        let places = drive.capacity().0 / self.sectors;
        let mut running: BinaryHeap<_> = (0..self.depth).map(|_| Reverse(self.start)).collect();
        let (mut sum, mut count) = ([0.0; 2], [0_u64; 2]);
        let (warm, mut counted_from) = (self.commands / 4, self.start);
        for number in 0..self.commands {
            let Reverse(now) = running.pop().expect("the loop is closed");
            if number == warm {
                counted_from = now;
            }
            let read = random.next_u32() % 100 < self.read_percent;
            let place = if self.sequential { number % places } else { random.next_u64() % places };
            let command = if read { FlashCommand::Read } else { FlashCommand::Write };
            let done = drive.submit(now, command, Lba(place * self.sectors), SectorCount(self.sectors));
            assert!(done >= now, "completed before it was submitted");
            if number >= warm {
                sum[usize::from(read)] += (done - now).0 as f64;
                count[usize::from(read)] += 1;
            }
            running.push(Reverse(done));
        }
        let Reverse(ended) = running.pop().expect("the loop is closed");
        let seconds = (ended - counted_from).as_secs_f64();
        Measured {
            iops: (self.commands - warm) as f64 / seconds,
            read_latency_ns_mean: sum[1] / count[1].max(1) as f64,
            write_latency_ns_mean: sum[0] / count[0].max(1) as f64,
            ended: *running.iter().map(|Reverse(t)| t).max().unwrap_or(&ended),
        }
    }
}
