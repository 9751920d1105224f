//! `tier0 iostat`: I/O statistics of the volumes, connections, log, tables and drives of a running array, as tables or JSON,
//! once or periodically.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tier0_api::{
    AdminReply, AdminRequest, ApiVersion, ConnectionIo, FlashCacheStatus, Flushing, IoReport, IoSummary,
    NamedFlushing, NamedIo, PoolIo, ReadCacheStatus, Throttling, TierIo, TierMoves,
};
use tier0_stats::{IoStats, Latencies, OpStats};
use tier0_units::{ByteCount, Nanos, counted};

use crate::control::{Addressee, misunderstood};
use crate::failure::Failure;
use crate::output::{align_right, json, json_line, print, rendered, table, wrapped};

const EXAMPLES: &str = "\
Examples:
  tier0 iostat array.toml
      since the server started
  tier0 iostat array.toml 1 3
      three reports of one second each; without a count until Ctrl-C
  tier0 iostat array.toml 0.5 4 --json | jq -c .pools[].volumes[]

Columns: requests and MB (10^6 bytes) per second; mean and 99th percentile of
the latency in ms, of reads and of writes; queue is the mean number of requests
in flight. An NBD request of more than 128 KiB counts as several, each timed
from the start of the request. Rows: volumes and groups count the requests of
all clients; VOLUME from CLIENT #N counts those of one connection, N being its
session number; log: records until they are stable in every copy; destage:
batches of pages from memory to their sets; tables: checksums read from drives
because memory did not have them; drives: all of that, and metadata, rebuilds
and scrubs. Discards and flushes are in the JSON.

Ceilings of volumes: requests per second that waited for them, and their mean
wait, which is part of the latencies above.

Write cache: how full memory and log are now, in percent of what writers may
use (of several shards the fullest). Below the low watermark only idle pages are
destaged; above it on demand, faster the fuller it is; at the high watermark
writers are delayed. Pages of 4 KiB destaged per second, by the level when their
batch started: idle (below the low watermark), watermark (between the two) and
forced (writers are delayed); demanded: requested by writes to a volume without
write cache, by clones or by scrubs. delayed/s: writes that waited for room;
delay ms: their mean wait.

Read cache: hit rate of reads in memory, by how the pages came there: earlier
reads, writes, or read-ahead. Flash cache: hit rate of reads that missed memory,
and bytes written to flash.

Tier: how full the fast group is now; extents that moved in the interval:
promoted (hot), demoted (to make room), placed (by hand); and the share of
reads from drives that the fast group answered.";

/// What an array's volumes, log, tables and drives do.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Iostat {
    /// The array file
    #[arg(value_name = "ARRAY.TOML")]
    array: PathBuf,
    /// Seconds between reports, fractions allowed; without, one report since the server started
    #[arg(value_parser = interval)]
    interval: Option<Duration>,
    /// Number of reports; without, until Ctrl-C
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Print JSON, with an interval one object per line
    #[arg(long)]
    json: bool,
}

/// Asks and prints.
pub(crate) fn run(verb: &Iostat) -> Result<(), Failure> {
    let server = Addressee::of(&verb.array)?;
    let ask = || match server.ask(&AdminRequest::Io)? {
        AdminReply::Io(report) => Ok(*report),
        AdminReply::Refused(text) | AdminReply::Held(text) | AdminReply::Failed(text) => {
            Err(Failure::Run(text))
        }
        _ => Err(misunderstood()),
    };
    let mut before = ask()?;
    let Some(interval) = verb.interval else {
        let rates = Rates::between(&IoReport::default(), &before);
        return print(&if verb.json { json(&rates) } else { rates.text() });
    };
    let mut left = verb.count.unwrap_or(u32::MAX);
    while left > 0 {
        pause(interval);
        let now = ask()?;
        let rates = Rates::between(&before, &now);
        print(&if verb.json { json_line(&rates) } else { rates.text() })?;
        before = now;
        left -= u32::from(verb.count.is_some());
    }
    Ok(())
}

/// The shortest and the longest time between reports, in seconds. Asking takes some milliseconds.
const INTERVALS_S: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Reads a number of seconds.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| INTERVALS_S.contains(seconds));
    let (min, max) = (INTERVALS_S.start(), INTERVALS_S.end());
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text:?} is not a number of seconds from {min} to {max}; use 1"))
}

#[expect(clippy::disallowed_methods, reason = "the terminal's time, not the engine's")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// What was done between two looks.
#[derive(Serialize)]
struct Rates {
    /// The version of the contract that the figures are of.
    api: ApiVersion,
    /// The time between them.
    seconds: f64,
    pools: Vec<PoolRates>,
}

#[derive(Serialize)]
struct PoolRates {
    name: String,
    volumes: Vec<OneRate>,
    connections: Vec<ConnectionRate>,
    ended_connections: Vec<OneRate>,
    connections_left_out: usize,
    groups: Vec<OneRate>,
    log: Vec<OneRate>,
    destage: Vec<OneRate>,
    write_cache: Vec<NamedFlushing>,
    tables: Vec<OneRate>,
    drives: Vec<OneRate>,
    /// Of the interval, as far as it counts.
    read_cache: Option<ReadCacheStatus>,
    flash_cache: Option<FlashCacheStatus>,
    tier: Option<TierIo>,
    throttling: Vec<Throttling>,
}

/// A connection between two looks.
#[derive(Serialize)]
struct ConnectionRate {
    id: String,
    volume: String,
    peer: String,
    #[serde(flatten)]
    rate: OneRate,
}

impl ConnectionRate {
    fn is_idle(&self) -> bool {
        self.rate.stats.count() == 0
    }
}

/// A volume, drive or other thing between two looks.
#[derive(Serialize)]
struct OneRate {
    name: String,
    /// Counters of that time alone.
    #[serde(flatten)]
    io: IoSummary,
    #[serde(skip)]
    stats: IoStats,
}

impl Rates {
    /// A server that was started anew in between counts from zero: then all of `now` is new.
    fn between(before: &IoReport, now: &IoReport) -> Rates {
        let is_same_run = now.at_ns >= before.at_ns;
        let earlier = |name: &str| before.pools.iter().find(|pool| is_same_run && pool.name == name);
        let pool = |pool: &PoolIo| {
            let known = earlier(&pool.name);
            let of = |kind: fn(&PoolIo) -> &[NamedIo]| differences(known.map(kind), kind(pool));
            PoolRates {
                name: pool.name.clone(),
                volumes: of(|pool| &pool.volumes),
                connections: connections(known, pool),
                ended_connections: ended(known, pool),
                connections_left_out: pool.connections_left_out,
                groups: of(|pool| &pool.groups),
                log: of(|pool| &pool.log),
                destage: of(|pool| &pool.destage),
                write_cache: flushed(known, pool),
                tables: of(|pool| &pool.tables),
                drives: of(|pool| &pool.drives),
                read_cache: read_cache(known, pool),
                flash_cache: flash_cache(known, pool),
                tier: tier(known, pool),
                throttling: throttled(known, pool),
            }
        };
        let time = now.at_ns - if is_same_run { before.at_ns } else { 0 };
        Rates {
            api: ApiVersion::CURRENT,
            seconds: Nanos(time).as_secs_f64(),
            pools: now.pools.iter().map(pool).collect(),
        }
    }

    fn text(&self) -> String {
        let pools = self.pools.iter().map(|pool| {
            let mut rows =
                table(&["", "r/s", "w/s", "rMB/s", "wMB/s", "r ms", "r p99", "w ms", "w p99", "queue"]);
            for one in pool.all() {
                rows.add_row(one.cells(self.seconds));
            }
            align_right(&mut rows, 1..10);
            let (left_out, errors) = (pool.left_out(), pool.errors());
            let caches = [
                pool.write_cache(self.seconds),
                pool.cached(self.seconds),
                pool.on_flash(self.seconds),
                pool.tiered(self.seconds),
            ];
            let (throttled, caches) = (pool.throttled(self.seconds), caches.concat());
            format!("pool {}:\n{}\n{left_out}{throttled}{caches}{errors}", pool.name, rendered(&rows))
        });
        format!("{}\n", pools.collect::<Vec<_>>().join("\n"))
    }
}

impl PoolRates {
    fn all(&self) -> impl Iterator<Item = &OneRate> {
        let kinds = [&self.groups, &self.log, &self.destage, &self.tables, &self.drives];
        let busy = self.connections.iter().filter(|connection| !connection.is_idle());
        let connections = busy.map(|connection| &connection.rate);
        let ended = self.ended_connections.iter().filter(|ended| ended.stats.count() > 0);
        self.volumes.iter().chain(connections).chain(ended).chain(kinds.into_iter().flatten())
    }

    /// The write caches, by lane; empty where writes go straight to the drives.
    fn write_cache(&self, seconds: f64) -> String {
        let Some(first) = self.write_cache.first() else { return String::new() };
        let header =
            ["", "memory %", "log %", "idle", "watermark", "forced", "demanded", "delayed/s", "delay ms"];
        let mut rows = table(&header);
        for one in &self.write_cache {
            rows.add_row(flushing_cells(one, seconds));
        }
        align_right(&mut rows, 1..header.len());
        let Flushing { watermark_low, watermark_high, .. } = first.flushing;
        let [low, high] = [watermark_low, watermark_high].map(|share| (share * 100.0).round());
        let title = format!("write cache, watermarks at {low} % and {high} %; pages destaged per second:");
        format!("\n{}\n{}\n", wrapped(&title, "  "), rendered(&rows))
    }

    /// What the table does not show.
    fn left_out(&self) -> String {
        let idle = self.connections.iter().filter(|connection| connection.is_idle()).count();
        let told = |count: usize, which: &str| match count {
            0 => String::new(),
            count => format!("  and {} {which}\n", counted(count as u64, "connection")),
        };
        told(idle, "without requests") + &told(self.connections_left_out, "with fewer requests")
    }

    /// What the ceilings of volumes held back.
    fn throttled(&self, seconds: f64) -> String {
        let line = |one: &Throttling| {
            let ceilings =
                one.ceilings.map_or_else(|| "no ceilings now".to_owned(), |all| format!("at most {all}"));
            let held_back = short(one.requests as f64 / seconds.max(1e-9));
            let wait =
                one.wait_ms_mean().map_or_else(String::new, |wait| format!(", mean wait {} ms", short(wait)));
            format!(
                "{}\n",
                wrapped(
                    &format!("  {}: {ceilings}; {held_back} requests/s held back{wait}", one.volume),
                    "    "
                )
            )
        };
        self.throttling.iter().map(line).collect()
    }

    /// What the read cache has brought.
    fn cached(&self, seconds: f64) -> String {
        let Some(cache) = self.read_cache.filter(|cache| cache.lookups() > 0) else { return String::new() };
        let lookups = short(cache.lookups() as f64 / seconds.max(1e-9));
        let line = format!("  read cache: {lookups} lookups/s; {}", crate::read_cache::found(&cache));
        format!("{}\n", wrapped(&line, "    "))
    }

    /// What the flash cache has brought.
    fn on_flash(&self, seconds: f64) -> String {
        let Some(cache) = self.flash_cache.filter(|cache| cache.lookups() > 0) else {
            return String::new();
        };
        let asked = cache.lookups();
        let line = format!(
            "  flash cache: {} lookups/s; hit rate {:.1} %; {}/s written to it{}",
            short(asked as f64 / seconds.max(1e-9)),
            cache.hits as f64 * 100.0 / asked as f64,
            ByteCount((cache.written_bytes as f64 / seconds.max(1e-9)) as u64),
            if cache.devices_paused > 0 { "; bypassed, because its reads were too slow" } else { "" }
        );
        format!("{}\n", wrapped(&line, "    "))
    }

    /// What the tier has moved, and what its fast group has answered.
    fn tiered(&self, seconds: f64) -> String {
        let Some(tier) = &self.tier else { return String::new() };
        let TierMoves { promoted, demoted, placed, failed: _, bytes } = tier.moves;
        let placed = if placed > 0 { format!(", {placed} placed") } else { String::new() };
        let moved = ByteCount((bytes as f64 / seconds.max(1e-9)) as u64);
        let reads = tier.reads_on_fast().map_or_else(String::new, |share| {
            let reads = short((tier.reads_fast + tier.reads_slow) as f64 / seconds.max(1e-9));
            format!("; {:.1} % of {reads} reads/s on it", share * 100.0)
        });
        let line = format!(
            "  tier: group {} {:.1} % full ({} of other groups); extents moved: {promoted} promoted, {demoted} demoted{placed} \
             ({moved}/s){reads}",
            tier.fast_group,
            tier.fast_used_bytes as f64 * 100.0 / tier.fast_bytes.max(1) as f64,
            ByteCount(tier.fast_promoted_bytes),
        );
        format!("{}\n", wrapped(&line, "    "))
    }

    fn errors(&self) -> String {
        let failed = |one: &&OneRate| one.stats.errors() > 0;
        self.all()
            .filter(failed)
            .map(|one| {
                let requests = counted(one.stats.errors(), "request");
                format!("{}\n", wrapped(&format!("  ! {}: {requests} failed", one.name), "    "))
            })
            .collect()
    }
}

fn differences(before: Option<&[NamedIo]>, now: &[NamedIo]) -> Vec<OneRate> {
    let one = |one: &NamedIo| {
        let known = before.and_then(|before| before.iter().find(|known| known.name == one.name));
        let stats = known.map_or_else(|| one.io.clone(), |known| one.io.since(&known.io));
        OneRate::of(one.name.clone(), stats)
    };
    now.iter().map(one).collect()
}

/// What the read cache did between two looks.
fn read_cache(before: Option<&PoolIo>, now: &PoolIo) -> Option<ReadCacheStatus> {
    let known = before.and_then(|before| before.read_cache).unwrap_or_default();
    now.read_cache.map(|cache| cache.since(&known))
}

/// What the flash cache did between two looks.
fn flash_cache(before: Option<&PoolIo>, now: &PoolIo) -> Option<FlashCacheStatus> {
    let known = before.and_then(|before| before.flash_cache).unwrap_or_default();
    now.flash_cache.map(|cache| cache.since(&known))
}

/// What the tier did between two looks.
fn tier(before: Option<&PoolIo>, now: &PoolIo) -> Option<TierIo> {
    let known = before.and_then(|before| before.tier.clone()).unwrap_or_default();
    now.tier.as_ref().map(|tier| tier.since(&known))
}

/// What ceilings held back between two looks.
fn throttled(before: Option<&PoolIo>, now: &PoolIo) -> Vec<Throttling> {
    let one = |one: &Throttling| {
        let before = before.map_or(&[][..], |before| &before.throttling);
        let known = before.iter().find(|known| known.volume == one.volume);
        known.map_or_else(|| one.clone(), |known| one.since(known))
    };
    now.throttling.iter().map(one).collect()
}

/// How full write caches are now, with the counters of the time between two looks.
fn flushed(before: Option<&PoolIo>, now: &PoolIo) -> Vec<NamedFlushing> {
    let one = |one: &NamedFlushing| {
        let mut one = one.clone();
        let before = before.map_or(&[][..], |before| &before.flushing);
        if let Some(known) = before.iter().find(|known| known.name == one.name) {
            one.flushing.counts = one.flushing.counts.since(&known.flushing.counts);
        }
        one
    };
    now.flushing.iter().map(one).collect()
}

fn flushing_cells(one: &NamedFlushing, seconds: f64) -> [String; 9] {
    let (flushing, counts) = (&one.flushing, &one.flushing.counts);
    let rate = |count: u64| short(count as f64 / seconds.max(1e-9));
    [
        one.name.clone(),
        short(flushing.memory_utilisation * 100.0),
        short(flushing.log_utilisation * 100.0),
        rate(counts.idle.pages),
        rate(counts.high_watermark.pages),
        rate(counts.forced.pages),
        rate(counts.demanded.pages),
        rate(counts.delayed_writes),
        counts.delay_ms_mean().map_or_else(|| "-".to_owned(), short),
    ]
}

/// What connections asked between two looks that have ended: less what the first look told of them.
fn ended(before: Option<&PoolIo>, now: &PoolIo) -> Vec<OneRate> {
    let one = |one: &NamedIo| {
        let mut told = IoStats::default();
        let known = before.map_or(&[][..], |before| &before.ended_connections);
        known.iter().filter(|known| known.name == one.name).for_each(|known| told.merge(&known.io));
        let is_gone = |known: &&ConnectionIo| {
            known.volume == one.name && now.connections.iter().all(|there| there.id != known.id)
        };
        let open = before.map_or(&[][..], |before| &before.connections);
        open.iter().filter(is_gone).for_each(|gone| told.merge(&gone.io));
        let mut stats = one.io.since(&told);
        stats.drop_partial_latencies();
        OneRate::of(format!("{} from closed connections", one.name), stats)
    };
    now.ended_connections.iter().map(one).collect()
}

fn connections(before: Option<&PoolIo>, now: &PoolIo) -> Vec<ConnectionRate> {
    let one = |one: &ConnectionIo| {
        let known = before.and_then(|before| before.connections.iter().find(|known| known.id == one.id));
        let mut stats = known.map_or_else(|| one.io.clone(), |known| one.io.since(&known.io));
        stats.drop_partial_latencies();
        ConnectionRate {
            id: one.id.clone(),
            volume: one.volume.clone(),
            peer: one.peer.clone(),
            // Connections of one process have the number of their session apart.
            rate: OneRate::of(format!("{} from {} #{}", one.volume, one.peer, one.id), stats),
        }
    };
    now.connections.iter().map(one).collect()
}

impl OneRate {
    fn of(name: String, stats: IoStats) -> OneRate {
        OneRate { name, io: IoSummary::from(&stats), stats }
    }

    fn cells(&self, seconds: f64) -> [String; 10] {
        let seconds = seconds.max(1e-9);
        let IoStats { read, write, .. } = &self.stats;
        let rate = |op: &OpStats| short(op.count as f64 / seconds);
        let megabytes = |op: &OpStats| short(op.bytes as f64 / 1e6 / seconds);
        let millis =
            |latency: Option<Nanos>| latency.map_or_else(|| "-".to_owned(), |one| short(one.as_millis_f64()));
        let p99 = |latencies: &Latencies| millis(latencies.quantile(0.99));
        [
            self.name.clone(),
            rate(read),
            rate(write),
            megabytes(read),
            megabytes(write),
            millis(read.mean()),
            p99(&read.latencies),
            millis(write.mean()),
            p99(&write.latencies),
            short(self.stats.time_ns() as f64 / 1e9 / seconds),
        ]
    }
}

/// Three significant digits, or all of a whole number.
fn short(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.995 => format!("{value:.3}"),
        value if value < 9.95 => format!("{value:.2}"),
        value if value < 99.5 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use tier0_api::{FlushCounts, Flushed};

    use super::*;

    fn report(at_s: u64, requests: &[(&str, u64)]) -> IoReport {
        let one = |(name, count): &(&str, u64)| {
            let latencies = Latencies::from(vec![(2_000_000, *count)]);
            let read = OpStats {
                count: *count,
                bytes: count * 8192,
                errors: 0,
                time_ns: count * 2_000_000,
                latencies,
            };
            NamedIo { name: (*name).to_owned(), io: IoStats { read, ..IoStats::default() } }
        };
        let volumes = requests.iter().map(one).collect();
        let pool = PoolIo { name: "p".to_owned(), volumes, ..PoolIo::default() };
        IoReport { at_ns: at_s * 1_000_000_000, pools: vec![pool] }
    }

    #[test]
    fn a_report_is_of_what_came_in_between() {
        let (before, now) = (report(10, &[("a", 100)]), report(12, &[("a", 1100), ("new", 4)]));
        let rates = Rates::between(&before, &now);
        assert_eq!(rates.seconds, 2.0);
        let cells = rates.pools[0].volumes[0].cells(rates.seconds);
        assert_eq!(cells, ["a", "500", "0", "4.10", "0", "2.00", "2.00", "-", "-", "1.00"]);
        assert_eq!(rates.pools[0].volumes[1].stats.count(), 4);
        assert!(rates.text().starts_with("pool p:\n"), "{}", rates.text());
    }

    /// A client that had ended between two looks had no row at all.
    #[test]
    fn what_an_ended_connection_asked_is_told_once() {
        let connection = |id: &str, count: u64| {
            let io = report(0, &[("", count)]).pools[0].volumes[0].io.clone();
            ConnectionIo { id: id.to_owned(), volume: "a".to_owned(), peer: "process 1".to_owned(), io }
        };
        let (mut before, mut now) = (report(10, &[("a", 100)]), report(11, &[("a", 150)]));
        before.pools[0].connections = vec![connection("0.1", 60), connection("0.2", 40)];
        now.pools[0].connections = vec![connection("0.2", 45)];
        // The first one asked 25 times more before it ended, and a third one came and went in between.
        now.pools[0].ended_connections = vec![report(0, &[("a", 105)]).pools[0].volumes[0].clone()];
        let rates = Rates::between(&before, &now);
        assert_eq!(rates.pools[0].ended_connections[0].stats.count(), 45);
        assert!(rates.text().contains("a from closed connections"), "{}", rates.text());
        assert_eq!(rates.pools[0].connections[0].rate.stats.count(), 5);
    }

    /// Three connections of one process had the same name.
    #[test]
    fn every_connection_has_a_name_of_its_own() {
        let mut now = report(11, &[("a", 150)]);
        let io = now.pools[0].volumes[0].io.clone();
        let connection = |id: &str| ConnectionIo {
            id: id.to_owned(),
            volume: "a".to_owned(),
            peer: "process 7".to_owned(),
            io: io.clone(),
        };
        now.pools[0].connections = ["0.1", "0.2", "1.1"].map(connection).to_vec();
        let told = Rates::between(&report(10, &[]), &now).text();
        for name in ["a from process 7 #0.1 ", "a from process 7 #0.2 ", "a from process 7 #1.1 "] {
            assert_eq!(told.matches(name).count(), 1, "{name}: {told}");
        }
    }

    #[test]
    fn intervals_may_be_fractions_of_a_second() {
        for (text, millis) in [("1", 1000), ("0.5", 500), ("2.25", 2250), ("86400", 86_400_000)] {
            assert_eq!(interval(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["0", "0.01", "-1", "NaN", "inf", "86401", "1s"] {
            assert!(interval(text).is_err_and(|told| told.contains("use 1")), "{text}");
        }
    }

    #[test]
    fn the_write_cache_is_told_with_its_level_now_and_what_was_destaged_in_between() {
        let at = |at_s: u64, level: f64, pages: u64, delayed: u64| {
            let flushed = Flushed { pages, batches: 1 };
            let (delayed_writes, delayed_ns) = (delayed, delayed * 3_000_000);
            let counts =
                FlushCounts { high_watermark: flushed, delayed_writes, delayed_ns, ..FlushCounts::default() };
            let flushing = Flushing {
                memory_utilisation: level,
                log_utilisation: level / 2.0,
                watermark_low: 0.3,
                watermark_high: 0.7,
                counts,
            };
            let mut report = report(at_s, &[]);
            report.pools[0].flushing = vec![NamedFlushing { name: "write cache".to_owned(), flushing }];
            report
        };
        let rates = Rates::between(&at(10, 0.5, 1000, 0), &at(12, 0.64, 5000, 10));
        let cells = flushing_cells(&rates.pools[0].write_cache[0], rates.seconds);
        assert_eq!(cells, ["write cache", "64.0", "32.0", "0", "2000", "0", "0", "5.00", "3.00"]);
        assert!(rates.text().contains("\nwrite cache, watermarks at 30 % and 70 %; "), "{}", rates.text());
    }

    #[test]
    fn what_ceilings_held_back_in_between_is_told() {
        let at = |at_s: u64, requests: u64| {
            let ceilings = Some(tier0_api::Ceilings { iops_max: Some(100), ..Default::default() });
            let (volume, wait_ns) = ("a".to_owned(), requests * 2_000_000);
            let mut report = report(at_s, &[("a", requests)]);
            report.pools[0].throttling = vec![Throttling { volume, ceilings, requests, wait_ns }];
            report
        };
        let told = Rates::between(&at(10, 100), &at(12, 300)).text();
        let words = "  a: at most 100 IOPS; 100 requests/s held back, mean wait 2.00 ms\n";
        assert!(told.contains(words), "{told}");
    }

    #[test]
    fn what_the_tier_moved_and_answered_in_between_is_told() {
        let at = |at_s: u64, promoted: u64, reads_fast: u64, reads_slow: u64| {
            let moves = TierMoves { promoted, demoted: 2, bytes: promoted << 20, ..TierMoves::default() };
            let mut report = report(at_s, &[]);
            report.pools[0].tier = Some(TierIo {
                fast_group: "flash".to_owned(),
                fast_bytes: 200 << 20,
                fast_used_bytes: 100 << 20,
                fast_promoted_bytes: 50 << 20,
                moves,
                reads_fast,
                reads_slow,
            });
            report
        };
        let told = Rates::between(&at(10, 10, 0, 1000), &at(15, 30, 900, 1100)).text().replace("\n    ", " ");
        let words = "  tier: group flash 50.0 % full (50MiB of other groups); extents moved: 20 promoted, 0 demoted (4MiB/s); \
                     90.0 % of 200 reads/s on it\n";
        assert!(told.contains(words), "{told}");
        // Nothing is told where nothing is placed.
        assert!(!Rates::between(&report(10, &[]), &report(15, &[])).text().contains("tier:"));
    }

    #[test]
    fn a_server_that_was_started_anew_counts_from_zero() {
        let rates = Rates::between(&report(100, &[("a", 900)]), &report(3, &[("a", 30)]));
        assert_eq!((rates.seconds, rates.pools[0].volumes[0].stats.count()), (3.0, 30));
    }

    /// "a: 5 ended with errors" did not say what.
    #[test]
    fn failed_requests_are_told_as_requests() {
        let mut now = report(12, &[("a", 30), ("b", 30)]);
        for (volume, errors) in now.pools[0].volumes.iter_mut().zip([5, 1]) {
            volume.io.read.errors = errors;
        }
        let told = Rates::between(&report(10, &[]), &now).text();
        assert!(told.contains("! a: 5 requests failed\n"), "{told}");
        assert!(told.contains("! b: 1 request failed\n"), "{told}");
    }

    #[test]
    fn figures_are_short() {
        let told = [0.0, 0.0421, 0.999, 3.148, 42.42, 99.96, 123_456.7].map(short);
        assert_eq!(told, ["0", "0.042", "1.00", "3.15", "42.4", "100", "123457"]);
    }
}
