//! Feature flags: what a structure on a drive has beyond its version.

use std::fmt;

use crate::PoolError;
use crate::codec::{Reader, Writer};

/// Three sets of 64 features. Bit n of a set is feature n.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Who does not know one of these ignores it. Its bytes lie behind all others, and a build that writes the
    /// structure without them takes the bit away.
    pub compatible: u64,
    /// Who does not know one of these may read, and must not write anything on the pool's drives.
    pub read_only: u64,
    /// Who does not know one of these understands nothing of the rest.
    pub incompatible: u64,
}

/// Compatible: a superblock names the starts of its pool.
pub(crate) const STARTS: u64 = 1 << 0;
/// Compatible, without bytes: pages were found of which no copy is right, and no scrub has found since that there are none.
pub(crate) const LOST_PAGES: u64 = 1 << 1;
/// Compatible: a superblock says in which generation members left that were removed.
pub(crate) const LEFT: u64 = 1 << 2;
/// Compatible: a superblock says what was given up of drives that are no members.
pub(crate) const GIVEN_UP: u64 = 1 << 3;
/// Incompatible, in superblocks and checkpoints: the pool has groups of sets, and drives and volumes are of one.
pub(crate) const GROUPS: u64 = 1 << 0;
/// Incompatible, in checkpoints: each group of sets has a lane of the write log.
pub(crate) const LANES: u64 = 1 << 1;
/// Incompatible, in checkpoints: volumes have places in families, and slots can have several extents.
pub(crate) const FAMILIES: u64 = 1 << 2;
/// Incompatible, in checkpoints: caches are switched off, of volumes or of the whole pool.
pub(crate) const SWITCHES: u64 = 1 << 3;
/// Incompatible, in checkpoints: the pool has a flash read cache.
pub(crate) const FLASH_CACHE: u64 = 1 << 4;
/// Incompatible, in checkpoints, without bytes: extents may lie in other groups than their volume's.
pub(crate) const MIXED: u64 = 1 << 5;
/// Incompatible, in checkpoints: groups are to leave, or have left.
pub(crate) const STAGES: u64 = 1 << 6;
/// What this code knows in superblocks.
pub(crate) const IN_SUPERBLOCKS: Features =
    Features { compatible: STARTS | LOST_PAGES | LEFT | GIVEN_UP, incompatible: GROUPS, ..Features::NONE };
/// Compatible: a checkpoint says what lies on lost drives that may be needed.
pub(crate) const LEFT_BEHIND: u64 = 1 << 0;
/// Compatible: a checkpoint says what drives are for.
pub(crate) const ROLES: u64 = 1 << 1;
/// Compatible: a checkpoint says to which drives columns belong that lie on others.
pub(crate) const DISPLACED: u64 = 1 << 2;
/// Compatible: a checkpoint says what hosts may ask of volumes in a second.
pub(crate) const CEILINGS: u64 = 1 << 3;
/// Compatible: a checkpoint says where volumes are to lie, and how the tier works.
pub(crate) const PLACEMENTS: u64 = 1 << 4;
/// Compatible: a checkpoint says how much volumes get in comparison with others.
pub(crate) const WEIGHTS: u64 = 1 << 5;
/// What it knows in checkpoints.
pub(crate) const IN_CHECKPOINTS: Features = Features {
    compatible: LEFT_BEHIND | ROLES | DISPLACED | CEILINGS | PLACEMENTS | WEIGHTS,
    incompatible: GROUPS | LANES | FAMILIES | SWITCHES | FLASH_CACHE | MIXED | STAGES,
    ..Features::NONE
};

/// Bytes of the three sets.
pub(crate) const FEATURES_BYTES: usize = 24;

impl Features {
    /// None at all.
    pub const NONE: Features = Features { compatible: 0, read_only: 0, incompatible: 0 };

    /// Those of the next superblock after one with these. The bits of others are gone with their bytes.
    pub(crate) fn of_next_superblock(&self) -> Features {
        Features {
            compatible: STARTS | self.compatible & LOST_PAGES,
            incompatible: self.incompatible & GROUPS,
            ..Features::NONE
        }
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        [self.compatible, self.read_only, self.incompatible].into_iter().for_each(|set| writer.u64(set));
    }

    pub(crate) fn decode(reader: &mut Reader<'_>) -> Option<Features> {
        Some(Features { compatible: reader.u64()?, read_only: reader.u64()?, incompatible: reader.u64()? })
    }

    /// Those that are not among the known ones.
    pub fn beyond(&self, known: Features) -> Features {
        Features {
            compatible: self.compatible & !known.compatible,
            read_only: self.read_only & !known.read_only,
            incompatible: self.incompatible & !known.incompatible,
        }
    }

    /// Refuses what permits only reading to a build that knows these; `what` names the structure.
    pub(crate) fn check_writable(
        &self,
        known: Features,
        what: impl FnOnce() -> String,
    ) -> Result<(), PoolError> {
        match self.beyond(known).read_only {
            0 => Ok(()),
            bits => Err(PoolError::ReadOnlyFeatures { what: what(), bits }),
        }
    }

    /// Whether bytes may follow that a build that knows these does not understand.
    pub(crate) fn has_rest_beyond(&self, known: Features) -> bool {
        let unknown = self.beyond(known);
        unknown.compatible != 0 || unknown.read_only != 0
    }
}

/// The features of a set, by number: "3, 17".
pub(crate) struct Bits(pub(crate) u64);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        while left != 0 {
            write!(f, "{}", left.trailing_zeros())?;
            left &= left - 1;
            f.write_str(if left == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
