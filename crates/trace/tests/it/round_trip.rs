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
        Format::Alibaba => (true, 1000, &["0", "419"][..], &OPS[..2], Some(1)),
        Format::Tencent => (true, 1_000_000_000, &["1063", "7"][..], &OPS[..2], Some(512)),
        Format::Systor => (true, 1, &["0", "5"][..], &OPS[..2], Some(1)),
        Format::Spc => (true, 1000, &["0", "1"][..], &OPS[..2], Some(512)),
        Format::Vscsi => (true, 1000, SINGLE, OPS, Some(512)),
        Format::Columns => (true, 1_000_000, &["a_b", "c_d"][..], OPS, Some(4096)),
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

/// How most text in columns says what is done.
fn letter(op: Op) -> char {
    if op == Op::Write { 'W' } else { 'R' }
}

/// How a format is read.
fn options(format: Format) -> Options {
    let columns = "volume,op,offset:4KiB,size:4KiB,volume,time:ms".parse().expect("columns");
    Options { columns: (format == Format::Columns).then_some(columns), ..format.into() }
}

/// All formats, that of listed columns too.
fn all() -> Vec<Format> {
    [&Format::ALL[..], &[Format::Columns]].concat()
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
            Format::Alibaba => writeln!(text, "{volume},{},{offset},{length},{ticks}", letter(access.op)),
            Format::Tencent => {
                let (sector, sectors) = (offset / 512, length / 512);
                writeln!(text, "{ticks},{sector},{sectors},{},{volume}", access.op as u8)
            }
            Format::Systor => {
                let (seconds, nanos) = (ticks / 1_000_000_000, ticks % 1_000_000_000);
                let letter = letter(access.op);
                writeln!(text, "{seconds}.{nanos:09},0.1,{letter},{volume},{offset},{length}")
            }
            Format::Spc => {
                let (seconds, micros, letter) = (ticks / 1_000_000, ticks % 1_000_000, letter(access.op));
                writeln!(text, "{volume},{},{length},{letter},{seconds}.{micros:06}", offset / 512)
            }
            Format::Vscsi => {
                let command = ["read", "0x2a", "66", "53"][access.op as usize];
                writeln!(text, "{number},{length},1,{command},{},{ticks}", offset / 512)
            }
            Format::Columns => {
                let (first, second) = volume.split_once('_').expect("two parts");
                let (block, blocks) = (offset / 4096, length / 4096);
                writeln!(text, "{first} {:?} {block} {blocks}\t{second} {ticks}", access.op)
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
        format in 0..all().len(),
        drawn in prop::collection::vec(any::<Drawn>(), 1..200),
        begin in 0u64..1 << 30,
    ) {
        let format = all()[format];
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
        let mut reader = TraceReader::from_read("t", io::Cursor::new(text), options(format)).expect("a trace");
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
    fn no_input_is_a_panic(format in 0..=all().len(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let options = all().get(format).map_or_else(Options::default, |format| options(*format));
        if let Ok(reader) = TraceReader::from_read("t", io::Cursor::new(bytes), options) {
            for access in reader {
                let _ = access.map_err(|error| error.to_string());
            }
        }
    }
}
