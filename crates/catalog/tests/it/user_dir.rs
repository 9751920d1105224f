//! A user's directory over the embedded catalogue, and the messages for everything wrong in it.

use tier0_catalog::{Catalog, CatalogError, DriveSpec, SourceKind};

/// Loads one file laid over the embedded catalogue.
fn load(text: &str) -> Result<Catalog, CatalogError> {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("mine.toml"), text).expect("it can be written");
    Catalog::load_dir(dir.path())
}

/// The message of a file that must not load, without the directory's name.
fn message(text: &str) -> String {
    let error = load(text).expect_err("it must not load").to_string();
    match error.find("mine.toml") {
        Some(at) => error[at..].to_owned(),
        None => error,
    }
}

const AMENDED: &str = r#"
[disk.nl-7k2]
name = "our own 7.2k disk"
description = "measured in our laboratory"
based_on = "nl-7k2"

[disk.nl-7k2.parameters]
seek_average_read_ms = { value = 7.9, unit = "ms", kind = "measured", source = "our bench, 2026-01" }

[disk.nl-7k2-slow]
name = "a slow one"
description = "based on ours"
based_on = "nl-7k2"

[disk.nl-7k2-slow.parameters]
controller_overhead_ms = { value = 0.5, unit = "ms", kind = "assumed", source = "an old controller" }
"#;

#[test]
fn amends_an_embedded_entry_and_builds_on_the_amendment() {
    let catalog = load(AMENDED).expect("it loads");
    for (id, overhead) in [("nl-7k2", 0.2), ("nl-7k2-slow", 0.5)] {
        let DriveSpec::Disk(spec) = catalog.drive(id).expect("it is there") else { panic!("it is a disk") };
        assert_eq!(spec.parameters.seek_average_read_ms.value, 7.9, "{id}");
        assert_eq!(spec.parameters.seek_average_read_ms.kind, SourceKind::Measured, "{id}");
        assert_eq!(spec.parameters.controller_overhead_ms.value, overhead, "{id}");
        assert_eq!(spec.parameters.surfaces.value, 8, "{id}");
        assert_eq!(spec.class, "7.2k disk", "{id}");
    }
    assert!(catalog.drive("efd-73gb").is_ok(), "the embedded entries stay");
}

#[test]
fn a_calibration_of_ones_own_can_be_the_default() {
    let catalog = load(
        r#"
[flash.efd-73gb]
name = "ours"
description = "with our figure"
based_on = "efd-73gb"
default_calibration = "ours"

[flash.efd-73gb.calibration.ours]
description = "measured"

[flash.efd-73gb.calibration.ours.parameters]
controller_read_us = { value = 150, unit = "us", kind = "measured", source = "our bench" }
rated_read_iops = { value = 6600, unit = "IOPS", kind = "measured", source = "our bench" }
"#,
    )
    .expect("it loads");
    let DriveSpec::Flash(spec) = catalog.drive("efd-73gb").expect("it is there") else {
        panic!("it is flash")
    };
    assert_eq!((spec.calibration.as_str(), spec.parameters.controller_read_us.value), ("ours", 150.0));
    let names: Vec<&str> = spec.calibrations().map(|(name, _)| name).collect();
    assert_eq!(names, ["datasheet", "array-sizing", "cx4-mixed", "cx4-oracle", "ours"]);
}

/// A file with one amended parameter of nl-7k2, written as given, on line 6.
fn with_parameter(line: &str) -> String {
    format!(
        "[disk.mine]\nname = \"m\"\ndescription = \"d\"\nbased_on = \"nl-7k2\"\n[disk.mine.parameters]\n{line}\n"
    )
}

#[test]
fn names_file_line_field_and_remedy() {
    let cases = [
        (
            "rpm = { value = 5400, unit = \"ms\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.rpm: is given in \"ms\"; convert the value and write unit = \"rpm\"",
        ),
        (
            "rpm = { value = 72000, unit = \"rpm\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.rpm: is 72000 rpm, outside 3600 to 20000; check",
        ),
        (
            "rpm = { value = 7200, unit = \"rpm\", kind = \"measured\", source = \" \" }",
            "mine.toml, line 6, disk.mine.parameters.rpm: has no source; name the document",
        ),
        (
            "rpm = { value = 7200, unit = \"rpm\", kind = \"measured\" }",
            "mine.toml, line 6, disk.mine.parameters.rpm: \"source\" is missing; add it",
        ),
        (
            "rpm = { value = \"fast\", unit = \"rpm\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.rpm.value: found the string \"fast\", expected ",
        ),
        (
            "rpm = { value = 7200, unit = \"rpm\", kind = \"guessed\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.rpm.kind: unknown variant `guessed`",
        ),
        (
            "speed = { value = 7200, unit = \"rpm\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.speed: unknown field `speed`",
        ),
        (
            "cylinders = { value = 100000, unit = \"count\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.cylinders: gives a geometry that holds 60.4 % of the capacity",
        ),
        (
            "seek_average_read_ms = { value = 19, unit = \"ms\", kind = \"measured\", source = \"s\" }",
            "mine.toml, line 6, disk.mine.parameters.seek_average_read_ms: violates",
        ),
        (
            "head_switch_ms = { value = 2.5, unit = \"ms\", kind = \"measured\", source = \"s\" }",
            // The contradicted field is inherited, so the line is that of the table it would stand in.
            "mine.toml, line 5, disk.mine.parameters.sustained_outer_mb_s: is 115 MB/s, but",
        ),
        ("rpm = ", "mine.toml, line 6, disk.mine.parameters.rpm: "),
    ];
    for (line, expected) in cases {
        let message = message(&with_parameter(line));
        assert!(message.starts_with(expected), "\n  {message}\n  should begin with\n  {expected}");
        assert!(message.contains("; "), "no remedy in: {message}");
    }
}

#[test]
fn refuses_entries_that_do_not_stand_on_their_own() {
    let head = "name = \"m\"\ndescription = \"d\"\n";
    let cases = [
        (
            format!("[disk.mine]\n{head}class = \"c\"\n"),
            "line 1, disk.mine.parameters.capacity_gb: is missing; add it",
        ),
        (
            format!("[disk.mine]\n{head}based_on = \"nope\"\n"),
            "line 4, disk.mine.based_on: there is no disk \"nope\"",
        ),
        (
            format!("[disk.mine]\n{head}based_on = \"nvme\"\n"),
            "line 4, disk.mine.based_on: there is no disk \"nvme\"",
        ),
        (
            format!("[disk.My_Disk]\n{head}based_on = \"nl-7k2\"\n"),
            "line 1, disk.My_Disk: the id is not in kebab-case",
        ),
        (
            format!("[disk.fc-4g]\n{head}based_on = \"nl-7k2\"\n"),
            "line 1, disk.fc-4g: the id is taken by a link",
        ),
        (
            format!("[disk.a]\n{head}based_on = \"b\"\n[disk.b]\n{head}based_on = \"a\"\n"),
            "line 4, disk.a.based_on: a -> b refers back to itself",
        ),
        (
            format!("[disk.mine]\n{head}based_on = \"nl-7k2\"\ndefault_calibration = \"x\"\n"),
            "line 5, disk.mine.default_calibration: \"mine\" has no calibration \"x\"",
        ),
        (format!("[tape.mine]\n{head}"), "line 1, tape: unknown field `tape`"),
    ];
    for (text, expected) in cases {
        let message = message(&text);
        let expected = format!("mine.toml, {expected}");
        assert!(message.starts_with(&expected), "\n  {message}\n  should begin with\n  {expected}");
    }
}

#[test]
fn flash_must_be_able_to_do_what_it_is_rated_for() {
    let message = message(
        r#"[flash.mine]
name = "m"
description = "d"
based_on = "ssd-sata"
[flash.mine.parameters]
controller_read_us = { value = 100, unit = "us", kind = "measured", source = "s" }
"#,
    );
    let expected = "mine.toml, line 5, flash.mine.parameters.rated_read_iops: is 95000, but the other parameters \
                    give a ceiling of 10000; correct";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn an_id_stands_once_in_a_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "[disk.mine]\nname = \"m\"\ndescription = \"d\"\nbased_on = \"nl-7k2\"\n";
    std::fs::create_dir(dir.path().join("sub")).expect("it can be made");
    std::fs::write(dir.path().join("a.toml"), text).expect("it can be written");
    std::fs::write(dir.path().join("sub/b.toml"), text).expect("it can be written");
    let error = Catalog::load_dir(dir.path()).expect_err("it must not load").to_string();
    assert!(
        error.contains("b.toml, line 1, disk.mine: the id is already defined in") && error.contains("a.toml"),
        "{error}"
    );
}

#[test]
fn an_absent_or_empty_directory_is_said_to_be_so() {
    let dir = tempfile::tempdir().expect("a directory");
    let empty = Catalog::load_dir(dir.path()).expect_err("it is empty").to_string();
    assert!(empty.contains("has no .toml file"), "{empty}");
    let absent = Catalog::load_dir(&dir.path().join("absent")).expect_err("it is absent").to_string();
    assert!(absent.starts_with("cannot read") && absent.contains("check that it exists"), "{absent}");
}

/// An embedded file as an entry of one's own.
fn embedded_disk() -> String {
    include_str!("../../../../catalog/disks/nl-7k2.toml").replace("disk.nl-7k2", "disk.mine")
}

#[test]
fn names_whichever_parameter_is_missing() {
    let text = embedded_disk();
    let parameters = text.lines().skip_while(|line| !line.contains(".parameters]")).skip(1);
    let mut looked_at = 0;
    for line in parameters.filter(|line| line.contains(" = {")) {
        let field = line.split_once(' ').expect("a name and the rest").0;
        let message = message(&text.replace(line, ""));
        assert!(message.contains(&format!("disk.mine.parameters.{field}: is missing; add it")), "{message}");
        looked_at += 1;
    }
    assert_eq!(looked_at, 29, "each parameter of a disk");
}

#[test]
fn a_file_cut_off_anywhere_is_refused_without_panic() {
    let text = embedded_disk();
    let header = text.find("[disk.mine]").expect("it has a header") + "[disk.mine]".len();
    for end in (header..text.trim_end().len()).step_by(97) {
        let error = load(&text[..end]).expect_err("an incomplete file must not load").to_string();
        assert!(error.contains("mine.toml, line "), "{error}");
    }
}
