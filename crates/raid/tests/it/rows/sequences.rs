//! Sequences of lies, losses, moves, waits and kills that lost pages, or made parity wrong, although redundancy had them.

use std::future::Future;
use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, WIDTH, logged, on, replay};
use tier0_drive::{Fault, FaultPlan};
use tier0_pool::ChunkletAddress;
use tier0_raid::io::Rest;
use tier0_raid::layout::{Column, ColumnMask, Group, RaidLevel, Row, Unit};
use tier0_units::Nanos;
use tier0_world::{Buf, BufMut, Random};

const ROW: Row = Row(0);

/// All pages stored, but those of `zeros` at offset 1.
async fn row(farm: &Rc<Farm>, zeros: &[u8], random: &mut Random) -> RowPages {
    let none: Vec<u64> = zeros.iter().map(|unit| farm.page_at(*unit, 1)).collect();
    let all: RowPages = (0..farm.row_pages())
        .map(|page| (page, (!none.contains(&page)).then(|| vec![page as u8 + 1; 32])))
        .collect();
    farm.destage(ROW, &all, random).await.expect("written");
    all
}

fn one(page: u64, byte: u8) -> RowPages {
    [(page, Some(vec![byte; PAGE_BYTES]))].into_iter().collect()
}

fn p_of(farm: &Farm) -> Column {
    farm.layout.parity_columns(ROW, Group(0)).p.expect("a level with parity")
}

/// For how many seconds something keeps a row's lock.
async fn seconds<T>(farm: &Farm, work: impl Future<Output = T>) -> (f64, T) {
    let began = farm.world.now();
    let result = work.await;
    (farm.world.now().saturating_sub(began).as_secs_f64(), result)
}

/// No drive is faulty. A write of a row is logged, the row is given up, a column is moved, and after a kill the write is
/// replayed.
async fn move_and_replay(farm: &Rc<Farm>, random: &mut Random) {
    farm.fill_with_noise(random).await;
    row(farm, &[], random).await;
    let intent = logged(farm, one(farm.page_at(1, 1), 0x55), random).await;
    let none: RowPages = (0..farm.row_pages()).map(|page| (page, None)).collect();
    farm.accept(ROW, &none);
    farm.renew(farm.data_column(0), 0).await;
    replay(farm, &intent).await;
}

/// A younger write of the page was in the log too; then as many drives are lost as the level makes up for.
#[test]
fn a_row_that_is_given_up_is_moved_too() {
    let shapes =
        [(RaidLevel::Raid5, 6), (RaidLevel::Raid50, 6), (RaidLevel::Raid6, 6), (RaidLevel::Raid6, 8)];
    for shape in shapes {
        on(shape, 1, |farm, mut random| async move {
            move_and_replay(&farm, &mut random).await;
            farm.destage(ROW, &one(farm.page_at(1, 1), 0x66), &mut random).await.expect("written");
            farm.check_all().await;
            for unit in (1..).take(farm.layout.tolerated_failures()) {
                farm.lose(farm.data_column(unit));
                farm.check_all().await;
            }
        });
    }
}

#[test]
fn parity_is_right_at_once_after_the_replay() {
    on((RaidLevel::Raid5, 6), 1, |farm, mut random| async move {
        move_and_replay(&farm, &mut random).await;
        farm.check_redundancy().await;
    });
}

/// A drive forgot zeros, P is lost and rebuilt, kill, replay of the row and of a younger write that was made without P.
fn replay_after_a_parity_was_rebuilt(level: RaidLevel, columns: usize) {
    on((level, columns), 2, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        let x = farm.data_column(0);
        let before = farm.stored(x, ROW, 1).await;
        let whole = row(&farm, &[0], &mut random).await;
        farm.plant(x, ROW, 1, &before).await;
        let p = p_of(&farm);
        farm.lose(p);
        let young = logged(&farm, one(farm.page_at(1, 1), 0x55), &mut random).await;
        farm.renew(p, 0).await;
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
        farm.lose(farm.data_column(1));
        if level == RaidLevel::Raid6 {
            farm.lose(farm.data_column(2));
        }
        farm.check_all().await;
    });
}

#[test]
fn a_rebuilt_parity_goes_with_what_is_replayed() {
    replay_after_a_parity_was_rebuilt(RaidLevel::Raid5, 6);
    replay_after_a_parity_was_rebuilt(RaidLevel::Raid6, 6);
}

/// A drive forgot zeros; the parities are lost and rebuilt one after the other and count what lies there; the column
/// moves, and the new drive forgets.
fn parities_rebuilt_beside_a_lie(level: RaidLevel, columns: usize) {
    on((level, columns), 3, move |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        let x = farm.data_column(0);
        farm.rot(x, ROW, 1, &mut random).await;
        let mut spare = 0;
        for parity in farm.layout.parity_columns(ROW, Group(0)).mask() {
            farm.lose(parity);
            farm.renew(parity, spare).await;
            spare += 1;
        }
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        // Without a fault: it is moved.
        farm.renew(x, spare).await;
        farm.plant(x, ROW, 1, &[0; PAGE_BYTES]).await;
        farm.destage(ROW, &one(farm.page_at(0, 1), 0x77), &mut random).await.expect("written");
        farm.check_redundancy().await;
    });
}

#[test]
fn a_rebuilt_parity_counts_no_lie() {
    parities_rebuilt_beside_a_lie(RaidLevel::Raid5, 6);
    parities_rebuilt_beside_a_lie(RaidLevel::Raid6, 6);
}

/// Virtual time: nothing is to be waited for under the lock of a row whose only parity cannot be read, for zeros are zeros.
#[test]
fn a_write_waits_for_no_parity_that_decides_nothing() {
    on((RaidLevel::Raid5, 6), 4, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(farm.data_column(0));
        let p = p_of(&farm);
        farm.make_unreadable(p, ROW, 1);
        let (took, written) =
            seconds(&farm, farm.destage(ROW, &one(farm.page_at(1, 1), 0x77), &mut random)).await;
        written.expect("written");
        assert!(took < 1.0, "a write took {took} s");
    });
}

#[test]
fn nor_does_a_rebuild() {
    on((RaidLevel::Raid5, 6), 4, |farm, mut random| async move {
        for row in farm.all_rows() {
            // Page 1 of unit 0 alone is zero.
            let all: RowPages = (0..farm.row_pages())
                .map(|page| (page, (page != 1).then(|| vec![page as u8 + 1; 32])))
                .collect();
            farm.destage(row, &all, &mut random).await.expect("written");
        }
        farm.lose(farm.data_column(0));
        for row in farm.all_rows() {
            let Some(p) = farm.layout.parity_columns(row, Group(0)).p else { continue };
            let unit = Unit(0);
            if farm.layout.data_column(row, unit) != farm.data_column(0) {
                continue;
            }
            farm.make_unreadable(p, row, 1);
        }
        let (took, lost) = seconds(&farm, farm.renew(farm.data_column(0), 0)).await;
        assert!(lost.is_empty());
        assert!(took < 1.0, "a rebuild took {took} s");
    });
}

/// A page with a checksum and a page of zeros are missed, P cannot be read: Q, the zeros and the checksum say it at once.
#[test]
fn a_read_does_not_wait_where_a_checksum_decides() {
    on((RaidLevel::Raid6, 6), 5, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(farm.data_column(0));
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        let p = p_of(&farm);
        farm.make_unreadable(p, ROW, 1);
        let (took, ()) = seconds(&farm, farm.check(farm.page_at(1, 1), 1)).await;
        assert!(took < 1.0, "a read took {took} s");
    });
}

#[test]
fn nor_does_a_write() {
    on((RaidLevel::Raid6, 6), 5, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(farm.data_column(0));
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        let p = p_of(&farm);
        farm.make_unreadable(p, ROW, 1);
        let (took, written) =
            seconds(&farm, farm.destage(ROW, &one(farm.page_at(2, 1), 0x77), &mut random)).await;
        written.expect("written");
        assert!(took < 1.0, "a write took {took} s");
    });
}

/// A wait in vain would take the patience from a reader whose pages do come back.
#[test]
fn a_readers_patience_is_not_taken_by_a_wait_for_nothing() {
    on((RaidLevel::Raid6, 6), 6, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        farm.lose(farm.data_column(0));
        let p = p_of(&farm);
        farm.make_unreadable(p, ROW, 1);
        farm.check(farm.page_at(1, 1), 1).await;
        // An enclosure fails for a second.
        for fault in &farm.faults {
            fault.inject(FaultPlan::always_in(Fault::ReadError, tier0_pool::DATA_START_SECTORS..u64::MAX));
        }
        let back = farm.clone();
        let passing = farm.world.clone().spawn(async move {
            back.world.sleep(Nanos::from_secs(1)).await;
            back.faults.iter().for_each(|fault| fault.clear());
        });
        farm.check(farm.page_at(2, 2), 1).await;
        passing.await;
    });
}

/// Two drives forgot zeros at one offset; both parities are right, and a scrub makes them count it.
fn scrub_of_two_lies(level: RaidLevel, columns: usize) {
    on((level, columns), 7, |farm, mut random| async move {
        row(&farm, &[0, 1], &mut random).await;
        for unit in [0, 1] {
            farm.rot(farm.data_column(unit), ROW, 1, &mut random).await;
        }
        let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(outcome.parity_different, 0, "right parities were written over: {outcome:?}");
    });
}

#[test]
fn a_scrub_leaves_right_parities_beside_two_lies() {
    scrub_of_two_lies(RaidLevel::Raid5, 6);
    scrub_of_two_lies(RaidLevel::Raid6, 6);
}

/// The consequence: the scrub says all is well, one column is rebuilt, its new drive forgets, a write, two losses.
#[test]
fn two_lies_lose_nothing() {
    on((RaidLevel::Raid6, 6), 7, |farm, mut random| async move {
        row(&farm, &[0, 1], &mut random).await;
        for unit in [0, 1] {
            farm.rot(farm.data_column(unit), ROW, 1, &mut random).await;
        }
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        let again = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(again.repaired, 0);
        let x = farm.data_column(0);
        farm.lose(x);
        farm.renew(x, 0).await;
        farm.plant(x, ROW, 1, &[0; PAGE_BYTES]).await;
        farm.destage(ROW, &one(farm.page_at(0, 1), 0x77), &mut random).await.expect("written");
        farm.check_all().await;
        farm.lose(farm.data_column(2));
        farm.check_all().await;
    });
}

/// P is on the drive that was taken back and is the only one that has a page; a page of zeros beside it lies.
fn target_with_the_only_parity(lies: bool) {
    on((RaidLevel::Raid5, 6), 8, move |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        let p = p_of(&farm);
        let right = farm.stored(p, ROW, 1).await;
        farm.lose(p);
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        if lies {
            farm.rot(farm.data_column(0), ROW, 1, &mut random).await;
        } else {
            farm.make_unreadable(farm.data_column(0), ROW, 1);
        }
        let target = ChunkletAddress { drive: farm.layout.columns() as u32, index: 0 };
        farm.sets.start_rebuild(SET, p, target);
        farm.plant(p, ROW, 1, &right).await;
        let rebuilt = farm.io.rebuild_rows(SET, p, farm.rows(), &*farm.table).await.expect("rebuilt");
        assert!(rebuilt.lost_pages.is_empty(), "lost {:?}", rebuilt.lost_pages);
    });
}

#[test]
fn the_only_parity_on_a_target_is_used_beside_zeros() {
    target_with_the_only_parity(true);
    target_with_the_only_parity(false);
}

/// P has rotted; the column of a page that is given up is lost and rebuilt by it; then P's drive is lost and a page rots.
#[test]
fn a_page_that_is_given_up_is_rebuilt_with_both_parities() {
    on((RaidLevel::Raid6, 6), 9, |farm, mut random| async move {
        row(&farm, &[], &mut random).await;
        farm.destage(ROW, &[(farm.page_at(0, 1), None)].into_iter().collect(), &mut random)
            .await
            .expect("trimmed");
        let p = p_of(&farm);
        farm.rot(p, ROW, 1, &mut random).await;
        let given_up = farm.data_column(0);
        farm.lose(given_up);
        farm.renew(given_up, 0).await;
        farm.lose(p);
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        farm.check_all().await;
    });
}

/// What a scrub has written is made stable where it counts it.
#[test]
fn a_scrub_counts_the_zeros_that_it_wrote() {
    on((RaidLevel::Raid5, 6), 9, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.rot(farm.data_column(0), ROW, 1, &mut random).await;
        farm.lose(farm.data_column(1));
        let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        assert_eq!(farm.stored(farm.data_column(0), ROW, 1).await, vec![0; PAGE_BYTES]);
        assert!(outcome.repaired > 0, "written and not counted: {outcome:?}");
    });
}

/// While another one writes the row whose parity cannot be read.
#[test]
fn a_reader_of_another_page_of_the_row_does_not_wait() {
    on((RaidLevel::Raid5, 6), 4, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        farm.lose(farm.data_column(0));
        let p = p_of(&farm);
        farm.make_unreadable(p, ROW, 1);
        let (writer, page) = (farm.clone(), farm.page_at(1, 1));
        let mut own = farm.world.random(77);
        let task = farm.world.clone().spawn(async move {
            writer.destage(ROW, &one(page, 0x77), &mut own).await.expect("written");
        });
        farm.world.sleep(Nanos::from_millis(1)).await;
        // A lost page with a checksum: its reader needs the row's lock.
        let (took, ()) = seconds(&farm, farm.check(farm.page_at(0, 2), 1)).await;
        task.await;
        assert!(took < 1.0, "a host's read took {took} s");
    });
}
