//! The parameters of a flash drive: dies and channels, controller, buffer, mapping.
//!
//! How a model is to read them:
//! - A die is busy for `read_us` to read a page of one plane, for `program_us` to program a page in all its
//!   planes at once, for `erase_ms` to erase a block in all of them; a channel for the transfer at
//!   `channel_mb_s`. The mapping has the finer grain `mapping_kib`, and small writes share a program.
//! - Each host command occupies one of `controller_cores` for `controller_read_us` or
//!   `controller_write_us`, so the controller's ceiling is cores ÷ time; besides, all host data pass it at
//!   `controller_read_mb_s` and `controller_write_mb_s`.
//! - A write is acknowledged from the write buffer.
//!
//! The `rated_` fields are no inputs: they are what the maker (or the calibration) says comes out, for
//! checking a model. Loading checks the inputs against them with the arithmetic at the end of this file.

use crate::parameter::Parameter;
use crate::parameter_set::{Inconsistency, expect, parameter_set};

parameter_set! {
    /// The parameters of a flash drive.
    FlashParameters / FlashOverrides {
        /// Capacity that the host sees.
        capacity_gb: Parameter<f64>, Gb, 1.0..=1_000_000.0;
        /// Shape of the drive.
        form_factor: Parameter<String>, Text;
        /// Interface and its generation.
        interface: Parameter<String>, Text;
        /// Rate at which data cross the interface, one port.
        interface_mb_s: Parameter<f64>, MbPerSecond, 50.0..=50_000.0;
        /// Whether the interface carries both directions at once.
        interface_full_duplex: Parameter<bool>, Flag;
        /// Flash beyond the capacity that garbage collection can use, as a share of the capacity.
        over_provisioning_percent: Parameter<f64>, Percent, 3.0..=200.0;
        /// Channels between controller and dies.
        channels: Parameter<u32>, Count, 1.0..=64.0;
        /// Dies on each channel.
        dies_per_channel: Parameter<u32>, Count, 1.0..=256.0;
        /// Planes of a die that program and erase together.
        planes_per_die: Parameter<u32>, Count, 1.0..=8.0;
        /// Page of one plane.
        page_kib: Parameter<f64>, Kib, 0.5..=256.0;
        /// Grain of the mapping from addresses to flash.
        mapping_kib: Parameter<f64>, Kib, 0.5..=64.0;
        /// Pages of an erase block in one plane.
        pages_per_block: Parameter<u32>, Count, 32.0..=8_192.0;
        /// A die's time to read a page.
        read_us: Parameter<f64>, Us, 5.0..=500.0;
        /// Spread of that time over the kinds of page, plus or minus.
        read_spread_percent: Parameter<f64>, Percent, 0.0..=90.0;
        /// A die's time to program a page in all its planes, averaged over the kinds of page.
        program_us: Parameter<f64>, Us, 50.0..=10_000.0;
        /// A die's time to erase a block.
        erase_ms: Parameter<f64>, Ms, 0.5..=50.0;
        /// What a host read does on a busy die: "in-order" waits for all that is queued, "between-operations"
        /// waits for the operation in progress, "suspending" interrupts it.
        read_scheduling: Parameter<String>, Text;
        /// Time to suspend an operation; needed with "suspending", without meaning otherwise.
        read_suspend_us: Option<Parameter<f64>>, Us, 0.0..=1_000.0;
        /// Transfer rate of one channel.
        channel_mb_s: Parameter<f64>, MbPerSecond, 10.0..=5_000.0;
        /// Commands that the controller works on at once.
        controller_cores: Parameter<u32>, Count, 1.0..=64.0;
        /// A controller core's time for one read command.
        controller_read_us: Parameter<f64>, Us, 0.5..=5_000.0;
        /// A controller core's time for one write command.
        controller_write_us: Parameter<f64>, Us, 0.5..=5_000.0;
        /// Most that the controller delivers to the host.
        controller_read_mb_s: Parameter<f64>, MbPerSecond, 20.0..=50_000.0;
        /// Most that the controller takes from the host.
        controller_write_mb_s: Parameter<f64>, MbPerSecond, 20.0..=50_000.0;
        /// Buffer from which writes are acknowledged; 0 where a write waits for the flash.
        write_buffer_mib: Parameter<f64>, Mib, 0.0..=16_384.0;
        /// Commands that the drive accepts at once.
        queue_depth: Parameter<u32>, Count, 1.0..=65_536.0;
        /// Erasures a block is rated for.
        endurance_cycles: Parameter<u32>, Count, 100.0..=10_000_000.0;
        /// Host writes over the drive's life.
        endurance_pb: Parameter<f64>, Pb, 0.05..=1_000.0;
        /// Whether acknowledged writes survive a loss of power.
        power_loss_protection: Parameter<bool>, Flag;
        /// Power with no command.
        idle_w: Parameter<f64>, Watts, 0.1..=50.0;
        /// Power under load.
        active_w: Parameter<f64>, Watts, 0.5..=100.0;
        /// Block size of the rated IOPS.
        rated_block_kib: Parameter<f64>, Kib, 0.5..=64.0;
        /// Rated steady-state random reads.
        rated_read_iops: Parameter<f64>, Iops, 100.0..=10_000_000.0;
        /// Rated steady-state random writes, preconditioned.
        rated_write_iops: Parameter<f64>, Iops, 100.0..=10_000_000.0;
        /// Rated sequential reads.
        rated_read_mb_s: Parameter<f64>, MbPerSecond, 20.0..=50_000.0;
        /// Rated sequential writes.
        rated_write_mb_s: Parameter<f64>, MbPerSecond, 20.0..=50_000.0;
        /// Rated latency of a random read of the rated block, at the rated queue depth.
        rated_read_latency_us: Option<Parameter<f64>>, Us, 5.0..=10_000.0;
        /// Rated latency of a random write of the rated block, at the rated queue depth.
        rated_write_latency_us: Option<Parameter<f64>>, Us, 2.0..=10_000.0;
        /// Queue depth at which the latencies are rated.
        rated_latency_queue_depth: Option<Parameter<u32>>, Count, 1.0..=256.0;
    }
}

/// The ways of [`FlashParameters::read_scheduling`].
const READ_SCHEDULING: [&str; 3] = ["in-order", "between-operations", "suspending"];
/// A ceiling may lie this far below the rated figure (rounding), as a factor.
const CEILING_LOW: f64 = 0.97;
/// ... and this far above it: real drives lose a little to conflicts between dies that no ceiling shows.
const CEILING_HIGH: f64 = 1.35;

impl FlashParameters {
    /// All dies.
    pub fn dies(&self) -> u32 {
        self.channels.value * self.dies_per_channel.value
    }

    /// Bytes that a die programs at once: a page in each plane.
    pub fn program_bytes(&self) -> f64 {
        self.page_kib.value * 1024.0 * f64::from(self.planes_per_die.value)
    }

    /// Bytes that a die erases at once: a block in each plane.
    pub fn erase_bytes(&self) -> u64 {
        self.program_bytes() as u64 * u64::from(self.pages_per_block.value)
    }

    /// Flash that the mapping can use: capacity and over-provisioning, in bytes.
    pub fn usable_flash_bytes(&self) -> u64 {
        (self.capacity_gb.value * 1e9 * (1.0 + self.over_provisioning_percent.value / 100.0)) as u64
    }

    /// Blocks of each plane, rounded down.
    pub fn blocks_per_plane(&self) -> u64 {
        self.usable_flash_bytes() / self.erase_bytes() / u64::from(self.dies())
    }

    /// Write amplification of uniform random writes under greedy collection: a / (a + W(-a exp -a)) with a = 1 + r
    /// for the over-provisioning r and Lambert's W (the large-block limit in Desnoyers, "Analytic modeling of SSD
    /// write performance", SYSTOR 2012).
    pub fn write_amplification_estimate(&self) -> f64 {
        let a = 1.0 + self.over_provisioning_percent.value / 100.0;
        // -W is the root below 1 of x exp -x = a exp -a; the iteration climbs to it from 0.
        let x = (0..1_000).fold(0.0f64, |x, _| a * (x - a).exp());
        a / (a - x)
    }

    /// The lowest of the ceilings that bound random reads of the rated block: controller, dies, channels,
    /// data paths.
    pub fn read_iops_ceiling(&self) -> f64 {
        let block_bytes = self.rated_block_kib.value * 1024.0;
        let pages = (self.rated_block_kib.value / self.page_kib.value).ceil();
        let controller = f64::from(self.controller_cores.value) * 1e6 / self.controller_read_us.value;
        let dies = f64::from(self.dies()) * 1e6 / (self.read_us.value * pages);
        let channels = f64::from(self.channels.value) * self.channel_mb_s.value * 1e6 / block_bytes;
        let path = self.controller_read_mb_s.value.min(self.interface_mb_s.value) * 1e6 / block_bytes;
        controller.min(dies).min(channels).min(path)
    }

    /// The same for steady-state random writes, where each host page costs
    /// [write amplification](Self::write_amplification_estimate) programs.
    pub fn write_iops_ceiling(&self) -> f64 {
        let block_bytes = self.rated_block_kib.value * 1024.0;
        let controller = f64::from(self.controller_cores.value) * 1e6 / self.controller_write_us.value;
        let flash = self.program_mb_s() * 1e6 / block_bytes / self.write_amplification_estimate();
        let path = self.controller_write_mb_s.value.min(self.interface_mb_s.value) * 1e6 / block_bytes;
        controller.min(flash).min(path)
    }

    /// What all dies program together, in MB/s.
    pub fn program_mb_s(&self) -> f64 {
        f64::from(self.dies()) * self.program_bytes() / self.program_us.value
    }

    /// Sequential reads, in MB/s.
    pub fn read_mb_s_ceiling(&self) -> f64 {
        let dies = f64::from(self.dies()) * self.page_kib.value * 1024.0 / self.read_us.value;
        let channels = f64::from(self.channels.value) * self.channel_mb_s.value;
        dies.min(channels).min(self.controller_read_mb_s.value).min(self.interface_mb_s.value)
    }

    /// Sequential writes, in MB/s.
    pub fn write_mb_s_ceiling(&self) -> f64 {
        let channels = f64::from(self.channels.value) * self.channel_mb_s.value;
        self.program_mb_s().min(channels).min(self.controller_write_mb_s.value).min(self.interface_mb_s.value)
    }

    fn find_contradictions(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        self.check_flash(&mut found);
        let rated = [
            ("rated_read_iops", self.rated_read_iops.value, self.read_iops_ceiling()),
            ("rated_write_iops", self.rated_write_iops.value, self.write_iops_ceiling()),
            ("rated_read_mb_s", self.rated_read_mb_s.value, self.read_mb_s_ceiling()),
            ("rated_write_mb_s", self.rated_write_mb_s.value, self.write_mb_s_ceiling()),
        ];
        for (field, rated, ceiling) in rated {
            expect(
                &mut found,
                (CEILING_LOW..=CEILING_HIGH).contains(&(ceiling / rated)),
                field,
                || format!("is {rated}, but the other parameters give a ceiling of {ceiling:.0}"),
                "correct the controller, die or channel parameters so that the ceiling is 0.97 to 1.35 times the rating",
            );
        }
        found
    }

    fn check_flash(&self, found: &mut Vec<Inconsistency>) {
        let program_kib = self.program_bytes() / 1024.0;
        expect(
            found,
            (self.mapping_kib.value * 1024.0).log2().fract() == 0.0
                && program_kib % self.mapping_kib.value == 0.0,
            "mapping_kib",
            || {
                format!(
                    "is {} KiB, which does not divide a program of {program_kib} KiB",
                    self.mapping_kib.value
                )
            },
            "give a power of two that divides page_kib x planes_per_die",
        );
        expect(
            found,
            self.blocks_per_plane() >= 8,
            "pages_per_block",
            || format!("leaves {} blocks in each plane", self.blocks_per_plane()),
            "garbage collection needs at least 8; check dies, planes, page and block against the capacity",
        );
        let scheduling = self.read_scheduling.value.as_str();
        expect(
            found,
            READ_SCHEDULING.contains(&scheduling),
            "read_scheduling",
            || format!("is \"{scheduling}\""),
            "give \"in-order\", \"between-operations\" or \"suspending\"",
        );
        expect(
            found,
            scheduling != "suspending" || self.read_suspend_us.is_some(),
            "read_suspend_us",
            || "is missing".into(),
            "read_scheduling \"suspending\" needs it",
        );
        let writable_pb = f64::from(self.endurance_cycles.value) * self.usable_flash_bytes() as f64 / 1e15;
        expect(
            found,
            self.endurance_pb.value <= writable_pb,
            "endurance_pb",
            || format!("is {} PB, but the cells can take {writable_pb:.1}", self.endurance_pb.value),
            "correct it or endurance_cycles",
        );
    }
}
