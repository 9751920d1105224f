//! Execution statistics of SQL Server's objects: physical and logical reads by object.
//!
//! The known trap: logical reads that are labelled physical. A figure is doubted where an object has as many or more physical
//! than logical reads, or where its reads would have taken less time each than any device takes.

use std::io::BufRead;

use super::csv::Csv;
use super::error::ReadError;
use crate::evidence::{
    Collector, Counter, Counting, Counts, Format, Identity, Kind, Level, Measured, Object, Sample, Trap,
};

/// The most objects.
const OBJECTS_MAX: usize = 200_000;
/// No device of the catalogue answers a read faster, microseconds.
const FASTEST_READ_US: f64 = 10.0;

/// Reads it.
pub(super) fn read(
    file: &str,
    input: &mut dyn BufRead,
    delimiter: u8,
    to: &mut Collector,
) -> Result<(), ReadError> {
    let mut csv = Csv::open(file, input, delimiter)?;
    let physical = ["totalphysicalreads", "physicalreads", "numphysicalreads"];
    let physical = csv.need(&physical, "total_physical_reads")?;
    let logical = csv.find(&["totallogicalreads", "logicalreads", "numlogicalreads"]);
    let elapsed = csv.find(&["totalelapsedtime", "elapsedtimeus", "totalelapsedtimeus"]);
    let name = csv.need(&["objectname", "object", "name", "tablename"], "object_name")?;
    let (database, kind) =
        (csv.find(&["databasename", "dbname"]), csv.find(&["typedesc", "objecttype", "type"]));
    let mut sample = Sample::new(Format::ObjectStatistics, Counting::SinceStart);
    while csv.next()? {
        if sample.objects.len() >= OBJECTS_MAX {
            return Err(csv.wrong(None, format!("there are more than {OBJECTS_MAX} objects; export fewer")));
        }
        let reads = csv.count(Some(physical))?;
        let (logical, elapsed_us) = (csv.count(logical)?, csv.count(elapsed)?);
        let name = csv.text(name);
        if let Some(because) = reads.and_then(|reads| doubt(reads, logical, elapsed_us)) {
            sample.traps.push(Trap::LogicalReads { object: name.clone(), because });
        }
        let hits = logical.zip(reads).map(|(logical, reads)| (logical - reads).max(0.0));
        let kind = match csv.text_of(kind).to_ascii_lowercase() {
            kind if kind.contains("nonclustered") => Kind::Index,
            _ => Kind::Table,
        };
        sample.objects.push(Object {
            identity: Identity { level: Level::Segment, database: csv.text_of(database), name, path: None },
            kind,
            table: None,
            measured: Measured::default(),
            bytes: None,
            counts: Counts::default().with(Counter::Reads, reads).with(Counter::Hits, hits),
        });
    }
    if sample.objects.is_empty() {
        return Err(csv.wrong(None, "there are no rows; export the statistics with their rows"));
    }
    to.add(sample);
    Ok(())
}

/// Why so many physical reads are not believed.
fn doubt(reads: f64, logical: Option<f64>, elapsed_us: Option<f64>) -> Option<String> {
    if reads < 1.0 {
        return None;
    }
    if let Some(logical) = logical.filter(|logical| reads >= *logical) {
        return Some(format!("{reads:.0} physical reads are not fewer than its {logical:.0} logical reads"));
    }
    let each = elapsed_us? / reads;
    (each < FASTEST_READ_US).then(|| format!("{each:.1} us for each read are faster than any device"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logical_reads_under_another_name_are_doubted() {
        assert!(doubt(100.0, Some(100.0), None).is_some());
        assert!(doubt(1e6, Some(2e6), Some(1e6)).is_some_and(|why| why.contains("faster than any device")));
        assert_eq!(doubt(100.0, Some(5000.0), Some(500_000.0)), None);
        assert_eq!(doubt(0.0, Some(0.0), Some(0.0)), None);
        assert_eq!(doubt(100.0, None, None), None, "nothing speaks against it");
    }
}
