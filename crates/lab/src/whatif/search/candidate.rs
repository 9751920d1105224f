//! A drive model and RAID level that replace the drives of the base.

use tier0_raid::layout::RaidLevel;
use toml::{Table, Value};

use crate::case::{Case, CaseError};

/// A kind of drives that may do.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The model.
    pub model: String,
    /// The RAID level.
    pub raid: RaidLevel,
    /// Drives of a set.
    pub set_size: u32,
    /// What one drive costs, in the unit of the file.
    pub price: Option<f64>,
    /// The fewest drives that have room for the volumes, and the most that are tried; whole sets.
    pub least: u32,
    /// See there.
    pub most: u32,
    /// Bytes of the volumes on these drives.
    pub needed: u64,
    /// Bytes of a drive that hold data rather than redundancy.
    pub(super) drive_bytes: f64,
    /// Drives' worth of space that stays free for rebuilds.
    pub(super) spares: u32,
    pub(super) place: DrivePlace,
}

/// Where the base says which drives these are.
#[derive(Clone, Debug)]
pub(super) struct DrivePlace {
    /// The base.
    pub(super) base: Table,
    /// The name of the entry of its drives.
    pub(super) drives: String,
    /// Their pool, by its place in the list.
    pub(super) pool: usize,
    /// Their group of sets in it, by its place in the list; it is the pool itself where that has no list.
    pub(super) group: usize,
}

impl Candidate {
    /// The numbers of drives that are possible, ascending.
    pub fn numbers(&self) -> Vec<u32> {
        (self.least..=self.most).step_by(self.set_size as usize).collect()
    }

    /// Bytes for data of so many drives.
    pub fn usable(&self, drives: u32) -> f64 {
        self.drive_bytes * f64::from(drives.saturating_sub(self.spares))
    }

    /// The base with so many of these drives.
    ///
    /// # Errors
    /// They do not fit the rest of the base.
    pub(super) fn case(&self, drives: u32) -> Result<Case, CaseError> {
        let name = format!("{drives} x {} in {}", self.model, self.raid);
        let mut base = self.place.base.clone();
        let changed = self.change(&mut base, drives);
        changed.expect("the base has drives and a pool: it was read as a case");
        Case::of(&name, base)
    }

    fn change(&self, base: &mut Table, drives: u32) -> Option<()> {
        let system = base.get_mut("system")?.as_table_mut()?;
        let entry = list(system, "drive")?.iter_mut().filter_map(Value::as_table_mut);
        let entry = entry.into_iter().find(|entry| named(entry) == Some(&self.place.drives))?;
        entry.insert("model".into(), self.model.clone().into());
        entry.insert("count".into(), i64::from(drives).into());
        let pool = list(system, "pool")?.get_mut(self.place.pool)?.as_table_mut()?;
        let sets = match pool.contains_key("group") {
            true => list(pool, "group")?.get_mut(self.place.group)?.as_table_mut()?,
            false => pool,
        };
        sets.remove("groups");
        sets.insert("raid".into(), self.raid.name().into());
        sets.insert("set_size".into(), i64::from(self.set_size).into());
        Some(())
    }
}

/// The name of an entry.
pub(super) fn named(entry: &Table) -> Option<&str> {
    entry.get("name")?.as_str()
}

fn list<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Vec<Value>> {
    table.get_mut(key)?.as_array_mut()
}
