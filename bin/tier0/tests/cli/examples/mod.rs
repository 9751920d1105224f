//! Every example of README, docs and `--help` works as it stands.
//!
//! Fenced `sh` blocks, the commands of README's table and the examples of every `--help` run in order in a directory of
//! their own ([`scene`]), through a shell. TOML blocks are read by what reads such files. What cannot run here says why:
//! a block by a comment before it, `<!-- not run: reason -->`, an example of a help text in [`NOT_RUN`].

mod help;
mod markdown;
mod scene;

use std::path::{Path, PathBuf};

use self::markdown::Block;
use self::scene::{Scene, Stage};
use crate::support::{directory, file, run, text};

/// Examples of help texts that do not run here: how they begin, and why.
const NOT_RUN: [(&str, &str); 23] = [
    ("tier0 advise collect", "needs a running database; system tests have one"),
    ("tier0 advise apply", "needs a running PostgreSQL; a system test has one"),
    ("tier0 advise check", "needs a plan and later samples; the tests of the advisor have them"),
    (
        "tier0 volume set array.toml redo place",
        "needs a group of flash drives; the tests of the tier have one",
    ),
    (
        "tier0 volume set array.toml lun0 place",
        "needs a group of flash drives; the tests of the tier have one",
    ),
    ("tier0 bench", "needs a PostgreSQL server; the tests of the benchmark start one"),
    ("tier0 volume pin", "needs a group of flash drives; the tests of the tier have one"),
    ("tier0 pool add-group", "needs two unused devices; the tests of groups use files"),
    ("tier0 pool remove-group", "needs a second group of sets; the tests of groups have one"),
    ("tier0 volume migrate", "needs a second group of sets; the tests of groups have one"),
    ("tier0 volume unpin", "ends pins, of which this volume has none"),
    ("tier0 demo --once --time", "the tests of the demo run it with a directory of their own"),
    ("tier0 demo", "goes on until Ctrl-C; the tests of the demo run it"),
    ("tier0 load /dev/sdb", "needs a device that nobody uses"),
    ("tier0 lab profile /dev/sdb", "needs a device that nobody uses"),
    ("tier0 lab profile nbd", "takes minutes; the next one is the same on a model"),
    ("tier0 lab whatif my-database", "takes a minute; the tests of the lab run smaller files"),
    ("tier0 lab run", "takes minutes; the tests of the lab run a study"),
    ("tier0 lab sensitivity", "takes minutes; the tests of the lab vary a smaller study"),
    ("tier0 lab validate-drive", "needs measurements of drives that are not part of the project"),
    ("tier0 pool log", "needs room on new drives, which pool grow has used; a test of its own moves a log"),
    ("tier0 pool flash-cache", "needs flash drives; a test of its own has them"),
    ("tier0 lab profile modelled", "takes a minute; the tests of the lab run it on a smaller array"),
];

/// A report that says little.
const IOSTAT: &str = include_str!("../../../../../crates/advisor/tests/it/samples/iostat_new.txt");

/// The documents, from the root of the project.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listing = std::fs::read_dir(root.join("docs")).expect("documents");
    let mut found: Vec<PathBuf> = listing.map(|entry| entry.expect("an entry").path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "md"));
    found.push(root.join("README.md"));
    found.sort();
    found
}

fn blocks_of(language: &str) -> Vec<Block> {
    let blocks = documents().into_iter().flat_map(|path| markdown::blocks(&path));
    blocks.filter(|block| block.language == language).collect()
}

/// Every example ran, or says why it does not.
#[test]
fn the_commands_of_the_documents_work() {
    let (mut ran, mut skipped) = (0, Vec::new());
    for block in blocks_of("sh").into_iter().chain(blocks_of("console")) {
        if let Some(reason) = &block.not_run {
            skipped.push(format!("{}: {reason}", block.place));
            continue;
        }
        let mut scene = Scene::set(block.stage.unwrap_or(Stage::Served));
        for line in block.text.lines().filter(|line| !line.trim().is_empty()) {
            scene.run(line.trim_start_matches("$ "), &block.place);
            ran += 1;
        }
    }
    assert!(ran >= 15, "only {ran} commands were found in the documents");
    eprintln!("{ran} commands ran, {} blocks did not:\n{}", skipped.len(), skipped.join("\n"));
}

/// README's table of commands.
#[test]
fn the_commands_of_the_overview_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let mut scene = Scene::set(Stage::Described);
    let commands: Vec<String> = markdown::commands_of_tables(&root);
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands.iter().filter(|command| not_run(command).is_none()) {
        scene.run(command, "README.md");
    }
}

#[test]
fn the_examples_of_every_help_work() {
    let mut ran = 0;
    for (verb, examples) in help::examples() {
        let stage = match verb.as_str() {
            "" | "create" | "serve" => Stage::Described,
            "pool" => Stage::WithNewDrives,
            "drive rejoin" => Stage::WithoutD1,
            _ => Stage::Served,
        };
        let runnable: Vec<&String> = examples.iter().filter(|example| not_run(example).is_none()).collect();
        if runnable.is_empty() {
            continue;
        }
        let mut scene = Scene::set(stage);
        for example in runnable {
            scene.run(example, &format!("tier0 {verb} --help"));
            ran += 1;
        }
    }
    assert!(ran >= 30, "only {ran} examples were found");
}

/// A reason for an example that does not exist any more hides the next one that begins so.
#[test]
fn every_example_that_does_not_run_is_there_and_says_why() {
    let all: Vec<String> = help::examples().into_values().flatten().collect();
    for (begins, reason) in NOT_RUN {
        assert!(all.iter().any(|example| example.starts_with(begins)), "there is no example {begins:?}");
        assert!(reason.split(' ').count() >= 4, "{begins:?}: {reason:?} is no reason");
    }
    for path in documents() {
        for block in markdown::blocks(&path) {
            let known = ["sh", "console", "toml", "json", "text"].contains(&block.language.as_str());
            assert!(known, "{}: say what it is: sh, console, toml, json or text", block.place);
            let reason = block.not_run.as_deref().unwrap_or("a reason of words");
            assert!(reason.split(' ').count() >= 3, "{}: {reason:?} is no reason", block.place);
        }
    }
}

#[test]
fn the_files_of_the_documents_can_be_read() {
    let mut read = 0;
    for block in blocks_of("toml").into_iter().filter(|block| block.not_run.is_none()) {
        let directory = directory();
        let place = &block.place;
        match place.split(':').next().unwrap_or_default() {
            "array-file.md" | "tiering.md" => {
                let description = tier0_description::Description::parse(&block.text, "array.toml");
                let description = description.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert_eq!(description.warnings, [""; 0], "{place}");
            }
            "load-file.md" => {
                let load = file(directory.path(), "load.toml", &block.text);
                let ended = run(&["load", "/nowhere", "--load", text(&load)]);
                assert!(ended.stderr.contains("\"/nowhere\" does not exist"), "{place}: {}", ended.stderr);
            }
            "advise.md" => {
                let site = file(directory.path(), "site.toml", &block.text);
                let report = file(directory.path(), "iostat.txt", IOSTAT);
                let ended = run(&["advise", text(&report), "--site", text(&site), "--json"]);
                assert_eq!(ended.code, Some(0), "{place}: {}", ended.stderr);
                let fires = "\"rule\": \"flash-buses\",\n      \"subject\": \"layout\",\n      \"outcome\": \"fires\"";
                assert!(ended.stdout.contains(fires), "{place}: the site is not used: {}", ended.stdout);
            }
            "catalog.md" => {
                file(directory.path(), "mine.toml", &block.text);
                let ended = run(&["catalog", "list", "--catalog", text(directory.path())]);
                assert_eq!(ended.code, Some(0), "{place}: {}", ended.stderr);
            }
            other => panic!("{place}: nobody knows what reads the files of {other}"),
        }
        read += 1;
    }
    assert!(read >= 3, "only {read} files were found");
}

fn not_run(command: &str) -> Option<&'static str> {
    NOT_RUN.iter().find(|(begins, _)| command.starts_with(begins)).map(|(_, reason)| *reason)
}
