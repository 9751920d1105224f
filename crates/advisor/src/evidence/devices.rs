//! Devices and the host over all intervals: means, and the series that shows a queue growing.

use std::collections::BTreeMap;

use serde::Serialize;

use super::mean::Mean;
use super::sample::{DevicePoint, HostPoint};

/// The most devices that are kept; a host has hundreds of paths at most.
const DEVICES_MAX: usize = 4096;
/// The most points of a device's series that are kept: a day of one each second.
const POINTS_MAX: usize = 86_400;

/// A device over the whole period.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Reads per second.
    pub reads_s: Option<f64>,
    /// Writes per second.
    pub writes_s: Option<f64>,
    /// I/Os per second.
    pub ios_s: Option<f64>,
    /// Bytes per second.
    pub bytes_s: Option<f64>,
    /// Mean milliseconds of a read.
    pub read_ms: Option<f64>,
    /// Mean milliseconds of a write.
    pub write_ms: Option<f64>,
    /// Mean milliseconds of an I/O.
    pub io_ms: Option<f64>,
    /// Mean number of I/Os that wait or are served.
    pub queue: Option<f64>,
    /// Share of the time with an I/O under way.
    pub busy: Option<f64>,
    /// Queue and bytes per second, by interval.
    #[serde(skip)]
    pub series: Vec<(f32, f32)>,
    /// Queue of each interval.
    #[serde(skip)]
    pub queues: Vec<f32>,
}

/// The host over the whole period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// Processors.
    pub cores: Option<f64>,
    /// Busy share of all of them.
    pub busy: Option<f64>,
    /// Share of idle time with I/Os under way.
    pub io_wait: Option<f64>,
    /// Tasks that run or wait for a processor.
    pub run_queue: Option<f64>,
    /// Share of page requests that the database's memory served.
    pub hit_share: Option<f64>,
    /// Seconds of an interval, at most.
    pub interval_s: Option<f64>,
}

#[derive(Default)]
struct Sums {
    means: [Mean; 9],
    series: Vec<(f32, f32)>,
    queues: Vec<f32>,
}

/// Sums of devices and host.
#[derive(Default)]
pub(super) struct DeviceSums {
    devices: BTreeMap<String, Sums>,
    host: [Mean; 4],
    cores: Option<f64>,
    interval_s: Option<f64>,
}

impl DeviceSums {
    /// Adds an interval of a host.
    pub(super) fn add_host(&mut self, host: &HostPoint, seconds: Option<f64>) {
        let values = [host.busy, host.io_wait, host.run_queue, host.hit_share];
        let weight = seconds.unwrap_or(1.0);
        self.host.iter_mut().zip(values).for_each(|(mean, value)| mean.add(value, weight));
    }

    /// Adds what is known of processors.
    pub(super) fn add_cores(&mut self, cores: Option<f64>) {
        self.cores = self.cores.or(cores);
    }

    /// Notes how long an interval of a device or a host was.
    pub(super) fn add_interval(&mut self, seconds: Option<f64>) {
        self.interval_s = match (self.interval_s, seconds) {
            (Some(longest), Some(seconds)) => Some(longest.max(seconds)),
            (longest, seconds) => longest.or(seconds),
        };
    }

    /// Adds an interval of a device.
    pub(super) fn add_device(&mut self, point: &DevicePoint, seconds: Option<f64>) {
        if self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&point.name) {
            return;
        }
        let sums = self.devices.entry(point.name.clone()).or_default();
        let weight = seconds.unwrap_or(1.0);
        let ios = point.ios_s.or_else(|| Some(point.reads_s? + point.writes_s?));
        let by_time = [point.reads_s, point.writes_s, ios, point.bytes_s, point.queue, point.busy];
        sums.means.iter_mut().zip(by_time).for_each(|(mean, value)| mean.add(value, weight));
        // A mean of latencies counts I/Os: quiet seconds say little.
        let io_ms = point.io_ms.or_else(|| {
            let (reads, writes) = (point.reads_s?, point.writes_s?);
            let sum = reads * point.read_ms.unwrap_or(0.0) + writes * point.write_ms.unwrap_or(0.0);
            (reads + writes > 0.0 && (point.read_ms.is_some() || point.write_ms.is_some()))
                .then(|| sum / (reads + writes))
        });
        sums.means[6].add(point.read_ms, weight * point.reads_s.unwrap_or(1.0));
        sums.means[7].add(point.write_ms, weight * point.writes_s.unwrap_or(1.0));
        sums.means[8].add(io_ms, weight * ios.unwrap_or(1.0));
        let Some(queue) = point.queue.filter(|_| sums.queues.len() < POINTS_MAX) else { return };
        sums.queues.push(queue as f32);
        if let Some(bytes) = point.bytes_s {
            sums.series.push((queue as f32, bytes as f32));
        }
    }

    /// The means.
    pub(super) fn finish(self) -> (Host, Vec<Device>) {
        let [busy, io_wait, run_queue, hit_share] = self.host.map(|mean| mean.get());
        let host =
            Host { cores: self.cores, busy, io_wait, run_queue, hit_share, interval_s: self.interval_s };
        let device = |(name, sums): (String, Sums)| {
            let [reads_s, writes_s, ios_s, bytes_s, queue, busy, read_ms, write_ms, io_ms] =
                sums.means.map(|mean| mean.get());
            Device {
                name,
                reads_s,
                writes_s,
                ios_s,
                bytes_s,
                read_ms,
                write_ms,
                io_ms,
                queue,
                busy,
                series: sums.series,
                queues: sums.queues,
            }
        };
        (host, self.devices.into_iter().map(device).collect())
    }
}
