//! What files of MySQL or MariaDB hold: by the path, or by the event that counts them, where files come and go.
//!
//! A table is a file `SCHEMA/TABLE.ibd`, wherever its directory is; a partition has `#p#PARTITION` behind the table, with `#sp#` for
//! its parts. Only the server knows which tablespaces are of one table, so it says so. Names are encoded in paths, and the server
//! decodes them.

use std::collections::{BTreeMap, BTreeSet};

use tier0_advisor::samples::mysql::{FileKind, FileObject};

/// Events of files that come and go, whose sum over all files is told, and what they are of.
const EVENTS: [(&str, &str, FileKind); 6] = [
    ("wait/io/file/sql/binlog", "binary log", FileKind::Log),
    ("wait/io/file/sql/relaylog", "relay log", FileKind::Log),
    ("wait/io/file/aria/translog", "Aria log", FileKind::Log),
    ("wait/io/file/innodb/innodb_temp_file", TEMPORARY, FileKind::Temp),
    ("wait/io/file/sql/io_cache", TEMPORARY, FileKind::Temp),
    ("wait/io/file/myisam/data_tmp", TEMPORARY, FileKind::Temp),
];
/// The event of the redo log, where it is counted: MariaDB does not.
pub(super) const REDO_LOG: &str = "wait/io/file/innodb/innodb_log_file";
const TEMPORARY: &str = "temporary data";

/// All events whose sums are told.
pub(super) fn events() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(event, ..)| *event).chain([REDO_LOG])
}

/// What the files of an event are of.
pub(super) fn of_event(event: &str) -> Option<(Key, FileKind)> {
    let (_, name, kind) = EVENTS.iter().find(|(known, ..)| *known == event)?;
    Some((named(name), *kind))
}

fn named(name: &str) -> Key {
    [String::new(), name.to_owned(), String::new()]
}

/// Extensions of the two files of a table of MyISAM or Aria.
const OTHER_TABLES: [&str; 4] = ["MAD", "MAI", "MYD", "MYI"];

/// A tablespace or a file of one.
pub(super) struct Space {
    /// Its path, below the data directory or whole.
    pub(super) path: String,
    /// Bytes on disk.
    pub(super) bytes: f64,
    /// Whether it is of one table or partition.
    pub(super) is_of_table: bool,
}

/// What tells an object: schema, name and partition, as paths have them.
pub(super) type Key = [String; 3];

/// The tablespaces that the server knows.
#[derive(Default)]
pub(super) struct Spaces {
    of_tables: BTreeSet<String>,
}

impl Spaces {
    /// Those of a list.
    pub(super) fn of(list: &[Space]) -> Spaces {
        let of_tables = list.iter().filter(|space| space.is_of_table);
        Spaces { of_tables: of_tables.map(|space| ends(&space.path)).collect() }
    }

    /// What a data file is of; nothing where it is of no table and no tablespace.
    pub(super) fn place(&self, path: &str) -> Option<(Key, FileKind)> {
        let file = file(path);
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
        // A table that is being built, which goes again.
        if file.starts_with("#sql") {
            return None;
        }
        if OTHER_TABLES.contains(&extension) || extension == "ibd" && self.of_tables.contains(&ends(path)) {
            return Some((table(directory(path), stem), FileKind::Table));
        }
        let (name, kind) = match extension {
            "ibd" => (stem, FileKind::Data),
            "ibu" => (stem, FileKind::Undo),
            "ibt" => (TEMPORARY, FileKind::Temp),
            "dblwr" | "bdblwr" => ("doublewrite buffer", FileKind::Data),
            _ if file.starts_with("ibtmp") => (TEMPORARY, FileKind::Temp),
            _ if file.starts_with("undo") => (file, FileKind::Undo),
            _ => ("system tablespace", FileKind::Data),
        };
        Some((named(name), kind))
    }
}

/// The last component.
fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of the directory that a file is in.
fn directory(path: &str) -> &str {
    path.rsplit('/').nth(1).unwrap_or_default()
}

/// Directory and file: no two tables of a server have both in common, and a data directory that is a link does not matter.
fn ends(path: &str) -> String {
    format!("{}/{}", directory(path), file(path))
}

/// Schema, table and partition of a file's name without its extension.
fn table(schema: &str, stem: &str) -> Key {
    let lower = stem.to_ascii_lowercase();
    let (name, rest) = match lower.find("#p#") {
        Some(at) => (&stem[..at], &stem[at + 3..]),
        None => (stem, ""),
    };
    // A part of a partition has a name that no other part of the table has.
    let partition = match rest.to_ascii_lowercase().find("#sp#") {
        Some(at) => &rest[at + 4..],
        None => rest,
    };
    [schema, name, partition].map(str::to_owned)
}

/// Names as paths have them, and as the server decodes them.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Names among those of `keys` that are encoded and not known.
    pub(super) fn unknown<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Vec<String> {
        let parts = keys.flatten().filter(|part| part.contains('@') && !self.0.contains_key(*part));
        let parts: BTreeSet<&String> = parts.collect();
        parts.into_iter().cloned().collect()
    }

    /// Learns what names mean.
    pub(super) fn learn(&mut self, encoded: String, decoded: String) {
        self.0.insert(encoded, decoded);
    }

    /// The object of a key.
    pub(super) fn object(&self, key: &Key, kind: FileKind) -> FileObject {
        let [schema, name, partition] = key.each_ref().map(|part| self.0.get(part).unwrap_or(part).clone());
        FileObject { schema, name, partition, kind, ..FileObject::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        let space = |path: &str, is_of_table| Space { path: path.to_owned(), bytes: 1.0, is_of_table };
        let spaces = Spaces::of(&[
            space("./shop/orders.ibd", true),
            space("/flash/shop/lines#P#p0.ibd", true),
            space("./shop/lines#p#q1#sp#q1s0.ibd", true),
            space("./common.ibd", false),
        ]);
        let shown = |place: Option<(Key, FileKind)>| place.map(|(key, kind)| (key.join("|"), kind));
        for (path, name, kind) in [
            ("/data/link/shop/orders.ibd", "shop|orders|", FileKind::Table),
            ("/flash/shop/lines#P#p0.ibd", "shop|lines|p0", FileKind::Table),
            ("/var/lib/mysql/shop/lines#p#q1#sp#q1s0.ibd", "shop|lines|q1s0", FileKind::Table),
            ("/var/lib/mysql/common.ibd", "|common|", FileKind::Data),
            ("/var/lib/mysql/ibdata1", "|system tablespace|", FileKind::Data),
            ("/var/lib/mysql/ibtmp1", "|temporary data|", FileKind::Temp),
            ("/var/lib/mysql/undo_001", "|undo_001|", FileKind::Undo),
            ("/x/more.ibu", "|more|", FileKind::Undo),
            ("/x/#innodb_temp/temp_1.ibt", "|temporary data|", FileKind::Temp),
            ("/x/#ib_16384_0.dblwr", "|doublewrite buffer|", FileKind::Data),
            ("/x/shop/a.MYD", "shop|a|", FileKind::Table),
            ("/x/shop/a.MAI", "shop|a|", FileKind::Table),
        ] {
            assert_eq!(shown(spaces.place(path)), Some((name.to_owned(), kind)), "{path}");
        }
        assert_eq!(spaces.place("/var/lib/mysql/shop/#sql-ib29.ibd"), None);
        let log = shown(of_event("wait/io/file/sql/binlog"));
        assert_eq!(log, Some(("|binary log|".to_owned(), FileKind::Log)));
        assert_eq!(of_event(REDO_LOG), None, "it is counted by the status too");
    }

    #[test]
    fn names_are_those_that_the_server_decodes() {
        let mut names = Names::default();
        let key = ["shop".to_owned(), "a@002db".to_owned(), "p0".to_owned()];
        assert_eq!(names.unknown([&key].into_iter()), ["a@002db"]);
        names.learn("a@002db".to_owned(), "a-b".to_owned());
        assert!(names.unknown([&key].into_iter()).is_empty());
        assert_eq!(names.object(&key, FileKind::Table).name, "a-b");
    }
}
