//! What is wrong with a description.

use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

/// The first thing that is wrong with a description.
#[derive(Debug, Error)]
pub enum DescriptionError {
    /// The file cannot be read.
    #[error("array file {path:?} cannot be read: {source}; check the path and its permissions")]
    Unreadable {
        /// What was asked for.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{file} line {line}: {text}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The field, the fact and the remedy.
        text: String,
    },
}

/// Where a description comes from, to find lines.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) name: &'a str,
}

impl Place<'_> {
    /// An error at the bytes of `span`.
    pub(super) fn wrong(&self, span: Range<usize>, text: String) -> DescriptionError {
        let line = 1 + self.text.as_bytes()[..span.start.min(self.text.len())]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        DescriptionError::Wrong { file: self.name.to_owned(), line, text }
    }
}

/// An error of the TOML reader, in our words' order: line first, one sentence.
pub(super) fn syntax(text: &str, name: &str, error: &toml::de::Error) -> DescriptionError {
    let span = error.span().unwrap_or(0..0);
    let fact = error.message().replace('\n', " ").replace("expected one of", "the fields there are:");
    Place { text, name }.wrong(span, format!("{fact}; correct the file, docs/array-file.md lists all fields"))
}
