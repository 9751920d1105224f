//! Database engines: how rows fill pages, what a change adds to the log, how dirty pages are written
//! (`catalog/engines/*.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use tier0_catalog::{Parameter, SourceKind};
use tier0_toml::Misread;
use tier0_units::ByteCount;

/// A database engine, in numbers that have sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// Its name in studies.
    pub id: String,
    /// A line for titles.
    pub title: String,
    /// Bytes of a page.
    pub page: Parameter<f64>,
    /// Bytes of a page that hold no rows.
    pub page_overhead: Parameter<f64>,
    /// Bytes that a row takes beside its own.
    pub row_overhead: Parameter<f64>,
    /// How full pages are, in percent.
    pub fill: Parameter<f64>,
    /// Bytes of the log for each row that is changed.
    pub log_per_change: Parameter<f64>,
    /// The log is written in multiples of so many bytes.
    pub log_block: Parameter<f64>,
    /// The most bytes of one write of the log.
    pub log_write: Parameter<f64>,
    /// The most dirty pages that lie side by side and are written at once.
    pub gather: Parameter<f64>,
    /// Time between two checkpoints, in milliseconds. At each, every dirty page is written.
    pub checkpoint: Parameter<f64>,
    /// The share of that time over which its writes are spread, in percent.
    pub checkpoint_spread: Parameter<f64>,
    /// The most page writes under way.
    pub writes: Parameter<f64>,
    /// Bytes of one read of a scan.
    pub read_ahead: Parameter<f64>,
    /// Reads of a scan under way.
    pub read_ahead_depth: Parameter<f64>,
    /// A scan leaves its pages in the buffer if its object takes at most this share of it, in percent.
    pub scan_keeps: Parameter<f64>,
    /// 1 if a scan joins another one of its object at the place where that is, 0 if not.
    pub shared_scans: Parameter<f64>,
    /// Rows of a list that are read at once; 1 is one after the other.
    pub prefetch: Parameter<f64>,
    /// Bytes that an entry of an index takes beside its own; as for rows where absent.
    pub index_overhead: Option<Parameter<f64>>,
    /// How full leaves of an index are, in percent, that come in order; as for rows where absent.
    pub index_fill: Option<Parameter<f64>>,
    /// The same where entries come at random places.
    pub index_fill_random: Option<Parameter<f64>>,
    /// 1 if tables are heaps, so that a primary key is an index beside its table; 0 or absent if they lie in the order of their keys.
    pub heaps: Option<Parameter<f64>>,
    /// 1 if the first change of a page after a checkpoint writes the whole page into the log; 0 or absent if not.
    pub page_images: Option<Parameter<f64>>,
    /// 1 if writes may stay in volatile caches and each write of the log is followed by a flush of them, as with files that are
    /// synchronised; 0 or absent if each write is durable by itself.
    pub flushes: Option<Parameter<f64>>,
}

/// A read of a scan lies in one piece of an object on a volume.
const READ_AHEAD_MAX: f64 = 1_048_576.0;

/// What a case may set otherwise.
const SETTINGS: &str = "fill, log_per_change, log_write, gather, checkpoint, checkpoint_spread, writes, read_ahead, \
                        read_ahead_depth, scan_keeps, shared_scans, prefetch, and with PostgreSQL page_images";

/// An engine that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EngineError {
    /// There is none of that name.
    #[error("there is no database engine {id:?}; use one of {known}")]
    Unknown {
        /// The name.
        id: String,
        /// Those that there are.
        known: String,
    },
    /// The file is wrong.
    #[error("{file}:{line}: {field}: {fact}")]
    Wrong {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong, and the remedy.
        fact: String,
    },
}

macro_rules! embedded {
    ($($file:literal,)*) => {
        /// The engines that the program carries.
        const EMBEDDED: &[(&str, &str)] = &[$((
            concat!("catalog/engines/", $file),
            include_str!(concat!("../../../catalog/engines/", $file)),
        ),)*];
    };
}

embedded! {
    "innodb.toml",
    "oracle-11g.toml",
    "postgresql-15.toml",
    "sql-server-2008.toml",
}

impl Engine {
    /// The engine of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn find(id: &str) -> Result<Engine, EngineError> {
        let engines = EMBEDDED.iter().map(|(file, text)| Engine::parse(text, file));
        let engines: Vec<Engine> = engines.collect::<Result<_, _>>()?;
        let known = engines.iter().map(|engine| engine.id.as_str()).collect::<Vec<_>>().join(", ");
        let found = engines.into_iter().find(|engine| engine.id == id);
        found.ok_or_else(|| EngineError::Unknown { id: id.to_owned(), known })
    }

    /// Reads an engine's file; `file` is its name in messages.
    ///
    /// # Errors
    /// It has another form, or a number is out of range.
    pub fn parse(text: &str, file: &str) -> Result<Engine, EngineError> {
        let wrong = |line: usize, field: &str, fact: String| EngineError::Wrong {
            file: file.to_owned(),
            line,
            field: field.to_owned(),
            fact,
        };
        let engine: Engine =
            tier0_toml::read(text).map_err(|Misread { line, field, fact }| wrong(line, &field, fact))?;
        engine.check().map_err(|(field, fact)| wrong(tier0_toml::line_of(text, &[field]), field, fact))?;
        Ok(engine)
    }

    /// The field that is out of range, and the remedy.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let check =
            |field: &'static str, value: f64, least: f64, most: f64| match (least..=most).contains(&value) {
                true => Ok(()),
                false => Err((field, format!("{value} is out of range; use {least} to {most}"))),
            };
        let page = self.page.value;
        if !(page as u64).is_power_of_two() {
            return Err(("page", "is no power of two; use 4096 to 65536".into()));
        }
        check("page", page, 4096.0, 65536.0)?;
        check("page_overhead", self.page_overhead.value, 0.0, page / 2.0)?;
        check("row_overhead", self.row_overhead.value, 0.0, 1024.0)?;
        check("fill", self.fill.value, 10.0, 100.0)?;
        check("log_per_change", self.log_per_change.value, 1.0, 1e5)?;
        check("log_block", self.log_block.value, 512.0, 65536.0)?;
        check("log_write", self.log_write.value, self.log_block.value, 1e8)?;
        check("gather", self.gather.value, 1.0, 1024.0)?;
        check("checkpoint", self.checkpoint.value, 100.0, 1e8)?;
        check("checkpoint_spread", self.checkpoint_spread.value, 0.0, 100.0)?;
        check("writes", self.writes.value, 1.0, 4096.0)?;
        let read_ahead = self.read_ahead.value;
        check("read_ahead", read_ahead, page, READ_AHEAD_MAX)?;
        if !(read_ahead as u64).is_power_of_two() {
            return Err(("read_ahead", "is no power of two; use the page's size to 1048576".into()));
        }
        check("read_ahead_depth", self.read_ahead_depth.value, 1.0, 1024.0)?;
        check("scan_keeps", self.scan_keeps.value, 0.0, 100.0)?;
        check("shared_scans", self.shared_scans.value, 0.0, 1.0)?;
        check("prefetch", self.prefetch.value, 1.0, 1024.0)?;
        let optional = [
            ("index_overhead", &self.index_overhead, 0.0, 1024.0),
            ("index_fill", &self.index_fill, 10.0, 100.0),
            ("index_fill_random", &self.index_fill_random, 10.0, 100.0),
            ("heaps", &self.heaps, 0.0, 1.0),
            ("page_images", &self.page_images, 0.0, 1.0),
            ("flushes", &self.flushes, 0.0, 1.0),
        ];
        optional
            .into_iter()
            .try_for_each(|(field, number, least, most)| check(field, value_or(number, least), least, most))
    }

    /// The same with other settings, by the names of the engine's file.
    ///
    /// # Errors
    /// The setting, what is wrong, and the remedy.
    pub fn with(mut self, settings: &BTreeMap<String, f64>) -> Result<Engine, (String, String)> {
        for (name, value) in settings {
            let number = match name.as_str() {
                "fill" => &mut self.fill,
                "log_per_change" => &mut self.log_per_change,
                "log_write" => &mut self.log_write,
                "gather" => &mut self.gather,
                "checkpoint" => &mut self.checkpoint,
                "checkpoint_spread" => &mut self.checkpoint_spread,
                "writes" => &mut self.writes,
                "read_ahead" => &mut self.read_ahead,
                "read_ahead_depth" => &mut self.read_ahead_depth,
                "scan_keeps" => &mut self.scan_keeps,
                "shared_scans" => &mut self.shared_scans,
                "prefetch" => &mut self.prefetch,
                "page_images" if self.page_images.is_some() => {
                    self.page_images.as_mut().expect("it is there")
                }
                _ => {
                    return Err((name.clone(), format!("is no setting of an engine; use one of {SETTINGS}")));
                }
            };
            number.value = *value;
            number.kind = SourceKind::Assumed;
            number.source = "set by the case".into();
        }
        self.check().map_err(|(field, fact)| (field.to_owned(), fact))?;
        Ok(self)
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> ByteCount {
        ByteCount(self.page.value as u64)
    }

    /// Pages of one read of a scan.
    pub fn read_ahead_pages(&self) -> u64 {
        (self.read_ahead.value / self.page.value) as u64
    }

    /// Whether a scan of an object of so many pages leaves them in a buffer.
    pub fn keeps_scanned(&self, pages: u64, buffer: u64) -> bool {
        pages as f64 <= buffer as f64 * self.scan_keeps.value / 100.0
    }

    /// Rows of so many bytes in a page, at least one.
    pub fn rows_per_page(&self, row_bytes: f64) -> u64 {
        let room = (self.page.value - self.page_overhead.value) * self.fill.value / 100.0;
        (room / (row_bytes + self.row_overhead.value)).floor().max(1.0) as u64
    }

    /// Entries of an index of so many bytes in a page, at least one; `at_random` if they come at random places.
    pub fn entries_per_page(&self, entry_bytes: f64, at_random: bool) -> u64 {
        let in_order = value_or(&self.index_fill, self.fill.value);
        let fill = if at_random { value_or(&self.index_fill_random, in_order) } else { in_order };
        let room = (self.page.value - self.page_overhead.value) * fill / 100.0;
        let overhead = value_or(&self.index_overhead, self.row_overhead.value);
        (room / (entry_bytes + overhead)).floor().max(1.0) as u64
    }

    /// Whether a primary key is an index beside its table.
    pub fn has_heaps(&self) -> bool {
        value_or(&self.heaps, 0.0) > 0.0
    }

    /// Whether the first change of a page after a checkpoint writes the whole page into the log.
    pub fn logs_page_images(&self) -> bool {
        value_or(&self.page_images, 0.0) > 0.0
    }

    /// Whether writes may stay in volatile caches until a flush, which follows each write of the log.
    pub fn flushes_caches(&self) -> bool {
        value_or(&self.flushes, 0.0) > 0.0
    }

    /// Where each number comes from: of what, how it is known, the source.
    pub fn sources(&self) -> Vec<(&'static str, SourceKind, &str)> {
        let all = [
            ("page", &self.page),
            ("page_overhead", &self.page_overhead),
            ("row_overhead", &self.row_overhead),
            ("fill", &self.fill),
            ("log_per_change", &self.log_per_change),
            ("log_block", &self.log_block),
            ("log_write", &self.log_write),
            ("gather", &self.gather),
            ("checkpoint", &self.checkpoint),
            ("checkpoint_spread", &self.checkpoint_spread),
            ("writes", &self.writes),
            ("read_ahead", &self.read_ahead),
            ("read_ahead_depth", &self.read_ahead_depth),
            ("scan_keeps", &self.scan_keeps),
            ("shared_scans", &self.shared_scans),
            ("prefetch", &self.prefetch),
        ];
        let optional = [
            ("index_overhead", &self.index_overhead),
            ("index_fill", &self.index_fill),
            ("index_fill_random", &self.index_fill_random),
            ("heaps", &self.heaps),
            ("page_images", &self.page_images),
            ("flushes", &self.flushes),
        ];
        let present = optional.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?)));
        all.into_iter()
            .chain(present)
            .map(|(name, number)| (name, number.kind, number.source.as_str()))
            .collect()
    }
}

fn value_or(number: &Option<Parameter<f64>>, absent: f64) -> f64 {
    number.as_ref().map_or(absent, |number| number.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_embedded_and_sound() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/engines");
        let files = std::fs::read_dir(dir).expect("the catalogue is beside the crate").count();
        assert_eq!(files, EMBEDDED.len());
        for (file, text) in EMBEDDED {
            let engine = Engine::parse(text, file).expect("a sound engine");
            for (name, _, source) in engine.sources() {
                assert!(source.len() >= 10, "{file}: {name} has no source");
            }
        }
    }

    /// Rows per page that public measurements and audited kits have (stock, customer).
    #[test]
    fn rows_fill_pages_as_they_do_in_the_engines() {
        for (id, stock, customer) in [("innodb", 45..=48, 21..=24), ("sql-server-2008", 23..=25, 11..=12)] {
            let engine = Engine::find(id).expect("it is embedded");
            assert!(stock.contains(&engine.rows_per_page(306.0)), "{id} {}", engine.rows_per_page(306.0));
            assert!(customer.contains(&engine.rows_per_page(655.0)), "{id} {}", engine.rows_per_page(655.0));
        }
    }

    #[test]
    fn what_is_no_engine_is_named() {
        let with = |name: &str, value: f64| {
            let engine = Engine::find("sql-server-2008").expect("it is embedded");
            engine.with(&BTreeMap::from([(name.to_owned(), value)]))
        };
        assert_eq!(with("checkpoint", 5000.0).expect("a setting").checkpoint.value, 5000.0);
        let (name, fact) = with("prefetch", 0.0).expect_err("out of range");
        assert_eq!((name.as_str(), fact.as_str()), ("prefetch", "0 is out of range; use 1 to 1024"));
        assert!(with("page", 4096.0).expect_err("no setting").1.contains("use one of fill, log_per_change"));
        let error = Engine::find("db4").expect_err("there is none");
        assert!(error.to_string().contains("use one of innodb, oracle-11g"), "{error}");
        let text = EMBEDDED[0].1.replace("value = 16384", "value = 15000");
        let error = Engine::parse(&text, "my.toml").expect_err("no power of two");
        assert!(
            error.to_string().contains("my.toml:") && error.to_string().contains("power of two"),
            "{error}"
        );
    }
}
