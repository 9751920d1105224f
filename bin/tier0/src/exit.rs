//! Exit codes: the one table of them, which `tier0 --help` prints and `docs/exit-codes.md` repeats.

use std::process::ExitCode;

use crate::failure::Failure;
use crate::logging;

/// Success.
pub(crate) const DONE: u8 = 0;
/// Something failed while running.
pub(crate) const FAILED: u8 = 1;
/// The arguments, or a file that they name, are wrong.
pub(crate) const INPUT: u8 = 2;
/// Data that was read back was not what had been written.
pub(crate) const WRONG_DATA: u8 = 3;
/// `status`: the administrator should look at the array.
pub(crate) const WARNING: u8 = 4;
/// `status`: the array lacks redundancy.
pub(crate) const DEGRADED: u8 = 5;
/// `status`: data is lost, or cannot be reached or written.
pub(crate) const CRITICAL: u8 = 6;
/// Ended by Ctrl-C before its end: 128 + SIGINT, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ended by SIGTERM before its end: 128 + SIGTERM.
#[cfg(test)]
const TERMINATED: u8 = 143;

/// The table, for `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    success
  1    runtime failure: drive, socket, peer, or full file system
  2    invalid arguments, input file or request; nothing was changed
  3    verification failed: data read back differs from data written
  4    status: warning: fully redundant, needs attention (such as low space)
  5    status: degraded: redundancy is reduced
  6    status: critical: data is lost, unreachable or not writable
  130  interrupted by Ctrl-C; load prints its results so far
  143  terminated by SIGTERM; serve: only during startup";

/// Says what went wrong, if anything, and gives the code.
pub(crate) fn of(result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else {
        logging::flush();
        return ExitCode::from(DONE);
    };
    match failure.text() {
        Some(text) => logging::say(&format!("tier0: {text}")),
        None => logging::flush(),
    }
    ExitCode::from(failure.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_and_the_document_name_every_code() {
        let document =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exit-codes.md"))
                .expect("the document is part of the project");
        for code in [DONE, FAILED, INPUT, WRONG_DATA, WARNING, DEGRADED, CRITICAL, INTERRUPTED, TERMINATED] {
            assert!(TABLE.contains(&format!("\n  {code:<4} ")), "--help misses {code}");
            assert!(document.contains(&format!("\n| {code} |")), "docs/exit-codes.md misses {code}");
        }
    }
}
