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

/// How many accesses, how many blocks, and how many accesses are of the block behind the one before.
fn count(reader: TraceReader) -> (usize, usize, usize) {
    let (mut accesses, mut blocks, mut successors, mut expected) = (0, BTreeSet::new(), 0, None);
    for access in reader {
        let Place::Object { id, bytes: None } = access.expect("an access").place else { panic!("no block") };
        accesses += 1;
        blocks.insert(id);
        successors += usize::from(expected == Some(id));
        expected = id.checked_add(1);
    }
    (accesses, blocks.len(), successors)
}

#[test]
fn traces_of_one_block_a_line_are_read_as_they_are() {
    let Some(folder) = folder() else { return };
    for (name, accesses, blocks) in
        [("loop", 505_500, 1011), ("scan", 50_025, 2001), ("sprite", 133_996, 7075)]
    {
        let reader = TraceReader::open(folder.join(format!("{name}.trace.gz")), None).expect(name);
        assert_eq!((reader.format(), reader.compression()), (Format::Ids, Some(Compression::Gzip)));
        let (found, distinct, _) = count(reader);
        assert_eq!((found, distinct), (accesses, blocks), "{name}");
    }
}

/// Their description has the orders of bytes the other way round, which no number of hits would tell; that blocks
/// follow their predecessors does.
#[test]
fn traces_of_numbers_are_read_when_their_format_is_named() {
    let Some(folder) = folder() else { return };
    for (name, format, accesses, blocks, successors) in [
        ("w106", Format::U32Le, 5_292_456, 275_171, 2_064_425),
        ("w106", Format::U32Be, 5_292_456, 275_171, 0),
        ("orm-busy", Format::U32Be, 5_000_000, 76_349, 206_299),
        ("orm-busy", Format::U32Le, 5_000_000, 76_349, 0),
    ] {
        let path = folder.join(format!("{name}.trace.xz"));
        let told = TraceReader::open(&path, None).expect_err("it says nothing").to_string();
        assert!(told.contains("oracle-general, u32-be or u32-le"), "{told}");
        let found = count(TraceReader::open(&path, Some(format)).expect(name));
        assert_eq!(found, (accesses, blocks, successors), "{name} as {format}");
    }
}
