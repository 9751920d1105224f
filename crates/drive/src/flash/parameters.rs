//! What describes a flash drive to the model: plain values with units, and the check of their ranges.
//!
//! Invariant: the model is built of checked parameters only. Where the values come from, and whether they are
//! datasheet figures, measured or assumed, is the catalogue's business.

use thiserror::Error;
use tier0_units::{ByteCount, Nanos};

/// Who goes first on a die: a host read, or the programs and erases that were queued before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadScheduling {
    /// In order of arrival: a read waits for everything queued on its die.
    InOrder,
    /// A read waits for the operation in progress (a program or an erase) and overtakes the queued ones.
    BetweenOperations,
    /// A read interrupts the operation in progress; the value is what suspending it takes.
    Suspending(Nanos),
}

/// A flash drive. All fields are needed; none has a default, since each is a statement about a product.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParameters {
    /// What the host sees. At least 1 MiB, at most 64 TiB.
    pub capacity: ByteCount,
    /// Spare NAND as a share of the capacity, `(physical - logical) / logical`: 0.02 to 4.
    pub over_provisioning: f64,
    /// NAND channels (buses between controller and dies): 1 to 256.
    pub channels: u32,
    /// Dies on each channel: 1 to 256.
    pub dies_per_channel: u32,
    /// Planes of a die that read, program and erase together: 1 to 8.
    pub planes_per_die: u32,
    /// Bytes of a NAND page in one plane: 512 to 256 KiB.
    pub page_bytes: u32,
    /// Bytes of a logical page, the grain of the mapping: a power of two from 512 to 65,536 that divides what
    /// the planes of a die program together. 4 KiB is what the page-mapped drives of Agrawal et al. ("Design
    /// Tradeoffs for SSD Performance", USENIX ATC 2008, section 3.1) and their successors use.
    pub mapping_bytes: u32,
    /// Pages of an erase block in one plane: 16 to 8192.
    pub pages_per_block: u32,
    /// Array read of a page into the die's register (tR).
    pub read_time: Nanos,
    /// Spread of the array read, as a share of it: each read takes `read_time` times `1 ± spread`, uniformly,
    /// as lower and upper pages of multi-level cells differ. 0 to 0.9.
    pub read_time_spread: f64,
    /// Program of a page (tPROG), averaged over the page types; greater than zero.
    pub program_time: Nanos,
    /// Erase of a block (tBERS).
    pub erase_time: Nanos,
    /// Bytes per second on one channel, greater than zero.
    pub channel_bytes_per_second: u64,
    /// How host reads and background operations share a die.
    pub read_scheduling: ReadScheduling,
    /// Commands the firmware works on at once: 1 to 64.
    pub controller_cores: u32,
    /// Firmware time of a read command, on one core.
    pub controller_read_time: Nanos,
    /// Firmware time of any other command, on one core.
    pub controller_write_time: Nanos,
    /// Bytes per second of the host link after its encoding and framing, in one direction; greater than zero.
    pub interface_bytes_per_second: u64,
    /// Whether the link carries both directions at once: PCIe and SAS do, SATA does not.
    pub interface_full_duplex: bool,
    /// Bytes per second that the controller delivers to the link; greater than zero.
    pub controller_read_bytes_per_second: u64,
    /// Bytes per second that the controller takes from the link; greater than zero.
    pub controller_write_bytes_per_second: u64,
    /// DRAM that takes writes before they are programmed; each die has at least one program's worth of it.
    /// Zero: there is none, and a write is complete when it is programmed.
    pub write_buffer: ByteCount,
    /// Whether the write buffer survives a power loss. If not, a flush programs what is buffered.
    pub power_loss_protected: bool,
    /// Commands the drive accepts at once: 1 to 65,536. Further ones wait for the earliest completion.
    pub queue_depth: u32,
    /// Program/erase cycles a block is rated for, the scale of the wear gauge; greater than zero.
    pub endurance_cycles: u32,
    /// How much of the drive's span the mapping tracks page by page; larger drives are folded onto it, see
    /// `docs/flash-model.md`. At least 16 MiB; 2 GiB is a good choice and takes about 8 MB of memory.
    pub modelled_span: ByteCount,
}

/// Why parameters describe no drive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlashParametersError {
    /// A value is outside its range.
    #[error("flash parameter {field} is {value}; give a value from {low} to {high}")]
    OutOfRange {
        /// The field of [`FlashParameters`].
        field: &'static str,
        /// The value found.
        value: String,
        /// The least value accepted.
        low: String,
        /// The greatest value accepted.
        high: String,
    },
    /// The catalogue names an order of reads that the model does not know.
    #[error("flash parameter read_scheduling is {0:?}; give in-order, between-operations or suspending")]
    ReadScheduling(String),
    /// Logical pages do not fit what is programmed together.
    #[error(
        "flash parameter mapping_bytes is {mapping_bytes}; give a power of two that divides the {stripe_bytes} \
         bytes the planes of a die program together"
    )]
    MappingBytes {
        /// The grain of the mapping.
        mapping_bytes: u32,
        /// Bytes of one multi-plane program.
        stripe_bytes: u64,
    },
}

/// Refuses a value outside `low..=high`.
fn within<T: PartialOrd + ToString>(
    field: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), FlashParametersError> {
    if value >= low && value <= high {
        return Ok(());
    }
    let [value, low, high] = [value, low, high].map(|v| v.to_string());
    Err(FlashParametersError::OutOfRange { field, value, low, high })
}

impl FlashParameters {
    /// Dies of the whole drive.
    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Bytes of one multi-plane program.
    pub fn stripe_bytes(&self) -> u64 {
        u64::from(self.page_bytes) * u64::from(self.planes_per_die)
    }

    /// Checks every range given at the fields.
    ///
    /// # Errors
    /// [`FlashParametersError`] names the first field that is out of range.
    pub fn check(&self) -> Result<(), FlashParametersError> {
        let ten_seconds = 10_000_000_000;
        within("capacity", self.capacity.0, 1 << 20, 1 << 46)?;
        within("over_provisioning", self.over_provisioning, 0.02, 4.0)?;
        within("channels", self.channels, 1, 256)?;
        within("dies_per_channel", self.dies_per_channel, 1, 256)?;
        within("planes_per_die", self.planes_per_die, 1, 8)?;
        within("page_bytes", self.page_bytes, 512, 1 << 18)?;
        within("mapping_bytes", self.mapping_bytes, 512, 1 << 16)?;
        let (mapping_bytes, stripe_bytes) = (self.mapping_bytes, self.stripe_bytes());
        if !mapping_bytes.is_power_of_two() || !stripe_bytes.is_multiple_of(u64::from(mapping_bytes)) {
            return Err(FlashParametersError::MappingBytes { mapping_bytes, stripe_bytes });
        }
        within("pages_per_block", self.pages_per_block, 16, 8192)?;
        within("read_time", self.read_time.0, 0, ten_seconds)?;
        within("read_time_spread", self.read_time_spread, 0.0, 0.9)?;
        within("program_time", self.program_time.0, 1, ten_seconds)?;
        within("erase_time", self.erase_time.0, 0, ten_seconds)?;
        within("channel_bytes_per_second", self.channel_bytes_per_second, 1_000, 1_000_000_000_000)?;
        within("controller_cores", self.controller_cores, 1, 64)?;
        within("controller_read_time", self.controller_read_time.0, 0, ten_seconds)?;
        within("controller_write_time", self.controller_write_time.0, 0, ten_seconds)?;
        for (field, rate) in [
            ("interface_bytes_per_second", self.interface_bytes_per_second),
            ("controller_read_bytes_per_second", self.controller_read_bytes_per_second),
            ("controller_write_bytes_per_second", self.controller_write_bytes_per_second),
        ] {
            within(field, rate, 1_000, 1_000_000_000_000)?;
        }
        within("write_buffer", self.write_buffer.0, 0, 1 << 40)?;
        within("queue_depth", self.queue_depth, 1, 65_536)?;
        within("endurance_cycles", self.endurance_cycles, 1, u32::MAX)?;
        within("modelled_span", self.modelled_span.0, 1 << 24, 1 << 40)
    }
}
