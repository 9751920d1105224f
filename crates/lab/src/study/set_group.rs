//! A group of RAID sets in an array: drives of one kind, the volumes on them, and what hosts ask of these.

use tier0_raid::layout::RaidLevel;
use tier0_units::ByteCount;
use tier0_workload::spec::{BlockMix, Pattern};

use super::caches::SaidSwitches;
use super::setup::Setup;

/// Drives of one kind with their volumes.
#[derive(Clone, Debug, PartialEq)]
pub struct SetGroup {
    /// Its name.
    pub name: String,
    /// The catalogue's drive, `id` or `id@calibration`.
    pub drive: String,
    /// Drives that hold data.
    pub drives: u32,
    /// RAID level of its sets.
    pub raid: RaidLevel,
    /// Columns of a set.
    pub set_size: u32,
    /// RAID 5 groups in a RAID 50 set.
    pub raid50_groups: u32,
    /// Volumes.
    pub volumes: u32,
    /// The size of a volume, where it is given.
    pub volume_size: Option<ByteCount>,
    /// The share of each drive that the volumes take, where it is given instead.
    pub used_percent: Option<f64>,
    /// What is said of the volumes' switches.
    pub caches: SaidSwitches,
    /// What is asked of the volumes.
    pub requests: Requests,
}

/// What requests are like.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// Their sizes.
    pub block: BlockMix,
    /// Reads in percent of them.
    pub read_percent: f64,
    /// Where they go.
    pub pattern: Pattern,
    /// Their addresses are multiples of this; of their size where absent.
    pub alignment: Option<ByteCount>,
}

impl SetGroup {
    /// What is wrong with it: the fact and the remedy.
    pub(super) fn check(&self) -> Result<(), String> {
        let outside = |field: &str, allowed: &str| Err(format!("has a {field} out of range; use {allowed}"));
        match (self.volume_size, self.used_percent) {
            (None, None) => return Err("has volumes of no size; give volume_size or used_percent".into()),
            (Some(_), Some(_)) => return Err("gives both volume_size and used_percent; keep one".into()),
            (None, Some(percent)) if !(percent > 0.0 && percent <= 95.0) => {
                return outside("used_percent", "more than 0, at most 95");
            }
            _ => {}
        }
        if !(1..=1024).contains(&self.drives) {
            return outside("drives", "1 to 1024");
        }
        if !(1..=256).contains(&self.volumes) {
            return outside("volumes", "1 to 256");
        }
        Ok(())
    }

    /// Whether anything is written to it.
    pub fn writes(&self) -> bool {
        self.requests.read_percent < 100.0
    }
}

impl Setup {
    /// The group that is measured.
    pub fn measured_group(&self) -> SetGroup {
        SetGroup {
            name: self.name.clone(),
            drive: self.drive.clone(),
            drives: self.drives,
            raid: self.raid,
            set_size: self.set_size,
            raid50_groups: self.groups,
            volumes: self.volumes,
            volume_size: self.volume_size,
            used_percent: self.used_percent,
            caches: self.volume_caches,
            requests: Requests {
                block: self.block.clone(),
                read_percent: self.read_percent,
                pattern: self.pattern,
                alignment: self.alignment,
            },
        }
    }

    /// The groups of sets of one array: the one that is measured, then its neighbours.
    pub fn set_groups(&self) -> Vec<SetGroup> {
        let neighbours = self.neighbours.iter().map(|neighbour| neighbour.sets.clone());
        std::iter::once(self.measured_group()).chain(neighbours).collect()
    }
}
