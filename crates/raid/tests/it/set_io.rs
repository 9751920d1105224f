//! RAID I/O against a flat model: every level, healthy and without drives, with small and with large requests at once.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_drive::{DriveHandle, Fault, FaultDrive, FaultPlan, StoreDrive};
use tier0_pool::{ChunkletAddress, Chunklets, DATA_START_SECTORS};
use tier0_raid::io::{FailureReport, LostDrives, Members, RaidIo, Unchecked};
use tier0_raid::layout::{Column, Layout, RaidConfig, RaidLevel, Row};
use tier0_raid::set::{RaidSets, SetIndex};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{IoError, PayloadWidth, Random, VirtualRuntime, World};

const CHUNKLET_SECTORS: u64 = 256;
const WIDTH: u16 = 4;

/// Remembers who was reported lost.
#[derive(Default)]
struct Reports(RefCell<Vec<usize>>);

impl FailureReport for Reports {
    fn report(&self, member: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        self.0.borrow_mut().push(member);
        Box::pin(async {})
    }
}

struct Bench {
    world: World,
    faults: Vec<FaultDrive>,
    reports: Rc<Reports>,
    io: RaidIo,
    model: Rc<RefCell<Vec<u8>>>,
}

impl Bench {
    fn new(world: &World, level: RaidLevel, columns: usize) -> Bench {
        let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(8))).expect("valid");
        let sectors = DATA_START_SECTORS + CHUNKLET_SECTORS;
        let sizes = (0..columns).map(|_| ("drive", sectors));
        let mut chunklets = Chunklets::new(sizes, CHUNKLET_SECTORS, 0).expect("large enough");
        let sets = Arc::new(RaidSets::form(layout, &mut chunklets));
        assert_eq!(sets.count(), 1);
        // One drive more than the set has, as a spare.
        let faults: Vec<FaultDrive> = (0..=columns)
            .map(|n| {
                FaultDrive::new(
                    DriveHandle::new(StoreDrive::new(world, "drive", SectorCount(sectors))),
                    n as u64,
                )
            })
            .collect();
        let reports = Rc::new(Reports::default());
        let drives = faults.iter().map(|fault| Some(DriveHandle::new(fault.clone()))).collect();
        let members = Members::new(drives, LostDrives::new(columns + 1), reports.clone());
        let bytes = layout.data_sectors(SectorCount(CHUNKLET_SECTORS)).0 as usize * usize::from(WIDTH);
        let io = RaidIo::new(sets, members);
        Bench { world: world.clone(), faults, reports, io, model: Rc::new(RefCell::new(vec![0; bytes])) }
    }

    fn sectors(&self) -> u64 {
        self.model.borrow().len() as u64 / u64::from(WIDTH)
    }

    fn bytes(first: u64, sectors: u64) -> std::ops::Range<usize> {
        first as usize * usize::from(WIDTH)..(first + sectors) as usize * usize::from(WIDTH)
    }

    async fn write(&self, first: u64, sectors: u64, random: &mut Random) {
        let mut buf = self.world.buffer(sectors as u32);
        buf.as_mut_slice().iter_mut().for_each(|byte| *byte = random.bits() as u8);
        self.model.borrow_mut()[Self::bytes(first, sectors)].copy_from_slice(buf.as_slice());
        self.io.write(SetIndex(0), Lba(first), buf.freeze(), false).await.expect("a write succeeds");
    }

    async fn check(&self, first: u64, sectors: u64) {
        let (result, buf) = self.io.read(SetIndex(0), Lba(first), self.world.buffer(sectors as u32)).await;
        result.expect("a read succeeds");
        assert!(
            buf.as_slice() == &self.model.borrow()[Self::bytes(first, sectors)],
            "wrong data at {first}+{sectors}"
        );
    }

    async fn exercise(&self, random: &mut Random, steps: usize) {
        for _ in 0..steps {
            let first = random.below(self.sectors());
            let most = if random.chance(0.5) { 8 } else { 200 };
            let sectors = 1 + random.below((self.sectors() - first).min(most));
            if random.chance(0.6) {
                self.write(first, sectors, random).await;
            } else {
                self.check(first, sectors).await;
            }
        }
        self.check(0, self.sectors()).await;
    }
}

const SHAPES: [(RaidLevel, usize); 9] = [
    (RaidLevel::Raid0, 3),
    (RaidLevel::Raid1, 2),
    (RaidLevel::Raid1, 3),
    (RaidLevel::Raid10, 4),
    (RaidLevel::Raid10, 6),
    (RaidLevel::Raid5, 3),
    (RaidLevel::Raid5, 6),
    (RaidLevel::Raid50, 6),
    (RaidLevel::Raid6, 6),
];

fn on_each_shape<F: Future<Output = ()> + 'static>(test: impl Fn(Bench, Layout, Random) -> F) {
    for (level, columns) in SHAPES {
        let runtime = VirtualRuntime::new(columns as u64, PayloadWidth::new(WIDTH));
        let bench = Bench::new(runtime.world(), level, columns);
        let layout = *bench.io.sets().layout(SetIndex(0));
        let random = runtime.world().random(99);
        runtime.run(test(bench, layout, random));
    }
}

#[test]
fn every_level_keeps_its_data_through_the_loss_of_each_drive_it_tolerates() {
    on_each_shape(|bench, layout, mut random| async move {
        bench.exercise(&mut random, 300).await;
        for loss in 0..layout.tolerated_failures() {
            let victim =
                (random.below(layout.columns() as u64 - loss as u64) as usize + loss * 2) % layout.columns();
            bench.faults[victim].set_gone(true);
            bench.exercise(&mut random, 300).await;
            assert!(bench.reports.0.borrow().contains(&victim), "the loss of drive {victim} was reported");
        }
    });
}

#[test]
fn one_drive_too_many_is_an_error_and_never_wrong_data() {
    on_each_shape(|bench, layout, mut random| async move {
        bench.exercise(&mut random, 50).await;
        bench.faults.iter().take(layout.columns()).for_each(|fault| fault.set_gone(true));
        for first in (0..bench.sectors()).step_by(8) {
            let (result, _) = bench.io.read(SetIndex(0), Lba(first), bench.world.buffer(8)).await;
            assert!(matches!(result, Err(IoError::RedundancyLost | IoError::Gone)), "{result:?}");
            let write = bench.io.write(SetIndex(0), Lba(first), bench.world.buffer(8).freeze(), false).await;
            assert!(matches!(write, Err(IoError::RedundancyLost | IoError::Gone)), "{write:?}");
        }
    });
}

#[test]
fn unreadable_sectors_are_recovered_and_rewritten_around() {
    on_each_shape(|bench, layout, mut random| async move {
        if layout.tolerated_failures() == 0 {
            return;
        }
        bench.exercise(&mut random, 100).await;
        let bad = DATA_START_SECTORS + 40..DATA_START_SECTORS + 90;
        bench.faults[1].inject(FaultPlan::always_in(Fault::ReadError, bad));
        bench.check(0, bench.sectors()).await;
        assert!(bench.reports.0.borrow().is_empty(), "a bad sector does not lose the drive for reads");
        bench.exercise(&mut random, 200).await;
    });
}

#[test]
fn a_failed_write_or_flush_loses_the_drive_and_nothing_else() {
    for fault in [Fault::WriteError, Fault::FlushError] {
        on_each_shape(move |bench, layout, mut random| async move {
            bench.exercise(&mut random, 20).await;
            bench.faults[0].inject(FaultPlan::once(fault));
            if fault == Fault::FlushError {
                let survives = layout.tolerated_failures() > 0;
                assert_eq!(bench.io.flush().await.is_ok(), survives);
            } else if layout.tolerated_failures() > 0 {
                bench.write(0, bench.sectors(), &mut random).await;
            }
            if layout.tolerated_failures() > 0 {
                assert_eq!(bench.reports.0.borrow().as_slice(), [0]);
                bench.exercise(&mut random, 100).await;
            }
        });
    }
}

#[test]
fn writers_of_the_same_rows_at_once_leave_parity_and_mirrors_consistent() {
    on_each_shape(|bench, layout, mut random| async move {
        // Slow drives make requests overlap; each sector has one writer, rows have many.
        for fault in &bench.faults {
            fault.inject(FaultPlan::share(Fault::Latency(Nanos(1000)), 0.5));
        }
        let bench = Rc::new(bench);
        let sectors = bench.sectors();
        let tasks: Vec<_> = (0..sectors / 4)
            .map(|n| {
                let (bench, mut random) = (bench.clone(), Random::new(random.bits(), n));
                bench.world.clone().spawn(async move {
                    for _ in 0..5 {
                        bench.write(n * 4, 4, &mut random).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        bench.check(0, sectors).await;
        for _ in 0..layout.tolerated_failures() {
            let victim = random.below(layout.columns() as u64) as usize;
            bench.faults[victim].set_gone(true);
            bench.check(0, sectors).await;
        }
    });
}

#[test]
fn a_lost_column_is_rebuilt_while_it_is_written_directly() {
    on_each_shape(|bench, layout, mut random| async move {
        if layout.tolerated_failures() == 0 {
            return;
        }
        for fault in &bench.faults {
            fault.inject(FaultPlan::share(Fault::Latency(Nanos(1000)), 0.5));
        }
        bench.exercise(&mut random, 50).await;
        bench.faults[1].set_gone(true);
        bench.write(0, bench.sectors(), &mut random).await;
        let spare = ChunkletAddress { drive: layout.columns() as u32, index: 0 };
        bench.io.sets().start_rebuild(SetIndex(0), Column(1), spare);
        let bench = Rc::new(bench);
        let sectors = bench.sectors();
        // Each writer has its own sectors, and the rebuild goes through all rows meanwhile.
        let mut tasks: Vec<_> = (0..sectors / 16)
            .map(|n| {
                let (bench, mut random) = (bench.clone(), Random::new(random.bits(), n));
                bench.world.clone().spawn(async move {
                    for _ in 0..5 {
                        bench.write(n * 16, 16, &mut random).await;
                        bench.check(n * 16, 16).await;
                    }
                })
            })
            .collect();
        let rebuilder = bench.clone();
        tasks.push(bench.world.clone().spawn(async move {
            for row in 0..rebuilder.io.sets().rows(SetIndex(0)) {
                let rows = Row(row)..Row(row + 1);
                let rebuilt =
                    rebuilder.io.rebuild_rows(SetIndex(0), Column(1), rows.clone(), &Unchecked).await;
                let rebuilt = rebuilt.expect("rebuilt");
                assert_eq!(rebuilt.rows_written, 1, "without checksums every row counts as written");
                rebuilder.io.sets().set_rebuilt(SetIndex(0), Column(1), rows);
            }
        }));
        for task in tasks {
            task.await;
        }
        bench.io.sets().finish_rebuild(SetIndex(0), Column(1));
        bench.check(0, sectors).await;
        // The rebuilt column must be worth what the lost one was.
        bench.faults[0].set_gone(true);
        bench.check(0, sectors).await;
    });
}

/// A single reader used to get everything from the first copy, so the second drive of a mirror stood idle.
#[test]
fn all_copies_serve_a_single_reader() {
    on_each_shape(|bench, layout, _| async move {
        if layout.copies_per_unit() == 1 {
            return;
        }
        for fault in &bench.faults {
            fault.inject(FaultPlan::share(Fault::Latency(Nanos(1000)), 1.0));
        }
        let reads = bench.sectors() / 8;
        for first in (0..bench.sectors()).step_by(8) {
            bench.check(first, 8).await;
        }
        let fair = reads / layout.columns() as u64;
        for (column, fault) in bench.faults.iter().take(layout.columns()).enumerate() {
            let served = fault.struck_count();
            assert!(
                served.abs_diff(fair) <= fair / 4 + 1,
                "column {column} serves {served} of {reads} reads"
            );
        }
    });
}
