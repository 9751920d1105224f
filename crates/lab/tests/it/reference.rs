//! Configurations of the reference studies with few requests, free parameters at their start values, and a fixed number of
//! requests under way: the lab's figures stay what they are. What was published means nothing here.

use tier0_description::{Description, Remarks};
use tier0_lab::measure::Bench;
use tier0_lab::study::{Configuration, Goal, RunEffort, Study};
use tier0_units::Nanos;

/// A configuration, its requests under way, and what it gave: I/Os per second, mean latency of reads and of writes in ms.
type Golden = (&'static str, u32, f64, f64, f64);

/// How far a figure may be from what it was: an engine that does the same in another order moves it by less.
const MAY_MOVE: f64 = 0.05;

fn assert_golden(study: &str, golden: &[Golden]) {
    let study = Study::find(study).expect("the program carries it");
    let mut moved = Vec::new();
    for (id, users, iops, read_ms, write_ms) in golden {
        let found = study.configurations.iter().find(|configuration| configuration.id == *id);
        let mut configuration: Configuration = found.unwrap_or_else(|| panic!("no {id}")).clone();
        configuration.setup.effort = RunEffort { ios: 5_000, warm_up: Nanos::from_millis(100) };
        if let Goal::LatencyLimit { .. } = configuration.setup.goal {
            configuration.setup.goal = Goal::Users { users: *users, think: Nanos::ZERO };
        }
        let bench = Bench::new(tier0_catalog::Catalog::embedded(), std::slice::from_ref(&configuration))
            .expect("the study's models");
        let result = bench.measure(&configuration, study.seed, false).expect("it can be measured").result;
        let (read, write) = (result.read_latency_ms.unwrap_or(0.0), result.write_latency_ms.unwrap_or(0.0));
        let found = [result.iops, read, write];
        let is_near = |(found, golden): (&f64, &f64)| (found - golden).abs() <= MAY_MOVE * golden.abs();
        if !found.iter().zip(&[*iops, *read_ms, *write_ms]).all(is_near) {
            moved.push(format!("({id:?}, {users}, {:.0}, {read:.3}, {write:.3}),", result.iops));
        }
    }
    assert!(moved.is_empty(), "figures have moved; they are now\n{}", moved.join("\n"));
}

#[test]
fn cx4_oracle_gives_what_it_gave() {
    assert_golden("cx4-oracle", &[("read.efd6", 100, 47545.0, 0.893, 2.610)]);
}

#[test]
fn ps6100xv_gives_what_it_gave() {
    assert_golden(
        "ps6100xv",
        &[
            ("8k.r100.fill40", 100, 7827.0, 12.789, 0.0),
            ("8k.r70.fill40", 20, 3066.0, 6.721, 6.149),
            ("8k.r70.fill40", 100, 5183.0, 13.299, 34.088),
            ("64k.r70.fill85", 60, 1948.0, 17.947, 63.599),
            ("raid50", 60, 2584.0, 7.517, 61.155),
            ("raid6", 60, 2565.0, 7.881, 64.152),
            ("two-members", 200, 9977.0, 13.217, 37.136),
        ],
    );
}

/// What is printed is an array file that says the same, whatever the configuration.
#[test]
fn every_configuration_is_an_array_file() {
    for summary in tier0_lab::study::list() {
        let study = Study::find(&summary.id).expect("the program carries it");
        for configuration in &study.configurations {
            let text = tier0_lab::array_file(&study, &configuration.id).expect("its array");
            let read =
                Description::parse(&text, "array.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read.warnings, [""; 0], "{text}");
            let groups = configuration.setup.set_groups();
            let drives: u32 = groups.iter().map(|sets| sets.drives).sum();
            assert_eq!(read.pools.iter().map(|pool| pool.drives.len()).sum::<usize>(), drives as usize);
            let volumes: u32 = groups.iter().map(|sets| sets.volumes).sum();
            assert_eq!(read.volumes.len(), volumes as usize);
            let described: Vec<&str> =
                read.pools.iter().flat_map(|pool| &pool.groups).map(|sets| sets.name.as_str()).collect();
            let named = groups.iter().map(|sets| sets.name.as_str());
            let named = |name: &str| named.clone().any(|known| known == name);
            let is_one = described == [""] && groups.len() == 1;
            assert!(is_one || described.iter().all(|name| named(name)), "{described:?}");
            assert!(text.ends_with(&read.to_text(&Remarks::default())), "{text}");
        }
    }
    let study = Study::find("ps6100xv").expect("the program carries it");
    let error = tier0_lab::array_file(&study, "raid7").expect_err("there is none").to_string();
    assert!(error.contains("raid7") && error.contains("raid50"), "{error}");
}
