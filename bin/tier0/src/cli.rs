//! The command line: verbs, options that all of them take, and how a wrong one is answered.

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit;
use crate::failure::Failure;
use crate::logging;
use crate::output;
use crate::verb::{
    admin, advise, bench, catalog, check, completions, config, create, demo, events, iostat, lab, load,
    serve, status, tier,
};

const EXAMPLES: &str = "\
Examples:
  tier0 demo
      a guided tour on temporary files, about a minute
  tier0 create array.toml
      create an array on its drives
  tier0 serve array.toml
      serve its volumes over NBD
  tier0 status array.toml
      health, drives, rebuild, scrub, write log and space
  tier0 load nbd://localhost/lun0
      benchmark an NBD export
  tier0 lab run ps6100xv
      reproduce a published evaluation of an array
  tier0 catalog list
      list the known drives, links and arrays
  tier0 completions bash
      print the shell completions
  tier0 help catalog
      help for one command";

/// Software storage array for databases, with a performance laboratory.
#[derive(Debug, Parser)]
#[command(name = "tier0", version, max_term_width = 80, after_help = help(EXAMPLES))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Whether the verb was given `--json`.
    #[arg(skip)]
    pub(crate) json: bool,
}

/// Options of every verb.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// Log more to stderr (repeat for more detail)
    #[arg(short, long, global = true, display_order = 900, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Log only errors, hide progress (twice: no log); "status" prints nothing
    #[arg(short, long, global = true, display_order = 900, action = ArgAction::Count)]
    pub(crate) quiet: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Take a guided tour: create, serve, benchmark, predict and cache an array on files
    Demo(demo::Demo),
    /// Create an array on its drives
    Create(create::Create),
    /// Start an array and serve its volumes over NBD
    Serve(serve::Serve),
    /// Show the health of a running array; sets the exit code for monitoring
    Status(status::StatusVerb),
    /// Show throughput and latency of a running array's volumes and drives
    Iostat(iostat::Iostat),
    /// Show the event history of an array, running or not
    Events(events::Events),
    /// Validate an array file (dry run)
    Check(check::Check),
    /// Print the array file that matches a running array
    Config(config::Config),
    /// Add, remove, replace, fail or rejoin drives of a running array
    #[command(subcommand)]
    Drive(admin::Drive),
    /// Grow, rebalance or tune a running pool, or recover a pool that cannot start
    #[command(subcommand)]
    Pool(admin::Pool),
    /// Verify all data of a running array and repair errors
    Scrub(admin::Scrub),
    /// List, create, clone, resize, rename, delete or tune volumes of a running array
    #[command(subcommand)]
    Volume(admin::Volume),
    /// Show why data lies on flash or on disks, and what moves next
    #[command(subcommand)]
    Tier(tier::Tier),
    /// Benchmark an NBD export, a file, a device, or a simulated array
    Load(Box<load::Load>),
    /// Find which data of a database belongs on flash, from its own reports
    Advise(Box<advise::Advise>),
    /// Run real transactions on PostgreSQL: load, measure, check the order-entry database
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Predict array performance, and validate the predictions
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Browse the drive, link and array catalogue
    #[command(subcommand)]
    Catalog(catalog::Catalog),
    /// Print shell completions
    Completions(completions::Completions),
}

impl Verb {
    /// What it logs where nothing asks for more or less.
    pub(crate) fn log_default(&self) -> logging::Default {
        match self {
            Verb::Demo(_) => logging::Default::OfProgram,
            _ => logging::Default::Warnings,
        }
    }
}

fn help(examples: &str) -> String {
    format!("{examples}\n\n{}", exit::TABLE)
}

/// Reads the command line. Help and version are printed here, and end the program.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let mut command = Cli::command();
    if let Some(width) = output::terminal_width() {
        command = with_help_at(command, width.into());
    }
    let parsed = command.try_get_matches().and_then(|matches| {
        let json = is_json(&matches);
        Ok(Cli { json, ..Cli::from_arg_matches(&matches)? })
    });
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let printed = output::print(&text.to_string());
            printed.err().unwrap_or(Failure::Unread)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::Input("no command given; \"tier0 --help\" lists them".to_owned())
        }
        _ => Failure::Input(usage_line(&error)),
    })
}

/// Whether a verb, or one of a verb's, was given `--json`.
fn is_json(matches: &ArgMatches) -> bool {
    // Most verbs do not have it.
    let own = matches.try_get_one("json").ok().flatten().copied().unwrap_or(false);
    own || matches.subcommand().is_some_and(|(_, verb)| is_json(verb))
}

/// The command with all its examples wrapped to so many columns: what goes on in the next line stays under what it is
/// part of.
fn with_help_at(mut command: Command, width: usize) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        command = command
            .after_help(help.lines().map(|line| help_line(line, width)).collect::<Vec<_>>().join("\n"));
    }
    command.mut_subcommands(|verb| with_help_at(verb, width))
}

/// A line of examples, comments, exit codes or sentences.
fn help_line(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    // The table of exit codes: the text stays in its column.
    if let Some((code, text)) = line.trim_start().split_once("  ").filter(|(code, _)| code.len() <= 3) {
        let column = line.len() - text.trim_start().len();
        let wrapped = output::wrapped_to(text.trim_start(), "", width.saturating_sub(column).max(1));
        let gap = format!("\n{}", " ".repeat(column));
        return format!("{:column$}{}", format!("{:indent$}{code}", ""), wrapped.replace('\n', &gap));
    }
    let hanging = " ".repeat(if indent == 0 { 0 } else { indent + 2 });
    output::wrapped_to(line, &hanging, width)
}

/// clap's message, which spans paragraphs, in one sentence: the fact, its tip if there is one, where to read on.
fn usage_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let fact = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    let remedy = tip.and_then(|tip| tip.lines().next()).map_or(String::new(), |tip| format!("{tip}; "));
    format!("{fact}; {remedy}add \"--help\" to the command for its options and examples")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Comments behind long examples ran into the next example on a terminal of 80 columns.
    #[test]
    fn help_texts_do_not_wrap_at_80_columns() {
        fn check(command: &clap::Command, path: &str) {
            for verb in command.get_subcommands() {
                check(verb, &format!("{path} {}", verb.get_name()));
            }
            let help = command.clone().bin_name(path).render_long_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{path} --help wraps at 80 columns: {line}");
            }
        }
        // As clap does before it prints: the verbs get their names, and what holds for all of them.
        let mut command = Cli::command();
        command.build();
        check(&command, "tier0");
    }

    /// On a narrow terminal a comment wrapped to the first column, where it looked like the next example.
    #[test]
    fn long_help_lines_go_on_under_themselves() {
        let line = "  tier0 scrub array.toml --rate 200MiB";
        assert_eq!(help_line(line, 40), line);
        assert_eq!(help_line(line, 30), "  tier0 scrub array.toml\n    --rate 200MiB");
        assert_eq!(
            help_line("      stop, then go on", 12),
            "      stop,\n        then\n        go\n        on"
        );
        assert_eq!(help_line("  130  stopped before its end", 21), "  130  stopped before\n       its end");
        assert_eq!(help_line("SIGHUP does nothing", 12), "SIGHUP does\nnothing");
    }

    #[test]
    fn every_verb_has_examples() {
        fn check(command: &clap::Command, path: &str) {
            let verbs: Vec<_> = command.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
            for verb in &verbs {
                check(verb, &format!("{path} {}", verb.get_name()));
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n  tier0"), "{path} has no examples: {help:?}");
        }
        check(&Cli::command(), "tier0");
    }
}
