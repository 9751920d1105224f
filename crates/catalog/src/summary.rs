//! One line per entry, for `tier0 catalog list`.

use std::fmt;

use serde::Serialize;

/// What an entry describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A disk.
    Disk,
    /// A flash drive.
    Flash,
    /// A protected write cache.
    Nvram,
    /// A link.
    Link,
    /// An array.
    Array,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            EntryKind::Disk => "disk",
            EntryKind::Flash => "flash",
            EntryKind::Nvram => "nvram",
            EntryKind::Link => "link",
            EntryKind::Array => "array",
        })
    }
}

/// One line of `tier0 catalog list`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The id.
    pub id: String,
    /// What it describes.
    pub kind: EntryKind,
    /// Class of device.
    pub class: String,
    /// Capacity in GB, for drives.
    pub capacity_gb: Option<f64>,
    /// Maker and model that the figures are of.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The calibration in effect.
    pub calibration: String,
    /// All calibrations.
    pub calibrations: Vec<String>,
    /// How many of its parameters are assumed.
    pub assumed: usize,
    /// How many it has.
    pub parameters: usize,
}
