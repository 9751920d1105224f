//! Sequences of lies, losses, moves, waits and kills that lost pages, or made parity wrong, although redundancy had them.

use std::future::Future;
use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, WIDTH};
use tier0_drive::{Fault, FaultPlan};
use tier0_pool::ChunkletAddress;
use tier0_raid::io::Rest;
use tier0_raid::layout::{Column, ColumnMask, Group, PagePlace, RaidLevel, Row, Unit};
use tier0_units::{Lba, Nanos};
use tier0_world::{Buf, BufMut, Random, VirtualRuntime};

const ROW: Row = Row(0);

fn on<F: Future<Output = ()> + 'static>(
    level: RaidLevel,
    columns: usize,
    seed: u64,
    test: impl Fn(Rc<Farm>, Random) -> F,
) {
    let runtime = VirtualRuntime::new(seed, WIDTH);
    let farm = Rc::new(Farm::new(runtime.world(), level, columns));
    let random = runtime.world().random(seed);
    runtime.run(test(farm, random));
}

fn col(farm: &Farm, unit: u8) -> Column {
    farm.layout.data_column(ROW, Unit(unit))
}

fn page_at(farm: &Farm, unit: u8, offset: usize) -> u64 {
    farm.layout.page_of_set(ROW, PagePlace { unit: Unit(unit), offset })
}

/// All pages stored, but those of `zeros` at offset 1.
async fn row(farm: &Rc<Farm>, zeros: &[u8], random: &mut Random) -> RowPages {
    let none: Vec<u64> = zeros.iter().map(|unit| page_at(farm, *unit, 1)).collect();
    let all: RowPages = (0..farm.row_pages())
        .map(|page| (page, (!none.contains(&page)).then(|| vec![page as u8 + 1; 32])))
        .collect();
    farm.destage(ROW, &all, random).await.expect("written");
    all
}

fn one(page: u64, byte: u8) -> RowPages {
    [(page, Some(vec![byte; PAGE_BYTES]))].into_iter().collect()
}

async fn renew_on(farm: &Rc<Farm>, column: Column, spare: u32) -> Vec<u64> {
    let target = ChunkletAddress { drive: farm.layout.columns() as u32 + spare, index: 0 };
    match farm.io.lost_columns(SET, ROW).contains(column) {
        true => farm.sets.start_rebuild(SET, column, target),
        false => farm.sets.start_evacuation(SET, column, target),
    }
    let moved = farm.io.rebuild_rows(SET, column, farm.rows(), &*farm.table).await.expect("moved");
    let lost = moved.lost_pages.clone();
    farm.sets.set_rebuilt(SET, column, farm.rows());
    drop(moved);
    farm.sets.finish_rebuild(SET, column);
    lost
}

type Logged = (Vec<(u64, Buf)>, Vec<(Column, Lba, Buf)>, RowPages);

/// A write that is carried out, and what the log has of it.
async fn logged(farm: &Farm, pages: RowPages, random: &mut Random) -> Logged {
    let data = farm.buffers(&pages, random);
    let prepared = farm.io.prepare(SET, ROW, &data, Rest::Kept, &*farm.table).await.expect("prepared");
    let parity = prepared.parity().map(|(column, lba, buf)| (column, lba, buf.clone())).collect();
    let written = prepared.write().await.expect("written");
    farm.accept(ROW, &pages);
    drop(written);
    (data, parity, pages)
}

async fn replay(farm: &Farm, (data, parity, pages): &Logged) {
    let written = farm.io.replay_row(SET, ROW, data, parity, Rest::Kept).await.expect("replayed");
    farm.accept(ROW, pages);
    drop(written);
}

/// No drive is faulty. A row is written (intent in the log), trimmed, a column is moved meanwhile, kill, replay.
fn replay_after_a_move(level: RaidLevel, columns: usize) {
    on(level, columns, 1, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        row(&farm, &[], &mut random).await;
        let y = page_at(&farm, 1, 1);
        let intent = logged(&farm, one(y, 0x55), &mut random).await;
        let none: RowPages = (0..farm.row_pages()).map(|page| (page, None)).collect();
        farm.accept(ROW, &none);
        let moved = col(&farm, 0);
        renew_on(&farm, moved, 0).await;
        // Killed and started; a younger write of the page is in the log.
        replay(&farm, &intent).await;
        farm.destage(ROW, &one(y, 0x66), &mut random).await.expect("written");
        farm.check_all().await;
        farm.lose(col(&farm, 1));
        farm.check_all().await;
    });
}
#[test]
fn replay_after_a_move_raid5() {
    replay_after_a_move(RaidLevel::Raid5, 6);
}
#[test]
fn replay_after_a_move_raid50() {
    replay_after_a_move(RaidLevel::Raid50, 6);
}
/// Two losses are what RAID 6 survives.
#[test]
fn replay_after_a_move_raid6() {
    on(RaidLevel::Raid6, 6, 1, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        row(&farm, &[], &mut random).await;
        let y = page_at(&farm, 1, 1);
        let intent = logged(&farm, one(y, 0x55), &mut random).await;
        let none: RowPages = (0..farm.row_pages()).map(|page| (page, None)).collect();
        farm.accept(ROW, &none);
        renew_on(&farm, col(&farm, 0), 0).await;
        replay(&farm, &intent).await;
        farm.destage(ROW, &one(y, 0x66), &mut random).await.expect("written");
        farm.lose(col(&farm, 1));
        farm.lose(col(&farm, 2));
        farm.check_all().await;
    });
}

/// A drive forgot zeros, P is lost and rebuilt, kill, replay of the row and of a younger write that was made without P.
fn replay_after_a_parity_was_rebuilt(level: RaidLevel, columns: usize) {
    on(level, columns, 2, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        let x = col(&farm, 0);
        let before = farm.stored(x, ROW, 1).await;
        let whole = row(&farm, &[0], &mut random).await;
        farm.plant(x, ROW, 1, &before).await;
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        farm.lose(p);
        let young = logged(&farm, one(page_at(&farm, 1, 1), 0x55), &mut random).await;
        renew_on(&farm, p, 0).await;
        // Killed and started.
        let zeros = vec![0; PAGE_BYTES];
        let contents: Vec<(u64, Buf)> = whole
            .iter()
            .map(|(page, bytes)| (*page, BufMut::copy_from(bytes.as_ref().unwrap_or(&zeros), WIDTH).freeze()))
            .collect();
        let mut prepared =
            farm.io.prepare(SET, ROW, &contents, Rest::Kept, &*farm.table).await.expect("prepared");
        prepared.leave_out_parity(ColumnMask::only(p));
        let written = prepared.write().await.expect("written");
        farm.accept(ROW, &whole);
        drop(written);
        replay(&farm, &young).await;
        farm.check_all().await;
        farm.lose(col(&farm, 1));
        if level == RaidLevel::Raid6 {
            farm.lose(col(&farm, 2));
        }
        farm.check_all().await;
    });
}
#[test]
fn a_parity_rebuilt_beside_a_lie_and_a_replay_raid5() {
    replay_after_a_parity_was_rebuilt(RaidLevel::Raid5, 6);
}
#[test]
fn a_parity_rebuilt_beside_a_lie_and_a_replay_raid6() {
    replay_after_a_parity_was_rebuilt(RaidLevel::Raid6, 6);
}

/// A drive forgot zeros; the parities are lost and rebuilt one after the other and count what lies there; the column
/// moves, and the new drive forgets.
fn parities_rebuilt_beside_a_lie(level: RaidLevel, columns: usize, scrub: bool) {
    on(level, columns, 3, move |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        let x = col(&farm, 0);
        farm.rot(x, ROW, 1, &mut random).await;
        let mut spare = 0;
        for parity in farm.layout.parity_columns(ROW, Group(0)).mask() {
            farm.lose(parity);
            renew_on(&farm, parity, spare).await;
            spare += 1;
        }
        if scrub {
            farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        }
        // Without a fault: it is moved.
        renew_on(&farm, x, spare).await;
        farm.plant(x, ROW, 1, &[0; PAGE_BYTES]).await;
        farm.destage(ROW, &one(page_at(&farm, 0, 1), 0x77), &mut random).await.expect("written");
        farm.check_redundancy().await;
    });
}
#[test]
fn a_rebuilt_parity_counts_no_lie_raid5() {
    parities_rebuilt_beside_a_lie(RaidLevel::Raid5, 6, true);
}
#[test]
fn a_rebuilt_parity_counts_no_lie_raid6() {
    parities_rebuilt_beside_a_lie(RaidLevel::Raid6, 6, true);
}

/// How long a write, a rebuild and a read wait under the row's lock for a parity that decides nothing.
#[test]
fn write_waits_raid5() {
    on(RaidLevel::Raid5, 6, 4, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(col(&farm, 0));
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let (drive, sectors) = farm.sectors_of(p, ROW, 1);
        farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        let before = farm.world.now();
        farm.destage(ROW, &one(page_at(&farm, 1, 1), 0x77), &mut random).await.expect("written");
        let took = farm.world.now().0 - before.0;
        assert!(took < Nanos::from_secs(1).0, "a write took {} s", took / 1_000_000_000);
    });
}
#[test]
fn rebuild_waits_raid5() {
    on(RaidLevel::Raid5, 6, 4, |farm, mut random| async move {
        for row in farm.all_rows() {
            // Page 1 of unit 0 alone is zero.
            let all: RowPages = (0..farm.row_pages())
                .map(|page| (page, (page != 1).then(|| vec![page as u8 + 1; 32])))
                .collect();
            farm.destage(row, &all, &mut random).await.expect("written");
        }
        farm.lose(col(&farm, 0));
        for row in farm.all_rows() {
            let Some(p) = farm.layout.parity_columns(row, Group(0)).p else { continue };
            let unit = Unit(0);
            if farm.layout.data_column(row, unit) != col(&farm, 0) {
                continue;
            }
            let (drive, sectors) = farm.sectors_of(p, row, 1);
            farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        }
        let before = farm.world.now();
        let lost = renew_on(&farm, col(&farm, 0), 0).await;
        let took = farm.world.now().0 - before.0;
        assert!(lost.is_empty());
        assert!(took < Nanos::from_secs(1).0, "a rebuild took {} s", took / 1_000_000_000);
    });
}
/// A page with a checksum and a page of zeros are missed, P cannot be read: Q, the zeros and the checksum say it at once.
#[test]
fn read_waits_raid6() {
    on(RaidLevel::Raid6, 6, 5, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(col(&farm, 0));
        farm.rot(col(&farm, 1), ROW, 1, &mut random).await;
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let (drive, sectors) = farm.sectors_of(p, ROW, 1);
        farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        let before = farm.world.now();
        farm.check(page_at(&farm, 1, 1), 1).await;
        let took = farm.world.now().0 - before.0;
        assert!(took < Nanos::from_secs(1).0, "a read took {} s", took / 1_000_000_000);
    });
}
#[test]
fn write_waits_raid6() {
    on(RaidLevel::Raid6, 6, 5, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(col(&farm, 0));
        farm.rot(col(&farm, 1), ROW, 1, &mut random).await;
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let (drive, sectors) = farm.sectors_of(p, ROW, 1);
        farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        let before = farm.world.now();
        farm.destage(ROW, &one(page_at(&farm, 2, 1), 0x77), &mut random).await.expect("written");
        let took = farm.world.now().0 - before.0;
        assert!(took < Nanos::from_secs(1).0, "a write took {} s", took / 1_000_000_000);
    });
}
/// Such a wait in vain takes the patience from a reader whose pages do come back.
#[test]
fn a_wait_for_nothing_takes_a_readers_patience() {
    on(RaidLevel::Raid6, 6, 6, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.rot(col(&farm, 1), ROW, 1, &mut random).await;
        farm.lose(col(&farm, 0));
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let (drive, sectors) = farm.sectors_of(p, ROW, 1);
        farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        farm.check(page_at(&farm, 1, 1), 1).await;
        // An enclosure fails for a second.
        for fault in &farm.faults {
            fault.inject(FaultPlan::always_in(Fault::ReadError, tier0_pool::DATA_START_SECTORS..u64::MAX));
        }
        let back = farm.clone();
        let passing = farm.world.clone().spawn(async move {
            back.world.sleep(Nanos::from_secs(1)).await;
            back.faults.iter().for_each(|fault| fault.clear());
        });
        farm.check(page_at(&farm, 2, 2), 1).await;
        passing.await;
    });
}

/// Two drives forgot zeros at one offset; both parities are right, and a scrub makes them count it.
fn scrub_of_two_lies(level: RaidLevel, columns: usize) {
    on(level, columns, 7, |farm, mut random| async move {
        row(&farm, &[0, 1], &mut random).await;
        for unit in [0, 1] {
            farm.rot(col(&farm, unit), ROW, 1, &mut random).await;
        }
        let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(outcome.parity_different, 0, "right parities were written over: {outcome:?}");
    });
}
#[test]
fn two_lies_raid6() {
    scrub_of_two_lies(RaidLevel::Raid6, 6);
}
#[test]
fn two_lies_raid5() {
    scrub_of_two_lies(RaidLevel::Raid5, 6);
}
/// The consequence: the scrub says all is well, one column is rebuilt, its new drive forgets, a write, two losses.
#[test]
fn consequence_raid6() {
    on(RaidLevel::Raid6, 6, 7, |farm, mut random| async move {
        row(&farm, &[0, 1], &mut random).await;
        for unit in [0, 1] {
            farm.rot(col(&farm, unit), ROW, 1, &mut random).await;
        }
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        let again = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(again.repaired, 0);
        let x = col(&farm, 0);
        farm.lose(x);
        renew_on(&farm, x, 0).await;
        farm.plant(x, ROW, 1, &[0; PAGE_BYTES]).await;
        farm.destage(ROW, &one(page_at(&farm, 0, 1), 0x77), &mut random).await.expect("written");
        farm.check_all().await;
        farm.lose(col(&farm, 2));
        farm.check_all().await;
    });
}

/// P is on the drive that was taken back and is the only one that has a page; a page of zeros beside it lies.
fn target_with_the_only_parity(lies: bool) {
    on(RaidLevel::Raid5, 6, 8, move |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let right = farm.stored(p, ROW, 1).await;
        farm.lose(p);
        farm.rot(col(&farm, 1), ROW, 1, &mut random).await;
        if lies {
            farm.rot(col(&farm, 0), ROW, 1, &mut random).await;
        } else {
            let (drive, sectors) = farm.sectors_of(col(&farm, 0), ROW, 1);
            farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        }
        let target = ChunkletAddress { drive: farm.layout.columns() as u32, index: 0 };
        farm.sets.start_rebuild(SET, p, target);
        farm.plant(p, ROW, 1, &right).await;
        let rebuilt = farm.io.rebuild_rows(SET, p, farm.rows(), &*farm.table).await.expect("rebuilt");
        assert!(rebuilt.lost_pages.is_empty(), "lost {:?}", rebuilt.lost_pages);
    });
}
#[test]
fn target_and_a_lie() {
    target_with_the_only_parity(true);
}
#[test]
fn target_and_unreadable_zeros() {
    target_with_the_only_parity(false);
}
/// P has rotted; the column of a page that is given up is lost and rebuilt by it; then P's drive is lost and a page rots.
#[test]
fn given_up_page_by_a_rotten_parity() {
    on(RaidLevel::Raid6, 6, 9, |farm, mut random| async move {
        row(&farm, &[], &mut random).await;
        farm.destage(ROW, &[(page_at(&farm, 0, 1), None)].into_iter().collect(), &mut random)
            .await
            .expect("trimmed");
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        farm.rot(p, ROW, 1, &mut random).await;
        let given_up = col(&farm, 0);
        farm.lose(given_up);
        renew_on(&farm, given_up, 0).await;
        farm.lose(p);
        farm.rot(col(&farm, 1), ROW, 1, &mut random).await;
        farm.check_all().await;
    });
}
/// S1 where RAID 6 modifies: eight columns.
#[test]
fn replay_after_a_move_raid6_wide() {
    on(RaidLevel::Raid6, 8, 1, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        row(&farm, &[], &mut random).await;
        let y = page_at(&farm, 1, 1);
        let intent = logged(&farm, one(y, 0x55), &mut random).await;
        let none: RowPages = (0..farm.row_pages()).map(|page| (page, None)).collect();
        farm.accept(ROW, &none);
        renew_on(&farm, col(&farm, 0), 0).await;
        replay(&farm, &intent).await;
        farm.destage(ROW, &one(y, 0x66), &mut random).await.expect("written");
        farm.lose(col(&farm, 1));
        farm.lose(col(&farm, 2));
        farm.check_all().await;
    });
}
/// Where nothing younger was written, and without any destage: at once after the replay.
#[test]
fn at_once_after_the_replay() {
    on(RaidLevel::Raid5, 6, 1, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        row(&farm, &[], &mut random).await;
        let y = page_at(&farm, 1, 1);
        let intent = logged(&farm, one(y, 0x55), &mut random).await;
        let none: RowPages = (0..farm.row_pages()).map(|page| (page, None)).collect();
        farm.accept(ROW, &none);
        renew_on(&farm, col(&farm, 0), 0).await;
        replay(&farm, &intent).await;
        farm.check_redundancy().await;
    });
}

/// Zeros that a scrub wrote are counted nowhere, so `scrub_slot` does not flush them.
#[test]
fn a_scrub_counts_the_zeros_that_it_wrote() {
    on(RaidLevel::Raid5, 6, 9, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.rot(col(&farm, 0), ROW, 1, &mut random).await;
        farm.lose(col(&farm, 1));
        let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(farm.stored(col(&farm, 0), ROW, 1).await, vec![0; PAGE_BYTES]);
        assert!(outcome.repaired > 0, "written and not counted: {outcome:?}");
    });
}
/// Two waits under the lock of one row: another write of the row while a first one waits for a parity in vain.
#[test]
fn a_reader_of_another_page_of_the_row_waits_too() {
    on(RaidLevel::Raid5, 6, 4, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(col(&farm, 0));
        let p = farm.layout.parity_columns(ROW, Group(0)).p.expect("p");
        let (drive, sectors) = farm.sectors_of(p, ROW, 1);
        farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
        let (writer, page) = (farm.clone(), page_at(&farm, 1, 1));
        let mut own = farm.world.random(77);
        let task = farm.world.clone().spawn(async move {
            writer.destage(ROW, &one(page, 0x77), &mut own).await.expect("written");
        });
        farm.world.sleep(Nanos::from_millis(1)).await;
        let before = farm.world.now();
        // A lost page with a checksum: its reader needs the row's lock.
        farm.check(page_at(&farm, 0, 2), 1).await;
        let took = farm.world.now().0 - before.0;
        task.await;
        assert!(took < Nanos::from_secs(1).0, "a host's read took {} s", took / 1_000_000_000);
    });
}
