//! What can go wrong with a catalogue, in words that name the place and the remedy.

use std::path::PathBuf;

/// A catalogue that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file or directory cannot be read.
    #[error("cannot read \"{}\" of the catalogue ({source}); check that it exists and is readable", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A directory without a catalogue file.
    #[error("\"{}\" has no .toml file; put the catalogue files there, or name another directory", .path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// A file that is no catalogue.
    #[error("{file}, line {line}, {field}: {fact}; see docs/catalog.md for the format of an entry")]
    Parse {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The dotted path of the field.
        field: String,
        /// What the parser says.
        fact: String,
    },
    /// An entry that is well-formed but wrong.
    #[error("{file}, line {line}, {field}: {problem}; {remedy}")]
    Invalid {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The dotted path of the field.
        field: String,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
}

/// An id that the catalogue does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEntry {
    /// What was looked for: "drive", "link", "array" or "entry".
    pub wanted: &'static str,
    /// The id that was asked for.
    pub id: String,
    /// Ids that resemble it, best first.
    pub near: Vec<String>,
}

impl std::fmt::Display for UnknownEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the catalogue has no {} \"{}\"; ", self.wanted, self.id)?;
        if !self.near.is_empty() {
            write!(f, "did you mean \"{}\"? ", self.near.join("\", \""))?;
        }
        write!(f, "\"tier0 catalog list\" lists all")
    }
}

impl std::error::Error for UnknownEntry {}

/// A calibration that an entry does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{id}\" has no calibration \"{calibration}\"; available: {}", .known.join(", "))]
pub struct UnknownCalibration {
    /// The entry.
    pub id: String,
    /// The calibration that was asked for.
    pub calibration: String,
    /// Those that it has.
    pub known: Vec<String>,
}

/// A reference "id" or "id@calibration" that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No such entry.
    #[error(transparent)]
    Entry(#[from] UnknownEntry),
    /// The entry has no such calibration.
    #[error(transparent)]
    Calibration(#[from] UnknownCalibration),
}
