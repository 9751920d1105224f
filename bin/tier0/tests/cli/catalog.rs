//! `tier0 catalog`, `tier0 completions` and the help.

use std::process::Stdio;

use crate::support::{json, refuse, succeed, tier0};

#[test]
fn the_list_names_every_entry_in_both_forms() {
    let listed = json(&["catalog", "list"]);
    let table = succeed(&["catalog", "list"]);
    let entries = listed.as_array().expect("a list");
    assert!(entries.len() >= 20, "{} entries", entries.len());
    for entry in entries {
        let id = entry["id"].as_str().expect("an id");
        assert!(table.contains(&format!("\n {id} ")), "the table misses {id}");
    }
}

#[test]
fn each_parameter_shows_its_source() {
    let shown = json(&["catalog", "show", "nvme"]);
    let rows = shown["rows"].as_array().expect("rows");
    assert_eq!(rows.len() as u64, shown["parameters"].as_u64().expect("a count"));
    assert!(rows.iter().all(|row| row["source"].as_str().is_some_and(|source| !source.is_empty())));
    let table = succeed(&["catalog", "show", "nvme"]);
    assert!(table.contains("capacity_gb") && table.contains("datasheet") && table.contains("assumed"));
}

#[test]
fn a_calibration_replaces_parameters() {
    let own = json(&["catalog", "show", "efd-73gb@datasheet"]);
    let default = json(&["catalog", "show", "efd-73gb"]);
    assert_eq!(default["calibration"], "array-sizing");
    assert_ne!(own["rows"], default["rows"]);
}

#[test]
fn what_is_not_there_is_named() {
    refuse(&["catalog", "show", "nvm"], 2, &["\"nvm\"", "did you mean \"nvme\""]);
    refuse(&["catalog", "show", "nvme@none"], 2, &["\"nvme\"", "\"none\"", "datasheet"]);
    refuse(&["catalog", "list", "--catalog", "/nowhere"], 2, &["/nowhere"]);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = tier0().args(["catalog", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().expect("the program starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let mut words = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().expect("a pipe"), &mut words).expect("text");
    assert_eq!(words, "");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(succeed(&["completions", shell]).contains("catalog"), "{shell}");
    }
}

#[test]
fn a_wrong_command_line_is_one_sentence() {
    refuse(&[], 2, &["--help"]);
    refuse(&["catalog"], 2, &["--help"]);
    refuse(&["catalg"], 2, &["catalg", "'catalog'"]);
    refuse(&["load"], 2, &["<TARGET>"]);
    refuse(&["load", "x", "--block", "7q"], 2, &["7q", "8KiB"]);
    assert!(succeed(&["--help"]).contains("Exit codes:"));
    assert!(succeed(&["help", "load"]).contains("Examples:"));
}
