//! The caches of a study's arrays: what they bring, what they cost, and who waits for whom in them. Configurations of the
//! embedded studies with few requests: our own figures are held steady, and nothing published is asserted.

use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_lab::measure::{Bench, Measurement};
use tier0_lab::study::{Configuration, RunEffort, Study};
use tier0_units::Nanos;

const WRITES: &str = include_str!("../../../../studies/cx4-write-cache.toml");
const READS: &str = include_str!("../../../../studies/cx4-read-cache.toml");

/// How far a figure may be from what it was.
const MAY_MOVE: f64 = 0.05;

fn configuration(text: &str, id: &str) -> Configuration {
    let study = Study::parse(text, "study.toml").expect("a sound study");
    let found = study.configurations.into_iter().find(|configuration| configuration.id == id);
    found.unwrap_or_else(|| panic!("no {id}"))
}

/// A configuration of the study `text`, measured with few requests after a warm-up.
fn measure(text: &str, id: &str, ios: u64, warm_up: Nanos, catalog: Catalog) -> Measurement {
    let mut configuration = configuration(text, id);
    configuration.setup.effort = RunEffort { ios, warm_up };
    let bench = Bench::new(catalog, std::slice::from_ref(&configuration)).expect("its models");
    bench.measure(&configuration, 1, false).expect("it can be measured")
}

fn writes(id: &str, ios: u64, warm_up: Nanos) -> Measurement {
    measure(WRITES, id, ios, warm_up, Catalog::embedded())
}

fn write_ms(measured: &Measurement) -> f64 {
    measured.result.write_latency_ms.expect("it writes")
}

fn assert_near(what: &str, found: f64, golden: f64, may_move: f64) {
    let is_near = (found - golden).abs() <= may_move * golden;
    assert!(is_near, "{what} was {golden}, and is now {found:.4}");
}

#[test]
fn a_flash_volume_waits_for_sata_in_a_cache_that_both_share_and_in_no_other() {
    let brief = |id: &str| writes(id, 10_000, Nanos::from_millis(500));
    let (alone, off, lanes) = (brief("alone"), brief("off"), brief("lanes"));
    // A cache that disks empty takes long to find its level.
    let shared = writes("shared", 10_000, Nanos::from_secs(20));
    // In one cache writers wait for the SATA disks, and every page is destaged because writers wait. A write of a volume that
    // has had less than its share is not delayed.
    let cache = shared.work.measured_cache().expect("it is cached");
    assert!((0.7..0.95).contains(&cache.delayed_writes), "{cache:?}");
    assert!(cache.flushed.is_some_and(|flushed| flushed.forced > 0.99), "{cache:?}");
    assert!(write_ms(&shared) > 20.0 * write_ms(&off), "{} {}", write_ms(&shared), write_ms(&off));
    // Past the cache it waits for its own drives alone.
    assert_eq!(off.work.measured_cache(), None);
    assert!(write_ms(&off) > 2.0 * write_ms(&alone), "parity is read first");
    // In a lane of its own it does not wait at all, though the other lane is as full as it gets.
    let [flash, sata] = &lanes.work.write_caches[..] else { panic!("two lanes: {:?}", lanes.work) };
    assert_eq!((flash.name.as_str(), sata.name.as_str()), ("write cache flash", "write cache sata"));
    assert_eq!(flash.delayed, 0, "{flash:?}");
    assert!(flash.flushed.is_some_and(|flushed| flushed.forced == 0.0), "{flash:?}");
    assert!(
        sata.delayed_writes > 0.9 && sata.flushed.is_some_and(|flushed| flushed.forced > 0.99),
        "{sata:?}"
    );
    assert!(write_ms(&lanes) < 1.2 * write_ms(&alone), "{} {}", write_ms(&lanes), write_ms(&alone));
    for measured in [&shared, &off, &lanes] {
        let [sata] = &measured.neighbours[..] else { panic!("one neighbour: {:?}", measured.neighbours) };
        assert_eq!(sata.name, "sata");
        // As fast as disks can over a while, which is longer than this.
        assert!((50.0..5_000.0).contains(&sata.sample.iops), "{sata:?}");
    }
    assert_eq!(alone.neighbours, []);
    assert_near("alone", write_ms(&alone), 0.165, MAY_MOVE);
    assert_near("off", write_ms(&off), 0.776, MAY_MOVE);
    assert_near("lanes", write_ms(&lanes), 0.168, MAY_MOVE);
    // What disks do in waves.
    assert_near("shared", write_ms(&shared), 32.0, 4.0 * MAY_MOVE);
}

#[test]
fn a_lookup_costs_more_than_few_hits_bring_on_flash_and_less_on_disks() {
    let of = |id: &str, ios: u64, warm_up: u64, catalog: Catalog| {
        measure(READS, id, ios, Nanos::from_secs(warm_up), catalog)
    };
    let read_ms = |measured: &Measurement| measured.result.read_latency_ms.expect("it reads");
    let [off, on] =
        [("flash.off", 0), ("flash.on", 3)].map(|(id, warm_up)| of(id, 30_000, warm_up, Catalog::embedded()));
    let hits = |measured: &Measurement| measured.work.read_hits;
    assert_eq!(hits(&off), None, "nobody looks");
    assert!(hits(&on).is_some_and(|hits| (0.002..0.03).contains(&hits)), "{:?}", hits(&on));
    assert!(read_ms(&on) > 1.005 * read_ms(&off), "{} {}", read_ms(&on), read_ms(&off));
    // It is the lookup that costs.
    let free = ["cache_lookup_cost_us", "cache_lookup_page_cost_us"].iter().fold(
        Catalog::embedded(),
        |catalog, parameter| {
            let spec = catalog.array("cx4-960").expect("the array");
            assert!(spec.parameters.cache_lookup_page_cost_us.is_some());
            catalog.varied("cx4-960", parameter, 0.0).expect("a number of the array")
        },
    );
    let free = of("flash.on", 30_000, 3, free);
    assert!(read_ms(&free) < read_ms(&off), "{} {}", read_ms(&free), read_ms(&off));
    // As few hits save more than that where a disk has to turn.
    let [off, on] = [("disks.off", 0), ("disks.on", 30)]
        .map(|(id, warm_up)| of(id, 60_000, warm_up, Catalog::embedded()));
    assert!(hits(&on).is_some_and(|hits| (0.002..0.03).contains(&hits)), "{:?}", hits(&on));
    assert!(read_ms(&on) < read_ms(&off), "{} {}", read_ms(&on), read_ms(&off));
    // Many hits pay anywhere.
    let [off, on] = [("flash.hot.off", 0), ("flash.hot.on", 3)]
        .map(|(id, warm_up)| of(id, 30_000, warm_up, Catalog::embedded()));
    assert!(hits(&on) > Some(0.8) && read_ms(&on) < 0.5 * read_ms(&off), "{:?}", hits(&on));
}

#[test]
fn the_arrays_switch_is_over_that_of_the_volumes() {
    let base = "caches = \"cx4\"\n";
    assert!(READS.contains(base));
    let text = READS.replace(base, "caches = \"cx4\"\narray_caches = { read = false }\n");
    let of = |text: &str, id: &str| measure(text, id, 2_000, Nanos::ZERO, Catalog::embedded());
    let switched_off = of(&text, "flash.on");
    assert_eq!(switched_off.work.read_hits, None, "nobody looks");
    assert_eq!(switched_off.result, of(READS, "flash.off").result);
}

#[test]
fn a_reader_in_order_is_read_ahead_of() {
    let text = READS.replace("read_percent = 100\n", "read_percent = 100\npattern = \"sequential\"\n");
    let of = |id: &str| measure(&text, id, 5_000, Nanos::from_millis(500), Catalog::embedded());
    let (off, on) = (of("disks.off"), of("disks.on"));
    assert!(on.work.read_hits > Some(0.9), "{:?}", on.work.read_hits);
    assert!(on.result.iops > 1.2 * off.result.iops, "{} {}", on.result.iops, off.result.iops);
    let (ahead, plain) = (on.work.drive_reads, off.work.drive_reads);
    assert!(ahead < 1.25 * plain, "little of what is read ahead is read twice: {ahead} {plain}");
}

/// The array of a configuration of the write cache's study, with something in the base replaced.
fn description(from: &str, to: &str, id: &str) -> Description {
    assert!(WRITES.contains(from), "{from:?} is in the study");
    let study = Study::parse(&WRITES.replace(from, to), "study.toml").expect("a sound study");
    let text = tier0_lab::array_file(&study, id).expect("its array");
    Description::parse(&text, "array.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn who_does_not_use_a_shared_cache_is_behind_it_in_no_way() {
    let plain = |id: &str| description("seed = 1", "seed = 1", id);
    let pools = |described: &Description| -> Vec<(bool, Vec<String>)> {
        let names = |pool: &tier0_description::PoolDescription| {
            pool.groups.iter().map(|group| group.name.clone()).collect()
        };
        described.pools.iter().map(|pool| (pool.log, names(pool))).collect()
    };
    let both = || vec!["flash".to_owned(), "sata".to_owned()];
    let one = |name: &str| vec![name.to_owned()];
    assert_eq!(pools(&plain("shared")), [(true, both())]);
    assert_eq!(pools(&plain("off")), [(true, one("sata")), (false, one("flash"))]);
    assert_eq!(pools(&plain("lanes")), [(true, both())]);
    // Off for the whole array: nobody uses it.
    let off = description("caches = \"cx4\"", "caches = \"cx4\"\narray_caches = { write = false }", "shared");
    assert_eq!(pools(&off), [(false, both())]);
    // A volume of tier0 passes its own lane.
    let lanes = plain("lanes-off");
    assert_eq!(pools(&lanes), [(true, both())]);
    let modes: Vec<_> = lanes.volumes.iter().map(|volume| volume.write_cache).collect();
    let off = Some(tier0_units::WriteCache::Off);
    assert_eq!(modes, [off, off, None, None]);
}

#[test]
fn mistakes_about_caches_and_neighbours_are_named() {
    for (from, to, told) in [
        ("caches = \"cx4\"", "caches = \"cx5\"", "unknown caches \"cx5\"; there are cx4"),
        ("write_cache = \"256MiB\"", "read_cache = \"1KiB\"", "read_cache out of range"),
        ("name = \"sata\"", "name = \"flash\"", "two groups of sets named \"flash\""),
        ("used_percent = 20", "used_percent = 99", "neighbour \"sata\" that has a used_percent out of range"),
        ("users = 64", "users = 0", "neighbour \"sata\" that has users out of range"),
        ("\"nl-7k2\"", "\"nl-7k3\"", "did you mean"),
        ("array = \"cx4-960\"", "array = \"cx4-960\"\nmembers = 2", "neighbours in several members"),
    ] {
        assert!(WRITES.contains(from), "{from:?} is in the study");
        let error = Study::parse(&WRITES.replacen(from, to, 1), "s.toml").expect_err(to).to_string();
        assert!(error.starts_with("s.toml, line ") && error.contains(told), "{to}: {error}");
    }
}
