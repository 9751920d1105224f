//! What accesses and moves cost the slow group, in I/Os of its drives.

/// Bytes that a disk transfers in the time that a random access takes to begin: a disk of 10,000 rpm needs 6.9 ms to seek and turn,
/// and transfers 150 MB/s.
const BYTES_PER_ACCESS: f64 = (1u64 << 20) as f64;
/// Accesses to slot tables that go with an extent that is written: read, and written in place.
const TABLE_ACCESSES: f64 = 2.0;

/// How a group protects what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redundancy {
    /// So many copies; 1 without protection.
    Copies(u32),
    /// So many columns of parity.
    Parity(u32),
}

/// What counts of a group of sets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupCost {
    /// Drives over which an extent of it lies.
    pub columns: u32,
    /// Those of them that data take, on average.
    pub data_columns: u32,
    /// How it protects them.
    pub redundancy: Redundancy,
    /// Bytes of data of an extent.
    pub extent_bytes: u64,
}

/// What a move costs the slow group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveCosts {
    /// An extent is read there and written to the fast group.
    pub promotion: f64,
    /// An extent is read from the fast group and written there.
    pub demotion: f64,
}

impl GroupCost {
    /// What a small write costs: with parity, old data and parity are read, and new ones written.
    pub fn small_write(&self) -> f64 {
        match self.redundancy {
            Redundancy::Copies(copies) => f64::from(copies),
            Redundancy::Parity(parity) => 2.0 * f64::from(1 + parity),
        }
    }

    /// What a move to the fast group, and one from there, costs this one.
    pub fn moves(&self) -> MoveCosts {
        let (data, columns) = (f64::from(self.data_columns.max(1)), f64::from(self.columns));
        let piece = 1.0 + self.extent_bytes as f64 / data / BYTES_PER_ACCESS;
        MoveCosts { promotion: data * piece, demotion: columns * piece + TABLE_ACCESSES * self.small_write() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_group_pays_for_each_drive() {
        let raid6 = GroupCost {
            columns: 10,
            data_columns: 8,
            redundancy: Redundancy::Parity(2),
            extent_bytes: 1 << 20,
        };
        assert_eq!(raid6.small_write(), 6.0);
        assert_eq!(raid6.moves().promotion, 9.0, "eight drives, and 1 MiB of transfers in all");
        assert_eq!(raid6.moves().demotion, 11.25 + 12.0);
        let mirror = GroupCost {
            columns: 2,
            data_columns: 1,
            redundancy: Redundancy::Copies(2),
            extent_bytes: 1 << 20,
        };
        assert_eq!(mirror.small_write(), 2.0);
        assert_eq!(mirror.moves(), MoveCosts { promotion: 2.0, demotion: 4.0 + 4.0 });
        let larger = GroupCost { extent_bytes: 4 << 20, ..raid6 };
        assert!(
            larger.moves().promotion < 4.0 * raid6.moves().promotion,
            "larger extents are cheaper to move"
        );
    }
}
