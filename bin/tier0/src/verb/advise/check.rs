//! `tier0 advise check`: what a plan has brought, against what it predicted.

use std::path::PathBuf;

use clap::Args;
use tier0_advisor::advice::advise;
use tier0_advisor::outcome::{Checked, check};
use tier0_advisor::plan::Before;
use tier0_advisor::report::NOT_MEASURED;

use super::apply::read;
use super::input::Input;
use crate::failure::Failure;
use crate::output::{align_right, escaped, json, print, rendered, table, wrapped};

const EXAMPLES: &str = "\
Examples:
  tier0 advise check plan.json later.jsonl
      predicted and measured gain, and the latency of each moved object
  tier0 advise check plan.json later.csv latest.csv perfmon.csv --json

Measure the same load as for the plan, for as long. The gain is that of
transactions per second; users with think times or a fixed rate have none.";

/// Checks.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    /// The plan, as "tier0 advise plan" prints it
    #[arg(value_name = "PLAN.JSON")]
    plan: PathBuf,
    /// Reports of the time after the plan was carried out
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: Input,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Does it.
pub(super) fn run(verb: &Check) -> Result<(), Failure> {
    let plan = read(&verb.plan)?;
    let (evidence, question) = verb.input.read(&verb.files)?;
    if let (Some(planned), Some(found)) = (&plan.database, &evidence.database)
        && !planned.is_same(found)
    {
        return Err(Failure::Input(format!(
            "the plan is of {}, and the samples are of {}; give samples of the plan's database",
            planned.words(),
            found.words()
        )));
    }
    let checked = check(&plan, Before::of(&evidence), &advise(&evidence, &question));
    print(&if verb.json { json(&checked) } else { text(&checked) })
}

fn text(checked: &Checked) -> String {
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or(NOT_MEASURED.to_owned(), |value| format!("{value:.decimals$}"))
    };
    let percent = |value: Option<f64>| {
        value.map_or(NOT_MEASURED.to_owned(), |value| format!("{:+.1} %", value * 100.0))
    };
    let interval = checked
        .predicted
        .map_or(String::new(), |gain| format!(" ({:+.1} to {:+.1})", gain.low * 100.0, gain.high * 100.0));
    let error =
        checked.error.map_or(NOT_MEASURED.to_owned(), |error| format!("{:+.1} points", error * 100.0));
    let mut rows = table(&["", "before", "after"]);
    let (before, after) = (&checked.before, &checked.after);
    let share = |busy: Option<f64>| busy.map(|busy| busy * 100.0);
    rows.add_row([
        "transactions per second".to_owned(),
        number(before.transactions_s, 1),
        number(after.transactions_s, 1),
    ]);
    rows.add_row([
        "processors busy, %".to_owned(),
        number(share(before.busy), 0),
        number(share(after.busy), 0),
    ]);
    rows.add_row(["seconds".to_owned(), number(before.seconds, 0), number(after.seconds, 0)]);
    align_right(&mut rows, 1..3);
    let mut objects = table(&["moved", "ms/IO before", "ms/IO after", "I/O per s after"]);
    for one in &checked.objects {
        objects.add_row([
            escaped(&one.object),
            number(one.ms_before, 2),
            number(one.ms_after, 2),
            number(one.ios_s_after, 1),
        ]);
    }
    align_right(&mut objects, 1..4);
    format!(
        "{}\n\n{}\n\npredicted {}{interval} · measured {} · error {error}\n\n{}\n",
        wrapped(&escaped(&checked.answer.join(" ")), ""),
        rendered(&rows),
        percent(checked.predicted.map(|gain| gain.expected)),
        percent(checked.measured),
        rendered(&objects),
    )
}
