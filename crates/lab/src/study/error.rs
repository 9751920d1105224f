//! What can be wrong with a study.

use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;
use tier0_toml::Misread;

/// Why a study cannot be used.
#[derive(Debug, Error)]
pub enum StudyError {
    /// There is no such study.
    #[error("there is no study {name:?}; there are {}, or name a file that ends in .toml", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A study has no such configuration.
    #[error("study {study:?} has no configuration {id:?}; it has {}", known.join(", "))]
    NoConfiguration {
        /// The study.
        study: String,
        /// What was asked for.
        id: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A file cannot be read.
    #[error("study {path:?} cannot be read: {source}; check the path")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is wrong.
    #[error("{file}, line {line}: {text}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The fact and the remedy.
        text: String,
    },
}

/// Where an error is.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a str,
}

impl Place<'_> {
    pub(super) fn wrong(&self, span: Range<usize>, text: String) -> StudyError {
        let line = tier0_toml::line_at(self.text, span.start);
        StudyError::Wrong { file: self.name.to_owned(), line, text }
    }

    pub(super) fn misread(&self, misread: Misread) -> StudyError {
        let Misread { line, field, fact } = misread;
        let text = format!("{field}: {fact}; see docs/studies.md for the form of a study");
        StudyError::Wrong { file: self.name.to_owned(), line, text }
    }
}
