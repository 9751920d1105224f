//! `cargo xtask mishaps`: every mishap that an array must survive, on the real program, one line each.

use std::path::PathBuf;

use clap::Args;
use tier0_torture::mishaps::{Ended, Media, Mishaps, mishaps, names};

use crate::error::BenchError;
use crate::server::build_tier0;

/// What to do.
#[derive(Args)]
pub(crate) struct Options {
    /// Only mishaps whose name contains this, like starts/ or split
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Only those that take a few seconds, which the system tests repeat
    #[arg(long)]
    short: bool,
    /// Without io_uring
    #[arg(long)]
    threads: bool,
    /// On loop devices instead of files; needs root
    #[arg(long = "loop")]
    loop_devices: bool,
    /// On files and on loop devices, with io_uring and without
    #[arg(long, conflicts_with_all = ["threads", "loop_devices"])]
    all: bool,
    /// Print the names of all mishaps
    #[arg(long)]
    list: bool,
    /// The program [default: tier0, built in release mode]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Where to put the arrays; not a tmpfs [default: the build's directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs them and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    if options.list {
        names().iter().for_each(|name| println!("{name}"));
        return Ok(());
    }
    let program = match &options.program {
        Some(program) => std::path::absolute(program)
            .map_err(|error| BenchError::Failed(format!("{} is no path: {error}", program.display())))?,
        None => build_tier0()?,
    };
    let beside = program.parent().map_or_else(|| PathBuf::from("."), ToOwned::to_owned);
    let directory = options.dir.clone().unwrap_or(beside);
    let media = if options.loop_devices { Media::Loop } else { Media::Files };
    let runs = match options.all {
        true => vec![(Media::Files, false), (Media::Files, true), (Media::Loop, false), (Media::Loop, true)],
        false => vec![(media, options.threads)],
    };
    let mut failed = 0;
    for (media, threads) in runs {
        println!(
            "on {}, {} io_uring",
            if media == Media::Loop { "loop devices" } else { "files" },
            if threads { "without" } else { "with" }
        );
        let plan = Mishaps {
            program: program.clone(),
            directory: directory.clone(),
            only: options.only.clone(),
            short: options.short,
            media,
            threads,
        };
        let all = mishaps(&plan, &mut |told| println!("{told}"))
            .map_err(|error| BenchError::Failed(error.to_string()))?;
        failed += all.iter().filter(|told| matches!(told.ended, Ended::Badly(_))).count();
    }
    match failed {
        0 => Ok(()),
        failed => Err(BenchError::Failed(format!("{failed} mishaps did not end well"))),
    }
}
