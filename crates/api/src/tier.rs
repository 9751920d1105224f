//! The performance tier of a pool: which of its extents lie on flash, and why.
//!
//! Sizes are in bytes, times in seconds. A *value* is a number of I/Os of the slow group's drives that accesses to an extent have
//! cost lately, each access with the weight of its age (half after ten minutes).

use serde::{Deserialize, Serialize};

/// Where the extents of a volume, or of a part of it, are to lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VolumePlace {
    /// In the volume's own group.
    #[default]
    Slow,
    /// In its own group or in the fast one, as the tier decides.
    Auto,
    /// In the fast group.
    Fast,
}

/// A part of a volume that is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PinStatus {
    /// Where it begins.
    pub from_bytes: u64,
    /// Where it ends; it may be behind the end of the volume.
    pub to_bytes: u64,
    /// Where it is to lie: `slow` or `fast`.
    pub place: VolumePlace,
    /// When the pin ends, in seconds since 1970; none where it does not.
    pub until_unix_s: Option<u64>,
}

/// The tier of a pool. Moves and their causes are counted since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierStatus {
    /// The fast group.
    pub fast_group: String,
    /// Whether the tier moves extents by itself.
    pub is_on: bool,
    /// What may move in a second at most; none where only the load of hosts limits it.
    pub rate_bytes_per_s: Option<u64>,
    /// What volumes can use of the fast group.
    pub fast_bytes: u64,
    /// What of it extents have.
    pub fast_used_bytes: u64,
    /// What of it extents of volumes have that belong to slower groups.
    pub fast_promoted_bytes: u64,
    /// The value from which on an extent moves to the fast group; none before the first round, or where the fast group has no place.
    pub cutoff: Option<f64>,
    /// The share of the value of all extents that lies in the fast group, from 0 to 1; none where nothing was accessed.
    pub share_on_fast: Option<f64>,
    /// Extents that are to move now.
    pub moves_wanted: u64,
    /// What has moved.
    pub moves: TierMoves,
    /// Moves that may begin in a second while hosts are served.
    pub pace_per_s: f64,
    /// What may be written to the flash now, by what a day allows.
    #[serde(default)]
    pub writes_left_bytes: u64,
    /// Why nothing moves to the fast group now, if something keeps it.
    #[serde(default)]
    pub hold: Option<TierHold>,
    /// Memory in which the heat of extents is kept, of all shards.
    pub heat_bytes: u64,
}

/// Moves of a tier since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierMoves {
    /// To the fast group, because they were hot.
    pub promoted: u64,
    /// From the fast group, to make place.
    pub demoted: u64,
    /// To either, because an administrator has placed or pinned them.
    pub placed: u64,
    /// Not done: something else changed the extent, or a rebuild came in between. They are tried again.
    pub failed: u64,
    /// Bytes that were moved.
    pub bytes: u64,
}

impl TierMoves {
    /// What has moved since `earlier`, which is an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &TierMoves) -> TierMoves {
        TierMoves {
            promoted: self.promoted.saturating_sub(earlier.promoted),
            demoted: self.demoted.saturating_sub(earlier.demoted),
            placed: self.placed.saturating_sub(earlier.placed),
            failed: self.failed.saturating_sub(earlier.failed),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// How full the fast group of a tier is, and what the tier has done since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierIo {
    /// The fast group.
    pub fast_group: String,
    /// What volumes can use of it now.
    pub fast_bytes: u64,
    /// What of it extents have now.
    pub fast_used_bytes: u64,
    /// What of it extents of volumes have now that belong to slower groups.
    pub fast_promoted_bytes: u64,
    /// What has moved.
    pub moves: TierMoves,
    /// Reads of hosts, of at most 64 KiB, that the drives of the fast group answered. Those that memory or the flash cache answered
    /// do not count.
    pub reads_fast: u64,
    /// Those that other drives answered.
    pub reads_slow: u64,
}

impl TierIo {
    /// What has come since `earlier`, with the occupancy of now.
    #[must_use]
    pub fn since(&self, earlier: &TierIo) -> TierIo {
        TierIo {
            moves: self.moves.since(&earlier.moves),
            reads_fast: self.reads_fast.saturating_sub(earlier.reads_fast),
            reads_slow: self.reads_slow.saturating_sub(earlier.reads_slow),
            ..self.clone()
        }
    }

    /// Share of drive reads that the fast group served, from 0 to 1; absent if there were no reads.
    pub fn reads_on_fast(&self) -> Option<f64> {
        let all = self.reads_fast + self.reads_slow;
        (all > 0).then(|| self.reads_fast as f64 / all as f64)
    }
}

/// What keeps a tier from moving extents to its fast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TierHold {
    /// It was switched off.
    Off,
    /// Columns are rebuilt; moves go on afterwards.
    Rebuild,
    /// Hosts have waited longer for the fast group than for the slow one.
    FastIsSlower,
    /// The flash has taken the writes that a day allows.
    DailyWrites,
    /// The fast group has no free slot, and nothing in it may give way.
    NoRoom,
}

/// Why an extent has moved, or is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TierReason {
    /// It is hot.
    Hot,
    /// It makes place for what is hotter or pinned.
    GivesWay,
    /// The administrator has placed its volume, or has pinned it.
    Placed,
}

/// A move of an extent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierMove {
    /// Its volume.
    pub volume: String,
    /// Where it begins in the volume.
    pub offset_bytes: u64,
    /// Whether it goes to the fast group.
    pub to_fast: bool,
    /// Why.
    pub reason: TierReason,
    /// Its value.
    pub value: f64,
    /// How long ago it has moved; none where it is to move.
    #[serde(default)]
    pub ago_s: Option<u64>,
}

/// What a tier knows of one extent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierExplanation {
    /// The volume.
    pub volume: String,
    /// Where the extent begins.
    pub offset_bytes: u64,
    /// Its size.
    pub extent_bytes: u64,
    /// The group that it lies in; none where nothing was written yet.
    pub group: Option<String>,
    /// Whether that is the fast group.
    pub is_fast: bool,
    /// Whether that is the group of its volume.
    #[serde(default)]
    pub is_home: bool,
    /// Since when, if it has moved since the start and that is remembered.
    pub since_s: Option<u64>,
    /// Where it is to lie.
    pub place: VolumePlace,
    /// Whether it is pinned there.
    pub is_pinned: bool,
    /// When the pin ends, in seconds since 1970; none where it does not.
    pub pinned_until_unix_s: Option<u64>,
    /// Reads that counted lately, with the weights of their age.
    pub reads: f64,
    /// Writes.
    pub writes: f64,
    /// Its value.
    pub value: f64,
    /// The value from which on an extent moves to the fast group; none where that is not known.
    pub cutoff: Option<f64>,
    /// What keeps the tier from moving extents.
    pub hold: Option<TierHold>,
    /// Its last moves, the newest first.
    pub moves: Vec<TierMove>,
}

/// What a tier will do next, and what more flash would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierPlan {
    /// The pool.
    pub pool: String,
    /// The fast group; none where the pool has none.
    pub fast_group: Option<String>,
    /// Its size; 0 where the pool has none.
    pub fast_bytes: u64,
    /// For how many seconds accesses have been counted: a curve of the first minutes says little.
    pub counted_s: u64,
    /// The next moves, in their order.
    pub next: Vec<TierMove>,
    /// What keeps the tier from moving extents.
    pub hold: Option<TierHold>,
    /// What share of the drives' I/O flash of each size would serve, if the hottest extents lay on it, smallest first; at most 64.
    pub curve: Vec<TierCurvePoint>,
    /// The same of what lies in the fast group now.
    pub share_on_fast: Option<f64>,
}

/// A size of flash, and what it would serve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierCurvePoint {
    /// The size.
    pub flash_bytes: u64,
    /// The share of the drives' I/O, from 0 to 1.
    pub share: f64,
}
