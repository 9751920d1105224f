//! Statistics of SQL Server's files, one row each: the known report, `sys.dm_io_virtual_file_stats`, and the tables of
//! `sp_BlitzFirst`.
//!
//! The known report has a column `ISStallPCT` that is no percentage: it is the floor of stall over I/Os, in milliseconds. It is
//! checked and never used. `PerCentReads` and `PerCentWrites` are floors and are not used either.

use std::io::BufRead;

use super::csv::Csv;
use super::error::ReadError;
use super::time::seconds_of;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Level, Measured, Object, Sample, Trap,
    kind_of_file,
};

/// The most objects of one moment.
const OBJECTS_MAX: usize = 200_000;
/// No file of SQL Server is smaller; a column of sizes whose values are all larger is in bytes.
const SMALLEST_FILE_BYTES: f64 = 500_000.0;

/// Factors of units of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeUnit {
    /// Bytes.
    Bytes,
    /// KiB.
    Kib,
    /// MiB.
    Mib,
    /// GiB.
    Gib,
    /// Pages of 8 KiB, as `sys.master_files` counts.
    Pages,
}

impl SizeUnit {
    fn bytes(self) -> f64 {
        match self {
            SizeUnit::Bytes => 1.0,
            SizeUnit::Kib => 1024.0,
            SizeUnit::Mib => 1024.0 * 1024.0,
            SizeUnit::Gib => 1024.0 * 1024.0 * 1024.0,
            SizeUnit::Pages => 8192.0,
        }
    }
}

struct Columns {
    database: Option<usize>,
    name: Option<usize>,
    path: Option<usize>,
    described: Option<usize>,
    size: Option<(usize, Option<SizeUnit>)>,
    reads: usize,
    writes: usize,
    read_bytes: Option<(usize, f64)>,
    write_bytes: Option<(usize, f64)>,
    read_ms: Option<usize>,
    write_ms: Option<usize>,
    stall_ms: Option<usize>,
    percent: Option<usize>,
    at: Option<usize>,
    sample_ms: Option<usize>,
    elapsed: Option<usize>,
}

const MEGABYTE: f64 = 1024.0 * 1024.0;

impl Columns {
    fn of(csv: &Csv<'_>) -> Result<Columns, ReadError> {
        let with_factor = |bytes: &[&str], megabytes: &[&str]| {
            let bytes = csv.find(bytes).map(|at| (at, 1.0));
            bytes.or_else(|| csv.find(megabytes).map(|at| (at, MEGABYTE)))
        };
        let sizes: [(&[&str], Option<SizeUnit>); 5] = [
            (&["sizeondiskbytes", "filesizebytes", "sizebytes", "bytesondisk"], Some(SizeUnit::Bytes)),
            (&["filesizekb", "sizekb"], Some(SizeUnit::Kib)),
            (&["sizeondiskmb", "filesizemb", "sizemb"], Some(SizeUnit::Mib)),
            (&["filesizegb", "sizegb"], Some(SizeUnit::Gib)),
            (&["filesize", "size"], None),
        ];
        Ok(Columns {
            database: csv.find(&["dbname", "databasename", "databasenm", "databaseid", "dbid"]),
            name: csv.find(&[
                "filename",
                "filelogicalname",
                "logicalfilename",
                "logicalname",
                "name",
                "fileid",
            ]),
            path: csv.find(&["filepath", "physicalname", "physicalfilename", "path"]),
            described: csv.find(&["typedesc", "filetype", "type"]),
            size: sizes.iter().find_map(|(names, unit)| Some((csv.find(names)?, *unit))),
            reads: csv.need(&["numberreads", "numofreads", "numberofreads"], "num_of_reads")?,
            writes: csv.need(&["numberwrites", "numofwrites", "numberofwrites"], "num_of_writes")?,
            read_bytes: with_factor(&["bytesread", "numofbytesread"], &["megabytesread", "mbread"]),
            write_bytes: with_factor(
                &["byteswritten", "numofbyteswritten"],
                &["megabyteswritten", "mbwritten"],
            ),
            read_ms: csv.find(&["iostallreadms", "readstallms"]),
            write_ms: csv.find(&["iostallwritems", "writestallms"]),
            stall_ms: csv.find(&["iostallms", "iostall"]),
            percent: csv.find(&["isstallpct", "iostallpct"]),
            at: csv.find(&["checkdate", "collectiontime", "sampletime", "capturetime"]),
            sample_ms: csv.find(&["samplems"]),
            elapsed: csv.find(&["elapsedseconds"]),
        })
    }
}

/// Reads it. `unit` is that of sizes where the header says none.
pub(super) fn read(
    file: &str,
    input: &mut dyn BufRead,
    delimiter: u8,
    format: Format,
    unit: Option<SizeUnit>,
    to: &mut Collector,
) -> Result<(), ReadError> {
    let mut csv = Csv::open(file, input, delimiter)?;
    let columns = Columns::of(&csv)?;
    let counting = if columns.elapsed.is_some() { Counting::Interval } else { Counting::SinceStart };
    let mut sample = Sample::new(format, counting);
    let mut moment: Option<String> = None;
    let (mut equal, mut of) = (0, 0);
    let mut rows = 0_u64;
    while csv.next()? {
        rows += 1;
        let now = columns.at.map(|at| csv.text(at));
        if moment.is_some() && now != moment {
            deliver(&mut sample, columns.size, unit, to);
        }
        if now.is_some() && now != moment {
            let text = now.as_deref().unwrap_or_default();
            let at = seconds_of(text).ok_or_else(|| {
                csv.wrong(
                    columns.at.map(|at| csv.header[at].clone()).as_deref(),
                    format!(
                        "{:?} is not a time; export times as 2024-05-01 14:03:05",
                        text.chars().take(40).collect::<String>()
                    ),
                )
            })?;
            if sample.at.is_some_and(|before| at < before) {
                return Err(
                    csv.wrong(None, "the times are not in order; export the table ordered by its time")
                );
            }
            sample.at = Some(at);
        }
        moment = now;
        if sample.objects.len() >= OBJECTS_MAX {
            return Err(
                csv.wrong(None, format!("one moment has more than {OBJECTS_MAX} files; export fewer"))
            );
        }
        if let Some(ms) = csv.count(columns.sample_ms)? {
            sample.seconds = Some(ms / 1e3);
        }
        if let Some(seconds) = csv.figure(columns.elapsed)? {
            sample.seconds = Some(seconds);
        }
        let object = object(&csv, &columns)?;
        if let (Some(percent), Some(stall), Some(ios)) =
            (csv.figure(columns.percent)?, object.counts.get(Counter::StallMs), object.counts.ios())
            && ios > 0.0
        {
            of += 1;
            equal += u64::from((stall / ios).floor() == percent);
        }
        sample.objects.push(object);
    }
    if rows == 0 {
        return Err(csv.wrong(None, "there are no rows; export the table with its rows"));
    }
    if of > 0 {
        sample.traps.push(Trap::StallPercent { equal, of });
    }
    deliver(&mut sample, columns.size, unit, to);
    Ok(())
}

/// Hands a moment on, and begins the next.
fn deliver(
    sample: &mut Sample,
    size: Option<(usize, Option<SizeUnit>)>,
    told: Option<SizeUnit>,
    to: &mut Collector,
) {
    let mut done = Sample::new(sample.format, sample.counting);
    done.at = sample.at;
    std::mem::swap(&mut done, sample);
    // The size of the header's unit, or of the option's, or bytes if no file would be too small.
    let of_header = size.and_then(|(_, unit)| unit);
    let all_large = || {
        let mut sizes = done.objects.iter().filter_map(|object| object.bytes);
        sizes.all(|size| size >= SMALLEST_FILE_BYTES)
    };
    let unit = of_header.or(told).or_else(|| all_large().then_some(SizeUnit::Bytes));
    for object in &mut done.objects {
        object.bytes = unit.and_then(|unit| object.bytes.map(|size| size * unit.bytes()));
    }
    if size.is_some() && unit.is_none() {
        done.notes.push(
            "the unit of the column of file sizes is not known, so sizes read \"not measured\"; name it with --size-unit".to_owned(),
        );
    }
    to.add(done);
}

fn object(csv: &Csv<'_>, columns: &Columns) -> Result<Object, ReadError> {
    let (database, path) = (csv.text_of(columns.database), csv.text_of(columns.path));
    let mut name = csv.text_of(columns.name);
    if name.is_empty() {
        name = path.rsplit(['\\', '/']).next().unwrap_or_default().to_owned();
    }
    if name.is_empty() && database.is_empty() {
        return Err(csv.wrong(None, "the row names no file; export the columns of database and file"));
    }
    let scaled = |column: Option<(usize, f64)>| -> Result<Option<f64>, ReadError> {
        // Bytes are whole, and megabytes need not be.
        let at = column.map(|(at, _)| at);
        let value =
            if column.is_some_and(|(_, factor)| factor == 1.0) { csv.count(at) } else { csv.figure(at) }?;
        Ok(value.zip(column).map(|(value, (_, factor))| value * factor))
    };
    let mut counts = Counts::default();
    counts.set(Counter::Reads, csv.count(Some(columns.reads))?);
    counts.set(Counter::Writes, csv.count(Some(columns.writes))?);
    counts.set(Counter::ReadBytes, scaled(columns.read_bytes)?);
    counts.set(Counter::WriteBytes, scaled(columns.write_bytes)?);
    counts.set(Counter::ReadMs, csv.count(columns.read_ms)?);
    counts.set(Counter::WriteMs, csv.count(columns.write_ms)?);
    counts.set(Counter::StallMs, csv.count(columns.stall_ms)?);
    Ok(Object {
        kind: kind_of_file(&database, &path, &csv.text_of(columns.described)),
        identity: Identity {
            level: Level::File,
            database,
            name,
            path: Some(path).filter(|path| !path.is_empty()),
        },
        table: None,
        measured: Measured::default(),
        bytes: size(csv, columns.size)?,
        counts,
    })
}

/// A size in the unit of its column; that of a column whose unit is a byte or a page is whole.
fn size(csv: &Csv<'_>, column: Option<(usize, Option<SizeUnit>)>) -> Result<Option<f64>, ReadError> {
    let at = column.map(|(at, _)| at);
    match column {
        Some((_, Some(SizeUnit::Bytes | SizeUnit::Pages))) => csv.count(at),
        _ => csv.figure(at),
    }
}
