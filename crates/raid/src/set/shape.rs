//! The shapes of sets, and which sets have which: a pool may have groups of sets of different levels, widths and stripe units.
//!
//! Neighbouring sets of one shape are a *stretch*. A pool of one group has one, so finding a set's shape costs one
//! comparison there; others have as many as groups were created or grown in turn.

use std::sync::OnceLock;

use tier0_units::{PAGE_SECTORS, SectorCount};

use crate::layout::Layout;
use crate::set::SetIndex;
use crate::set::grow_list::GrowList;

/// What sets of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetShape {
    /// How their columns are laid out.
    pub layout: Layout,
    /// Sectors at the front of each of their chunklets that belong to the slot tables, whole pages.
    pub table_sectors: u64,
}

impl SetShape {
    /// The rows of such a set of chunklets of this size.
    ///
    /// # Panics
    /// When the tables do not fit.
    pub fn rows(&self, chunklet_sectors: u64) -> u64 {
        assert!(
            self.table_sectors.is_multiple_of(PAGE_SECTORS) && self.table_sectors <= chunklet_sectors,
            "{} sectors of tables do not fit in chunklets of {chunklet_sectors}",
            self.table_sectors
        );
        self.layout.rows(SectorCount(chunklet_sectors - self.table_sectors))
    }
}

/// Neighbouring sets of one shape; they end where the next stretch begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) first_set: u32,
    /// The place of the first one's first column among the columns of all sets.
    pub(super) first_column: usize,
    pub(super) shape: SetShape,
    pub(super) rows: u64,
}

/// The stretches of a pool, never none.
#[derive(Debug)]
pub(super) struct Stretches {
    stretches: GrowList<OnceLock<Stretch>>,
    chunklet_sectors: u64,
}

impl Stretches {
    /// Those of sets that were formed in these runs: shape and number.
    pub(super) fn new(runs: &[(SetShape, u32)], chunklet_sectors: u64) -> Stretches {
        let (mut first_set, mut first_column) = (0, 0);
        let mut stretches: Vec<Stretch> = Vec::new();
        for (shape, sets) in runs {
            // One without sets gives the pool a shape before it has any.
            if stretches.last().is_none_or(|last| last.shape != *shape && last.first_set < first_set) {
                stretches.push(Stretch {
                    first_set,
                    first_column,
                    shape: *shape,
                    rows: shape.rows(chunklet_sectors),
                });
            } else if let Some(last) = stretches.last_mut().filter(|last| last.shape != *shape) {
                (last.shape, last.rows) = (*shape, shape.rows(chunklet_sectors));
            }
            first_set += sets;
            first_column += *sets as usize * shape.layout.columns();
        }
        assert!(!stretches.is_empty(), "sets have a shape");
        Stretches { stretches: GrowList::new(stretches.into_iter().map(OnceLock::from)), chunklet_sectors }
    }

    /// Whatever joins from now on has this shape: the next set is `first_set`. Called by one thread at a time.
    pub(super) fn go_on(&self, shape: &SetShape, first_set: u32, first_column: usize) {
        if self.last().shape == *shape {
            return;
        }
        let rows = shape.rows(self.chunklet_sectors);
        let next = Stretch { first_set, first_column, shape: *shape, rows };
        self.stretches.append(|place| place.set(next).expect("nothing was there"));
    }

    /// The stretch that a set is in.
    #[inline]
    pub(super) fn of(&self, set: SetIndex) -> &Stretch {
        let first = stretch_at(self.stretches.get(0));
        match self.stretches.len() {
            1 => first,
            count => (1..count)
                .rev()
                .map(|at| stretch_at(self.stretches.get(at)))
                .find(|one| one.first_set <= set.0)
                .unwrap_or(first),
        }
    }

    /// All of them, the first sets' first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().map(stretch_at)
    }

    /// The one in which sets join.
    pub(super) fn last(&self) -> &Stretch {
        stretch_at(self.stretches.get(self.stretches.len() - 1))
    }
}

#[inline]
fn stretch_at(place: &OnceLock<Stretch>) -> &Stretch {
    place.get().expect("a stretch is there before it is counted")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{RaidConfig, RaidLevel};

    fn shape(level: RaidLevel, columns: usize) -> SetShape {
        let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(8))).expect("valid");
        SetShape { layout, table_sectors: 0 }
    }

    #[test]
    fn sets_have_the_shape_that_they_were_formed_with() {
        let (mirrors, fives) = (shape(RaidLevel::Raid1, 2), shape(RaidLevel::Raid5, 5));
        let stretches = Stretches::new(&[(fives, 0), (mirrors, 3), (mirrors, 2), (fives, 1)], 1024);
        let shapes = |sets: u32| (0..sets).map(|set| stretches.of(SetIndex(set)).shape).collect::<Vec<_>>();
        assert_eq!(shapes(6), [[mirrors; 5].to_vec(), vec![fives]].concat());
        assert_eq!((stretches.last().first_set, stretches.last().first_column), (5, 10));
        stretches.go_on(&fives, 6, 15);
        stretches.go_on(&mirrors, 7, 20);
        assert_eq!(shapes(9), [[mirrors; 5].to_vec(), vec![fives; 2], vec![mirrors; 2]].concat());
        assert_eq!((stretches.last().first_set, stretches.last().first_column), (7, 20));
    }
}
