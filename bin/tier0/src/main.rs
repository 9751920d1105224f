//! The program: `tier0 VERB …`.
//!
//! `cli` says what can be asked for, `verb` has one module per verb, `failure` and `exit` say how it ends. The verbs
//! only join crates together: no engine, model or protocol lives here.
//!
//! Invariants: whatever the user gives, the program ends with one line on stderr and a documented exit code, never
//! with a panic; results go to stdout, everything else to stderr; with `--json`, stdout gets one object however it ends; a
//! closed stdout ends the program quietly.

mod addresses;
mod cli;
mod consent;
mod control;
mod driving;
mod exit;
mod failure;
mod history;
mod holder;
mod kept;
mod logging;
mod moment;
mod mounting;
mod output;
mod patience;
mod read_cache;
mod requests;
mod serving;
mod signals;
mod sockets;
mod target;
mod text_file;
mod troubles;
mod twin;
mod unwritten;
mod verb;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::of(cli::parse().and_then(|cli| {
        logging::start(&cli.global, cli.verb.log_default());
        let json = cli.json;
        verb::run(cli).inspect_err(|failure| {
            if json {
                output::tell_failure(failure);
            }
        })
    }))
}
