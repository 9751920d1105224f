//! `tier0 advise plan`: what to move to flash, as JSON or as statements.

use std::path::PathBuf;

use clap::Args;
use tier0_advisor::advice::advise;
use tier0_advisor::plan::{Plan, Target, in_comment, plan};

use super::input::Input;
use super::twin::TwinOptions;
use crate::cli::Global;
use crate::failure::Failure;
use crate::logging;
use crate::output::{escaped, json, print};

const EXAMPLES: &str = "\
Examples:
  tier0 advise plan shop.jsonl --flash 800GB > plan.json
      the objects to move, what is expected, and the statements that move them
  tier0 advise plan shop.jsonl --flash 800GB --tablespace fast --sql
      only the statements, for psql
  tier0 advise plan before.csv after.csv --flash 400GB --directory F:/fast
      files of SQL Server
  tier0 advise plan shop.jsonl --flash 85GB --array now.toml --simulated 2s
      the plan simulated on the modelled array (leave --simulated out for an
      answer): the load of the samples as it is, and with the objects on flash;
      --next next.toml writes the array with the flash

Nothing is carried out: \"tier0 advise apply\" does that. The choice is an exact
knapsack over the waits that the flash saves; the log and scanned objects stay,
temporary data comes last.";

/// Plans.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanVerb {
    /// Reports of the database and its host
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    input: Input,
    /// The tablespace on flash
    #[arg(long, value_name = "NAME", default_value = "flash")]
    tablespace: String,
    /// The directory on flash, for databases that move files
    #[arg(long, value_name = "DIR")]
    directory: Option<String>,
    #[command(flatten)]
    twin: TwinOptions,
    /// Print only the statements
    #[arg(long)]
    sql: bool,
}

/// Does it.
pub(super) fn run(verb: &PlanVerb, global: &Global) -> Result<(), Failure> {
    verb.twin.check()?;
    let (evidence, question) = verb.input.read(&verb.files)?;
    let Some(flash) = question.flash else {
        return Err(Failure::Input(
            "a plan needs to know how much flash there is; add --flash, as in --flash 800GB".to_owned(),
        ));
    };
    let target = Target { tablespace: verb.tablespace.clone(), directory: verb.directory.clone() };
    let advice = advise(&evidence, &question);
    let mut plan = plan(&advice, &evidence, flash, &target);
    verb.twin.confirm(&mut plan, (&evidence, &advice), global)?;
    // Data goes to stdout; what it means is said beside it.
    if global.quiet == 0
        && let Some(twin) = &plan.twin
    {
        twin.answer.iter().for_each(|line| logging::say(&escaped(line)));
        plan.settings
            .iter()
            .for_each(|setting| logging::say(&escaped(&format!("{}: {}", setting.field(), setting.why))));
    }
    match verb.sql {
        true => print(&sql(&plan)),
        false => print(&json(&plan)),
    }
}

fn sql(plan: &Plan) -> String {
    let mut text = format!("-- {}\n", in_comment(&plan.answer.join(" ")));
    let told = plan.twin.iter().flat_map(|twin| &twin.answer).cloned();
    let settings = plan.settings.iter().map(|setting| format!("{}: {}", setting.field(), setting.why));
    told.chain(settings).for_each(|line| text.push_str(&format!("-- {}\n", in_comment(&line))));
    for step in &plan.moves {
        if step.statements.is_empty() {
            let hint = "no statement: the report does not say enough (for files, add --directory), or a name has characters that no \
                        client takes";
            text.push_str(&format!("-- {}: {hint}\n", in_comment(&step.object)));
        }
        step.statements.iter().for_each(|statement| text.push_str(&format!("{statement}\n")));
    }
    text
}
