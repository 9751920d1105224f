//! The result set of `sp_BlitzFirst` for files: a row for reads and one for writes of each file, of one interval.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::csv::Csv;
use super::error::ReadError;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Level, Measured, Object, Sample, kind_of_file,
};

/// The most files.
const FILES_MAX: usize = 200_000;

/// Reads it.
pub(super) fn read(
    file: &str,
    input: &mut dyn BufRead,
    delimiter: u8,
    to: &mut Collector,
) -> Result<(), ReadError> {
    let mut csv = Csv::open(file, input, delimiter)?;
    let pattern = csv.need(&["pattern"], "Pattern")?;
    let ios = csv.need(&["readswrites"], "# Reads/Writes")?;
    let (seconds, name) = (csv.find(&["sampleseconds"]), csv.need(&["filename"], "File Name")?);
    let (megabytes, stall) = (csv.find(&["mbreadwritten"]), csv.find(&["avgstallms"]));
    let (path, database) = (csv.find(&["filephysicalname"]), csv.find(&["databasename"]));
    let size = csv.find(&["sizeondiskmb"]);
    let mut sample = Sample::new(Format::BlitzFirst, Counting::Interval);
    let mut objects: BTreeMap<Identity, Object> = BTreeMap::new();
    while csv.next()? {
        let is_read = csv.text(pattern).to_ascii_uppercase().contains("READ");
        let path = csv.text_of(path);
        let identity = Identity {
            level: Level::File,
            database: csv.text_of(database),
            name: csv.text(name),
            path: Some(path.clone()).filter(|path| !path.is_empty()),
        };
        if let Some(seconds) = csv.figure(seconds)? {
            sample.seconds = Some(seconds);
        }
        let (ios, megabytes, stall) = (csv.count(Some(ios))?, csv.figure(megabytes)?, csv.figure(stall)?);
        let bytes = csv.figure(size)?.map(|size| size * 1024.0 * 1024.0);
        if objects.len() >= FILES_MAX {
            return Err(csv.wrong(None, format!("there are more than {FILES_MAX} files; export fewer")));
        }
        let object = objects.entry(identity.clone()).or_insert_with(|| Object {
            kind: kind_of_file(&identity.database, &path, ""),
            identity,
            table: None,
            measured: Measured::default(),
            bytes,
            counts: Counts::default(),
        });
        let [count, byte, ms] = match is_read {
            true => [Counter::Reads, Counter::ReadBytes, Counter::ReadMs],
            false => [Counter::Writes, Counter::WriteBytes, Counter::WriteMs],
        };
        object.counts.set(count, ios);
        object.counts.set(byte, megabytes.map(|megabytes| megabytes * 1024.0 * 1024.0));
        object.counts.set(ms, ios.zip(stall).map(|(ios, stall)| ios * stall));
    }
    if objects.is_empty() {
        return Err(csv.wrong(None, "there are no rows; export the result with its rows"));
    }
    sample.notes.push(
        "the result of sp_BlitzFirst lists only the slowest files; its table of file statistics has all of them".to_owned(),
    );
    sample.objects = objects.into_values().collect();
    to.add(sample);
    Ok(())
}
