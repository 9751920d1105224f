//! Decision support beside the load of a scene: a second database on a second volume of the same array, without and with a ceiling
//! of that volume.
//!
//! The same load is measured alone, beside the streams, and, where a ceiling is given, beside the streams with it: so that the
//! response times tell what the streams cost, and what the ceiling gives back.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde::Serialize;
use tier0_api::IoReport;
use tier0_bench::address::Address;
use tier0_bench::load::{Load, Scale};
use tier0_bench::prepare::{PrepareOptions, prepare};
use tier0_bench::run::report::RunReport;
use tier0_bench::run::{RunOptions, run as run_load};
use tier0_bench::watch::Watch;
use tier0_programs::postgres::Cluster;
use tier0_programs::tools;

use super::super::page::own_rate;
use super::super::report::{figure, headline};
use super::super::run::Array;
use super::place::Place;
use super::program;
use crate::failure::Failure;
use crate::output::{align_right, rendered, table};

/// The volume of the streams' database, and the queries of the streams: those that read whole tables.
pub(super) const VOLUME: &str = "lun1";
const QUERIES: &str = "q1,q6,q12,q14";

/// What runs beside the load.
#[derive(Args, Debug)]
pub(super) struct Beside {
    /// Measure again beside streams of this load, on a second volume of the array: decision-support
    #[arg(long, value_name = "LOAD", value_parser = decision_support, help_heading = "Beside")]
    beside: Option<Load>,
    /// Scale factor of the streams' database
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, requires = "beside", help_heading = "Beside")]
    beside_scale_factor: f64,
    /// Number of streams, which run queries that read whole tables: q1, q6, q12, q14
    #[arg(long, value_name = "N", default_value_t = 2, requires = "beside", value_parser = clap::value_parser!(u32).range(1..=100),
          help_heading = "Beside")]
    beside_streams: u32,
    /// Measure once more with this ceiling of the second volume, in MB per second
    #[arg(long, value_name = "MB", requires = "beside", value_parser = clap::value_parser!(u32).range(1..=100_000),
          help_heading = "Beside")]
    beside_limit: Option<u32>,
}

/// A measurement beside the streams.
#[derive(Serialize)]
pub(super) struct Phase {
    /// The ceiling of the second volume, MB per second; none: without.
    limit_mb_s: Option<u32>,
    run: RunReport,
    streams: RunReport,
}

fn decision_support(text: &str) -> Result<Load, String> {
    match text.parse::<Load>() {
        Ok(Load::DecisionSupport) => Ok(Load::DecisionSupport),
        _ => Err("only decision-support can run beside another load".to_owned()),
    }
}

impl Beside {
    /// The size of the streams' database; none where nothing runs beside.
    pub(super) fn scale(&self) -> Option<Scale> {
        self.beside.map(|_| Scale::Factor(self.beside_scale_factor))
    }

    /// Streams; 0 where nothing runs beside.
    pub(super) fn streams(&self) -> u32 {
        self.beside.map_or(0, |_| self.beside_streams)
    }

    /// Creates and loads the streams' database on the volume that is mounted at `point`.
    pub(super) fn prepare(
        &self,
        cluster: &Cluster,
        point: &std::path::Path,
        jobs: u32,
        watch: Watch<'_>,
    ) -> Result<(), Failure> {
        let Some(scale) = self.scale() else { return Ok(()) };
        (watch.say)("creating the database of the streams on the second volume");
        let space = point.join("space");
        let shown = space.display().to_string();
        std::fs::create_dir_all(&space)
            .map_err(|error| Failure::Run(format!("cannot make {shown}: {error}")))?;
        tools::run("chown", &["postgres", &shown])?;
        cluster.query(&format!("create tablespace beside location '{shown}'"))?;
        cluster.query("create database beside tablespace beside")?;
        prepare(&address(cluster)?, &PrepareOptions { scale, jobs, seed: 1 }, watch)?;
        Ok(())
    }

    /// Measures the load beside the streams, without and with the ceiling.
    pub(super) fn measure(
        &self,
        place: &Place,
        cluster: &Cluster,
        load: &RunOptions,
        watch: Watch<'_>,
    ) -> Result<Vec<Phase>, Failure> {
        if self.beside.is_none() {
            return Ok(Vec::new());
        }
        let mut phases = Vec::new();
        for limit_mb_s in [None].into_iter().chain(self.beside_limit.map(Some)) {
            match limit_mb_s {
                None => (watch.say)("measuring again, beside the streams"),
                Some(limit) => {
                    (watch.say)(&format!("measuring again, with the second volume limited to {limit} MB/s"));
                    let mut set = program()?;
                    set.args(["volume", "set"])
                        .arg(place.array())
                        .arg(VOLUME)
                        .arg(format!("mbps.max={limit}"));
                    tools::output("tier0 volume set", &mut set)?;
                }
            }
            let (run, streams) = self.together(place, cluster, load, watch)?;
            let is_early = run.ended_early;
            phases.push(Phase { limit_mb_s, run, streams });
            if is_early {
                break;
            }
        }
        Ok(phases)
    }

    /// The load and the streams at the same time; the streams end with the load.
    fn together(
        &self,
        place: &Place,
        cluster: &Cluster,
        load: &RunOptions,
        watch: Watch<'_>,
    ) -> Result<(RunReport, RunReport), Failure> {
        let streams = RunOptions {
            load: Some(Load::DecisionSupport),
            users: self.beside_streams,
            ramp: None,
            rate: None,
            think: tier0_bench::run::Think::None,
            items: None,
            home: None,
            mix: None,
            queries: Some(QUERIES.parse()?),
            duration: tier0_units::Nanos::from_secs(24 * 3600),
            ..load.clone()
        };
        let (of_load, of_streams) = (super::address(cluster)?, address(cluster)?);
        let array = Array::of(&place.array())?;
        let (ask_load, ask_streams) = (of_volume(&array, "lun0"), of_volume(&array, VOLUME));
        let is_over = AtomicBool::new(false);
        let silent = Watch { say: &|_| {}, is_over: &|| is_over.load(Ordering::Relaxed) };
        let (run, streams) = std::thread::scope(|scope| {
            let beside = std::thread::Builder::new()
                .spawn_scoped(scope, || run_load(&of_streams, &streams, Some(&ask_streams), silent));
            let run = run_load(&of_load, load, Some(&ask_load), watch);
            is_over.store(true, Ordering::Relaxed);
            (run, beside.map(|beside| beside.join().expect("the streams do not panic")))
        });
        let streams = streams.map_err(|error| Failure::Run(format!("cannot start a thread: {error}")))?;
        Ok((run?, streams?))
    }
}

/// Asks an array for one of its volumes.
pub(super) fn of_volume<'a>(
    array: &'a Array,
    name: &'static str,
) -> impl Fn() -> Result<IoReport, String> + Sync + 'a {
    move || {
        let mut report = array.ask().map_err(|failure| failure.text().unwrap_or_default())?;
        report.pools.iter_mut().for_each(|pool| pool.volumes.retain(|volume| volume.name == name));
        Ok(report)
    }
}

fn address(cluster: &Cluster) -> Result<Address, Failure> {
    let dsn = format!("host={} user=postgres dbname=beside", cluster.socket().display());
    Ok(Address::resolve(Some(&dsn), |_| None)?)
}

/// The measurements side by side; nothing where there is one only.
pub(super) fn text(alone: &RunReport, phases: &[Phase]) -> String {
    if phases.is_empty() {
        return String::new();
    }
    let (name, _) = headline(alone);
    let mut rows = table(&[
        "measured",
        name,
        "mean ms",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "array read ms (p95)",
        "streams: queries/hour",
        "streams read MB/s",
    ]);
    let mut add = |what: String, run: &RunReport, streams: Option<&RunReport>| {
        let time = |of: fn(&tier0_bench::run::tally::Quantiles) -> f64| {
            run.response_ms.as_ref().map_or("-".to_owned(), |times| figure(of(times)))
        };
        let array_ms =
            run.array_io.as_ref().and_then(|io| io.volumes.first()).and_then(|own| own.read_p95_ms);
        let told = |value: Option<f64>| value.map_or("-".to_owned(), figure);
        rows.add_row([
            what,
            figure(own_rate(run)),
            time(|times| times.mean),
            time(|times| times.p50),
            time(|times| times.p95),
            time(|times| times.p99),
            told(array_ms),
            told(streams.and_then(|streams| streams.queries_per_hour)),
            told(streams.and_then(|streams| streams.throughput?.array_read)),
        ]);
    };
    add("alone".to_owned(), alone, None);
    for phase in phases {
        let what = match phase.limit_mb_s {
            None => "beside streams".to_owned(),
            Some(limit) => format!("the same, at most {limit} MB/s"),
        };
        add(what, &phase.run, Some(&phase.streams));
    }
    align_right(&mut rows, 1..9);
    format!("beside decision support\n{}\n\n", rendered(&rows))
}
