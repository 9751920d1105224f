//! From a case's sections to a case.

use std::collections::BTreeSet;

use thiserror::Error;
use tier0_database::run::RunLength;
use tier0_database::storage::Placement;
use tier0_description::{Description, DescriptionError, VolumeDescription};
use tier0_units::Nanos;

use super::beside::Beside;
use super::database::database;
use super::file::{CaseFile, FrontEndSection, RunSection, TpmSection};
use super::place::places_of;
use super::shrink::Shrunk;
use super::{Case, CaseFrontEnd, duration, several};

/// A case that cannot be.
#[derive(Debug, Error)]
#[error("{case}: {fact}")]
pub struct CaseError {
    /// The case.
    pub case: String,
    /// The field, the fact and the remedy.
    pub fact: String,
}

/// Simulated time where a case does not say.
const WARM_UP: Nanos = Nanos::from_secs(20);
const MEASURED: Nanos = Nanos::from_secs(60);
/// Transactions after which neither goes on where a case does not say: the rate is then known to a few percent.
const ENOUGH: u64 = 30_000;
/// The same before a tier is measured: hot extents move for some minutes.
const TIER_WARM_UP: Nanos = Nanos::from_secs(300);
const TIER_ENOUGH: u64 = 200_000;
/// The most that runs beside the database.
const BESIDE_MAX: usize = 64;

impl Case {
    /// The case of a table; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`CaseError`] with the field and the remedy.
    pub(crate) fn of(name: &str, table: toml::Table) -> Result<Case, CaseError> {
        checked(name, table).map_err(|fact| CaseError { case: name.to_owned(), fact })
    }
}

fn checked(name: &str, mut table: toml::Table) -> Result<Case, String> {
    several::expand(&mut table)?;
    let file: CaseFile = table.try_into().map_err(|error: toml::de::Error| {
        format!("{}; correct it (docs/whatif.md)", error.to_string().trim().replace('\n', ", "))
    })?;
    let mut system = system(file.system)?;
    let is_tiered = system.volumes.iter().any(VolumeDescription::is_tiered);
    let shrunk = Shrunk::of(&file.run, &mut system)?;
    let main = database(&file.database, &file.host, shrunk.factor, &system)?;
    shrunk.check(&main.spec, &system)?;
    let counted = match &file.run.counted {
        Some(on) => places_of("run.counted", on, &system)?,
        None => (0..system.volumes.len()).collect(),
    };
    if file.beside.len() > BESIDE_MAX {
        return Err(format!("beside: has more than {BESIDE_MAX} entries; keep fewer"));
    }
    let mut taken: BTreeSet<usize> = volumes_of(&main.placement);
    let mut beside: Vec<Beside> = Vec::new();
    for section in &file.beside {
        let one = Beside::of(section, &file.host, shrunk.factor, &system)?;
        if beside.iter().any(|known| known.name == one.name) {
            return Err(format!("beside: there are two of the name {:?}; rename one", one.name));
        }
        if let Some(placement) = one.placement() {
            let own = volumes_of(placement);
            if let Some(shared) = own.intersection(&taken).next() {
                let volume = &system.volumes[*shared].name;
                return Err(format!(
                    "beside {:?}: lies on volume {volume:?}, where another database lies; give it volumes of its own with place",
                    one.name
                ));
            }
            taken.extend(own);
        }
        beside.push(one);
    }
    Ok(Case {
        name: name.to_owned(),
        database: main.spec,
        front_end: file.front_end.as_ref().map(front_end).transpose()?,
        placement: main.placement,
        counted,
        measured_tps: file.database.measured_tps,
        is_sum: file.run.sum,
        tpm_is_headline: file.database.tpm == TpmSection::Headline,
        length: length(&file.run, is_tiered, !beside.is_empty())?,
        beside,
        system,
        shrunk,
        seed: file.run.seed,
    })
}

/// The array of its tables.
fn system(mut tables: toml::Table) -> Result<Description, String> {
    // A modelled array needs no name.
    let array = tables.entry("array").or_insert_with(|| toml::Table::new().into());
    if let Some(array) = array.as_table_mut() {
        array.entry("name").or_insert_with(|| "modelled".into());
    }
    let text = toml::to_string(&tables).map_err(|error| format!("system: {error}"))?;
    let system =
        Description::parse(&text, "system").map_err(|error| format!("system.{}", without_line(error)))?;
    match system.volumes.is_empty() {
        true => Err("system: has no volume; add [[system.volume]]".into()),
        false => Ok(system),
    }
}

fn front_end(section: &FrontEndSection) -> Result<CaseFrontEnd, String> {
    let arrays = section.arrays.unwrap_or(1);
    if !(1..=16).contains(&arrays) || section.ports.is_some_and(|ports| !(1..=64).contains(&ports)) {
        return Err(
            "front_end: arrays or ports are out of range; use 1 to 16 arrays with 1 to 64 ports each".into(),
        );
    }
    Ok(CaseFrontEnd { model: section.model.clone(), arrays, ports: section.ports })
}

/// How long it runs. What runs beside it must last as long.
fn length(run: &RunSection, is_tiered: bool, is_fixed: bool) -> Result<RunLength, String> {
    let warm_up = if is_tiered { TIER_WARM_UP } else { WARM_UP };
    let length = RunLength {
        warm_up: duration("run.warm_up", &run.warm_up, warm_up)?,
        measured: duration("run.measured", &run.measured, MEASURED)?,
        enough: match is_tiered {
            _ if is_fixed || run.warm_up.is_some() => u64::MAX,
            true => TIER_ENOUGH,
            false => ENOUGH,
        },
    };
    match length.measured == Nanos::ZERO {
        true => Err("run.measured is out of range; use more than 0s".into()),
        false => Ok(length),
    }
}

/// The volumes that a database lies on.
fn volumes_of(placement: &Placement) -> BTreeSet<usize> {
    placement.objects.iter().flatten().copied().chain([placement.log]).collect()
}

/// What is wrong with a description. Its lines are those of a text that the reader never wrote.
fn without_line(error: DescriptionError) -> String {
    match error {
        DescriptionError::Wrong { text, .. } => text,
        other => other.to_string(),
    }
}
