//! Neighbours of what is measured: other groups of sets in the same array, with volumes and a load of their own, which share
//! its storage processors, ports, buses and caches.

use serde::Deserialize;
use tier0_raid::layout::RaidLevel;
use tier0_units::{ByteCount, Nanos};
use tier0_workload::spec::{BlockMix, Pattern};

use super::caches::SaidSwitches;
use super::set_group::{Requests, SetGroup};
use super::setup::{level, micros};

/// A neighbour as a study's file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeighbourSection {
    name: String,
    drive: String,
    drives: u32,
    raid: String,
    set_size: Option<u32>,
    groups: Option<u32>,
    volumes: Option<u32>,
    volume_size: Option<ByteCount>,
    used_percent: Option<f64>,
    #[serde(default)]
    volume_caches: SaidSwitches,
    block: Option<BlockMix>,
    read_percent: f64,
    pattern: Option<Pattern>,
    alignment: Option<ByteCount>,
    users: u32,
    think_us: Option<f64>,
}

/// Another group of sets with its load, which lasts as long as what is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its drives and volumes.
    pub sets: SetGroup,
    /// Its users.
    pub users: u32,
    /// Mean time between a user's answer and next request, exponentially distributed.
    pub think: Nanos,
}

impl Neighbour {
    /// The neighbour of a file; the error is the fact and the remedy.
    pub(super) fn of(section: &NeighbourSection) -> Result<Neighbour, String> {
        let raid: RaidLevel = level(&section.raid)?;
        let sets = SetGroup {
            name: section.name.clone(),
            drive: section.drive.clone(),
            drives: section.drives,
            raid,
            set_size: section.set_size.unwrap_or(section.drives),
            raid50_groups: section.groups.unwrap_or(2),
            volumes: section.volumes.unwrap_or(1),
            volume_size: section.volume_size,
            used_percent: section.used_percent,
            caches: section.volume_caches,
            requests: Requests {
                block: section.block.clone().unwrap_or_default(),
                read_percent: section.read_percent,
                pattern: section.pattern.unwrap_or_default(),
                alignment: section.alignment,
            },
        };
        let named = |fact: String| format!("has a neighbour {:?} that {fact}", section.name);
        sets.check().map_err(named)?;
        if !(1..=1 << 20).contains(&section.users) {
            return Err(named("has users out of range; use 1 to 1048576".into()));
        }
        Ok(Neighbour { sets, users: section.users, think: micros(section.think_us.unwrap_or(0.0)) })
    }
}
