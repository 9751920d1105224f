//! What is written in a format is read back.

use std::io::{self, Write};

use proptest::prelude::*;
use tier0_trace::{Access, Format, Op, Options, Place, TraceReader};
use tier0_units::Nanos;

/// What a format can say.
struct Abilities {
    has_times: bool,
    /// Times are multiples of this, nanoseconds.
    tick: u64,
    volumes: &'static [&'static str],
    ops: &'static [Op],
    /// Ranges are multiples of this, bytes; none for objects.
    unit: Option<u64>,
}

const OPS: &[Op] = &[Op::Read, Op::Write, Op::Discard, Op::Flush];
const READS: &[Op] = &[Op::Read];
const SINGLE: &[&str] = &["trace"];

fn abilities(format: Format) -> Abilities {
    let (has_times, tick, volumes, ops, unit) = match format {
        Format::Msr => (true, 100, &["usr_0", "usr_1", "web_0"][..], &OPS[..2], Some(1)),
        Format::Blkparse => (true, 1, &["8,0", "8,16", "253,0"][..], OPS, Some(512)),
        Format::Fio => (true, 1000, &["/dev/sdb", "a-file"][..], OPS, Some(1)),
        Format::OracleGeneral => (true, 1_000_000_000, SINGLE, READS, None),
        Format::Ids | Format::U32Be | Format::U32Le => (false, 1, SINGLE, READS, None),
    };
    Abilities { has_times, tick, volumes, ops, unit }
}

type Drawn = (u64, usize, usize, u64, u64);

/// An access that the format can say, made of anything.
fn access(format: Format, (time, volume, op, first, second): Drawn) -> Access {
    let Abilities { has_times, tick, volumes, ops, unit } = abilities(format);
    let op = ops[op % ops.len()];
    let place = match (op, unit) {
        (Op::Flush, _) => Place::Volume,
        (_, Some(unit)) => {
            let (offset, length) = (first / unit, second / unit % (1 << 32));
            Place::Bytes { offset: (offset.min(u64::MAX / unit - length)) * unit, length: length * unit }
        }
        (_, None) => {
            let bytes = (format == Format::OracleGeneral).then_some(second as u32);
            let id = match format {
                Format::U32Be | Format::U32Le => u64::from(first as u32),
                _ => first,
            };
            Place::Object { id, bytes }
        }
    };
    // As many units as all formats can hold.
    let at = has_times.then_some(Nanos(time % (1 << 32) * tick));
    Access { at, volume: (volume % volumes.len()) as u32, op, place }
}

/// Writes a trace that begins at some time of its own.
fn write(format: Format, accesses: &[Access], begin: u64) -> Vec<u8> {
    let Abilities { tick, volumes, .. } = abilities(format);
    let mut text = Vec::new();
    if format == Format::Fio {
        writeln!(text, "fio version 3 iolog").expect("memory");
    }
    for (number, access) in accesses.iter().enumerate() {
        let ticks = begin + access.at.map_or(0, |at| at.0 / tick);
        let volume = volumes[access.volume as usize];
        let (offset, length) = match access.place {
            Place::Bytes { offset, length } => (offset, length),
            Place::Object { id, bytes } => (id, u64::from(bytes.unwrap_or(0))),
            Place::Volume => (0, 0),
        };
        let written = match format {
            Format::Msr => {
                let volume = volume.replace('_', ",");
                writeln!(text, "{ticks},{volume},{:?},{offset},{length},1\r", access.op)
            }
            Format::Blkparse => {
                let (seconds, nanos) = (ticks / 1_000_000_000, ticks % 1_000_000_000);
                let head =
                    format!("{volume:>6} {:3} {number:8} {seconds:5}.{nanos:09} {:5}", number % 4, 697);
                let rwbs = ["R", "W", "D", "FWS"][access.op as usize];
                let range = match access.op {
                    Op::Flush => String::new(),
                    _ => format!("{} + {} ", offset / 512, length / 512),
                };
                writeln!(text, "{head}  Q {rwbs:>3} {range}[some process]").expect("memory");
                writeln!(text, "{head}  G {rwbs:>3} {range}[some process]")
            }
            Format::Fio => {
                let action = ["read", "write", "trim", "datasync"][access.op as usize];
                writeln!(text, "{ticks} {volume} {action} {offset} {length}")
            }
            Format::Ids => writeln!(text, "{offset}"),
            Format::U32Be => text.write_all(&(offset as u32).to_be_bytes()),
            Format::U32Le => text.write_all(&(offset as u32).to_le_bytes()),
            Format::OracleGeneral => {
                let (time, size) = ((ticks as u32).to_le_bytes(), (length as u32).to_le_bytes());
                text.write_all(&[&time[..], &offset.to_le_bytes(), &size, &(-1i64).to_le_bytes()].concat())
            }
        };
        written.expect("memory");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read_back(
        format in 0..Format::ALL.len(),
        drawn in prop::collection::vec(any::<Drawn>(), 1..200),
        begin in 0u64..1 << 30,
    ) {
        let format = Format::ALL[format];
        let mut accesses: Vec<Access> = drawn.into_iter().map(|drawn| access(format, drawn)).collect();
        // The first has the earliest time; volumes are numbered as they come.
        accesses.sort_by_key(|access| access.at);
        let first = accesses[0].at.unwrap_or_default();
        let latest = u64::from(u32::MAX >> 1);
        for access in &mut accesses {
            let since = |at: Nanos| at.0.saturating_sub(first.0).min(latest * abilities(format).tick);
            access.at = access.at.map(|at| Nanos(since(at)));
        }
        let text = write(format, &accesses, begin);
        let mut reader = TraceReader::from_read("t", io::Cursor::new(text), Options::from(format)).expect("a trace");
        let mut found = Vec::new();
        for access in reader.by_ref() {
            found.push(access.expect("an access"));
        }
        let names = abilities(format).volumes;
        prop_assert_eq!(found.len(), accesses.len());
        for (found, access) in found.iter().zip(&accesses) {
            prop_assert_eq!(&reader.volumes()[found.volume as usize], names[access.volume as usize]);
            prop_assert_eq!(Access { volume: 0, ..*found }, Access { volume: 0, ..*access });
        }
        prop_assert_eq!(reader.volumes().len() <= names.len(), true);
    }

    #[test]
    fn no_input_is_a_panic(format in 0..=Format::ALL.len(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let options = Options { format: Format::ALL.get(format).copied(), ..Options::default() };
        if let Ok(reader) = TraceReader::from_read("t", io::Cursor::new(bytes), options) {
            for access in reader {
                let _ = access.map_err(|error| error.to_string());
            }
        }
    }
}
