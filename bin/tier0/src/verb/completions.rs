//! `tier0 completions`: what a shell needs to complete tier0's command lines.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  tier0 completions bash > ~/.local/share/bash-completion/completions/tier0
  tier0 completions zsh > ~/.zfunc/_tier0
  tier0 completions fish > ~/.config/fish/completions/tier0.fish";

/// Prints completions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints them.
pub(crate) fn run(verb: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(verb.shell, &mut Cli::command(), "tier0", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}
