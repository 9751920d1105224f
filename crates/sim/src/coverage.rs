//! What runs have reached: a simulator that never reaches a state proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

/// How often what happened, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    /// It happened.
    pub fn count(&mut self, name: &'static str) {
        self.add(name, 1);
    }

    /// It happened so many times; zero makes it known that it could.
    pub fn add(&mut self, name: &'static str, times: u64) {
        *self.0.entry(name).or_default() += times;
    }

    /// How often it happened.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Coverage) {
        for (name, times) in &other.0 {
            self.add(name, *times);
        }
    }
}

impl fmt::Display for Coverage {
    /// One line per name, the figures in a column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, times) in &self.0 {
            writeln!(f, "  {times:>12}  {name}")?;
        }
        Ok(())
    }
}
