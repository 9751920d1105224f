//! The last part of the demo: what flash is worth to a database, predicted.

use serde::Serialize;
use tier0_lab::whatif::{CaseFigures, WhatIf, answer, figures};

use super::{COLUMNS, paragraph};
use crate::driving::live_line;
use crate::failure::Failure;
use crate::output::print;
use crate::signals::Signals;

/// The database, its host, the array and the alternatives.
const FILE: &str = include_str!("database.toml");

/// What it gave.
#[derive(Serialize)]
pub(super) struct Database {
    cases: Vec<CaseFigures>,
}

/// Predicts the database with each alternative, and with `tables` prints what it finds.
pub(super) fn show(tables: bool, progress: bool, signals: &Signals) -> Result<Database, Failure> {
    let whatif = WhatIf::parse(FILE, "database.toml").map_err(Failure::run)?;
    if tables {
        print(&introduction())?;
    }
    let bar = live_line(progress);
    bar.set_message("predicting a database");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let reports = whatif.run(threads, &|name| bar.set_message(format!("predicted: {name}")));
    bar.finish_and_clear();
    if signals.raised() {
        return Err(Failure::Interrupted);
    }
    let reports = reports.map_err(Failure::run)?;
    let cases = figures(&whatif, &reports);
    if tables {
        print(&table(&cases))?;
        // What limits each is said there; the rates stand in the table.
        let words = answer(&whatif, &reports);
        print(&format!("{}\n", paragraph(&format!("{} {}", words[0], MORE))))?;
    }
    Ok(Database { cases })
}

const MORE: &str = "\"tier0 lab whatif\" predicts the same for a database and an array of yours.";

fn introduction() -> String {
    let text = "What flash is worth to a database, predicted in virtual time: order entry with 5 warehouses, PostgreSQL with \
                50 MiB for pages, 20 users without think time, on 4 x hdd-7k2 as raid10 and with 2 x ssd-sata as raid1.";
    format!("\n{}\n\n", paragraph(text))
}

fn table(cases: &[CaseFigures]) -> String {
    let mut text = line(["", "transactions/s", "times", "response", "p95", "CPU"]);
    text += &format!("{}\n", "─".repeat(COLUMNS - 1));
    for case in cases {
        text += &line([
            &case.name,
            &format!("{:.0}", case.tps),
            &format!("{:.1}", case.over_now),
            &format!("{:.1} ms", case.response_ms),
            &format!("{:.1} ms", case.p95_ms),
            &format!("{:.0} %", case.cpu * 100.0),
        ]);
    }
    text + &format!("{}\n", "─".repeat(COLUMNS - 1))
}

fn line(cells: [&str; 6]) -> String {
    let [name, tps, times, response, p95, cpu] = cells;
    format!(" {name:<24}  {tps:>14}  {times:>6}  {response:>10}  {p95:>9}  {cpu:>5}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_fits_a_terminal_and_its_file_is_sound() {
        let whatif = WhatIf::parse(FILE, "database.toml").expect("valid");
        assert_eq!(whatif.cases.len(), 4);
        let long = line(["read cache on the SSDs", "123,456", "123.4", "99999.9 ms", "9999.9 ms", "100 %"]);
        for text in [introduction(), long] {
            assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        }
    }
}
