//! Workloads that cannot be used are refused with the place and the remedy.

use tier0_database::workload::{Changes, Workload};

const TEXT: &str = include_str!("../../../../catalog/workloads/order-entry.toml");

fn refused(old: &str, new: &str) -> String {
    assert!(TEXT.contains(old), "{old} is in the workload");
    let text = TEXT.replacen(old, new, 1);
    Workload::parse(&text, "mine.toml", &Changes::default()).expect_err("it is wrong").to_string()
}

#[test]
fn mistakes_are_named() {
    for (old, new, told) in [
        (
            "{ update = \"district\", hold",
            "{ update = \"distrikt\", hold",
            "names \"distrikt\", which is no object",
        ),
        ("{ pick = \"district\" }", "{ pick = \"distrikt\" }", "names \"distrikt\", which is no dimension"),
        ("by = \"item\" }", "by = \"itam\" }", "\"itam\" is no way to choose; use \"uniform\""),
        (
            "{ read = \"warehouse\" }",
            "{ read = \"warehouse\", update = \"item\" }",
            "without exactly one of pick",
        ),
        ("repeat = \"5..15\"", "repeat = \"15..5\"", "use a count, or \"5..15\""),
        ("{ append = \"orders\" }", "{ append = \"stock\" }", "needs \"stock\" to grow; add grows = true"),
        ("percent = 99 ", "percent = 101 ", "percent out of range; use 0 to 100"),
        ("keep = \"item\" }", "rows = 1 }", "recalls \"item\" of \"order-line\", which no transaction above"),
        ("backlog = 900", "backlog = 9000", "out of range"),
        ("row_bytes = 89", "row_bytes = 0", "row_bytes out of range"),
        ("law = \"nurand 1023\"", "law = \"zipf -1\"", "choice.customer: \"zipf -1\" is no way to choose"),
        ("headline = \"new-order\"", "headline = \"newest\"", "\"newest\" is no transaction; name one"),
        ("row_bytes = 89", "row_byte = 89", "mine.toml:"),
        (
            "{ read = \"warehouse\" }",
            "{ scan = \"stock\" }",
            "scan_us: is missing, and a transaction scans; add it",
        ),
        (
            "{ read = \"warehouse\" }",
            "{ scan = \"stock\", share = 2 }",
            "share out of range; use more than 0",
        ),
        (
            "{ read = \"warehouse\" }",
            "{ read = \"warehouse\", hold = true }",
            "holds what is not one row that is updated by its key",
        ),
        (
            "{ update = \"district\", hold = true }",
            "{ update = \"stock\", hold = true }, { update = \"district\", hold = true }",
            "holds rows in another order than that of the objects",
        ),
        ("percent = 99 },", "percent = 99, hold = true },", "holds rows in a repeat or recall"),
        ("primary_key_bytes = 16", "primary_key_bytes = 0", "primary_key_bytes out of range"),
        ("back = 3000", "back = 3000, by = \"uniform\"", "with back and by; choose among the newest"),
    ] {
        let error = refused(old, new);
        assert!(error.contains(told), "{new}: {error}");
    }
}

#[test]
fn a_study_changes_what_there_is() {
    let with = |choices: &[(&str, &str)], keys: &[(&str, &[&str])]| {
        let text = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let changes = Changes {
            choices: choices.iter().map(|(name, law)| ((*name).to_owned(), (*law).to_owned())).collect(),
            keys: keys.iter().map(|(name, key)| ((*name).to_owned(), text(key))).collect(),
            ..Changes::default()
        };
        Workload::find("order-entry", &changes).map_err(|error| error.to_string())
    };
    assert!(with(&[("item", "uniform")], &[("stock", &["item", "warehouse"])]).is_ok());
    let error = with(&[("items", "uniform")], &[]).expect_err("there is none");
    assert!(error.contains("is no choice of the workload; use one of customer, item"), "{error}");
    let error = with(&[], &[("stock", &["item"])]).expect_err("it lacks one");
    assert!(error.contains("put warehouse, item into another order"), "{error}");
    let error = Workload::find("tpcc", &Changes::default()).expect_err("there is none").to_string();
    assert!(error.contains("use one of order-entry"), "{error}");
}

#[test]
fn a_mix_leaves_what_it_names() {
    let with = |mix: &[(&str, f64)]| {
        let mix = mix.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect();
        Workload::find("order-entry", &Changes { mix, ..Changes::default() })
            .map_err(|error| error.to_string())
    };
    let workload = with(&[("payment", 3.0), ("delivery", 1.0)]).expect("it has both");
    let shares: Vec<_> = workload.transactions.iter().map(|one| (one.name.as_str(), one.share)).collect();
    assert_eq!(shares, [("payment", 0.75), ("delivery", 0.25)]);
    let error = with(&[("payments", 1.0)]).expect_err("there is none");
    assert!(
        error.contains("mix.payments: is no transaction of the workload; use one of new-order"),
        "{error}"
    );
    let error = with(&[("payment", 0.0)]).expect_err("nothing would run");
    assert!(error.contains("has no share above 0"), "{error}");
}

#[test]
fn every_workload_of_the_catalogue_is_sound_and_has_sources() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/workloads");
    for entry in std::fs::read_dir(dir).expect("the catalogue is beside the crate") {
        let path = entry.expect("readable").path();
        let id = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let workload =
            Workload::find(&id, &Changes::default()).expect("it is embedded under its file's name");
        for (what, _, source) in &workload.sources {
            assert!(source.len() >= 10, "{id}: {what} has no source");
        }
    }
}
