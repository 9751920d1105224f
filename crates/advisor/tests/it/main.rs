//! Readers and advice on small reports that were written for these tests after the public descriptions of the formats.

mod formats;
mod hostile;
mod mutated;
mod segments;
mod whole;

use tier0_advisor::evidence::{Collector, Evidence, Object};
use tier0_advisor::read::{ReadError, read};

/// The samples, by name.
pub(crate) const SAMPLES: [(&str, &str); 14] = [
    ("file_statistics.csv", include_str!("samples/file_statistics.csv")),
    ("blitz_table.csv", include_str!("samples/blitz_table.csv")),
    ("blitz_result.csv", include_str!("samples/blitz_result.csv")),
    ("objects.csv", include_str!("samples/objects.csv")),
    ("iostat_old.txt", include_str!("samples/iostat_old.txt")),
    ("iostat_new.txt", include_str!("samples/iostat_new.txt")),
    ("sar.txt", include_str!("samples/sar.txt")),
    ("awr.txt", include_str!("samples/awr.txt")),
    ("awr.html", include_str!("samples/awr.html")),
    ("statspack.txt", include_str!("samples/statspack.txt")),
    ("mysql_start.txt", include_str!("samples/mysql_start.txt")),
    ("mysql_end.txt", include_str!("samples/mysql_end.txt")),
    ("postgres.jsonl", include_str!("samples/postgres.jsonl")),
    ("mariadb.jsonl", include_str!("samples/mariadb.jsonl")),
];

/// The example that ships.
pub(crate) const EXAMPLE: [(&str, &str); 3] = [
    ("before.csv", include_str!("../../../../studies/advise-example/before.csv")),
    ("after.csv", include_str!("../../../../studies/advise-example/after.csv")),
    ("perfmon.csv", include_str!("../../../../studies/advise-example/perfmon.csv")),
];

pub(crate) fn text(name: &str) -> &'static str {
    let all = SAMPLES.iter().chain(&EXAMPLE);
    all.into_iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no sample {name}")).1
}

pub(crate) fn try_texts(texts: &[(&str, &str)]) -> Result<Evidence, ReadError> {
    let mut collector = Collector::default();
    for (name, text) in texts {
        read(name, text.as_bytes(), None, &mut collector)?;
    }
    Ok(collector.finish(None))
}

/// Evidence of samples.
pub(crate) fn evidence(names: &[&str]) -> Evidence {
    let texts: Vec<_> = names.iter().map(|name| (*name, text(name))).collect();
    try_texts(&texts).unwrap_or_else(|error| panic!("{error}"))
}

/// The object of a name.
pub(crate) fn object<'a>(evidence: &'a Evidence, name: &str) -> &'a Object {
    let found = evidence.objects.iter().find(|object| object.identity.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {:?}", evidence.objects))
}
