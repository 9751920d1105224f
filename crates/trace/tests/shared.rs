//! Traces of the project's shared data, where they are: in `TIER0_TRACES`, or beside the workspace.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tier0_trace::{Compression, Format, Place, TraceReader};

fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
    let folder = std::env::var_os("TIER0_TRACES").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there is no folder {}; TIER0_TRACES names another", folder.display());
    None
}

/// How many accesses, and how many blocks.
fn count(reader: TraceReader) -> (usize, usize) {
    let (mut accesses, mut blocks) = (0, BTreeSet::new());
    for access in reader {
        let Place::Object { id, bytes: None } = access.expect("an access").place else { panic!("no block") };
        accesses += 1;
        blocks.insert(id);
    }
    (accesses, blocks.len())
}

#[test]
fn traces_of_one_block_a_line_are_read_as_they_are() {
    let Some(folder) = folder() else { return };
    for (name, accesses, blocks) in
        [("loop", 505_500, 1011), ("scan", 50_025, 2001), ("sprite", 133_996, 7075)]
    {
        let reader = TraceReader::open(folder.join(format!("{name}.trace.gz")), None).expect(name);
        assert_eq!((reader.format(), reader.compression()), (Format::Ids, Some(Compression::Gzip)));
        assert_eq!(count(reader), (accesses, blocks), "{name}");
    }
}

#[test]
fn traces_of_numbers_are_read_when_their_format_is_named() {
    let Some(folder) = folder() else { return };
    for (name, format, accesses, blocks) in [
        ("w106", Format::U32Be, 5_292_456, 275_000..276_000),
        ("orm-busy", Format::U32Le, 5_000_000, 0..200_000),
    ] {
        let path = folder.join(format!("{name}.trace.xz"));
        let told = TraceReader::open(&path, None).expect_err("nobody can tell").to_string();
        assert!(told.contains("oracle-general, u32-be or u32-le"), "{told}");
        let found = count(TraceReader::open(&path, Some(format)).expect(name));
        assert!(found.0 == accesses && blocks.contains(&found.1), "{name}: {found:?}");
    }
}
