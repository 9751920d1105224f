//! How a program fails that was started.

use thiserror::Error;

/// Why something did not come about.
#[derive(Debug, Error)]
pub enum ProgramError {
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

impl ProgramError {
    /// For `map_err` on I/O.
    pub fn system<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> ProgramError {
        let what = what.into();
        move |source| ProgramError::System { what, source: source.into() }
    }
}
