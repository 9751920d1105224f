//! Policies by their names.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::Policy;
use crate::adaptive::Adaptive;
use crate::lru::Lru;

/// A policy that can be chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// [`Lru`].
    Lru,
    /// [`Adaptive`].
    #[default]
    Adaptive,
}

/// There is no policy of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown policy {name:?}; use one of {}", names())]
pub struct UnknownPolicy {
    /// The name.
    pub name: String,
}

impl PolicyKind {
    /// All that there are.
    pub const ALL: [PolicyKind; 2] = [PolicyKind::Lru, PolicyKind::Adaptive];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Lru => "lru",
            PolicyKind::Adaptive => "adaptive",
        }
    }

    /// A policy of this kind over so many frames, all of them free.
    ///
    /// # Panics
    /// Where there are no frames, or 2^32 - 1 or more.
    pub fn of(self, frames: usize) -> Box<dyn Policy> {
        match self {
            PolicyKind::Lru => Box::new(Lru::new(frames)),
            PolicyKind::Adaptive => Box::new(Adaptive::new(frames)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<PolicyKind, UnknownPolicy> {
        let found = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownPolicy { name: name.to_owned() })
    }
}

fn names() -> String {
    PolicyKind::ALL.map(PolicyKind::name).join(", ")
}
