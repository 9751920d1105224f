//! The parameters in the units of the data path: nanoseconds per operation, picoseconds per sector.
//!
//! Invariant: everything here is constant over the life of a drive.

use tier0_units::SECTOR_BYTES;

use super::die::DieTimes;
use super::geometry::Geometry;
use super::parameters::FlashParameters;

/// Least sectors that go over a channel: error correction works on pieces of this size.
const CHANNEL_SECTORS_MIN: u64 = 4;

/// Parameters in the units of the data path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) read: u64,
    /// Least read time and width of its spread.
    pub(super) read_least: u64,
    pub(super) read_width: u64,
    pub(super) controller_read: u64,
    pub(super) controller_write: u64,
    /// Sectors of a logical page, as a power of two.
    pub(super) page_shift: u32,
    /// One logical page, one NAND page and one stripe over a channel.
    pub(super) channel_slot: u64,
    pub(super) channel_page: u64,
    pub(super) channel_stripe: u64,
    /// Picoseconds per sector on a channel, and to and from the host.
    pub(super) channel_sector_ps: u64,
    pub(super) read_sector_ps: u64,
    pub(super) write_sector_ps: u64,
    /// Stripes each group may have in the write buffer, a multiple of its dies.
    pub(super) buffer_stripes: u32,
    /// Stripes of a modelled and of a real block.
    pub(super) stripes_per_block: u32,
    pub(super) stripes_per_erase: u32,
    pub(super) die: DieTimes,
}

impl Costs {
    /// The costs of checked parameters.
    pub(super) fn new(p: &FlashParameters, geometry: &Geometry) -> Costs {
        let channel = |bytes: u64| bytes * 1_000_000_000 / p.channel_bytes_per_second;
        let sector_ps = |rate: u64| SECTOR_BYTES * 1_000_000_000_000 / rate;
        let link = p.interface_bytes_per_second;
        let buffer_per_die = p.write_buffer.0 / p.stripe_bytes() / u64::from(p.dies());
        let spread = (p.read_time.0 as f64 * p.read_time_spread) as u64;
        Costs {
            read: p.read_time.0,
            read_least: p.read_time.0 - spread,
            read_width: 2 * spread,
            controller_read: p.controller_read_time.0,
            controller_write: p.controller_write_time.0,
            page_shift: p.mapping_bytes.ilog2() - SECTOR_BYTES.ilog2(),
            channel_slot: channel(u64::from(p.mapping_bytes)),
            channel_page: channel(u64::from(p.page_bytes)),
            channel_stripe: channel(p.stripe_bytes()),
            channel_sector_ps: sector_ps(p.channel_bytes_per_second),
            read_sector_ps: sector_ps(link.min(p.controller_read_bytes_per_second)),
            write_sector_ps: sector_ps(link.min(p.controller_write_bytes_per_second)),
            buffer_stripes: buffer_per_die.clamp(1, 1 << 20) as u32 * geometry.dies_per_group,
            stripes_per_block: geometry.slots_per_block / geometry.slots_per_stripe,
            stripes_per_erase: p.pages_per_block,
            die: DieTimes { program: p.program_time.0, erase: p.erase_time.0, scheduling: p.read_scheduling },
        }
    }

    /// The time of a host read's data on a channel.
    pub(super) fn channel(&self, sectors: u64) -> u64 {
        sectors.next_multiple_of(CHANNEL_SECTORS_MIN) * self.channel_sector_ps / 1_000
    }
}
