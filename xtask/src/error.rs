//! How a benchmark fails.

use thiserror::Error;
use tier0_programs::ProgramError;

/// Why there is no result.
#[derive(Debug, Error)]
pub(crate) enum BenchError {
    /// A peer or a load generator is missing.
    #[error("{tool} is not installed; install {package}")]
    Skipped {
        /// The command.
        tool: &'static str,
        /// What brings it.
        package: &'static str,
    },
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

impl From<ProgramError> for BenchError {
    fn from(error: ProgramError) -> BenchError {
        match error {
            ProgramError::Missing { tool, package } => BenchError::Skipped { tool, package },
            error => BenchError::Failed(error.to_string()),
        }
    }
}

impl BenchError {
    /// For `map_err` on I/O.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BenchError {
        let what = what.into();
        move |source| BenchError::System { what, source }
    }
}

/// Fails as skipped unless `tool` is installed.
pub(crate) fn need(tool: &'static str, package: &'static str) -> Result<(), BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    if found { Ok(()) } else { Err(BenchError::Skipped { tool, package }) }
}
