//! What rules look at.

use crate::evidence::{Counter, Evidence, Kind, Object};
use crate::gain::{FlashTimes, Model, Waits, waits_of};
use crate::site::Site;

/// Evidence, site and flash, with what follows from them.
pub struct Case<'a> {
    /// What was measured.
    pub evidence: &'a Evidence,
    /// What the administrator says.
    pub site: &'a Site,
    /// The objects that are ranked.
    pub objects: Vec<&'a Object>,
    /// Their waits.
    pub waits: Vec<Option<Waits>>,
    /// The model of gains; none without processors' busy share or waits.
    pub model: Option<Model>,
    /// Bytes of flash that there would be.
    pub flash: Option<f64>,
}

impl<'a> Case<'a> {
    /// The case of some evidence.
    pub fn new(evidence: &'a Evidence, site: &'a Site, flash: Option<f64>, times: FlashTimes) -> Case<'a> {
        let objects = evidence.ranked();
        let waits = waits_of(evidence, &objects);
        let model = Model::of(evidence, &waits, times, site.cores);
        Case { evidence, site, objects, waits, model, flash }
    }

    /// Objects that hold data: not the log.
    pub fn data(&self) -> impl Iterator<Item = &'a Object> + '_ {
        self.objects.iter().copied().filter(|object| object.kind != Kind::Log)
    }

    /// I/Os of all data, if any were measured.
    pub fn all_ios(&self) -> Option<f64> {
        let counted: Vec<f64> = self.data().filter_map(|object| object.counts.ios()).collect();
        let sum: f64 = counted.iter().sum();
        (!counted.is_empty() && sum > 0.0).then_some(sum)
    }

    /// An object's share of the I/Os of all data.
    pub fn io_share(&self, object: &Object) -> Option<f64> {
        Some(object.counts.ios()? / self.all_ios()?)
    }

    /// An object's share of the bytes of all data.
    pub fn size_share(&self, object: &Object) -> Option<f64> {
        let all: f64 = self.data().filter_map(|object| object.bytes).sum();
        (all > 0.0).then(|| object.bytes.map(|bytes| bytes / all)).flatten()
    }

    /// Data objects with at least this share of the I/Os, the busiest first, with their shares.
    pub fn busiest(&self, share: f64) -> Vec<(&'a Object, f64)> {
        let shares = self.data().filter_map(|object| Some((object, self.io_share(object)?)));
        let mut busiest: Vec<_> = shares.filter(|(_, of)| *of >= share).collect();
        busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
        busiest
    }

    /// Mean milliseconds of reads (or writes) of data, each measured place with its I/Os per second or in all: files first, else
    /// devices.
    pub fn latencies(&self, of_reads: bool) -> Vec<(String, f64)> {
        let counts = |object: &&Object| match of_reads {
            true => object.counts.ms_per_read(),
            false => object.counts.ms_per_write(),
        };
        let mut found: Vec<(String, f64)> =
            self.objects.iter().filter_map(|object| Some((object.full_name(), counts(object)?))).collect();
        let of_devices = self.evidence.devices.iter().filter_map(|device| {
            let ms = if of_reads { device.read_ms } else { device.write_ms };
            Some((device.name.clone(), ms?))
        });
        found.extend(of_devices);
        found
    }

    /// Read and write I/Os of everything that is ranked.
    pub fn mix(&self) -> Option<(f64, f64)> {
        let sum = |counter: Counter| {
            let values: Vec<f64> = self.data().filter_map(|object| object.counts.get(counter)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        let of_objects = sum(Counter::Reads).zip(sum(Counter::Writes));
        of_objects.or_else(|| {
            let devices = &self.evidence.devices;
            let reads: Option<f64> = devices.iter().map(|device| device.reads_s).sum();
            let writes: Option<f64> = devices.iter().map(|device| device.writes_s).sum();
            reads.zip(writes).filter(|_| !devices.is_empty())
        })
    }
}
