//! A configuration of a study as an array file: what `tier0 load` runs in virtual time.
//!
//! The file has the engine's part: drives, pool, write cache, volumes. What the study puts around it is told in comments,
//! because an array file knows no hosts, ports or buses.

use std::fmt::Write;

use tier0_catalog::Catalog;
use tier0_description::Remarks;

use crate::LabError;
use crate::measure::Bench;
use crate::study::{Configuration, Goal, Requests, Study, StudyError};

/// The array file of configuration `id`; free parameters stand at their start values.
///
/// # Errors
/// [`LabError`] where there is no such configuration, or its array is impossible.
pub fn array_file(study: &Study, id: &str) -> Result<String, LabError> {
    let found = study.configurations.iter().find(|configuration| configuration.id == id);
    let configuration = found.ok_or_else(|| StudyError::NoConfiguration {
        study: study.id.clone(),
        id: id.to_owned(),
        known: study.configurations.iter().map(|known| known.id.clone()).collect(),
    })?;
    let bench = Bench::new(tier0_catalog::Catalog::embedded(), std::slice::from_ref(configuration))?;
    let description = bench.describe(configuration)?;
    let mut text = format!("# {id} of the study {}: {}\n", study.id, configuration.title);
    for parameter in &study.parameters {
        let start = crate::record::format_number(parameter.start);
        line(
            &mut text,
            &format!("free, here at its start value: {}, {start} {}", parameter.name, parameter.unit),
        );
    }
    around(&mut text, configuration, bench.catalog())?;
    text.push('\n');
    text.push_str(&description.to_text(&Remarks::default()));
    Ok(text)
}

/// What the study has beside the engine.
fn around(text: &mut String, configuration: &Configuration, catalog: &Catalog) -> Result<(), LabError> {
    let setup = &configuration.setup;
    let array = &catalog.array(&setup.array)?.parameters;
    line(text, "the study also models, and \"tier0 load\" does not:");
    if setup.members > 1 {
        line(text, &format!("  members     {} such arrays, over which the volumes spread", setup.members));
    }
    line(text, &format!("  ports       {} x {}", array.front_end_ports.value, array.front_end_link.value));
    line(
        text,
        &format!(
            "  processors  {} x {} cores; {} us per read, {} us per write, {} us per KiB",
            array.active_controllers.value,
            array.cores_per_controller.value,
            array.read_cost_us.value,
            array.write_cost_us.value,
            array.transfer_cost_us_per_kib.value
        ),
    );
    line(
        text,
        &format!("  buses       {} x {} MB/s", array.back_end_buses.value, array.back_end_bus_mb_s.value),
    );
    let hosts = match setup.goal {
        Goal::LatencyLimit { limit_ms } => {
            format!("as many requests outstanding as keep reads and writes within {limit_ms} ms")
        }
        Goal::Users { users, think } => format!("{users} users with {think} between two requests"),
    };
    line(text, &format!("  hosts       {hosts}"));
    if let Some(size) = setup.caches.read {
        line(
            text,
            &format!(
                "  read cache  {size}; \"tier0 load --read-cache\" has it too, without the time of its lookups"
            ),
        );
    }
    if setup.caches.write_is_shared {
        line(text, "  write cache one for all groups of sets; here each has a lane of its own");
    }
    for neighbour in &setup.neighbours {
        let Requests { block, pattern, read_percent, .. } = &neighbour.sets.requests;
        let (name, users) = (&neighbour.sets.name, neighbour.users);
        line(
            text,
            &format!("  neighbour   {name}: {users} users, {block}, {read_percent} % reads, {pattern}"),
        );
    }
    let alignment = setup.alignment.map_or(String::new(), |size| format!(", aligned to {size}"));
    line(
        text,
        &format!(
            "  workload    {}, {} % reads, {}{alignment}",
            setup.block, setup.read_percent, setup.pattern
        ),
    );
    Ok(())
}

fn line(text: &mut String, words: &str) {
    writeln!(text, "# {words}").expect("a text takes text");
}
