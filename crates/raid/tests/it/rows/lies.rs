//! Drives that lie beside pages that are given up, and parities that come back from the log: sequences that lost what was
//! acknowledged although redundancy had it.

use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, WIDTH, logged, on, replay};
use tier0_raid::io::{Expected, Rest};
use tier0_raid::layout::{RaidLevel, Row};
use tier0_world::{Buf, BufMut, Random};

const ROW: Row = Row(0);

fn content(pages: &[(u64, u8)]) -> RowPages {
    pages.iter().map(|(page, byte)| (*page, Some(vec![*byte; PAGE_BYTES]))).collect()
}

/// All pages stored, but those of `zeros` at offset 1.
async fn row(farm: &Rc<Farm>, zeros: &[u8], random: &mut Random) -> RowPages {
    let none: Vec<u64> = zeros.iter().map(|unit| farm.page_at(*unit, 1)).collect();
    let all: RowPages = (0..farm.row_pages())
        .map(|page| (page, (!none.contains(&page)).then(|| vec![page as u8 + 1; PAGE_BYTES])))
        .collect();
    farm.destage(ROW, &all, random).await.expect("written");
    all
}

async fn trim(farm: &Rc<Farm>, unit: u8, random: &mut Random) {
    farm.destage(ROW, &[(farm.page_at(unit, 1), None)].into_iter().collect(), random).await.expect("trimmed");
}

/// A row written whole has no parity in its intent: it follows.
async fn replay_whole(farm: &Farm, pages: &RowPages) {
    let zeros = vec![0; PAGE_BYTES];
    let contents: Vec<(u64, Buf)> = pages
        .iter()
        .map(|(page, bytes)| (*page, BufMut::copy_from(bytes.as_ref().unwrap_or(&zeros), WIDTH).freeze()))
        .collect();
    let prepared = farm.io.prepare(SET, ROW, &contents, Rest::Kept, &*farm.table).await.expect("prepared");
    let written = prepared.write().await.expect("written");
    for (page, _) in pages.iter().filter(|(_, bytes)| bytes.is_none()) {
        farm.table.0.borrow_mut()[*page as usize] = Expected::Zero;
    }
    farm.accept(ROW, pages);
    drop(written);
}

/// A drive forgets a write; the page is discarded; parity is made from the row and counts what lies there, so all is
/// whole again. After a power cut the older intent writes the page again, the younger one the parity that does not count it.
async fn replayed_page_that_is_given_up(farm: &Rc<Farm>, random: &mut Random) {
    farm.fill_with_noise(random).await;
    let d3 = farm.data_column(3);
    let older = farm.stored(d3, ROW, 1).await;
    let whole = row(farm, &[], random).await;
    farm.plant(d3, ROW, 1, &older).await;
    trim(farm, 3, random).await;
    let some: Vec<(u64, u8)> = (0..farm.layout.data_units_per_row() as u8)
        .filter(|unit| ![1, 3].contains(unit))
        .map(|unit| (farm.page_at(unit, 1), 0x80 + unit))
        .collect();
    let young = logged(farm, content(&some), random).await;
    // No fault is left: parity and drives agree.
    farm.check_redundancy().await;
    // Killed and started; the log has the discard too.
    replay_whole(farm, &whole).await;
    replay(farm, &young).await;
    trim(farm, 3, random).await;
    farm.check_all().await;
    // As recovery has every row scrubbed whose parity is from the log.
    farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
}

#[test]
fn raid_5_survives_a_loss_after_a_replayed_page_that_is_given_up() {
    on((RaidLevel::Raid5, 6), 1, |farm, mut random| async move {
        replayed_page_that_is_given_up(&farm, &mut random).await;
        farm.lose(farm.data_column(1));
        farm.check_all().await;
    });
}

#[test]
fn raid_6_survives_two_losses_after_a_replayed_page_that_is_given_up() {
    on((RaidLevel::Raid6, 8), 1, |farm, mut random| async move {
        replayed_page_that_is_given_up(&farm, &mut random).await;
        farm.lose(farm.data_column(1));
        farm.lose(farm.data_column(2));
        farm.check_all().await;
    });
}

/// P's drive forgets, a write modifies it and logs it, and a scrub makes it right. The power is cut, and the log's comes back:
/// recovery has the row scrubbed. Then a page rots.
#[test]
fn a_parity_that_comes_back_from_the_log_is_made_right_again() {
    on((RaidLevel::Raid5, 6), 1, |farm, mut random| async move {
        row(&farm, &[], &mut random).await;
        let p = farm.layout.parity_columns(ROW, tier0_raid::layout::Group(0)).p.expect("P");
        farm.rot(p, ROW, 1, &mut random).await;
        let young = logged(&farm, content(&[(farm.page_at(0, 1), 0x77)]), &mut random).await;
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        farm.check_redundancy().await;
        replay(&farm, &young).await;
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        farm.check_all().await;
    });
}

/// The column of a page that is given up is lost, and a page of zeros beside it lies: what is recovered by P counts the
/// lie, and Q is made to agree. The lie is moved, the new drive forgets, a write, one loss.
async fn lie_beside_a_lost_page_that_is_given_up(farm: &Rc<Farm>, by_scrub: bool, random: &mut Random) {
    row(farm, &[0], random).await;
    trim(farm, 1, random).await;
    farm.rot(farm.data_column(0), ROW, 1, random).await;
    farm.lose(farm.data_column(1));
    if by_scrub {
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
    }
    farm.renew(farm.data_column(1), 0).await;
    let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
    assert_eq!(outcome.repaired, 0);
    farm.check_redundancy().await;
    // All is whole. It is moved, and the new drive forgets that write.
    farm.renew(farm.data_column(0), 1).await;
    farm.plant(farm.data_column(0), ROW, 1, &[0; PAGE_BYTES]).await;
    farm.destage(ROW, &content(&[(farm.page_at(0, 1), 0x77)]), random).await.expect("written");
    farm.lose(farm.data_column(2));
    farm.check_all().await;
}

#[test]
fn a_rebuild_beside_a_lie_makes_no_parity_count_it() {
    on((RaidLevel::Raid6, 8), 1, |farm, mut random| async move {
        lie_beside_a_lost_page_that_is_given_up(&farm, false, &mut random).await;
    });
}

#[test]
fn a_scrub_beside_a_lie_makes_no_parity_count_it() {
    on((RaidLevel::Raid6, 8), 1, |farm, mut random| async move {
        lie_beside_a_lost_page_that_is_given_up(&farm, true, &mut random).await;
    });
}

/// No drive is lost: beside the lie a page that is given up was forgotten. A scrub has both parities count the lie.
#[test]
fn a_lie_beside_a_forgotten_page_that_is_given_up_is_counted_by_no_parity() {
    on((RaidLevel::Raid6, 8), 1, |farm, mut random| async move {
        row(&farm, &[0], &mut random).await;
        trim(&farm, 1, &mut random).await;
        farm.rot(farm.data_column(0), ROW, 1, &mut random).await;
        farm.rot(farm.data_column(1), ROW, 1, &mut random).await;
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        farm.check_redundancy().await;
        // All is whole. It is moved, and the new drive forgets that write.
        farm.renew(farm.data_column(0), 1).await;
        farm.plant(farm.data_column(0), ROW, 1, &[0; PAGE_BYTES]).await;
        farm.destage(ROW, &content(&[(farm.page_at(0, 1), 0x77)]), &mut random).await.expect("written");
        farm.lose(farm.data_column(2));
        farm.check_all().await;
    });
}

/// A drive forgets a page that is given up, and a scrub makes both parities anew, one after the other: a power cut tears the
/// second at most. One loss.
#[test]
fn parities_are_made_anew_one_after_the_other() {
    on((RaidLevel::Raid6, 8), 1, |farm, mut random| async move {
        row(&farm, &[], &mut random).await;
        trim(&farm, 1, &mut random).await;
        farm.plant(farm.data_column(1), ROW, 1, &[0xee; PAGE_BYTES]).await;
        let q = farm.layout.parity_columns(ROW, tier0_raid::layout::Group(0)).q.expect("Q");
        let before = farm.stored(q, ROW, 1).await;
        farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
        let mut torn = farm.stored(q, ROW, 1).await;
        torn[..PAGE_BYTES / 2].copy_from_slice(&before[..PAGE_BYTES / 2]);
        farm.plant(q, ROW, 1, &torn).await;
        farm.lose(farm.data_column(2));
        farm.check_all().await;
    });
}
