//! What else uses the array while the database of a case runs: other databases, on hosts of their own, and plain loads.

use tier0_database::run::DatabaseSpec;
use tier0_database::storage::Placement;
use tier0_description::Description;
use tier0_units::Nanos;
use tier0_workload::spec::{LoadSpec, RunLimits, StreamSpec};

use super::database::{Database, database};
use super::duration;
use super::file::{BesideSection, HostSection, LoadSection};
use super::place::place_of;
use crate::measure::users;

/// One of them.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its name.
    pub name: String,
    /// What it is.
    pub work: BesideWork,
}

/// What runs beside a case's database.
#[derive(Clone, Debug)]
pub enum BesideWork {
    /// A database on volumes of its own.
    Database(Box<DatabaseSpec>, Placement),
    /// Independent requests to a volume, by its place in the array.
    Load(Box<LoadSpec>, usize),
}

/// A load is ended when the database has ended, long before this.
const LASTS: Nanos = Nanos::from_secs(300_000);

impl Beside {
    /// What a section says; the error is the fact and the remedy. A database without a host has one like the case's.
    pub(super) fn of(
        section: &BesideSection,
        host: &HostSection,
        shrink: f64,
        system: &Description,
    ) -> Result<Beside, String> {
        let named = |fact: String| format!("beside {:?}: {fact}", section.name);
        let work = match (&section.database, &section.load) {
            (Some(own), None) => {
                let host = section.host.as_ref().unwrap_or(host);
                let Database { spec, placement } = database(own, host, shrink, system).map_err(named)?;
                BesideWork::Database(Box::new(spec), placement)
            }
            (None, Some(load)) if section.host.is_none() => {
                let volume = place_of("load.volume", &load.volume, system).map_err(named)?;
                BesideWork::Load(Box::new(load_of(load).map_err(named)?), volume)
            }
            _ => return Err(named("give either database (with or without host) or load".into())),
        };
        Ok(Beside { name: section.name.clone(), work })
    }

    /// Where it lies, if it is a database.
    pub(super) fn placement(&self) -> Option<&Placement> {
        match &self.work {
            BesideWork::Database(_, placement) => Some(placement),
            BesideWork::Load(..) => None,
        }
    }
}

fn load_of(section: &LoadSection) -> Result<LoadSpec, String> {
    if !(1..=1 << 20).contains(&section.users) {
        return Err("load.users is out of range; use 1 to 1048576".into());
    }
    if !(0.0..=100.0).contains(&section.read_percent) {
        return Err("load.read_percent is out of range; use 0 to 100".into());
    }
    let think = duration("load.think", &section.think, Nanos::ZERO)?;
    let stream = StreamSpec {
        block: section.block.clone().unwrap_or_default(),
        read_percent: section.read_percent,
        pattern: section.pattern.unwrap_or_default(),
        arrival: users(section.users, think),
        ..StreamSpec::default()
    };
    Ok(LoadSpec { warm_up: Nanos::ZERO, ..LoadSpec::single(stream, RunLimits::time(LASTS)) })
}
