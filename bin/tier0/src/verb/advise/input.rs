//! The files and options of a question.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use tier0_advisor::advice::Question;
use tier0_advisor::drives::{Disk, FlashDrive};
use tier0_advisor::evidence::{Collector, Evidence};
use tier0_advisor::read::{SizeUnit, read_file};
use tier0_advisor::site::Site;
use tier0_units::ByteCount;

use crate::failure::Failure;
use crate::text_file;
use crate::verb::catalog::CatalogSource;

/// What is asked.
#[derive(Args, Debug)]
pub(crate) struct Input {
    /// How much flash there is or would be [default: as much as the candidates take]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    flash: Option<ByteCount>,
    /// Flash drive of the catalogue whose latencies are expected
    #[arg(long, value_name = "ID", default_value = "ssd-sata")]
    drive: String,
    /// Disk of the catalogue for what stays
    #[arg(long, value_name = "ID", default_value = "sas-10k-900gb-sff")]
    disk: String,
    #[command(flatten)]
    catalog: CatalogSource,
    /// What no report says: spindles, RAID level, cables (docs/advise.md)
    #[arg(long, value_name = "FILE")]
    site: Option<PathBuf>,
    /// Time between two samples that have no times of their own
    #[arg(long, value_name = "TIME", value_parser = parse_period)]
    period: Option<SignedDuration>,
    /// Busy share of the host's processors in percent, where no report has it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    cpu: Option<f64>,
    /// Processors of the host, where no report has them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cores: Option<u32>,
    /// Unit of file sizes whose column does not say it
    #[arg(long, value_name = "UNIT", value_enum)]
    size_unit: Option<Unit>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unit {
    /// Bytes
    Bytes,
    /// KiB
    Kb,
    /// MiB
    Mb,
    /// GiB
    Gb,
    /// Pages of 8 KiB
    Pages,
}

impl From<Unit> for SizeUnit {
    fn from(unit: Unit) -> SizeUnit {
        match unit {
            Unit::Bytes => SizeUnit::Bytes,
            Unit::Kb => SizeUnit::Kib,
            Unit::Mb => SizeUnit::Mib,
            Unit::Gb => SizeUnit::Gib,
            Unit::Pages => SizeUnit::Pages,
        }
    }
}

/// Less flash than this is a number whose unit was forgotten.
const SIZE_MIN: u64 = 1 << 20;

fn parse_size(text: &str) -> Result<ByteCount, String> {
    match text.parse::<ByteCount>() {
        Ok(ByteCount(0)) => {
            Err("flash of no size holds nothing; leave the option out to ask how much".to_owned())
        }
        Ok(size) if size.0 < SIZE_MIN => {
            Err(format!("{text:?} is {} bytes; write the unit, as in 400GB", size.0))
        }
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads a positive duration: `10s`, `1h 30m`.
pub(super) fn parse_period(text: &str) -> Result<SignedDuration, String> {
    let wrong = || format!("{text:?} is not a duration above 0; write one as in 10s, 30m or 24h");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    if duration <= SignedDuration::ZERO { Err(wrong()) } else { Ok(duration) }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let value = text.trim_end_matches('%').trim().parse::<f64>();
    if let Ok(value) = value
        && value > 0.0
        && value < 1.0
    {
        return Err(format!("{text:?} is less than one per cent; write {} for that share", value * 100.0));
    }
    let value = value.ok().filter(|value| (0.0..=100.0).contains(value));
    value.ok_or_else(|| format!("{text:?} is not a share of 0 to 100 per cent"))
}

impl Input {
    /// Reads all `files`.
    pub(super) fn read(&self, files: &[PathBuf]) -> Result<(Evidence, Question), Failure> {
        let catalog = self.catalog.load()?;
        let drive = FlashDrive::of(&catalog, &self.drive).map_err(Failure::Input)?;
        let disk = Disk::of(&catalog, &self.disk).map_err(Failure::Input)?;
        let site = match &self.site {
            None => Site::default(),
            Some(path) => {
                Site::parse(&text_file::read(path)?, &path.display().to_string()).map_err(Failure::Input)?
            }
        };
        let mut collector = Collector::default();
        for file in files {
            read_file(file, self.size_unit.map(SizeUnit::from), &mut collector).map_err(Failure::input)?;
        }
        let mut evidence = collector.finish(self.period.map(|period| period.as_secs_f64()));
        site.add_sizes(&mut evidence);
        if let Some(busy) = self.cpu {
            evidence.host.busy = Some(busy / 100.0);
        }
        evidence.host.cores = self.cores.map(f64::from).or(evidence.host.cores);
        let flash = self.flash.map(|flash| flash.0 as f64);
        Ok((evidence, Question { flash, drive, disk, site }))
    }
}
