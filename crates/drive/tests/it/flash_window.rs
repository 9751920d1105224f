//! What decision 0020 rests on: 8 KiB reads beside a scan of a modelled flash drive, the scan in pieces of which so many at most
//! are with the drive. Run with `--nocapture` for the table.

use std::collections::{BTreeMap, VecDeque};

use tier0_catalog::{Catalog, DriveSpec};
use tier0_drive::flash::{FlashCommand, FlashModel, FlashParameters, Precondition};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::Random;

const END: Nanos = Nanos::from_secs(2);
/// A scan's requests of 1 MiB, and how many are outstanding.
const SCAN_SECTORS: u64 = 2048;
const SCAN_DEPTH: u64 = 4;
const SMALL_SECTORS: u64 = 16;
/// Between two small reads, at most; half of that in the mean.
const PAUSE_MAX: u64 = 4_000_000;

/// The scan's requests in pieces of so many KiB, of which so many at most are with the drive.
type Window = (u64, usize);
const UNCUT: Window = (1024, usize::MAX);

/// What ends, or is due.
#[derive(Clone, Copy)]
enum Event {
    /// A piece of a scan's request.
    Piece {
        request: u64,
    },
    /// A small read that began then.
    Small {
        began: u64,
    },
    NextSmall,
}

struct Run {
    drive: FlashModel,
    now: u64,
    random: Random,
    events: BTreeMap<(u64, u64), Event>,
    /// Of requests of the scan that have not ended: pieces that have not.
    pieces: BTreeMap<u64, u64>,
    /// Requests with pieces that wait for a place, which take turns: from which sector on, and how many pieces.
    waiting: VecDeque<(u64, u64, u64)>,
    in_drive: usize,
    requests: u64,
    ended: u64,
    latencies: Vec<u64>,
}

impl Run {
    fn push(&mut self, at: u64, event: Event) {
        self.events.insert((at, self.random.below(u64::MAX)), event);
    }

    fn read(&mut self, sector: u64, sectors: u64) -> u64 {
        self.drive.submit(Nanos(self.now), FlashCommand::Read, Lba(sector), SectorCount(sectors)).0
    }

    /// Another request of the scan.
    fn scan(&mut self, (kib, _): Window) {
        let (request, count) = (self.requests, SCAN_SECTORS / (kib * 2));
        self.requests += 1;
        self.pieces.insert(request, count);
        let sector = request * SCAN_SECTORS % (1 << 23);
        self.waiting.push_back((request, sector, count));
    }

    fn fill(&mut self, (kib, places): Window) {
        while self.in_drive < places
            && let Some((request, sector, count)) = self.waiting.pop_front()
        {
            if count > 1 {
                self.waiting.push_back((request, sector + kib * 2, count - 1));
            }
            self.in_drive += 1;
            let ends = self.read(sector, kib * 2);
            self.push(ends, Event::Piece { request });
        }
    }

    fn small(&mut self) {
        let (began, place) = (self.now, self.random.below((1 << 23) / SMALL_SECTORS));
        let ends = self.read(place * SMALL_SECTORS, SMALL_SECTORS);
        self.push(ends, Event::Small { began });
        let next = began + self.random.below(PAUSE_MAX);
        self.push(next, Event::NextSmall);
    }
}

/// The p95 of small reads in microseconds, and the scan's MB/s.
fn run(drive: &FlashModel, scan: Option<Window>, has_small: bool) -> (f64, f64) {
    let (window, depth) = scan.map_or((UNCUT, 0), |window| (window, SCAN_DEPTH));
    let mut run = Run {
        drive: drive.clone(),
        now: 0,
        random: Random::new(1, 1),
        events: BTreeMap::new(),
        pieces: BTreeMap::new(),
        waiting: VecDeque::new(),
        in_drive: 0,
        requests: 0,
        ended: 0,
        latencies: Vec::new(),
    };
    (0..depth).for_each(|_| run.scan(window));
    run.fill(window);
    if has_small {
        run.small();
    }
    while let Some(((now, _), event)) = run.events.pop_first()
        && now < END.0
    {
        run.now = now;
        match event {
            Event::Small { began } => run.latencies.push(now - began),
            Event::NextSmall => run.small(),
            Event::Piece { request } => {
                run.in_drive -= 1;
                let left = run.pieces.get_mut(&request).expect("it has not ended");
                *left -= 1;
                if *left == 0 {
                    run.pieces.remove(&request);
                    run.ended += 1;
                    run.scan(window);
                }
                run.fill(window);
            }
        }
    }
    run.latencies.sort_unstable();
    let p95 = run.latencies.len().checked_sub(1).map_or(0, |last| run.latencies[last * 95 / 100]);
    (p95 as f64 / 1e3, (run.ended * SCAN_SECTORS * 512) as f64 / 1e6 / END.as_secs_f64())
}

/// By how much small reads take longer beside the scan, and what the scan keeps of its throughput.
fn beside(drive: &FlashModel, window: Window) -> (f64, f64) {
    let (alone, _) = run(drive, None, true);
    let (_, scan) = run(drive, Some(UNCUT), false);
    let (p95, kept) = run(drive, Some(window), true);
    (p95 / alone, kept / scan)
}

fn preconditioned(id: &str) -> FlashModel {
    let Ok(DriveSpec::Flash(spec)) = Catalog::embedded().drive(id).cloned() else { panic!("no flash {id}") };
    let parameters = FlashParameters::try_from(&*spec).expect("the catalogue's entry is in range");
    let mut drive = FlashModel::new(parameters, 1).expect("the parameters were checked");
    drive.precondition(Precondition::Sequential);
    drive
}

#[test]
fn no_constant_window_serves_all_drives() {
    let table = ["ssd-sata", "ssd-sas-400gb", "nvme", "efd-200gb"].map(|id| {
        let drive = preconditioned(id);
        let row = [UNCUT, (32, 4), (32, 24), (64, 2), (64, 16)].map(|window| beside(&drive, window));
        println!("{id}: {row:.2?}");
        row
    });
    let [sata, sas, nvme, efd] = table;
    for [uncut, narrow, wide, _, _] in [sata, sas] {
        assert!(uncut.0 > 20.0, "a scan gets in the way: {uncut:?}");
        assert!(
            narrow.0 < 2.5 && narrow.1 > 0.85,
            "a narrow window is nearly all that is aimed at: {narrow:?}"
        );
        assert!(wide.0 > 5.0, "a wide one is not: {wide:?}");
    }
    assert!(nvme[1].1 < 0.3 && nvme[2].1 > 0.85, "NVMe needs a wide one: {nvme:?}");
    assert!(efd[1].1 < 0.75 && efd[3].1 > 0.85, "commands of 32 KiB are dear there: {efd:?}");
}
