//! Log lines on stderr: warnings unless `-v` or `-q` ask for more or less, or `TIER0_LOG` says exactly what.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::Global;

/// The variable that overrides `-v` and `-q`, with the directives of `tracing`'s filters.
const VARIABLE: &str = "TIER0_LOG";

/// Starts logging; a filter in the environment that cannot be read is left aside.
pub(crate) fn start(global: &Global) {
    let level = match i16::from(global.verbose) - i16::from(global.quiet) {
        ..=-2 => "off",
        -1 => "error",
        0 => "warn",
        1 => "info",
        2 => "debug",
        3.. => "trace",
    };
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .log_internal_errors(false)
        .init();
}
