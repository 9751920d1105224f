//! The parameters of an array: controllers, their processors and caches, buses and ports.
//!
//! The policies of an array (RAID, tiering, cache replacement) are the engine's; here stand only the
//! resources that bound it and the settings it is delivered with.

use crate::parameter::Parameter;
use crate::parameter_set::{Inconsistency, expect, parameter_set};

parameter_set! {
    /// The parameters of an array.
    ArrayParameters / ArrayOverrides {
        /// Controllers (storage processors, nodes).
        controllers: Parameter<u32>, Count, 1.0..=16.0;
        /// Controllers that serve I/O at the same time.
        active_controllers: Parameter<u32>, Count, 1.0..=16.0;
        /// Processor cores of one controller that serve I/O.
        cores_per_controller: Parameter<u32>, Count, 1.0..=128.0;
        /// Core time of one host read, without the drives' time.
        read_cost_us: Parameter<f64>, Us, 1.0..=2_000.0;
        /// Core time of one host write, parity and mirroring to the partner's cache included.
        write_cost_us: Parameter<f64>, Us, 1.0..=2_000.0;
        /// Core time per KiB moved between host and drives.
        transfer_cost_us_per_kib: Parameter<f64>, Us, 0.0..=100.0;
        /// Core time of the lookup that each read of a read-cached LUN pays, hit or miss.
        cache_lookup_cost_us: Parameter<f64>, Us, 0.0..=500.0;
        /// The same for each page of the read, on top.
        cache_lookup_page_cost_us: Option<Parameter<f64>>, Us, 0.0..=100.0;
        /// Back-end buses that drives are spread over.
        back_end_buses: Parameter<u32>, Count, 1.0..=64.0;
        /// Data rate of one back-end bus.
        back_end_bus_mb_s: Parameter<f64>, MbPerSecond, 50.0..=50_000.0;
        /// Drive commands per second that one back-end bus carries.
        back_end_bus_iops: Option<Parameter<f64>>, Iops, 1_000.0..=10_000_000.0;
        /// Most drives.
        drives_max: Parameter<u32>, Count, 1.0..=10_000.0;
        /// Drives of one enclosure.
        enclosure_drives: Option<Parameter<u32>>, Count, 1.0..=120.0;
        /// Rack units of one enclosure of drives.
        enclosure_units: Option<Parameter<u32>>, Count, 1.0..=10.0;
        /// Host ports in use at the same time.
        front_end_ports: Parameter<u32>, Count, 1.0..=256.0;
        /// Catalogue id of the host ports' link.
        front_end_link: Parameter<String>, Text;
        /// Host commands per second that one port carries.
        front_end_port_iops: Option<Parameter<f64>>, Iops, 1_000.0..=10_000_000.0;
        /// Memory of one controller.
        memory_mib_per_controller: Parameter<f64>, Mib, 128.0..=4_194_304.0;
        /// Read cache of one controller.
        read_cache_mib: Parameter<f64>, Mib, 0.0..=4_194_304.0;
        /// Catalogue id of the write cache of the array.
        write_cache: Parameter<String>, Text;
        /// Page of the cache.
        cache_page_kib: Parameter<f64>, Kib, 0.5..=1_024.0;
        /// Share of the write cache at which destaging is urgent.
        write_cache_high_watermark_percent: Parameter<f64>, Percent, 1.0..=100.0;
        /// Share of the write cache at which destaging rests.
        write_cache_low_watermark_percent: Parameter<f64>, Percent, 0.0..=100.0;
        /// Delivered setting: reads of disk LUNs are cached.
        disk_lun_read_cache: Parameter<bool>, Flag;
        /// Delivered setting: writes to disk LUNs are cached.
        disk_lun_write_cache: Parameter<bool>, Flag;
        /// Delivered setting: reads of flash LUNs are cached.
        flash_lun_read_cache: Parameter<bool>, Flag;
        /// Delivered setting: writes to flash LUNs are cached.
        flash_lun_write_cache: Parameter<bool>, Flag;
        /// Consecutive data on one drive of a RAID stripe.
        stripe_unit_kib: Parameter<f64>, Kib, 4.0..=4_096.0;
        /// Spare drives, or their equivalent in spare chunklets, as delivered for a full shelf.
        spare_drives: Parameter<u32>, Count, 0.0..=64.0;
        /// Largest piece into which host I/O is split so that small reads do not queue behind it.
        sub_io_kib: Option<Parameter<f64>>, Kib, 4.0..=1_024.0;
    }
}

impl ArrayParameters {
    /// Host reads per second that the active controllers' cores carry, without transfer and lookup.
    pub fn read_iops_ceiling(&self) -> f64 {
        let cores = f64::from(self.active_controllers.value * self.cores_per_controller.value);
        cores * 1e6 / self.read_cost_us.value
    }

    fn find_contradictions(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        expect(
            &mut found,
            self.active_controllers.value <= self.controllers.value,
            "active_controllers",
            || format!("exceeds the {} controllers", self.controllers.value),
            "count only controllers that serve I/O at the same time",
        );
        expect(
            &mut found,
            self.write_cache_low_watermark_percent.value < self.write_cache_high_watermark_percent.value,
            "write_cache_low_watermark_percent",
            || "is not below the high watermark".into(),
            "swap the two",
        );
        found
    }
}
