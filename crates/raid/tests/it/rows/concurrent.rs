//! Readers, destagers, a rebuild and a scrub at once, on slow drives; and what each operation costs in drive I/Os.

use std::rc::Rc;

use super::farm::{Counts, Farm, RowPages, SET, UNIT_PAGES, on_each_shape};
use tier0_drive::{Fault, FaultPlan};
use tier0_pool::ChunkletAddress;
use tier0_raid::layout::{Column, RaidLevel, Row};
use tier0_units::Nanos;
use tier0_world::Random;

#[test]
fn readers_see_old_or_new_content_and_never_a_false_alarm() {
    on_each_shape(11, |farm, mut random| async move {
        farm.live(60, &mut random).await;
        for fault in &farm.faults {
            fault.inject(FaultPlan::share(Fault::Latency(Nanos(1000)), 0.5));
        }
        let mut tasks = Vec::new();
        for n in 0..6 {
            let (farm, mut random) = (farm.clone(), Random::new(random.bits(), n));
            tasks.push(farm.world.clone().spawn(async move {
                for _ in 0..60 {
                    let row = Row(random.below(8));
                    match n {
                        // One destager: the model's order is the order of its writes.
                        0 => {
                            let pages = farm.some_pages(&mut random);
                            farm.destage(row, &pages, &mut random).await.expect("written");
                        }
                        1 => {
                            let scrub = farm.io.scrub_rows(SET, row..Row(row.0 + 1), &*farm.table).await;
                            assert_eq!(scrub.expect("a scrub").repaired, 0, "nothing is wrong");
                        }
                        _ => {
                            let first = row.0 * farm.row_pages() + random.below(farm.row_pages());
                            farm.check(first, 1).await;
                        }
                    }
                }
            }));
        }
        for task in tasks {
            task.await;
        }
        assert!(farm.events.0.borrow().is_empty(), "nothing was wrong: {:?}", farm.events.0.borrow());
        farm.check_redundancy().await;
    });
}

#[test]
fn a_rebuild_goes_on_under_load() {
    on_each_shape(12, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        farm.live(60, &mut random).await;
        for fault in &farm.faults {
            fault.inject(FaultPlan::share(Fault::Latency(Nanos(1000)), 0.5));
        }
        farm.lose(Column(1));
        farm.sets.start_rebuild(
            SET,
            Column(1),
            ChunkletAddress { drive: farm.layout.columns() as u32 + 1, index: 1 },
        );
        let mut tasks = Vec::new();
        for n in 0..4 {
            let (farm, mut random) = (farm.clone(), Random::new(random.bits(), n));
            tasks.push(farm.world.clone().spawn(async move {
                for step in 0..60 {
                    match n {
                        0 if step < 4 => {
                            let rows = Row(step * 2)..Row(step * 2 + 2);
                            let rebuilt =
                                farm.io.rebuild_rows(SET, Column(1), rows.clone(), &*farm.table).await;
                            let rebuilt = rebuilt.expect("rebuilt");
                            farm.world.sleep(Nanos(5000)).await;
                            farm.sets.set_rebuilt(SET, Column(1), rows);
                            drop(rebuilt);
                        }
                        0 => {}
                        1 => {
                            let pages = farm.some_pages(&mut random);
                            farm.destage(Row(random.below(8)), &pages, &mut random).await.expect("written");
                        }
                        _ => farm.check(random.below(8 * farm.row_pages()), 1).await,
                    }
                }
            }));
        }
        for task in tasks {
            task.await;
        }
        farm.sets.finish_rebuild(SET, Column(1));
        farm.check_redundancy().await;
        farm.check_all().await;
        assert!(farm.events.0.borrow().is_empty(), "nothing was wrong: {:?}", farm.events.0.borrow());
    });
}

/// What `work` costs.
async fn cost(farm: &Rc<Farm>, work: impl Future<Output = ()>) -> Counts {
    *farm.counts.borrow_mut() = Counts::default();
    work.await;
    *farm.counts.borrow()
}

#[test]
fn a_destage_costs_what_the_level_says() {
    on_each_shape(13, |farm, mut random| async move {
        let layout = farm.layout;
        let page =
            |page: u64, value: u8| -> RowPages { [(page, Some(vec![value; 32]))].into_iter().collect() };
        let mut first = Random::new(1, 1);
        let whole = cost(&farm, async {
            farm.destage(Row(0), &page(1, 7), &mut first).await.expect("written");
        });
        let whole = whole.await;
        let columns = layout.columns() as u64;
        let copies = layout.copies_per_unit() as u64;
        if layout.parities() > 0 {
            let sectors = columns * layout.stripe_unit().0;
            assert_eq!(
                (whole.reads, whole.writes, whole.written_sectors),
                (0, columns, sectors),
                "a first write"
            );
        } else {
            assert_eq!((whole.reads, whole.writes), (0, copies), "a first write");
        }
        let one = cost(&farm, async {
            farm.destage(Row(0), &page(1, 8), &mut random).await.expect("written");
        });
        let one = one.await;
        // Old data and parities, or the other data units of the group, whichever are fewer.
        let group_units = (layout.data_units_per_row() / layout.groups()) as u64;
        let parities = layout.parities() as u64;
        let reads = if parities > 0 { (1 + parities).min(group_units - 1) } else { 0 };
        assert_eq!(
            (one.reads, one.writes, one.read_sectors),
            (reads, copies + parities, reads * 8),
            "{:?}",
            layout.level()
        );
        // A page of zeros in a written row was never anything else: as cheap.
        let fresh = cost(&farm, async {
            farm.destage(Row(0), &page(2, 8), &mut random).await.expect("written");
        });
        assert_eq!(fresh.await.reads, reads);
        let all: RowPages = (0..farm.row_pages()).map(|page| (page, Some(vec![5; 32]))).collect();
        let full = cost(&farm, async {
            farm.destage(Row(0), &all, &mut random).await.expect("written");
        });
        let full = full.await;
        assert_eq!((full.reads, full.writes), (0, columns), "neighbouring pages are one write");
        farm.check_redundancy().await;
    });
}

#[test]
fn a_rebuild_reads_no_more_than_it_needs() {
    on_each_shape(14, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        let all: RowPages =
            (0..farm.row_pages()).map(|page| (page, Some(vec![5 + page as u8; 32]))).collect();
        for row in farm.all_rows() {
            farm.destage(row, &all, &mut random).await.expect("written");
        }
        farm.lose(Column(0));
        farm.sets.start_rebuild(
            SET,
            Column(0),
            ChunkletAddress { drive: farm.layout.columns() as u32, index: 2 },
        );
        let rebuild = cost(&farm, async {
            let rebuilt =
                farm.io.rebuild_rows(SET, Column(0), farm.rows(), &*farm.table).await.expect("rebuilt");
            assert_eq!(rebuilt.rows_written, 8);
        });
        let rebuild = rebuild.await;
        let per_row = match farm.layout.level() {
            RaidLevel::Raid1 | RaidLevel::Raid10 => 1,
            _ => (farm.layout.data_units_per_row() / farm.layout.groups()) as u64,
        };
        let unit = UNIT_PAGES as u64 * 8;
        assert_eq!((rebuild.reads, rebuild.read_sectors), (8 * per_row, 8 * per_row * unit));
        assert_eq!((rebuild.writes, rebuild.written_sectors), (8, 8 * unit));
    });
}

#[test]
fn a_long_degraded_read_reads_the_rest_of_the_row_once() {
    on_each_shape(15, |farm, mut random| async move {
        if farm.layout.parities() == 0 {
            return;
        }
        let all: RowPages =
            (0..farm.row_pages()).map(|page| (page, Some(vec![5 + page as u8; 32]))).collect();
        farm.destage(Row(0), &all, &mut random).await.expect("written");
        farm.lose(farm.layout.data_column(Row(0), tier0_raid::layout::Unit(1)));
        let read = cost(&farm, farm.check(0, farm.row_pages())).await;
        // As many units as are wanted: a parity instead of the lost one.
        assert_eq!(read.reads, farm.layout.data_units_per_row() as u64);
    });
}
