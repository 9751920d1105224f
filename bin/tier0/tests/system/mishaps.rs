//! Every mishap of `docs/operations.md` that takes a few seconds, on files and with io_uring: the short form of
//! `cargo xtask mishaps`. Where nbdkit, nbdfuse or root are missing, it does without them and says so.

use tier0_torture::mishaps::{Ended, Media, Mishaps, mishaps, names};

/// Repeats the short mishaps of a kind.
fn short(kind: &str) {
    let plan = Mishaps {
        program: env!("CARGO_BIN_EXE_tier0").into(),
        directory: env!("CARGO_TARGET_TMPDIR").into(),
        only: Some(kind.to_owned()),
        short: true,
        media: Media::Files,
        threads: false,
    };
    let all = mishaps(&plan, &mut |told| eprintln!("{told}")).expect("a directory can be made");
    assert!(!all.is_empty(), "no mishap is called {kind:?}");
    let failed: Vec<String> =
        all.iter().filter(|told| matches!(told.ended, Ended::Badly(_))).map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_refused_start_changes_nothing() {
    short("starts/");
}

#[test]
fn halves_are_not_believed_without_consent() {
    short("consent/");
}

#[test]
fn a_bad_sector_is_not_a_bad_drive() {
    short("errors/");
}

#[test]
fn files_are_judged_before_they_are_believed() {
    short("files/");
}

#[test]
fn what_is_changed_online_outlives_a_restart() {
    short("online/");
}

#[test]
fn small_things_cost_no_evening() {
    short("small/");
}

/// A page that names a mishap which no test repeats any more would promise what is not shown.
#[test]
fn the_page_on_operations_names_every_mishap_and_no_other() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md"))
        .expect("the page is part of the project");
    let names = names();
    for name in &names {
        assert!(page.contains(&format!("`{name}`")), "docs/operations.md does not name {name}");
    }
    let kinds = ["starts/", "consent/", "errors/", "stalls/", "files/", "online/", "small/"];
    for word in page.split('`').filter(|word| kinds.iter().any(|kind| word.starts_with(kind))) {
        assert!(names.contains(&word), "docs/operations.md names {word}, which nobody repeats");
    }
}
