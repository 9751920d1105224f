//! How a verb fails: what kind of failure it is, and the one line that says so.

use std::error::Error;
use std::fmt::Display;

use tier0_api::Health;
use tier0_array::ArrayError;
use tier0_drive::OpenError;

use crate::exit;
use crate::output::escaped;

/// Why the program did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments, or a file that they name, are wrong.
    Input(String),
    /// The same of a drive that holds something, which is overwritten where that is asked for.
    Held(String),
    /// Something failed while running.
    Run(String),
    /// Data was wrong.
    WrongData(String),
    /// An array is not healthy, and its status was printed.
    Unhealthy(Health),
    /// Ctrl-C came before the end, and the result so far was printed.
    Interrupted,
    /// The reader of stdout is gone; there is nothing to say about it.
    Unread,
}

impl Failure {
    /// Bad input, in the words of `error` and what caused it.
    pub(crate) fn input(error: impl Error) -> Failure {
        Failure::Input(line(&error))
    }

    /// A failure while running, in the words of `error` and what caused it.
    pub(crate) fn run(error: impl Error) -> Failure {
        Failure::Run(line(&error))
    }

    /// What to print, on one line; nothing where all is said.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Failure::Input(text) | Failure::Held(text) | Failure::Run(text) | Failure::WrongData(text) => {
                Some(one_line(text))
            }
            Failure::Unhealthy(_) | Failure::Interrupted | Failure::Unread => None,
        }
    }

    /// What JSON calls it.
    pub(crate) fn result(&self) -> &'static str {
        match self {
            Failure::Input(_) | Failure::Held(_) => "refused",
            _ => "failed",
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Input(_) | Failure::Held(_) => exit::INPUT,
            Failure::Run(_) => exit::FAILED,
            Failure::WrongData(_) => exit::WRONG_DATA,
            Failure::Unhealthy(Health::Critical) => exit::CRITICAL,
            Failure::Unhealthy(Health::Degraded) => exit::DEGRADED,
            Failure::Unhealthy(_) => exit::WARNING,
            Failure::Interrupted => exit::INTERRUPTED,
            Failure::Unread => exit::DONE,
        }
    }
}

impl From<ArrayError> for Failure {
    /// What the file, the drives or their contents say is input; what the system or a device refuses is not.
    fn from(error: ArrayError) -> Failure {
        match error.is_input() {
            true => Failure::input(error),
            false => Failure::run(error),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        Failure::from(ArrayError::Open(error))
    }
}

/// An error and its causes. A cause that an error has already put into its own words is not repeated.
fn line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        next = cause.source();
    }
    text
}

fn one_line(text: &impl Display) -> String {
    // Facts quote names of files and databases, which are the words of others.
    escaped(&text.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Layered {
        #[error("cannot read \"a\": {source}; check it")]
        Quoting { source: std::io::Error },
        #[error("cannot start")]
        Bare { source: std::io::Error },
    }

    #[test]
    fn causes_are_joined_once() {
        let source = || std::io::Error::other("the disk\nis on fire");
        let quoting = Failure::run(Layered::Quoting { source: source() });
        assert_eq!(quoting.text().as_deref(), Some("cannot read \"a\": the disk is on fire; check it"));
        let bare = Failure::run(Layered::Bare { source: source() });
        assert_eq!(bare.text().as_deref(), Some("cannot start: the disk is on fire"));
    }
}
