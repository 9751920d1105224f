//! What a drive counts: traffic, write amplification, wear.
//!
//! Invariant: counters only grow, until preconditioning starts them anew. The wear gauge refers to the whole
//! drive: the modelled span turns over `scale` times as fast as the drive, and the gauge divides by it.

/// Counters since the drive was made or preconditioned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlashStatistics {
    /// Logical pages that host writes touched, those overwritten while still buffered included.
    pub host_pages_written: u64,
    /// Logical pages programmed, collection and padding included.
    pub nand_pages_written: u64,
    /// Valid pages that collection and wear levelling moved.
    pub pages_moved: u64,
    /// Modelled blocks erased.
    pub blocks_erased: u64,
    /// Least erases of any modelled block.
    pub erases_min: u32,
    /// Most erases of any modelled block.
    pub erases_max: u32,
    /// Mean erases per block of the *drive*, that is, corrected for the scale of the model.
    pub erases_mean: f64,
    /// Share of the rated endurance that is used up, in percent: the media wear gauge.
    pub wear_percent: f64,
    /// Logical pages that hold data, as a share of all.
    pub mapped_share: f64,
}

impl FlashStatistics {
    /// NAND writes per host write; 1 before the first one.
    pub fn write_amplification(&self) -> f64 {
        if self.host_pages_written == 0 {
            return 1.0;
        }
        self.nand_pages_written as f64 / self.host_pages_written as f64
    }
}
