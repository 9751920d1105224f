//! The report of a run as text.

use comfy_table::Table;
use tier0_bench::counters::database::ObjectUse;
use tier0_bench::run::LEAVE_LIMIT;
use tier0_bench::run::report::RunReport;
use tier0_bench::run::tally::{KindReport, Quantiles, Second};
use tier0_units::{ByteCount, counted};

use crate::output::{align_right, rendered, table, thousands, wrapped};

/// What stands for a figure that is not there.
const NOT_MEASURED: &str = "not measured";
/// A smaller share served of what arrived says that users did not keep up; random arrivals differ by less in a minute.
const SERVED_MIN: f64 = 0.95;
/// Rows of the series at most; a long run is shown in equal parts.
const SERIES_ROWS: usize = 20;

/// The report.
pub(super) fn text(report: &RunReport) -> String {
    let parts = [
        heading(report),
        rendered(&transactions(report)),
        rendered(&per_transaction(report)),
        format!("objects, per {}\n{}", unit(report), rendered(&objects(report))),
        array(report),
        format!("series\n{}", rendered(&series(report))),
        gaps(report),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("{}\n", parts.join("\n\n"))
}

fn heading(report: &RunReport) -> String {
    lines(report).iter().map(|line| wrapped(line, "  ")).collect::<Vec<_>>().join("\n")
}

/// What was run, and what came of it, a line each.
pub(super) fn lines(report: &RunReport) -> Vec<String> {
    let settings = &report.settings;
    let rate = settings.rate.map_or(String::new(), |rate| format!(", {rate} transactions/s arrive"));
    let early = match (&report.failure, report.ended_early) {
        (Some(_), _) => ", ended by a failure",
        (None, true) => ", ended early",
        (None, false) => "",
    };
    let processor = report.processor.map_or("CPU not measured".to_owned(), |used| {
        let own = used
            .load_generator
            .map_or(String::new(), |own| format!(", {:.0} % of them this program", own * 100.0));
        format!(
            "CPU: {} cores, {:.0} % busy{own}, {:.0} % waiting for I/O",
            used.cores,
            used.busy * 100.0,
            used.io_wait * 100.0
        )
    });
    let own = match (&settings.items, &settings.home) {
        (Some(items), Some(home)) => format!(", items {items}, home {home}"),
        _ => String::new(),
    };
    let what = format!(
        "{}, {}, {}, {:.0} s after {:.0} s of ramp{early}; think {}{rate}{own}, {}, {}",
        report.workload,
        scale(report),
        counted(u64::from(settings.users), "user"),
        report.seconds,
        settings.ramp_s,
        settings.think,
        settings.isolation,
        report.database
    );
    let rates = rates(report);
    [what, rates, arrivals(report), unfinished(report), others(report), throughput(report), processor]
        .into_iter()
        .filter(|line| !line.is_empty())
        .collect()
}

/// What the load is measured by.
fn rates(report: &RunReport) -> String {
    if let Some(per_hour) = report.queries_per_hour {
        let streams = report.queries_by_stream.iter().flatten();
        let streams: Vec<String> = streams.map(u64::to_string).collect();
        return format!(
            "{} queries per hour; finished by stream: {}; {} under way at the end, not counted",
            thousands(per_hour),
            streams.join(", "),
            report.queries_unfinished.unwrap_or(0)
        );
    }
    if let Some(rate) = report.trade_results_per_second {
        let (commits, retries) = (figure(report.commits_per_minute / 60.0), report.retries);
        return format!(
            "{} trade results per second, {commits} commits per second in all, {retries} retries",
            figure(rate)
        );
    }
    let own = report.nopm.map_or(String::new(), |nopm| {
        format!("NOPM {} (New-Orders committed per minute), ", thousands(nopm))
    });
    let commits = thousands(report.commits_per_minute);
    format!("{own}{commits} commits per minute in all, {} retries", report.retries)
}

/// What arrived at a rate, and whether users kept up with it.
fn arrivals(report: &RunReport) -> String {
    let Some(arrivals) = report.arrivals else { return String::new() };
    let served = arrivals.served_per_second / arrivals.offered_per_second;
    let behind = match served < SERVED_MIN {
        true => format!(
            "; only {:.0} % of what arrived was served: response times are of those alone, and grow with the length of the run; use \
             more users or a lower rate",
            served * 100.0
        ),
        false => String::new(),
    };
    format!(
        "arrivals: {}/s offered, {}/s served, {} waiting at the end{behind}",
        figure(arrivals.offered_per_second),
        figure(arrivals.served_per_second),
        arrivals.waiting
    )
}

/// That other databases wrote too.
fn others(report: &RunReport) -> String {
    match report.database_io.changed_by_others {
        Some(rows @ 1..) => {
            format!(
                "other databases of the cluster changed {} meanwhile: WAL and writes have theirs too",
                counted(rows, "row")
            )
        }
        _ => String::new(),
    }
}

/// Transactions that did not end after the run; queries are told of with their rate.
fn unfinished(report: &RunReport) -> String {
    match report.unfinished {
        count if count > 0 && report.queries_per_hour.is_none() => format!(
            "{} did not end within {} s after the run: cancelled, not counted; see what locks or delays the server",
            counted(count, "transaction"),
            LEAVE_LIMIT.as_secs()
        ),
        _ => String::new(),
    }
}

/// Rates of bytes.
fn throughput(report: &RunReport) -> String {
    let Some(rates) = report.throughput else { return String::new() };
    let told =
        |rate: Option<f64>| rate.map_or(NOT_MEASURED.to_owned(), |rate| format!("{} MB/s", figure(rate)));
    format!(
        "read: database {}, array {}; written: database{} {}, array {}",
        told(rates.database_read),
        told(rates.array_read),
        whole_cluster(report),
        told(rates.database_written),
        told(rates.array_written)
    )
}

/// Marks counts of the whole cluster where other databases changed rows meanwhile.
fn whole_cluster(report: &RunReport) -> &'static str {
    match report.database_io.changed_by_others {
        Some(1..) => " of the whole cluster",
        _ => "",
    }
}

/// How large the database is; reports of older versions say the number of warehouses only.
pub(super) fn scale(report: &RunReport) -> String {
    match (report.scale.as_str(), report.warehouses) {
        ("", Some(warehouses)) => counted(u64::from(warehouses), "warehouse"),
        (scale, _) => scale.to_owned(),
    }
}

pub(super) fn transactions(report: &RunReport) -> Table {
    let response = |kind: &KindReport, of: fn(&Quantiles) -> f64| {
        kind.response_ms.as_ref().map_or("-".to_owned(), |response| figure(of(response)))
    };
    if report.queries_per_hour.is_some() {
        let mut rows = table(&["query", "finished", "mean s", "p50 s", "p95 s", "max s"]);
        for kind in &report.transactions {
            rows.add_row([
                kind.kind.clone(),
                kind.committed.to_string(),
                response(kind, |response| response.mean / 1000.0),
                response(kind, |response| response.p50 / 1000.0),
                response(kind, |response| response.p95 / 1000.0),
                response(kind, |response| response.max / 1000.0),
            ]);
        }
        align_right(&mut rows, 1..6);
        return rows;
    }
    let mut rows = table(&[
        "transaction",
        "share",
        "committed",
        "rolled back",
        "retries",
        "mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
    ]);
    for kind in &report.transactions {
        rows.add_row([
            kind.kind.clone(),
            format!("{:.1} %", kind.share * 100.0),
            kind.committed.to_string(),
            kind.rolled_back.to_string(),
            (kind.serialization_failures + kind.deadlocks).to_string(),
            response(kind, |response| response.mean),
            response(kind, |response| response.p50),
            response(kind, |response| response.p95),
            response(kind, |response| response.p99),
            response(kind, |response| response.max),
        ]);
    }
    align_right(&mut rows, 1..10);
    rows
}

/// Database and array, side by side.
pub(super) fn per_transaction(report: &RunReport) -> Table {
    let each = &report.per_transaction;
    let block = report.database_io.block_bytes as f64;
    let told = |value: Option<f64>| value.map_or(NOT_MEASURED.to_owned(), figure);
    let kib = |bytes: Option<f64>| told(bytes.map(|bytes| bytes / 1024.0));
    let bytes_of = |blocks: Option<f64>| blocks.map(|blocks| blocks * block);
    let total = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
    let cluster = whole_cluster(report);
    let mut rows = table(&[format!("per {}", unit(report)).as_str(), "database", "array"]);
    rows.add_row(["reads (blocks; requests)".to_owned(), told(each.database_reads), told(each.array_reads)]);
    rows.add_row(["read, KiB".to_owned(), kib(bytes_of(each.database_reads)), kib(each.array_read_bytes)]);
    rows.add_row([
        format!("writes (blocks{cluster}; requests)"),
        told(each.database_writes),
        told(each.array_writes),
    ]);
    rows.add_row([
        format!("written, KiB (database: blocks and WAL{cluster})"),
        kib(total(bytes_of(each.database_writes), each.wal_bytes)),
        kib(each.array_write_bytes),
    ]);
    rows.add_row([format!("WAL{cluster}, KiB"), kib(each.wal_bytes), "in the writes".to_owned()]);
    rows.add_row(["CPU of the machine, ms".to_owned(), told(each.processor_ms), String::new()]);
    rows.add_row([
        "CPU without this program, ms".to_owned(),
        told(each.processor_ms_without_generator),
        String::new(),
    ]);
    align_right(&mut rows, [1, 2]);
    rows
}

pub(super) fn objects(report: &RunReport) -> Table {
    let io = &report.database_io;
    let divisor = report.divisor.or(io.transactions).filter(|count| *count > 0);
    let mut rows = table(&[
        "object",
        "size",
        "grown",
        "reads",
        "hits",
        "writes",
        "rows read",
        "ins",
        "upd",
        "in place",
        "del",
    ]);
    let each = |count: Option<u64>| match (count, divisor) {
        (Some(count), Some(all)) => figure(count as f64 / all as f64),
        _ => NOT_MEASURED.to_owned(),
    };
    let of_table = |object: &ObjectUse, count: Option<u64>| match object.index_of {
        Some(_) => String::new(),
        None => each(count),
    };
    let mut sorted: Vec<&ObjectUse> = io.objects.iter().collect();
    sorted.sort_by_key(|object| (std::cmp::Reverse(object.reads), std::cmp::Reverse(object.hits)));
    for object in sorted {
        rows.add_row([
            object.name.clone(),
            ByteCount(object.size_bytes).to_string(),
            ByteCount(object.grown_bytes).to_string(),
            each(object.reads),
            each(object.hits),
            each(object.writes),
            of_table(object, object.rows_read),
            of_table(object, object.inserted),
            of_table(object, object.updated),
            of_table(object, object.updated_in_place),
            of_table(object, object.deleted),
        ]);
    }
    align_right(&mut rows, 1..11);
    rows
}

fn array(report: &RunReport) -> String {
    volumes(report).map_or(String::new(), |rows| format!("array\n{}", rendered(&rows)))
}

/// The volumes of the array; none where it was not asked.
pub(super) fn volumes(report: &RunReport) -> Option<Table> {
    let io = report.array_io.as_ref().filter(|io| !io.volumes.is_empty())?;
    let mut rows = table(&[
        "volume",
        "reads/s",
        "read KiB/s",
        "p95 ms",
        "writes/s",
        "written KiB/s",
        "p95 ms",
        "flushes/s",
    ]);
    let rate = |count: u64| figure(count as f64 / report.seconds);
    let latency = |ms: Option<f64>| ms.map_or("-".to_owned(), figure);
    for volume in &io.volumes {
        rows.add_row([
            volume.name.clone(),
            rate(volume.reads),
            rate(volume.read_bytes / 1024),
            latency(volume.read_p95_ms),
            rate(volume.writes),
            rate(volume.write_bytes / 1024),
            latency(volume.write_p95_ms),
            rate(volume.flushes),
        ]);
    }
    align_right(&mut rows, 1..8);
    Some(rows)
}

/// What figures are divided by.
pub(super) fn unit(report: &RunReport) -> &'static str {
    if report.queries_per_hour.is_some() { "query" } else { "transaction" }
}

/// The name of the load's own rate, and for how many seconds it counts.
pub(super) fn headline(report: &RunReport) -> (&'static str, f64) {
    match (report.queries_per_hour, report.nopm) {
        (Some(_), _) => ("queries/hour", 3600.0),
        (_, Some(_)) => ("NOPM", 60.0),
        _ => ("results/s", 1.0),
    }
}

/// The series in no more than [`SERIES_ROWS`] parts of whole seconds.
fn series(report: &RunReport) -> Table {
    let (name, unit_s) = headline(report);
    let seconds = &report.series;
    let mut rows = table(&["until s", name, "commits/min", "p95 ms (worst s)", "retries", "CPU %"]);
    let mut from = 0.0;
    for part in seconds.chunks(seconds.len().div_ceil(SERIES_ROWS).max(1)) {
        let until = part.last().map_or(from, |last| last.second);
        let rate = |count: fn(&Second) -> u64, unit_s: f64| {
            figure(part.iter().map(count).sum::<u64>() as f64 / (until - from) * unit_s)
        };
        let worst = part.iter().filter_map(|second| second.p95_ms).max_by(f64::total_cmp);
        let busy: Vec<f64> = part.iter().filter_map(|second| second.busy).collect();
        rows.add_row([
            format!("{until:.0}"),
            rate(|second| second.headline, unit_s),
            rate(|second| second.commits, 60.0),
            worst.map_or("-".to_owned(), figure),
            part.iter().map(|second| second.retries).sum::<u64>().to_string(),
            match busy.len() {
                0 => NOT_MEASURED.to_owned(),
                count => format!("{:.0}", busy.iter().sum::<f64>() / count as f64 * 100.0),
            },
        ]);
        from = until;
    }
    align_right(&mut rows, 0..6);
    rows
}

fn gaps(report: &RunReport) -> String {
    let line = |gap: &tier0_bench::counters::Gap| wrapped(&format!("  {}: {}", gap.what, gap.why), "    ");
    let lines: Vec<String> = report.not_measured.iter().map(line).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{NOT_MEASURED}\n{}", lines.join("\n")),
    }
}

/// A figure with three digits.
pub(super) fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        ..0.01 => format!("{value:.4}"),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => thousands(value),
    }
}
