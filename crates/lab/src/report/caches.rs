//! What write caches and neighbours did, as lines of tables: where one cache serves several groups of sets, or other loads run
//! beside the measured one, the sums over an array do not tell who waited for whom.

use super::view::flush_shares;
use crate::record::format_number;
use crate::run::Measured;

/// A write cache.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WriteCacheLine {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) flushed_mib: String,
    pub(super) flushed: String,
    pub(super) delayed: String,
    pub(super) delayed_percent: String,
    pub(super) delay_ms: String,
}

/// A neighbour of what was measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NeighbourLine {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) iops: String,
    pub(super) megabytes_per_s: String,
    pub(super) read_ms: String,
    pub(super) write_ms: String,
}

/// MiB in a page of 4 KiB.
const PAGE_MIB: f64 = 1.0 / 256.0;

/// The write caches of configurations with more than one group of sets; the others' are among what the arrays did.
pub(super) fn write_caches<'a>(measured: impl Iterator<Item = &'a Measured>) -> Vec<WriteCacheLine> {
    let of = |measured: &Measured| {
        let id = measured.configuration.id.clone();
        let caches = measured.measurement.work.write_caches.clone().into_iter();
        caches.map(move |cache| WriteCacheLine {
            id: id.clone(),
            name: cache.name,
            flushed_mib: format_number(cache.flushed_pages as f64 * PAGE_MIB),
            flushed: cache.flushed.map_or("–".to_owned(), flush_shares),
            delayed: cache.delayed.to_string(),
            delayed_percent: format!("{:.1} %", cache.delayed_writes * 100.0),
            delay_ms: cache.delay_ms.map_or("–".to_owned(), format_number),
        })
    };
    measured.filter(|one| !one.configuration.setup.neighbours.is_empty()).flat_map(of).collect()
}

/// The neighbours of what was measured.
pub(super) fn neighbours<'a>(measured: impl Iterator<Item = &'a Measured>) -> Vec<NeighbourLine> {
    let ms = |latency: Option<f64>| latency.map_or("–".to_owned(), format_number);
    let of = |measured: &Measured| {
        let id = measured.configuration.id.clone();
        let neighbours = measured.measurement.neighbours.clone().into_iter();
        neighbours.map(move |neighbour| NeighbourLine {
            id: id.clone(),
            name: neighbour.name,
            iops: format_number(neighbour.sample.iops),
            megabytes_per_s: format_number(neighbour.sample.megabytes_per_s),
            read_ms: ms(neighbour.sample.read_latency_ms),
            write_ms: ms(neighbour.sample.write_latency_ms),
        })
    };
    measured.flat_map(of).collect()
}
