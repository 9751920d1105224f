//! The version of the contract between an array and those who ask it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version of the contract.
///
/// It increases with every change that a program of the other version could notice: a field or a variant goes, gets another
/// name or another meaning, or a reader needs a new one. A new field that readers may ignore does not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ApiVersion(pub u32);

impl ApiVersion {
    /// What this program speaks.
    pub const CURRENT: ApiVersion = ApiVersion(1);
    /// What programs spoke that named no version.
    pub const UNNAMED: ApiVersion = ApiVersion(0);

    /// That of a message without a version.
    pub(crate) fn unnamed() -> ApiVersion {
        ApiVersion::UNNAMED
    }
}

impl Default for ApiVersion {
    /// The version of what this program makes.
    fn default() -> ApiVersion {
        ApiVersion::CURRENT
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
