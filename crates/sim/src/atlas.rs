//! The fault atlas: which drives carry harm, so that no more is injected than redundancy promises to survive.
//!
//! A drive is *blemished* from the first fault that may have cost it content (loss, an error, rot, a lost write, an
//! administrator who fails it) until the array has proved that it is whole again without it or in spite of it: fully
//! redundant and, where it can scrub, scrubbed clean. Blemished drives never outnumber what the RAID level makes up for (of
//! several groups of sets the one that makes up for the fewest), and at least one copy of the write log and one of the
//! metadata lies on a drive without blemish.
//!
//! What it does not do: it does not know where on a drive the harm lies, so two drives are never blemished in different
//! stripes at once where the level survives one loss. Latency is no blemish.

use std::collections::BTreeMap;

use tier0_raid::layout::RaidLevel;

use crate::system::{ArrayConfig, Status};

/// What is broken, and what may still break.
#[derive(Clone, Debug)]
pub struct FaultAtlas {
    tolerance: usize,
    /// Blemished drives, and which blemish of all was the last of each.
    blemished: BTreeMap<String, u64>,
    blemishes: u64,
    log: Vec<String>,
    metadata: Vec<String>,
}

impl FaultAtlas {
    /// Nothing is broken.
    pub fn new(array: &ArrayConfig) -> FaultAtlas {
        let tolerance = |level| match level {
            RaidLevel::Raid0 => 0,
            RaidLevel::Raid1 => array.set_size.unwrap_or(2) - 1,
            RaidLevel::Raid10 | RaidLevel::Raid5 | RaidLevel::Raid50 => 1,
            RaidLevel::Raid6 => 2,
        };
        FaultAtlas {
            tolerance: array.levels().map(tolerance).min().unwrap_or(0),
            blemished: BTreeMap::new(),
            blemishes: 0,
            log: Vec::new(),
            metadata: Vec::new(),
        }
    }

    /// Learns where log and metadata lie.
    pub fn learn(&mut self, status: &Status) {
        self.log.clone_from(&status.log);
        self.metadata.clone_from(&status.metadata);
    }

    /// Blemishes `drive`, if the array must survive that; false, and nothing noted, if not.
    pub fn strike(&mut self, drive: &str) -> bool {
        let is_whole = |copy: &String| copy != drive && !self.blemished.contains_key(copy);
        let survives = |copies: &[String]| copies.is_empty() || copies.iter().any(is_whole);
        let after = self.blemished.len() + usize::from(!self.blemished.contains_key(drive));
        let allowed = after <= self.tolerance && survives(&self.log) && survives(&self.metadata);
        if allowed {
            self.blemishes += 1;
            self.blemished.insert(drive.to_owned(), self.blemishes);
        }
        allowed
    }

    /// Where log and metadata lie.
    pub(crate) fn places(&self) -> (Vec<String>, Vec<String>) {
        (self.log.clone(), self.metadata.clone())
    }

    /// The array has lost `drive` by its own verdict: it is blemished, whatever that leaves to be struck.
    pub(crate) fn mark(&mut self, drive: &str) {
        // What the array has noticed it makes good, whenever the proof of that began.
        self.blemished.entry(drive.to_owned()).or_insert(0);
    }

    /// The array begins to prove that it is whole: what [`Self::clear_until`] is told when it has.
    pub fn begin_proof(&self) -> u64 {
        self.blemishes
    }

    /// The array has proved that it is whole in spite of what it had suffered when the proof began. Drives that were
    /// struck since then are still blemished.
    pub fn clear_until(&mut self, begun: u64) {
        self.blemished.retain(|_, blemish| *blemish > begun);
    }

    /// The array has proved that it is whole, with nothing else going on meanwhile.
    pub fn clear(&mut self) {
        self.blemished.clear();
    }

    /// Whether anything is broken.
    pub fn is_clear(&self) -> bool {
        self.blemished.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atlas(level: RaidLevel) -> FaultAtlas {
        let array = ArrayConfig {
            level,
            set_size: None,
            drives: 6,
            drive_sectors: 1 << 16,
            block_sectors: 1,
            chunklet_sectors: 1024,
            extent_rows: None,
            stripe_unit_sectors: 128,
            spare_drives: 0,
            log_sectors: None,
            shards: 1,
            second: None,
            has_tier: false,
            flash_cache: None,
            volumes: Vec::new(),
        };
        FaultAtlas::new(&array)
    }

    #[test]
    fn no_more_drives_are_struck_than_the_level_makes_up_for() {
        assert!(!atlas(RaidLevel::Raid0).strike("a"));
        let mut five = atlas(RaidLevel::Raid5);
        assert!(five.strike("a") && five.strike("a") && !five.strike("b"));
        let proof = five.begin_proof();
        five.clear_until(proof);
        assert!(five.strike("b"));
        five.clear_until(proof);
        assert!(!five.strike("a"), "it was struck while the proof went on");
        let mut six = atlas(RaidLevel::Raid6);
        assert!(six.strike("a") && six.strike("b") && !six.strike("c"));
    }

    #[test]
    fn one_copy_of_log_and_metadata_stays_whole() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut six = atlas(RaidLevel::Raid6);
        six.learn(&Status {
            log: names(&["a", "b"]),
            metadata: names(&["a", "c", "d"]),
            ..Status::default()
        });
        assert!(six.strike("a") && !six.strike("b") && six.strike("c"));
    }
}
