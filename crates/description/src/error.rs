//! What is wrong with a description, in itself or with what is there.

use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use tier0_catalog::Catalog;
use tier0_toml::Misread;

/// The first thing that is wrong with a description.
#[derive(Debug, Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("cannot read array file {path:?}: {source}; check the path and its permissions")]
    Unreadable {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no text.
    #[error(
        "{path:?} is not an array file: it is binary, perhaps the file or device of a drive; name the TOML \
         file that describes the array (docs/array-file.md)"
    )]
    NoText {
        /// What was named.
        path: PathBuf,
    },
    /// Where the file of events is moved lies something else that the array has.
    #[error("array.events: the events are rotated to {path:?}, which is {what}; choose another file")]
    MovedEvents {
        /// Where the file is moved when it is large.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A file that the array file names is something else that the array has.
    #[error("{field}: {path:?} is already {what}; choose another file")]
    Taken {
        /// The field.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// What lies beside it by default is that of another array file.
    #[error(
        "array file {file:?} has no {field}, and its default {path:?} is also the default of {other:?}; set \
         {field}, or rename one of the files"
    )]
    Shared {
        /// The file that was read.
        file: PathBuf,
        /// The other one.
        other: PathBuf,
        /// What it does not say.
        field: &'static str,
        /// What both would have.
        path: PathBuf,
    },
    /// Something in it is wrong.
    #[error("{file}, line {line}: {text}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field, the fact and the remedy.
        text: String,
    },
}

/// An array file does not describe what is there.
#[derive(Debug, Error)]
pub enum Mismatch {
    /// No drive of a pool is to be found.
    #[error(
        "pool {pool:?} is on none of the connected drives; mount or connect its drives, or add their \
         directory to array.search; only if it was never created, run \"tier0 create\" with this array file"
    )]
    NoPool {
        /// The pool.
        pool: String,
    },
    /// The description contradicts what the drives know.
    #[error(
        "pool {pool:?} was created with {fact}, but the array file has {wanted}; correct the file, or create a new pool"
    )]
    Changed {
        /// The pool.
        pool: String,
        /// What the drives know.
        fact: String,
        /// What the file says.
        wanted: String,
    },
    /// A volume of the file would be the second of its name.
    #[error(
        "volume {volume:?} already exists in pool {other:?}, and the array file has another in pool \
         {pool:?}; volume names are unique in an array: choose another name"
    )]
    TwoVolumes {
        /// Its name.
        volume: String,
        /// The pool that it would be created in.
        pool: String,
        /// The pool that has one.
        other: String,
    },
}

/// Where a description comes from, to find lines.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a str,
    /// Where its relative paths begin.
    pub(super) directory: &'a Path,
    /// Whose drives its models are.
    pub(super) catalog: &'a Catalog,
}

impl Place<'_> {
    /// A path of the file, independent of the reader's working directory.
    pub(super) fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        match path.is_absolute() || self.directory.as_os_str().is_empty() {
            true => path.to_owned(),
            false => {
                let joined = self.directory.join(path);
                std::path::absolute(&joined).unwrap_or(joined)
            }
        }
    }

    /// An error at the bytes of `span`.
    pub(super) fn wrong(&self, span: Range<usize>, text: String) -> DescriptionError {
        DescriptionError::Wrong {
            file: self.name.to_owned(),
            line: tier0_toml::line_at(self.text, span.start),
            text,
        }
    }

    /// A text that is no TOML, or has not the form of a description.
    pub(super) fn misread(&self, misread: Misread) -> DescriptionError {
        let Misread { line, field, fact } = misread;
        let text = format!("{field}: {fact}; docs/array-file.md lists all fields");
        DescriptionError::Wrong { file: self.name.to_owned(), line, text }
    }
}
