//! Bringing a drive into its steady state before a measurement, in no simulated time.
//!
//! As the SNIA Solid State Storage Performance Test Specification asks (v2.0.2, section 3, "purge, precondition,
//! measure"): the whole span is written once in sequence, then overwritten at random until the write
//! amplification settles. Only the mapping takes part; the clocks stay where they are.
//!
//! Invariants: afterwards every page is mapped, all counters and all wear are zero.

use rand_core::Rng;
use tier0_units::ByteCount;

use super::blocks::NONE;
use super::geometry::Place;
use super::model::FlashModel;

/// What is written before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The span once in sequence: what sequential figures of datasheets are measured on.
    Sequential,
    /// The span once in sequence, then random aligned overwrites of this size until the write amplification
    /// settles. Less than a logical page counts as one.
    Random(ByteCount),
}

impl Default for Precondition {
    /// Random overwrites of 4 KiB: the worst case, and what random figures of datasheets are measured on.
    fn default() -> Precondition {
        Precondition::Random(ByteCount::kib(4))
    }
}

/// The write amplification is compared over windows of this part of the span.
const WINDOWS_PER_SPAN: u32 = 4;

/// Two windows whose write amplifications differ by less than this share are alike.
const SETTLED_DIFFERENCE: f64 = 0.02;

/// It has settled after so many windows that are alike.
const SETTLED_WINDOWS: u32 = 3;

/// Ten times the span is overwritten at most.
const WINDOWS_MAX: u32 = 40;

impl FlashModel {
    /// Puts the drive into the steady state of `precondition` and returns the write amplification reached.
    /// It also forgets all that was counted, wear included.
    pub fn precondition(&mut self, precondition: Precondition) -> f64 {
        self.fill();
        let reached = match precondition {
            Precondition::Sequential => 1.0,
            Precondition::Random(block) => {
                let pages = (block.0 / u64::from(self.parameters().mapping_bytes)).clamp(1, 1 << 12) as u32;
                self.overwrite_until_settled(pages.min(self.ftl.geometry.modelled_pages))
            }
        };
        self.ftl.reset_counters();
        reached
    }

    /// Writes every modelled page in sequence, for any of its aliases.
    fn fill(&mut self) {
        for page in 0..self.ftl.geometry.modelled_pages {
            self.rewrite(page);
        }
    }

    fn overwrite_until_settled(&mut self, pages: u32) -> f64 {
        let blocks = self.ftl.geometry.modelled_pages / pages;
        let mut before = self.overwrite(blocks, pages);
        let mut alike = 0;
        for _ in 1..WINDOWS_MAX {
            let now = self.overwrite(blocks, pages);
            // Until collection begins the amplification is one, and alike for the wrong reason.
            let settled = self.ftl.pages_moved > 0 && (now - before).abs() < SETTLED_DIFFERENCE * now;
            alike = if settled { alike + 1 } else { 0 };
            before = now;
            if alike == SETTLED_WINDOWS {
                break;
            }
        }
        before
    }

    /// Overwrites one window at random, in blocks of so many pages; returns its write amplification.
    fn overwrite(&mut self, blocks: u32, pages: u32) -> f64 {
        let (host, nand) = (self.ftl.host_pages_written, self.ftl.nand_pages_written);
        for _ in 0..(blocks / WINDOWS_PER_SPAN).max(1) {
            let first = self.below(blocks) * pages;
            for page in first..first + pages {
                self.rewrite(page);
            }
        }
        (self.ftl.nand_pages_written - nand) as f64 / (self.ftl.host_pages_written - host) as f64
    }

    fn rewrite(&mut self, page: u32) {
        debug_assert!(page != NONE, "no page");
        let scale = self.ftl.geometry.scale;
        let alias = if scale == 1 { 0 } else { self.below(scale) };
        self.ftl.write(Place { page, alias });
    }

    /// A random number below `bound`. The bias of the multiplication is below one in 1,000 for any span.
    fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.random.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}
