use super::*;
use crate::record::Role;

#[test]
fn the_embedded_studies_are_sound() {
    let found = list();
    let names: Vec<&str> = found.iter().map(|study| study.id.as_str()).collect();
    assert_eq!(
        names,
        [
            "3par7450",
            "cx4-oracle",
            "cx4-read-cache",
            "cx4-write-cache",
            "cx4-sql",
            "msa2040",
            "ps6100xv",
            "ps6100xv-oltp"
        ]
    );
    for summary in found {
        let study = embedded(&summary.id).expect("it was listed");
        assert!(study.parameters.len() <= study.figures.calibration().len(), "{}", study.id);
        for configuration in &study.configurations {
            assert!(!configuration.title.is_empty(), "{}", configuration.id);
        }
    }
}

#[test]
fn the_grid_is_the_product_of_its_axes() {
    let study = embedded("ps6100xv").expect("it is there");
    let grid = study.grid.as_ref().expect("it has a grid");
    assert_eq!(grid.points.len(), 48);
    assert_eq!((grid.points[0].id.as_str(), &grid.points[0].places), ("8k.r100.fill40", &vec![0, 0, 0]));
    assert_eq!((grid.points[47].id.as_str(), &grid.points[47].places), ("64k.r60.fill85", &vec![3, 3, 2]));
    let setup = |id: &str| {
        let found = study.configurations.iter().find(|configuration| configuration.id == id);
        found.expect("it is a configuration").setup.clone()
    };
    let point = setup("64k.r80.fill62");
    assert_eq!((point.volumes, point.read_percent, point.block.size_max().0), (9, 80.0, 65_536));
    assert_eq!(setup("raid10"), setup("8k.r70.fill40"));
    assert_eq!(setup("three-members").members, 3);
    // 48 points of the grid, an order, two ratios.
    assert_eq!(study.figures.reported().count(), 51);
    let calibration = study.figures.reported().filter(|figure| figure.role == Role::Calibration);
    assert_eq!(calibration.map(|figure| figure.id).collect::<Vec<_>>(), ["8k.r70.fill40"]);
}

#[test]
fn an_unknown_study_names_those_there_are() {
    let text = Study::find("ps6100").expect_err("there is none").to_string();
    assert_eq!(
        text,
        "there is no study \"ps6100\"; there are 3par7450, cx4-oracle, cx4-read-cache, cx4-write-cache, cx4-sql, msa2040, ps6100xv, ps6100xv-oltp, or name a file that ends in .toml"
    );
    let text = Study::find("nowhere/x.toml").expect_err("there is none").to_string();
    assert!(text.starts_with("study \"nowhere/x.toml\" cannot be read"), "{text}");
}

const STUDY: &str = r#"id = "x"
title = "x"
description = "x"
[base.set]
array = "ps6100xv"
drive = "sas-15k-146gb-sff"
drives = 4
raid = "raid10"
volume_size = "1GiB"
read_percent = 70
latency_limit_ms = 20
[[configuration]]
id = "a"
title = "a"
[[record]]
id = "r"
unit = "IOPS"
value = { metric = "iops", of = "a" }
role = "prediction"
"#;

#[test]
fn mistakes_are_named_with_line_and_remedy() {
    assert!(Study::parse(STUDY, "s.toml").is_ok());
    for (from, to, line, text) in [
        ("id = \"x\"", "id = \"X y\"", 1, "use small letters"),
        ("drives = 4", "drive_count = 4", 7, "unknown field `drive_count`"),
        ("drives = 4", "drives = 0", 13, "drives out of range"),
        ("\"raid10\"", "\"raid7\"", 13, "raid7"),
        ("\"ps6100xv\"", "\"ps6100xx\"", 13, "did you mean"),
        ("volume_size = \"1GiB\"", "", 13, "volumes of no size"),
        ("latency_limit_ms = 20", "", 13, "give latency_limit_ms or users"),
        ("of = \"a\"", "of = \"b\"", 18, "there is no configuration \"b\""),
        ("\"prediction\"", "\"calibration\"", 16, "lacks a published number"),
        ("metric = \"iops\"", "metric = \"iop\"", 18, "unknown variant `iop`"),
        ("role = \"prediction\"", "role = \"prediction\"\ntolerance = \"10\"", 20, "is no tolerance"),
    ] {
        assert!(STUDY.contains(from), "{from:?} is in the study");
        let error = Study::parse(&STUDY.replace(from, to), "s.toml").expect_err(to).to_string();
        assert!(error.starts_with(&format!("s.toml, line {line}: ")), "{to}: {error}");
        assert!(error.contains(text), "{to}: {error}");
    }
}

#[test]
fn a_figure_that_a_drive_was_fitted_to_is_no_prediction() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/cx4-oracle.toml"));
    let text = text.expect("the study's file");
    let at = text.find("id = \"read.efd6.iops\"").expect("the record");
    let claimed = text[at..].replacen("role = \"calibration\"", "role = \"prediction\"", 1);
    let error = Study::parse(&format!("{}{claimed}", &text[..at]), "s.toml").expect_err("it is fitted to");
    let error = error.to_string();
    assert!(
        error.contains("\"read.efd6.iops\" is no prediction: controller_read_us of \"efd-73gb@cx4-"),
        "{error}"
    );
}

#[test]
fn what_parameters_were_fitted_to_is_a_figure_of_a_study() {
    let catalog = tier0_catalog::Catalog::embedded();
    let calibrated = |id: &String| {
        let known = catalog.list().into_iter().find(|entry| entry.id == *id).expect("it is listed");
        known.calibrations.into_iter().map(move |calibration| format!("{}@{calibration}", known.id))
    };
    let mut fitted = 0;
    for entry in catalog.ids().flat_map(calibrated) {
        let rows =
            catalog.parameters_of_kind(&entry, tier0_catalog::SourceKind::Fitted).expect("it is there");
        for figure in rows.flat_map(|row| row.fitted_to) {
            let (study, own) = figure.split_once('.').expect("it was checked");
            let study = embedded(study).expect("a study");
            assert!(study.figures.reported().any(|known| known.id == own), "{entry}: {figure}");
            fitted += 1;
        }
    }
    assert!(fitted > 0);
}

#[test]
fn fitting_to_a_prediction_cannot_be_asked_for() {
    let parameter = r#"
[[parameter]]
name = "p"
field = "write_cache_mib"
unit = "commands"
stands_for = "x"
start = 10
least = 1
most = 100
"#;
    let error =
        Study::parse(&format!("{STUDY}{parameter}"), "s.toml").expect_err("nothing to fit to").to_string();
    assert!(error.contains("nothing has the role \"calibration\""), "{error}");
}

/// The study of a database that docs/studies.md shows.
fn documented() -> String {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/studies.md"));
    let docs = docs.expect("the documentation");
    let blocks = docs.split("```toml\n").filter_map(|rest| rest.split_once("```"));
    let mut found = blocks.map(|(block, _)| block).filter(|block| block.starts_with("id = \"my-database\""));
    found.next().expect("an example of a study of a database").to_owned()
}

#[test]
fn the_documented_study_of_a_database_fits_predicts_and_gives_a_band() {
    let text = documented();
    assert!(text.lines().count() <= 65, "{} lines are too many to read", text.lines().count());
    let shorter = text.replace("measured = \"10s\"", "measured = \"3s\"");
    let study = Study::parse(&shorter, "docs").expect("valid");
    let outcome = crate::run::run(&study, &crate::run::RunOptions::default(), &|_| {}).expect("possible");
    let value = |place: usize| outcome.records[place].record.value.as_ref().and_then(|value| value.number());
    let fitted = value(0).expect("the calibration figure");
    assert!((fitted / 12_000.0 - 1.0).abs() < 0.1, "fitted to 12,000: {fitted}");
    let ratio = value(1).expect("the prediction");
    assert!(ratio > 1.5, "flash is faster: {ratio}");
    let [low, high] = outcome.records[1].record.band.expect("over two choices of items");
    assert!(low < high && (low..=high).contains(&ratio), "{low} {ratio} {high}");
    let json = outcome.json();
    assert!(json.contains("\"band\": ["), "{json}");
}

#[test]
fn nonsense_in_a_study_of_a_database_names_the_line_and_the_remedy() {
    let text = documented();
    for (from, to, fact) in [
        ("size = \"4GiB\"", "size = \"1GiB\"", "make it larger, or lower database.scale"),
        ("users = 16", "users = 0", "database.users is out of range"),
        ("field = \"database.buffer\"", "field = \"database.bufer\"", "is no field that the case gives"),
        ("field = \"database.buffer\"", "field = \"buffer\"", "there is no field \"buffer\""),
        ("least = 20", "least = 0.2", "database.buffer is out of range"),
        (
            "metric = \"tps\", of = \"flash\"",
            "metric = \"forced_flush_percent\", of = \"flash\"",
            "has no such metric",
        ),
        ("\nvary = ", "\nnever = ", "unknown field `never`"),
        ("over = \"now\"", "over = \"now\", per_drive = true", "which per_drive is not for"),
        ("host = {", "hosts = {", "unknown field"),
    ] {
        let from = from.to_owned();
        assert!(text.contains(&from), "{from:?} is in the example");
        let error = Study::parse(&text.replace(&from, to), "s.toml").expect_err(to).to_string();
        assert!(error.starts_with("s.toml, line "), "{to}: {error}");
        assert!(error.contains(fact), "{to}: {error}");
    }
    let (before, vary) = text.split_once("vary = ").expect("a band");
    let rest = vary.split_once('\n').expect("more").1;
    let error =
        Study::parse(&format!("{before}{rest}"), "s.toml").expect_err("a band of nothing").to_string();
    assert!(error.contains("is a band of one value; add vary, or drop band"), "{error}");
}
