//! `tier0 bench check`: the consistency conditions of the database of a load.

use clap::Args;
use tier0_bench::check::{Checked, check};
use tier0_bench::load::Load;
use tier0_units::counted;

use super::{Database, watched};
use crate::cli::Global;
use crate::failure::Failure;
use crate::output::{align_right, escaped_lines, json, print, rendered, table, wrapped};

const EXAMPLES: &str = "\
Examples:
  tier0 bench check --dsn postgres://localhost/bench
  tier0 bench check --dsn postgres://localhost/bench --json

All conditions are tested on one state of the database, also while a load runs.
Exits with 3 if a condition does not hold.";

/// What to test.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    #[command(flatten)]
    database: Database,
    /// The load that the database must have [default: the one that it has]
    #[arg(long, value_name = "LOAD")]
    load: Option<Load>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tests.
pub(crate) fn run(verb: &Check, global: &Global) -> Result<(), Failure> {
    let address = verb.database.address()?;
    let (checked, _) = watched(global, |watch| check(&address, verb.load, watch))?;
    print(&if verb.json { json(&checked) } else { escaped_lines(&text(&checked)) })?;
    verdict(&checked)
}

/// The failure of a database whose conditions do not hold.
pub(super) fn verdict(checked: &Checked) -> Result<(), Failure> {
    let wrong: Vec<_> = checked.conditions.iter().filter(|one| one.wrong > 0).collect();
    let Some(first) = wrong.first() else { return Ok(()) };
    Err(Failure::WrongData(format!(
        "verification failed: {} of {} do not hold, first {:?}: {}; the database or its storage has lost or changed rows or indexes: keep both \
         for analysis, and load it again before you measure",
        wrong.len(),
        counted(checked.conditions.len() as u64, "condition"),
        first.text,
        first.first.as_deref().unwrap_or("place unknown")
    )))
}

/// The table.
pub(super) fn text(checked: &Checked) -> String {
    let mut rows = table(&["condition", "compared", "wrong", "result"]);
    for one in &checked.conditions {
        let result = match &one.first {
            None => "holds".to_owned(),
            Some(first) => format!("BROKEN: {first}"),
        };
        rows.add_row([one.text.clone(), one.compared.to_string(), one.wrong.to_string(), result]);
    }
    align_right(&mut rows, [1, 2]);
    let verdict = match checked.is_consistent {
        true => format!("all {} conditions hold", checked.conditions.len()),
        false => "NOT CONSISTENT".to_owned(),
    };
    format!(
        "{}, {}, {}\n\n{}\n\n{verdict}\n{}\n",
        checked.workload,
        checked.scale,
        checked.database,
        rendered(&rows),
        wrapped(&format!("no condition covers: {}", checked.not_covered), "  ")
    )
}
