//! Pages of which nothing is stored: in a row that was written they are zeros, whatever a drive holds that lied about a
//! write, and whatever a parity says that has rotted.

use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, on_each_shape};
use tier0_raid::layout::{Column, ColumnMask, Group, Row, Unit};
use tier0_world::Random;

const ROW: Row = Row(0);

/// A row with a page of which nothing is stored, beside others: the column and the offset of that page.
async fn row_with_zeros(farm: &Rc<Farm>, random: &mut Random) -> (Column, usize) {
    let all = (0..farm.row_pages()).map(|page| (page, (page != 1).then(|| vec![page as u8 + 1; 32])));
    farm.destage(Row(0), &all.collect(), random).await.expect("written");
    (farm.layout.data_column(Row(0), Unit(0)), 1)
}

/// A drive that lies about a write leaves something where zeros were written. A scrub writes the zeros, and so does a rebuild,
/// also where the parities count what lies there.
#[test]
fn what_lies_where_zeros_are_due() {
    on_each_shape(11, |farm, mut random| async move {
        if farm.layout.parities() == 0 {
            return;
        }
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        let parities = farm.layout.parity_columns(Row(0), Group(0)).mask();
        for are_agreed in [false, true] {
            farm.rot(column, Row(0), offset, &mut random).await;
            let rotten = if are_agreed { parities } else { ColumnMask::EMPTY };
            for parity in rotten {
                farm.rot(parity, Row(0), offset, &mut random).await;
            }
            let outcome = farm.io.scrub_rows(SET, Row(0)..Row(1), &*farm.table).await.expect("a scrub");
            assert_eq!((outcome.rotten, outcome.parity_different), (1, rotten.len() as u64));
            assert_eq!(farm.stored(column, Row(0), offset).await, vec![0; PAGE_BYTES]);
            farm.check_redundancy().await;
        }
        farm.rot(column, Row(0), offset, &mut random).await;
        farm.renew(column, 0).await;
        farm.check_all().await;
        farm.check_redundancy().await;
        assert_eq!(farm.stored(column, Row(0), offset).await, vec![0; PAGE_BYTES]);
    });
}

/// A parity has rotted, which nobody sees, and the column is lost on which nothing is stored of a page: what the parity
/// said of that page was written to the spare. A drive that then forgot it was believed to hold zeros, and the difference
/// to them went into a parity that counted something else.
#[test]
fn a_rotten_parity_makes_no_content_of_zeros() {
    on_each_shape(12, |farm, mut random| async move {
        let Some(p) = farm.layout.parity_columns(Row(0), Group(0)).p else { return };
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        farm.rot(p, Row(0), offset, &mut random).await;
        farm.lose(column);
        farm.renew(column, 0).await;
        assert_eq!(farm.stored(column, Row(0), offset).await, vec![0; PAGE_BYTES]);
        farm.check_all().await;
        farm.check_redundancy().await;
    });
}

/// Both the column with such a page and another are missed: that the page is zeros is known.
#[test]
fn zeros_are_known_where_they_cannot_be_read() {
    on_each_shape(13, |farm, mut random| async move {
        let layout = farm.layout;
        if layout.parities() == 0 || layout.group_unit_mask(Group(0)).iter().count() < 2 {
            return;
        }
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        let other = layout.data_column(Row(0), layout.group_unit_mask(Group(0)).iter().nth(1).expect("two"));
        let q = layout.parity_columns(Row(0), Group(0)).q;
        for rotten in q.into_iter().chain([other]) {
            farm.rot(rotten, Row(0), offset, &mut random).await;
        }
        farm.lose(column);
        farm.renew(column, 0).await;
        assert_eq!(farm.stored(column, Row(0), offset).await, vec![0; PAGE_BYTES]);
        farm.check_all().await;
    });
}

/// The columns of the data of the first group, the first being that with the page of which nothing is stored.
fn data_columns(farm: &Farm) -> Vec<Column> {
    let units = farm.layout.group_unit_mask(Group(0));
    units.iter().map(|unit| farm.layout.data_column(ROW, unit)).collect()
}

/// Parity made from the whole row counted what a drive held that lied about a write. A drive that forgot that was believed
/// to hold zeros, and the difference to them went into the parity.
#[test]
fn parity_made_from_the_row_counts_zeros_where_nothing_is_stored() {
    on_each_shape(21, |farm, mut random| async move {
        if farm.layout.parities() == 0 {
            return;
        }
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        farm.rot(column, ROW, offset, &mut random).await;
        // All others of the offset: parity is made anew.
        let others = 1..farm.layout.group_unit_mask(Group(0)).iter().count() as u8;
        let new: RowPages =
            others.map(|unit| (farm.page_at(unit, offset), Some(vec![0x80 + unit; PAGE_BYTES]))).collect();
        farm.destage(ROW, &new, &mut random).await.expect("written");
        // Only three columns are too few for what is kept to be read.
        if farm.layout.columns() > 3 {
            assert_eq!(farm.stored(column, ROW, offset).await, vec![0; PAGE_BYTES], "{:?}", farm.layout);
        }
        farm.plant(column, ROW, offset, &[0; PAGE_BYTES]).await;
        let own = [(farm.page_at(0, offset), Some(vec![0x77; PAGE_BYTES]))].into_iter().collect();
        farm.destage(ROW, &own, &mut random).await.expect("written");
        farm.check_redundancy().await;
        farm.lose(*data_columns(&farm).last().expect("data"));
        farm.check_all().await;
    });
}

/// The page that a checksum vouches for follows where the page beside it, which is there, is taken for the zeros it must be.
#[test]
fn zeros_are_known_though_a_drive_holds_something_else() {
    on_each_shape(22, |farm, mut random| async move {
        if farm.layout.parities() == 0 {
            return;
        }
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        farm.rot(column, ROW, offset, &mut random).await;
        let others: Vec<Column> = data_columns(&farm).into_iter().skip(1).collect();
        for lost in others.into_iter().take(farm.layout.parities()) {
            farm.lose(lost);
        }
        farm.check_all().await;
        farm.check_redundancy().await;
        assert_eq!(farm.stored(column, ROW, offset).await, vec![0; PAGE_BYTES]);
    });
}

/// Nobody vouches for a page that is given up, so what follows for a page beside it is no content of that.
#[test]
fn a_page_that_is_given_up_vouches_for_nothing() {
    on_each_shape(23, |farm, mut random| async move {
        let Some(q) = farm.layout.parity_columns(ROW, Group(0)).q else { return };
        let (column, offset) = row_with_zeros(&farm, &mut random).await;
        let given_up = data_columns(&farm)[1];
        let none = [(farm.page_at(1, offset), None)].into_iter().collect();
        farm.destage(ROW, &none, &mut random).await.expect("written");
        farm.rot(q, ROW, offset, &mut random).await;
        farm.lose(column);
        farm.lose(given_up);
        farm.renew(column, 0).await;
        assert_eq!(farm.stored(column, ROW, offset).await, vec![0; PAGE_BYTES]);
        farm.renew(given_up, 1).await;
        farm.check_all().await;
        farm.check_redundancy().await;
    });
}
