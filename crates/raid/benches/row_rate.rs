//! Prints what the two-phase write and the verified read cost of one core: rows of RAID 5 and RAID 6 on drives that
//! answer at once, with full sectors and checksums.
//!
//! `cargo bench -p tier0-raid --bench row_rate`

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::{DriveHandle, StoreDrive};
use tier0_pool::{Chunklets, DATA_START_SECTORS};
use tier0_raid::checksum::page_checksum;
use tier0_raid::io::{Expect, Expected, FailureReport, LostDrives, Members, RaidIo, Rest};
use tier0_raid::layout::{Layout, RaidConfig, RaidLevel, Row};
use tier0_raid::set::{RaidSets, SetIndex};
use tier0_units::{Lba, PAGE_SECTORS, SectorCount};
use tier0_world::{BufMut, IoError, PayloadWidth, VirtualRuntime, World};

const ROWS: u64 = 16;
const UNIT_SECTORS: u64 = 128;
const SET: SetIndex = SetIndex(0);
const ROUNDS: u64 = 40_000;

struct NoReport;

impl FailureReport for NoReport {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

struct Table(RefCell<Vec<Expected>>);

impl Expect for Table {
    fn expect(&self, _: SetIndex, page: u64) -> Expected {
        self.0.borrow()[page as usize]
    }
}

fn main() {
    println!("level  columns  work                                   per second  GB/s of data");
    for (level, columns) in [(RaidLevel::Raid10, 8), (RaidLevel::Raid5, 6), (RaidLevel::Raid6, 8)] {
        for work in [Work::Page, Work::Row, Work::ReadPage, Work::ReadUnit] {
            let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
            let world = runtime.world().clone();
            let (per_second, bytes) = runtime.run(async move { rate(&world, level, columns, work).await });
            let gigabytes = per_second * bytes as f64 / 1e9;
            println!(
                "{:<6} {columns:>7}  {:<37}  {per_second:>10.0}  {gigabytes:>12.2}",
                level.name(),
                work.name()
            );
        }
    }
}

#[derive(Clone, Copy)]
enum Work {
    Page,
    Row,
    ReadPage,
    ReadUnit,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::Page => "destage one page of 4 KiB",
            Work::Row => "destage a row from pages of 4 KiB",
            Work::ReadPage => "verified read of 4 KiB",
            Work::ReadUnit => "verified read of a stripe unit",
        }
    }
}

async fn rate(world: &World, level: RaidLevel, columns: usize, work: Work) -> (f64, u64) {
    let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(UNIT_SECTORS))).expect("valid");
    let chunklet = ROWS * UNIT_SECTORS;
    let sizes = (0..columns).map(|_| ("drive", DATA_START_SECTORS + chunklet));
    let mut chunklets = Chunklets::new(sizes, chunklet, 0).expect("large enough");
    let sets = Arc::new(RaidSets::form(layout, &mut chunklets));
    let drives = (0..columns).map(|_| {
        let sectors = SectorCount(DATA_START_SECTORS + chunklet);
        Some(DriveHandle::new(StoreDrive::new(world, "drive", sectors)))
    });
    let members = Members::new(drives.collect(), LostDrives::new(columns), Rc::new(NoReport));
    let io = RaidIo::new(sets, members);
    let row_pages = layout.row_pages() as u64;
    let table = Table(RefCell::new(vec![Expected::Zero; (ROWS * row_pages) as usize]));
    let mut content = BufMut::new(PAGE_SECTORS as u32, PayloadWidth::REAL);
    content.as_mut_slice().iter_mut().zip(0u64..).for_each(|(byte, n)| *byte = ((n * 37) >> 3) as u8);
    let page = content.freeze();
    let crc = Expected::Crc(page_checksum(page.as_slice()));
    let row: Vec<_> = (0..row_pages).map(|n| (n, page.clone())).collect();
    for n in 0..ROWS {
        let prepared = io.prepare(SET, Row(n), &row, Rest::Zeros, &table).await.expect("prepared");
        drop(prepared.write().await.expect("written"));
    }
    table.0.borrow_mut().fill(crc);
    let mut random = world.random(7);
    let (rounds, bytes) = match work {
        Work::Page | Work::ReadPage => (ROUNDS * 8, 4096),
        Work::Row => (ROUNDS / 8, row_pages * 4096),
        Work::ReadUnit => (ROUNDS, UNIT_SECTORS * 512),
    };
    let start = cpu_seconds();
    for _ in 0..rounds {
        let n = random.below(ROWS);
        let place = random.below(row_pages);
        match work {
            Work::Page => {
                let one = [(place, page.clone())];
                let prepared = io.prepare(SET, Row(n), &one, Rest::Kept, &table).await.expect("prepared");
                drop(prepared.write().await.expect("written"));
            }
            Work::Row => {
                let prepared = io.prepare(SET, Row(n), &row, Rest::Kept, &table).await.expect("prepared");
                drop(prepared.write().await.expect("written"));
            }
            Work::ReadPage => {
                let lba = Lba((n * row_pages + place) * PAGE_SECTORS);
                io.read_verified(SET, lba, world.buffer(PAGE_SECTORS as u32), &table).await.0.expect("read");
            }
            Work::ReadUnit => {
                let unit = random.below(ROWS * layout.data_units_per_row() as u64);
                let buf = world.buffer(UNIT_SECTORS as u32);
                io.read_verified(SET, Lba(unit * UNIT_SECTORS), buf, &table).await.0.expect("read");
            }
        }
    }
    (rounds as f64 / (cpu_seconds() - start), bytes)
}

/// CPU time of this thread: other programs do not count.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
