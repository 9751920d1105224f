//! `tier0 advise plan`: what to move to flash, as JSON or as statements.

use std::path::PathBuf;

use clap::Args;
use tier0_advisor::advice::advise;
use tier0_advisor::plan::{Before, Plan, Target, plan};

use super::input::Input;
use crate::failure::Failure;
use crate::output::{json, print};

const EXAMPLES: &str = "\
Examples:
  tier0 advise plan shop.jsonl --flash 800GB > plan.json
      the objects to move, what is expected, and the statements that move them
  tier0 advise plan shop.jsonl --flash 800GB --tablespace fast --sql
      only the statements, for psql
  tier0 advise plan before.csv after.csv --flash 400GB --directory F:/fast
      files of SQL Server

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
    /// Print only the statements
    #[arg(long)]
    sql: bool,
}

/// Does it.
pub(super) fn run(verb: &PlanVerb) -> Result<(), Failure> {
    let (evidence, question) = verb.input.read(&verb.files)?;
    let Some(flash) = question.flash else {
        return Err(Failure::Input(
            "a plan needs to know how much flash there is; add --flash, as in --flash 800GB".to_owned(),
        ));
    };
    let target = Target { tablespace: verb.tablespace.clone(), directory: verb.directory.clone() };
    let plan = plan(&advise(&evidence, &question), Before::of(&evidence), flash, &target);
    match verb.sql {
        true => print(&sql(&plan)),
        false => print(&json(&plan)),
    }
}

fn sql(plan: &Plan) -> String {
    let mut text = format!("-- {}\n", plan.answer.join(" "));
    for step in &plan.moves {
        if step.statements.is_empty() {
            let hint = "no statement: the report does not say enough (for files, add --directory)";
            // A name may have line ends, which would end the comment.
            let name = step.object.replace(['\n', '\r'], " ");
            text.push_str(&format!("-- {name}: {hint}\n"));
        }
        step.statements.iter().for_each(|statement| text.push_str(&format!("{statement}\n")));
    }
    text
}
