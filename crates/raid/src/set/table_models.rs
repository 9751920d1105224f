//! The chunklet table under the model checker.

use std::sync::Arc;

use loom::thread;
use tier0_units::SectorCount;
use tier0_world::sync::shared::explore;

use super::*;
use crate::layout::{RaidConfig, RaidLevel};

const SET: SetIndex = SetIndex(0);
const COLUMN: Column = Column(1);
const ROW: Row = Row(0);
const TARGETS: [ChunkletAddress; 3] = [chunklet(1), chunklet(2), chunklet(3)];

const fn chunklet(drive: u32) -> ChunkletAddress {
    ChunkletAddress { drive, index: 0 }
}

/// One mirror of one row.
fn mirror() -> Arc<RaidSets> {
    let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid1, 2, SectorCount(8))).expect("valid");
    let shape = SetShape { layout, table_sectors: 0 };
    Arc::new(RaidSets::from_table(shape, 8, &[chunklet(0), TARGETS[0]]).expect("valid"))
}

/// A column moves and its row is rebuilt there. A thread that goes to the new place and finds the row there sees what
/// the rebuild wrote; the cell stands for the chunklet.
fn a_new_place_is_missing_until_rebuilt(flaw: Option<Flaw>) {
    explore(flaw, || {
        let sets = mirror();
        let written = Arc::new(AtomicU64::new(0));
        let (moved, content) = (sets.clone(), written.clone());
        thread::spawn(move || {
            moved.start_rebuild(SET, COLUMN, TARGETS[1]);
            content.store(1, Ordering::Relaxed);
            moved.set_rebuilt(SET, COLUMN, ROW..Row(1));
            moved.finish_rebuild(SET, COLUMN);
        });
        // As `read_column` does: first the place, then whether the row is there.
        let place = sets.chunklet(SET, COLUMN);
        assert!(place == TARGETS[0] || place == TARGETS[1], "a mix of two places");
        if place == TARGETS[1] && !(sets.any_rebuilding() && sets.is_missing(SET, COLUMN, ROW)) {
            assert_eq!(written.load(Ordering::Relaxed), 1, "a row is read before it was rebuilt");
        }
    });
}

/// The target of a rebuild is lost in its turn and the column moves on, while a shard declares the row rebuilt at the
/// first one: it must not count as rebuilt at the second.
fn a_row_counts_where_it_was_rebuilt(flaw: Option<Flaw>) {
    explore(flaw, || {
        let sets = mirror();
        sets.start_rebuild(SET, COLUMN, TARGETS[1]);
        let shard = sets.clone();
        let shard = thread::spawn(move || shard.set_rebuilt_at(SET, COLUMN, TARGETS[1], ROW..Row(1)));
        sets.start_rebuild(SET, COLUMN, TARGETS[2]);
        shard.join().expect("no panic");
        assert!(sets.is_missing(SET, COLUMN, ROW), "a row counts at a place that never had it");
    });
}

/// Sets join while another thread uses those that it is told of.
fn sets_that_are_counted_have_their_columns(flaw: Option<Flaw>) {
    explore(flaw, || {
        let sets = mirror();
        let followed = sets.clone();
        // Loom misses orders in which the thread that stores has loaded last, so the reader is the one that comes
        // later.
        thread::spawn(move || {
            if followed.count() == 2 {
                let places = [0, 1].map(|column| followed.chunklet(SetIndex(1), Column(column)));
                let places = places.map(|place| (place.drive, place.index));
                assert_eq!(places, [(0, 1), (1, 1)], "half a set is seen");
            }
        });
        let columns = [0, 1].map(|drive| ChunkletAddress { drive, index: 1 });
        sets.append(sets.shape(SET), &columns).expect("free");
    });
}

#[test]
fn a_place_is_not_believed_too_early() {
    a_new_place_is_missing_until_rebuilt(None);
}

#[test]
#[should_panic(expected = "a row is read before it was rebuilt")]
fn a_place_before_its_rows_are_missing_is_found() {
    a_new_place_is_missing_until_rebuilt(Some(Flaw::PlaceBeforeMissing));
}

#[test]
#[should_panic(expected = "a row is read before it was rebuilt")]
fn relaxed_orderings_are_found() {
    a_new_place_is_missing_until_rebuilt(Some(Flaw::RelaxedOrderings));
}

#[test]
fn a_rebuilt_row_does_not_move_on() {
    a_row_counts_where_it_was_rebuilt(None);
}

#[test]
#[should_panic(expected = "a row counts at a place that never had it")]
fn moving_without_a_turn_is_found() {
    a_row_counts_where_it_was_rebuilt(Some(Flaw::MoveWithoutTurn));
}

#[test]
fn sets_join_whole() {
    sets_that_are_counted_have_their_columns(None);
}

#[test]
#[should_panic(expected = "half a set is seen")]
fn columns_counted_before_they_are_set_are_found() {
    sets_that_are_counted_have_their_columns(Some(Flaw::CountBeforeItem));
}
