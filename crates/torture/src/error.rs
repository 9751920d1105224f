//! How a run fails.

use thiserror::Error;

/// Why a run ended early.
#[derive(Debug, Error)]
pub enum TortureError {
    /// A program that the load needs is missing.
    #[error("{tool} is not installed; install {package}")]
    Missing {
        /// The command.
        tool: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// The load needs rights that this user has not.
    #[error("{0} needs root; run it as root or choose another load")]
    NeedsRoot(&'static str),
    /// The system refuses something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Something ran and did not do what it should.
    #[error("{0}")]
    Failed(String),
}

impl TortureError {
    /// For `map_err` on I/O.
    pub(crate) fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> TortureError {
        let what = what.into();
        move |source| TortureError::System { what, source: source.into() }
    }
}
