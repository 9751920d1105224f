//! Small traces on small arrays.

use std::fmt::Write as _;
use std::io::Cursor;

use tier0_array::simulated::{ModelShelf, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_trace::{Options, TraceReader};
use tier0_units::Lba;
use tier0_world::{PayloadWidth, Random, VirtualRuntime};

use super::trace::take_in;
use super::{Pace, TimedError, TimedOptions, TimedPlan, TimedReport, TimedTrace};
use crate::LabError;
use crate::path::UsageRow;

/// A single disk with a volume of 16 GiB; `more` stands in the file's array table.
fn disk(more: &str) -> String {
    format!(
        "array = {{ name = \"one\"{more} }}\ndrive = [{{ name = \"d\", model = \"sas-15k-146gb-sff\" }}]\n\
         pool = [{{ name = \"p\", drives = [\"d\"], raid = \"raid0\" }}]\nvolume = [{{ name = \"v\", size = \"16GiB\" }}]\n"
    )
}

const PLAN: TimedPlan = TimedPlan {
    pace: Pace::Speed(1.0),
    outstanding_max: 256,
    volume: None,
    map: Vec::new(),
    fold: false,
    seed: 1,
};

fn taken(text: &str, columns: &str) -> Result<TimedTrace, TimedError> {
    let reading = Options { columns: Some(columns.parse().expect("columns")), ..Options::default() };
    let reader = TraceReader::from_read("t", Cursor::new(text.to_owned()), reading.clone())?;
    take_in(reader, "t".into(), &TimedOptions { reading, block_bytes: 4096, limit: None }, |_| ())
}

/// Lines of milliseconds, a volume, an operation, an offset and a size, both in KiB.
fn trace(text: &str) -> TimedTrace {
    taken(text, "time:ms,volume,op,offset:1KiB,size:1KiB").expect("it is a trace")
}

fn play(text: &str, plan: &TimedPlan, array: &str) -> Result<TimedReport, LabError> {
    let system = Description::parse(array, "array").expect("an array");
    trace(text).play(plan, &system, &Catalog::embedded(), |_| ())
}

fn played(text: &str, plan: &TimedPlan, array: &str) -> TimedReport {
    play(text, plan, array).expect("it is played")
}

fn refused(text: &str, plan: &TimedPlan, array: &str) -> String {
    play(text, plan, array).expect_err("it is refused").to_string()
}

/// So many requests of 4 KiB at random among so many places 160 MiB apart, each so many milliseconds after the one before.
fn scattered(count: u64, places: u64, ms: u64) -> String {
    let mut random = Random::new(7, 7);
    let mut text = String::new();
    for number in 0..count {
        let place = random.below(places) * (160 << 10);
        writeln!(text, "{} a R {place} 4", number * ms).expect("room");
    }
    text
}

/// The mean time of the same reads by the drive alone, milliseconds.
fn by_the_drive(text: &str) -> f64 {
    let system = Description::parse(&disk(""), "array").expect("an array");
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), &system).expect("a model");
    let built = build(runtime.world(), &system, &shelf, tier0_array::engine::Born::Full, |_, drive| drive);
    let drive = runtime.run(built).expect("an array").drives.remove(0);
    let requests = trace(text).requests;
    let count = requests.len() as f64;
    let world = runtime.world().clone();
    let began = world.now();
    let took = runtime.run(async move {
        for request in requests {
            drive.read(Lba(request.sector), world.buffer(request.sectors)).await.0.expect("it is read");
        }
        world.now().saturating_sub(began)
    });
    took.as_millis_f64() / count
}

#[test]
fn one_read_after_the_other_takes_what_the_drive_takes() {
    let text = scattered(3000, 100, 0);
    let report = played(&text, &TimedPlan { pace: Pace::Closed(1), ..PLAN }, &disk(""));
    let read = report.read.expect("reads");
    let alone = by_the_drive(&text);
    assert!((read.latency_ms_mean / alone - 1.0).abs() < 0.1, "{} and {alone} ms", read.latency_ms_mean);
    assert!((report.iops - 1e3 / read.latency_ms_mean).abs() < 1.0, "{}", report.iops);
    assert_eq!((report.requests, report.write), (3000, None));
    let busy = &report.drives_busy;
    assert!(matches!(&busy[..], [UsageRow { busy, .. }] if *busy > 0.9), "{busy:?}");
}

#[test]
fn a_trace_lasts_as_its_times_say_and_half_as_long_at_twice_the_speed() {
    let text = scattered(200, 100, 50);
    for (speed, seconds) in [(1.0, 9.95), (2.0, 4.975)] {
        let report = played(&text, &TimedPlan { pace: Pace::Speed(speed), ..PLAN }, &disk(""));
        assert_eq!(report.trace_s, Some(seconds));
        assert!((report.duration_s - seconds - 0.01).abs() < 0.01, "{}", report.duration_s);
        assert_eq!(report.behind_max_s, 0.0);
    }
}

#[test]
fn a_closed_loop_ignores_times() {
    let plan = TimedPlan { pace: Pace::Closed(4), ..PLAN };
    let (slow, fast) = (scattered(400, 100, 1000), scattered(400, 100, 0));
    let report = played(&slow, &plan, &disk(""));
    assert_eq!(report, played(&fast, &plan, &disk("")));
    assert!(report.duration_s < 4.0 && report.trace_s.is_none(), "{}", report.duration_s);
}

#[test]
fn the_seed_repeats_a_replay() {
    let text = scattered(500, 100, 3).replace("0 a R", "0 a W");
    let array = disk("");
    assert_eq!(played(&text, &PLAN, &array), played(&text, &PLAN, &array));
}

#[test]
fn what_waits_in_the_host_is_told() {
    let text = scattered(400, 100, 0);
    let report = played(&text, &TimedPlan { outstanding_max: 4, ..PLAN }, &disk(""));
    let read = report.read.expect("reads");
    assert!(
        report.behind_max_s > 0.9 * report.duration_s,
        "{} of {}",
        report.behind_max_s,
        report.duration_s
    );
    assert!(read.latency_ms_max >= report.behind_max_s * 1e3, "a latency counts from the trace's time");
    assert_eq!(report.behind_at_end_s, Some(report.duration_s));
    assert!(read.over_20_ms_share > 0.9, "{}", read.over_20_ms_share);
}

/// A disk and two SSDs; `pool` and `volume` are more fields of theirs.
fn with_flash(pool: &str, volume: &str) -> String {
    format!(
        "array = {{ name = \"two\" }}\ndrive = [{{ name = \"d\", model = \"hdd-7k2\" }}, {{ name = \"s{{n}}\", count = 2, model = \"ssd-sata\" }}]\n\
         volume = [{{ name = \"v\", size = \"16GiB\"{volume} }}]\n[[pool]]\nname = \"p\"\n{pool}\n"
    )
}

#[test]
fn caches_and_a_tier_make_repeated_reads_faster() {
    // 30 reads per second of 60 places for ten minutes.
    let text = scattered(18_000, 60, 33);
    let plain = "drives = [\"d\"]\nraid = \"raid0\"";
    let mean = |report: &TimedReport| report.read.expect("reads").latency_ms_mean;
    let slow = played(&text, &PLAN, &with_flash(plain, ""));
    assert_eq!((slow.work.flash_hits, slow.work.tier_hits), (None, None));
    assert_eq!(slow.empty_at_start, ["the write cache"]);

    let cached = format!("{plain}\nflash_cache = \"4GiB\"\nflash_cache_drives = [\"s*\"]");
    let cached = played(&text, &PLAN, &with_flash(&cached, ""));
    assert!(mean(&cached) < 0.2 * mean(&slow), "{} and {}", mean(&cached), mean(&slow));
    assert!(cached.work.flash_hits > Some(0.9), "{:?}", cached.work.flash_hits);
    assert_eq!(cached.empty_at_start, ["the write cache", "the flash cache"]);

    let groups = "group = [{ name = \"disk\", drives = [\"d\"], raid = \"raid0\" }, \
                  { name = \"flash\", drives = [\"s*\"], raid = \"raid1\", set_size = 2 }]";
    let tiered = played(&text, &PLAN, &with_flash(groups, ", group = \"disk\", place = \"auto\""));
    let of = |interval: &super::IntervalFigures| interval.read.expect("reads").latency_ms_mean;
    let (first, last) = (of(&tiered.intervals[0]), of(tiered.intervals.last().expect("intervals")));
    assert!(last < 0.3 * first, "{first} ms at first, {last} ms in the end");
    assert!(tiered.work.tier_hits > Some(0.5), "{:?}", tiered.work.tier_hits);

    let memory =
        played(&text, &PLAN, &with_flash(plain, "").replace("\"two\"", "\"two\", memory = \"1GiB\""));
    assert!(memory.work.read_hits > Some(0.9) && mean(&memory) < 0.2 * mean(&slow), "{:?}", memory.work);
}

#[test]
fn discards_and_flushes_are_passed_on_as_far_as_the_trace_reaches() {
    let text = "0 a W 0 64\n1 a F 0 0\n2 a D 0 1048576\n3 a D 1024 8\n4 a R 0 0\n5 b D 0 8\n6 a R 60 4\n";
    let report = played(text, &PLAN, &disk(""));
    assert_eq!((report.requests, report.discards, report.flushes), (2, 1, 1));
    assert_eq!((report.discards_left_out, report.empty_left_out), (2, 1));
}

const TWO_VOLUMES: &str = "array = { name = \"two\" }\ndrive = [{ name = \"d\", model = \"sas-15k-146gb-sff\" }]\n\
    pool = [{ name = \"p\", raid = \"raid0\" }]\n\
    volume = [{ name = \"a\", size = \"1GiB\" }, { name = \"c\", size = \"2GiB\" }]\n";

#[test]
fn traced_volumes_lie_side_by_side_or_on_their_namesakes() {
    let text = "0 a R 0 4\n1 b R 100 4\n2 a R 2000 4\n";
    let report = played(text, &PLAN, &disk(""));
    let places: Vec<_> =
        report.placed.iter().map(|p| (p.traced_volume.as_str(), p.offset_bytes, p.bytes)).collect();
    assert_eq!(places, [("a", 0, 2004 << 10), ("b", 2 << 20, 104 << 10)]);

    let told = refused(text, &PLAN, TWO_VOLUMES);
    assert!(told.contains("none is called \"b\"") && told.contains("--map b=VOLUME"), "{told}");
    let map = |pairs: &[(&str, &str)]| TimedPlan {
        map: pairs.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect(),
        ..PLAN
    };
    let report = played(text, &map(&[("b", "c")]), TWO_VOLUMES);
    let on: Vec<&str> = report.placed.iter().map(|placed| placed.volume.as_str()).collect();
    assert_eq!(on, ["a", "c"]);
    let report = played(text, &TimedPlan { volume: Some("c".into()), ..PLAN }, TWO_VOLUMES);
    assert!(report.placed.iter().all(|placed| placed.volume == "c"), "{:?}", report.placed);
    let told = refused(text, &map(&[("x", "c")]), TWO_VOLUMES);
    assert!(told.contains("has no volume \"x\"; it has a, b"), "{told}");
    let told = refused(text, &map(&[("b", "x")]), TWO_VOLUMES);
    assert!(told.contains("has no volume \"x\"; its volumes are a, c"), "{told}");
}

#[test]
fn what_does_not_fit_is_refused_or_folded() {
    let text = "0 a R 0 4\n1 a W 16777216 4\n2 a R 33554428 4\n";
    let told = refused(text, &PLAN, &disk(""));
    assert!(told.contains("has 16GiB, and the trace reaches 32GiB on it (a): 16GiB are missing"), "{told}");
    assert!(told.contains("--map") && told.contains("--fold"), "{told}");
    let report = played(text, &TimedPlan { fold: true, ..PLAN }, &disk(""));
    assert_eq!((report.requests, report.placed[0].folded_bytes), (3, 16 << 30));
    let told = refused(text, &PLAN, &disk("").replace("\"16GiB\"", "\"64GiB\", thin = true"));
    assert!(told.contains("is thin") && told.contains("remove thin"), "{told}");
}

#[test]
fn traces_that_cannot_be_played_are_refused() {
    let error = |text: &str, columns: &str| taken(text, columns).err().expect("it is refused").to_string();
    let told = error("1 W 0 2097152\n", "time,op,offset:1KiB,size:1KiB");
    assert!(told.contains("request 1: a request of 2GiB"), "{told}");
    let told = error("1 F 0 0\n2 D 0 8\n", "time,op,offset:1KiB,size:1KiB");
    assert!(told.contains("no read or write with data"), "{told}");
    let system = Description::parse(&disk(""), "array").expect("an array");
    let timeless = || taken("R 0 4\nR 160 4\n", "op,offset:1KiB,size:1KiB").expect("a trace");
    let told = timeless().play(&PLAN, &system, &Catalog::embedded(), |_| ());
    let told = told.expect_err("it has no times").to_string();
    assert!(told.contains("t has no times") && told.contains("--closed N"), "{told}");
    let plan = TimedPlan { pace: Pace::Closed(2), ..PLAN };
    let report = timeless().play(&plan, &system, &Catalog::embedded(), |_| ()).expect("a closed loop");
    assert_eq!(report.requests, 2);
}

#[test]
fn a_later_line_may_be_earlier_and_the_last_place_can_be_told() {
    let text = "0 a R 0 4\n9 a R 160 4\n5 a W 320 4\n";
    let order: Vec<u64> = trace(text).requests.iter().map(|request| request.at.0 / 1_000_000).collect();
    assert_eq!(order, [0, 5, 9]);
    let far = taken("18446744073709550\n1\n", "offset:1000B").expect("a trace");
    let told = far.play(
        &TimedPlan { pace: Pace::Closed(1), ..PLAN },
        &Description::parse(&disk(""), "array").expect("an array"),
        &Catalog::embedded(),
        |_| (),
    );
    assert!(matches!(told, Err(LabError::Timed(TimedError::Place { .. }))), "{told:?}");
}
