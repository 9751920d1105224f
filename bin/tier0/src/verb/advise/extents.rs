//! Files of a mounted file system as ranges of the volume below it.
//!
//! The kernel maps files to the file system's device (FIEMAP, by `filefrag` of e2fsprogs); sysfs says where a partition or a loop
//! device begins on the device below. Layers that mix blocks, such as device mapper, cannot be followed.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a sector, in which `filefrag` is asked and sysfs counts.
const SECTOR: u64 = 512;
/// What the kernel says of a piece that has no place of its own on the device.
const UNPLACED: [&str; 4] = ["inline", "unknown_loc", "delalloc", "encoded"];

/// The device below a file.
pub(super) struct Below {
    /// Where the file system's device begins on the volume, bytes.
    pub(super) start: u64,
    /// How long the whole device is, with all its partitions, bytes.
    pub(super) device_bytes: u64,
}

/// The device on which a file lies. With `offset` the administrator says where it begins on the volume.
pub(super) fn below(file: &Path, offset: Option<u64>) -> Result<Below, String> {
    let shown = file.display();
    let meta = std::fs::metadata(file).map_err(|error| {
        format!("cannot look at {shown}: {error}; run this on the database's host, as root or as its user")
    })?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let sys = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let number =
        |name: &str| -> Option<u64> { std::fs::read_to_string(sys.join(name)).ok()?.trim().parse().ok() };
    // A partition is a directory in that of its disk.
    let whole = if sys.join("partition").exists() { number("../size") } else { number("size") };
    let Some(sectors) = whole.filter(|_| major != 0) else {
        return Err(format!(
            "{shown} lies on a file system without a block device of its own; pin its volume as a whole (tier0 volume pin), or \
             move tables by tablespace (without --pin)"
        ));
    };
    let start = match offset {
        Some(offset) => offset,
        None if has_devices_below(&sys) => {
            return Err(format!(
                "{shown} lies on a device that is made of others (LVM, encryption, md, bcache), whose blocks may lie anywhere on the volume; if it is \
                 one linear piece, say where it begins (--offset)"
            ));
        }
        // A partition counts its start in sectors; a loop device, or that of the partition, begins within its file.
        None => {
            let partition = number("start").unwrap_or(0) * SECTOR;
            let looped = number("loop/offset").or_else(|| number("../loop/offset")).unwrap_or(0);
            partition + looped
        }
    };
    Ok(Below { start, device_bytes: sectors * SECTOR })
}

/// Whether the kernel makes a device of others.
fn has_devices_below(sys: &Path) -> bool {
    let of_disk = ["slaves", "../slaves"].map(|name| std::fs::read_dir(sys.join(name)));
    of_disk.into_iter().flatten().flatten().next().is_some()
}

/// The pieces of a file on its device, in bytes, and bytes that have no place there yet.
pub(super) fn pieces(file: &Path) -> Result<(Vec<Range<u64>>, u64), String> {
    let mut command = Command::new("filefrag");
    // A file that is synced has all its blocks on the device.
    command.env("LC_ALL", "C").args(["-s", "-v", "-b512"]).arg(file);
    let output = command
        .output()
        .map_err(|error| format!("filefrag cannot be run: {error}; install e2fsprogs, which has it"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{} cannot be mapped: {}; use a file system that maps its files (ext4, xfs), and run this as root",
            file.display(),
            said.trim().replace('\n', ", ")
        ));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines such as `   0:        0..    6143:  319998360.. 320004503:   6144:             last,eof`.
fn parse(text: &str) -> (Vec<Range<u64>>, u64) {
    let (mut found, mut unplaced) = (Vec::new(), 0);
    for line in text.lines() {
        let mut columns = line.split(':').map(str::trim);
        let Some(Ok(_)) = columns.next().map(str::parse::<u64>) else { continue };
        let (Some(_logical), Some(physical), Some(length)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let Ok(length) = length.parse::<u64>() else { continue };
        let flags = columns.next_back().unwrap_or_default();
        let first = physical.split("..").next().and_then(|first| first.trim().parse::<u64>().ok());
        match first.filter(|_| !UNPLACED.iter().any(|flag| flags.contains(flag))) {
            Some(first) => found.push(first * SECTOR..(first + length) * SECTOR),
            None => unplaced += length * SECTOR,
        }
    }
    (found, unplaced)
}

/// Ranges in order, joined until there are at most `most`: those with the smallest gaps between them first.
pub(super) fn joined(mut ranges: Vec<Range<u64>>, most: usize) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    let mut gaps: Vec<u64> = merged.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    gaps.sort_unstable();
    let surplus = merged.len().saturating_sub(most.max(1));
    let Some(widest) = surplus.checked_sub(1).map(|at| gaps[at]) else { return merged };
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in merged {
        match joined.last_mut().filter(|last| range.start - last.end <= widest) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_and_what_has_no_place_is_counted() {
        let text = "Filesystem type is: ef53\nFile size of /x: y is 3145728 (6144 blocks of 512 bytes)\n \
                    ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
                    0:        0..    2047:     272896..    274943:   2048:\n   \
                    1:     2048..    4095:     300000..    302047:   2048:     274944:\n   \
                    2:     4096..    6143:          0..      2047:   2048:             last,unknown_loc,delalloc,eof\n\
                    /x: y: 3 extents found\n";
        let (found, unplaced) = parse(text);
        assert_eq!(found, [272_896 * 512..274_944 * 512, 300_000 * 512..302_048 * 512]);
        assert_eq!(unplaced, 2048 * 512);
    }

    #[test]
    fn near_ranges_are_joined_first() {
        let ranges = vec![100..110, 0..10, 12..20, 200..210, 5..11];
        assert_eq!(joined(ranges.clone(), 9), [0..11, 12..20, 100..110, 200..210]);
        assert_eq!(joined(ranges.clone(), 3), [0..20, 100..110, 200..210]);
        assert_eq!(joined(ranges.clone(), 1), [0..210]);
        assert_eq!(joined(Vec::new(), 1), Vec::<Range<u64>>::new());
    }

    #[test]
    fn a_file_of_this_machine_is_mapped_or_refused_with_a_remedy() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("f");
        std::fs::write(&file, vec![1_u8; 1 << 16]).expect("a file");
        match below(&file, None) {
            Ok(below) => assert!(below.device_bytes > 0),
            Err(text) => assert!(text.contains("; "), "{text}"),
        }
        assert!(
            below(&directory.path().join("none"), None).is_err_and(|text| text.contains("cannot look at"))
        );
    }
}
