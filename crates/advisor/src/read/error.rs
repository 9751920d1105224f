//! Why a file cannot be read: file, line, column, and the remedy.

use thiserror::Error;

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The system does not give its bytes.
    #[error("cannot read {file}: {source}; check the path and its permissions")]
    System {
        /// The file.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is none of the known kinds.
    #[error("{file}: {fact}")]
    Unknown {
        /// The file.
        file: String,
        /// What is wrong, and the remedy.
        fact: String,
    },
    /// Something in it is wrong.
    #[error("{file}, line {line}{}: {fact}", column.as_ref().map_or(String::new(), |name| format!(", column {name:?}")))]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, where it has a name.
        column: Option<String>,
        /// What is wrong, and the remedy.
        fact: String,
    },
}
