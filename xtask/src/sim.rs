//! `cargo xtask sim`: the fault simulator.
//!
//! It is a program of its own, built as tests are: optimised, but with assertions and overflow checks on and with panics
//! that can be caught, where this program is built as what is released. All arguments go through.

use std::process::Command;

use crate::error::BenchError;

/// The arguments of the simulator; `--help` lists them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// What the simulator is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds and runs the simulator; fails if it does.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--profile", "test", "--package", "tier0-sim"]);
    let status = command.arg("--").args(&options.arguments).status();
    let status = status.map_err(BenchError::system("cargo cannot be run"))?;
    let failed = || BenchError::Failed("the simulator fails; what it says stands above".to_owned());
    if status.success() { Ok(()) } else { Err(failed()) }
}
