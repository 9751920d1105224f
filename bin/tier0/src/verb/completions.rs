//! `tier0 completions`: what a shell needs to complete tier0's command lines.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;

const EXAMPLES: &str = "\
Examples:
  tier0 completions bash > tier0.bash
      source it in ~/.bashrc, or copy it to /etc/bash_completion.d
  tier0 completions zsh > _tier0
      copy it to a directory in $fpath
  tier0 completions fish > tier0.fish
      copy it to ~/.config/fish/completions";

/// Prints completions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints them.
pub(crate) fn run(verb: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(verb.shell, &mut Cli::command(), "tier0", &mut text);
    output::print(&String::from_utf8_lossy(&text))
}
