//! How many I/Os per second of real time the disk model simulates, on one core.
//!
//! ```text
//! cargo bench -p tier0-drive --bench disk_rate
//! ```
//!
//! Twenty-four drives, each with 32 requests outstanding, are driven in one event loop, as an array would.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use tier0_drive::disk::{Datasheet, DiskModel, DiskRequest, Geometry, Operation, SeekPoints};
use tier0_units::{Lba, Nanos, SectorCount};

const DRIVES: usize = 24;
const REQUESTS: u64 = 2_000_000;

fn main() {
    println!("{DRIVES} drives, {REQUESTS} requests of 8 KiB each run");
    for depth in [1, 8, 32] {
        for (name, reads) in [("read 100 %", 100), ("read 70 %", 70)] {
            run(depth, name, reads);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn run(depth: u32, name: &str, read_percent: u64) {
    let mut array = Array::new(read_percent);
    (0..DRIVES).for_each(|drive| (0..depth).for_each(|_| array.submit(drive, Nanos::ZERO)));
    let begin = Instant::now();
    array.run();
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "depth {depth:>2}, {name}: {:>9.0} simulated I/O per second; per drive {:.0} IOPS at {:.2} ms",
        REQUESTS as f64 / seconds,
        REQUESTS as f64 / DRIVES as f64 / array.now.as_secs_f64(),
        array.waited_ns as f64 / REQUESTS as f64 / 1e6,
    );
}

struct Array {
    drives: Vec<DiskModel>,
    /// Next event of each drive; entries whose time is past are stale.
    events: BinaryHeap<Reverse<(Nanos, usize)>>,
    now: Nanos,
    state: u64,
    read_percent: u64,
    completed: u64,
    waited_ns: u64,
}

impl Array {
    fn new(read_percent: u64) -> Array {
        let geometry =
            Geometry::new(cheetah_15k5().parameters().expect("a possible disk")).expect("a possible disk");
        let spindle = |drive| Nanos(drive as u64 * geometry.revolution().0 / DRIVES as u64);
        let drives = (0..DRIVES).map(|drive| DiskModel::new(geometry.clone(), spindle(drive))).collect();
        let (events, now) = (BinaryHeap::new(), Nanos::ZERO);
        Array { drives, events, now, state: 1, read_percent, completed: 0, waited_ns: 0 }
    }

    fn run(&mut self) {
        let mut ended: Vec<(u64, Nanos)> = Vec::new();
        while self.completed < REQUESTS {
            let Some(Reverse((now, drive))) = self.events.pop() else { return };
            if self.drives[drive].next_event() != Some(now) {
                continue;
            }
            self.now = now;
            self.drives[drive].advance(now, &mut |id, at| ended.push((id, at)));
            for (issued, at) in ended.drain(..) {
                self.completed += 1;
                self.waited_ns += at.0 - issued;
                self.request(drive, now);
            }
            self.note(drive);
        }
    }

    fn note(&mut self, drive: usize) {
        if let Some(next) = self.drives[drive].next_event() {
            self.events.push(Reverse((next, drive)));
        }
    }

    fn submit(&mut self, drive: usize, now: Nanos) {
        self.request(drive, now);
        self.note(drive);
    }

    fn request(&mut self, drive: usize, now: Nanos) {
        let sectors = self.drives[drive].geometry().sectors().0;
        let lba = Lba(self.random() % (sectors / 16) * 16);
        let reads = self.random() % 100 < self.read_percent;
        let operation = if reads { Operation::Read } else { Operation::Write };
        let request = DiskRequest { id: now.0, operation, lba, sectors: 16 };
        self.drives[drive].submit(now, request).expect("within the disk");
    }

    /// A linear congruential generator (Knuth's MMIX constants), enough to scatter addresses.
    fn random(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }
}

/// Seagate Cheetah 15K.5, 146 GB: 72,171 cylinders, 4 heads, 14 zones of 1,200 to 720 sectors per track; seeks of
/// its successor 15K.7 where its own are not known.
fn cheetah_15k5() -> Datasheet {
    Datasheet {
        name: "Cheetah 15K.5".into(),
        capacity: SectorCount(146_800_000_000 / 512),
        rpm: 15_000.0,
        surfaces: 4,
        outer_sectors_per_track: 1_200,
        inner_sectors_per_track: 720,
        zones: 14,
        cylinders: Some(76_000),
        seek_read: SeekPoints { single_track_ms: 0.2, average_ms: 3.5, full_stroke_ms: 6.6 },
        seek_write: SeekPoints { single_track_ms: 0.44, average_ms: 4.0, full_stroke_ms: 7.4 },
        head_switch: Nanos::from_micros(700),
        write_settle: Nanos::from_micros(240),
        controller_overhead: Nanos::from_micros(100),
        interface_bytes_per_s: 400e6,
        buffer: SectorCount(16 << 11),
        buffer_segments: 32,
        read_ahead: SectorCount(1_024),
        write_cache: false,
        queue_depth: 64,
    }
}
