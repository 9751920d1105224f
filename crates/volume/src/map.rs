//! The map of a volume: which slot each extent has.

use tier0_pool::SlotRun;

/// A volume's extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMap {
    sectors: u64,
    extent_sectors: u64,
    /// Per run: its first extent and its first slot; ordered by extent.
    runs: Vec<(u64, u64)>,
}

impl VolumeMap {
    /// A volume of `sectors` sectors whose extents lie in `runs`, in order. The runs must hold all its extents.
    pub fn new(sectors: u64, extent_sectors: u64, runs: &[SlotRun]) -> VolumeMap {
        let held: u64 = runs.iter().map(|run| run.count).sum();
        assert!(held >= sectors.div_ceil(extent_sectors), "{held} slots are too few for {sectors} sectors");
        let mut extent = 0;
        let starts = runs.iter().map(|run| {
            let start = (extent, run.first);
            extent += run.count;
            start
        });
        VolumeMap { sectors, extent_sectors, runs: starts.collect() }
    }

    /// The volume's size in sectors.
    #[inline]
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Sectors of an extent.
    #[inline]
    pub fn extent_sectors(&self) -> u64 {
        self.extent_sectors
    }

    /// The slot of an extent of the volume.
    #[inline]
    pub fn slot(&self, extent: u64) -> u64 {
        let run = match self.runs.as_slice() {
            [only] => only,
            runs => &runs[runs.partition_point(|(first, _)| *first <= extent) - 1],
        };
        run.1 + (extent - run.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_each_other() {
        let runs = [
            SlotRun { first: 100, count: 2 },
            SlotRun { first: 7, count: 1 },
            SlotRun { first: 50, count: 9 },
        ];
        let map = VolumeMap::new(12 * 64, 64, &runs);
        let slots: Vec<u64> = (0..5).map(|extent| map.slot(extent)).collect();
        assert_eq!(slots, [100, 101, 7, 50, 51]);
    }
}
