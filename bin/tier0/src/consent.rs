//! Consent to what lowers redundancy or deletes: asked for on a terminal, or given by `--yes`.

use std::io::{BufRead, IsTerminal, Write};

use crate::failure::Failure;
use crate::logging;

/// Ends well if the user agrees to `consequence`, a sentence without its full stop: by `yes`, or at the terminal.
///
/// # Errors
/// The user did not agree; nothing must be changed.
pub(crate) fn obtain(consequence: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    let mut stderr = std::io::stderr();
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Failure::Input(format!("{consequence}; add --yes to confirm")));
    }
    logging::flush();
    let asked = write!(stderr, "{consequence}. Continue? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    if asked.is_ok() && stdin.lock().read_line(&mut answer).is_ok() && agrees(&answer) {
        return Ok(());
    }
    Err(Failure::Input("not confirmed, nothing changed; answer y, or add --yes".into()))
}

fn agrees(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(agrees("y\n") && agrees(" YES\n"));
        for answer in ["", "\n", "n\n", "yep\n"] {
            assert!(!agrees(answer), "{answer:?}");
        }
    }

    /// Tests have no terminal.
    #[test]
    fn without_a_terminal_only_the_option_agrees() {
        assert!(obtain("the volume is deleted", true).is_ok());
        let refused = obtain("the volume is deleted", false).expect_err("nobody agreed");
        assert_eq!(refused.text().as_deref(), Some("the volume is deleted; add --yes to confirm"));
    }
}
