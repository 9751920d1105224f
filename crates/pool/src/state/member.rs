//! The drives of a pool.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state::DriveRole;
use crate::state::group::is_first_group;

/// A drive of a pool. Its place among the members is its name in all other records; places are never used again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its identity.
    pub id: Uuid,
    /// Its name in the array's description.
    pub name: String,
    /// Its size.
    pub sectors: u64,
    /// What kind of drive it is, for placement.
    pub class: DriveClass,
    /// The group whose sets it has columns of.
    #[serde(default, skip_serializing_if = "is_first_group")]
    pub group: u32,
    /// What it is for.
    #[serde(default, skip_serializing_if = "DriveRole::is_by_use")]
    pub role: DriveRole,
    /// Whether it serves.
    pub state: MemberState,
    /// It is to leave: it gets nothing new, and is forgotten when the pool has nothing on it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaving: bool,
    /// Where it was last found, at most [`PATH_BYTES_MAX`] bytes; empty if that is not known. Only a hint: the drive is
    /// known by its identity. A path for which there is no room on the drives is not remembered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// The most bytes of a path that is remembered.
pub const PATH_BYTES_MAX: usize = 1023;

/// Whether a member serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// It serves.
    Active,
    /// It failed or was missing: what it holds is stale and is never believed again.
    Lost,
    /// It was taken out of the pool and holds nothing that the pool needs.
    Removed,
}

/// A kind of drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriveClass {
    /// Flash.
    Flash,
    /// A disk, or something of which nothing is known.
    Disk,
    /// Memory.
    Ram,
}

impl Member {
    /// Whether it serves.
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active
    }

    /// Whether it serves, and what it holds is to go elsewhere.
    pub fn is_being_emptied(&self) -> bool {
        self.is_active() && self.leaving
    }

    /// Whether it serves and may be given chunklets.
    pub fn takes_more(&self) -> bool {
        self.is_active() && !self.leaving
    }
}

impl MemberState {
    pub(crate) const ALL: [MemberState; 3] = [MemberState::Active, MemberState::Lost, MemberState::Removed];

    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<MemberState> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for DriveClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriveClass::Flash => "flash",
            DriveClass::Disk => "disk",
            DriveClass::Ram => "ram",
        })
    }
}

impl FromStr for DriveClass {
    type Err = String;

    /// Memory is not said, but given (`ram`).
    fn from_str(text: &str) -> Result<DriveClass, String> {
        match text {
            "flash" => Ok(DriveClass::Flash),
            "disk" => Ok(DriveClass::Disk),
            _ => Err(format!("{text:?} is not a drive class; use \"flash\" or \"disk\"")),
        }
    }
}

impl DriveClass {
    pub(crate) const ALL: [DriveClass; 3] = [DriveClass::Flash, DriveClass::Disk, DriveClass::Ram];

    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<DriveClass> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
