//! A plan before the twin: the load of the samples on the modelled array, as it is and with the chosen objects on flash.
//!
//! | file | concept |
//! |---|---|
//! | `next` | the array of the plan |
//!
//! The runs are cases of `tier0 lab whatif`.

mod next;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use jiff::SignedDuration;
use tier0_advisor::advice::Advice;
use tier0_advisor::evidence::Evidence;
use tier0_advisor::plan::{CacheSetting, Plan};
use tier0_advisor::twin::{CASE_BEGINS, CaseArray, Load, RunFigures, Twin, case, judge};
use tier0_description::{Description, Remarks};
use tier0_lab::whatif::{WhatIf, figures};
use tier0_units::ByteCount;

use self::next::{Next, Wanted, modelled, next};
use super::input::parse_period;
use crate::cli::Global;
use crate::driving::{live_line, tell_step};
use crate::failure::Failure;
use crate::verb::lab::failure;

/// The name of a volume that holds the log alone, where nothing is said.
const LOG: &str = "log";

/// How an array file of a plan begins.
const NEXT_BEGINS: &str =
    "# The array of a plan of \"tier0 advise\": what is there, and flash for the objects of the plan";

/// The array of the twin.
#[derive(Args, Debug)]
pub(crate) struct TwinOptions {
    /// Simulate the plan on this array file, whose drives have models
    #[arg(long, value_name = "ARRAY.TOML")]
    array: Option<PathBuf>,
    /// Write the array file of the plan: the same array with the chosen objects' flash
    #[arg(long, value_name = "FILE", requires = "array")]
    next: Option<PathBuf>,
    /// Volumes that hold the data [default: all but that of the log]
    #[arg(long, value_name = "NAMES", requires = "array", value_delimiter = ',')]
    data_on: Vec<String>,
    /// The volume that holds the log [default: that named log, or else the first of the data]
    #[arg(long, value_name = "NAME", requires = "array")]
    log_on: Option<String>,
    /// Simulated time of each run
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_period)]
    simulated: SignedDuration,
    /// Write the simulated case, for "tier0 lab whatif"
    #[arg(long, value_name = "FILE", requires = "array")]
    whatif: Option<PathBuf>,
}

impl TwinOptions {
    /// Refuses before anything is computed what could not be written afterwards.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let written = [(&self.next, NEXT_BEGINS), (&self.whatif, CASE_BEGINS)];
        written
            .into_iter()
            .try_for_each(|(path, begins)| path.as_ref().map_or(Ok(()), |path| check_own(path, begins)))
    }

    /// Simulates a plan, if an array is named, and completes it.
    pub(super) fn confirm(
        &self,
        plan: &mut Plan,
        (evidence, advice): (&Evidence, &Advice),
        global: &Global,
    ) -> Result<(), Failure> {
        let Some(path) = &self.array else { return Ok(()) };
        let array = read(path)?;
        let at = |fact: String| Failure::Input(format!("{}: {fact}", path.display()));
        check_models(&array).map_err(at)?;
        let (data, log) = self.volumes(&array).map_err(at)?;
        plan.settings = settings(&array, &data, log, evidence);
        if plan.moves.is_empty() {
            return Err(Failure::Input(format!(
                "the plan moves nothing, so there is nothing to simulate; {}",
                plan.left_out.first().map_or("raise --flash", |left| left.why.as_str())
            )));
        }
        let load = Load::of(evidence, advice).map_err(Failure::Input)?;
        check_room(&load, &array, &data).map_err(at)?;
        let wanted = Wanted {
            flash: plan.flash_bytes as u64,
            used: plan
                .moves
                .iter()
                .map(|one| (one.bytes as u64).next_multiple_of(1 << 20) + OBJECT_MORE)
                .sum(),
            drive: &advice.drive.id,
            drive_bytes: advice.drive.bytes as u64,
            volume: &plan.tablespace,
            beside: data[0],
        };
        let mut found = next(&array, &wanted).map_err(Failure::Input)?;
        for setting in &plan.settings {
            let volume = found.next.volumes.iter_mut().find(|volume| volume.name == setting.volume);
            volume.into_iter().for_each(|volume| volume.read_cache = Some(setting.read_cache));
        }
        let twin = self.simulate(&load, &found, (&data, log), plan, global)?;
        if let Some(path) = &self.next {
            write(path, &format!("{NEXT_BEGINS}.\n\n{}", found.next.to_text(&remarks(&found))))?;
        }
        plan.twin = Some(twin);
        Ok(())
    }

    fn simulate(
        &self,
        load: &Load,
        found: &Next,
        (data, log): (&[usize], usize),
        plan: &Plan,
        global: &Global,
    ) -> Result<Twin, Failure> {
        let name = |volume: &usize| found.now.volumes[*volume].name.clone();
        let array = CaseArray {
            now: modelled(&found.now).to_text(&Remarks::default()),
            next: modelled(&found.next).to_text(&Remarks::default()),
            data: data.iter().map(name).collect(),
            log: name(&log),
            flash: found.volume.clone(),
        };
        let (text, runs) = case(load, &array, self.simulated.as_secs_f64());
        if let Some(path) = &self.whatif {
            write(path, &text)?;
        }
        let whatif = WhatIf::parse(&text, "the twin's case").map_err(failure)?;
        let bar = live_line(global.quiet == 0);
        let show = global.quiet == 0;
        tell_step(&bar, show, format!("simulating the plan, {} runs", runs.len()));
        let done = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let reports = whatif.run(threads, &|_| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            tell_step(&bar, show, format!("simulating the plan, {done} of {} runs done", runs.len()));
        });
        bar.finish_and_clear();
        let cases = figures(&whatif, &reports.map_err(failure)?);
        let figures = cases.iter().map(|case| RunFigures {
            units_s: case.tps,
            half_width: case.half_width,
            unit_ms: case.response_ms,
            read_ms: case.read_ms,
            log_ms: if load.log_bytes.is_some() { case.log_ms } else { 0.0 },
            limit: case.limit.clone(),
        });
        let runs: Vec<_> = runs.into_iter().zip(figures).collect();
        Ok(judge(load, &runs, &found.words, plan.expected))
    }

    /// The volumes of the data, and that of the log.
    fn volumes(&self, array: &Description) -> Result<(Vec<usize>, usize), String> {
        let names: Vec<&str> = array.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let place = |option: &str, name: &str| {
            names.iter().position(|known| *known == name).ok_or_else(|| {
                format!("{option}: there is no volume {name:?}; use some of {}", names.join(", "))
            })
        };
        if names.is_empty() {
            return Err("has no volume, so nothing says where the data lies; add [[volume]]".to_owned());
        }
        let log = match &self.log_on {
            Some(name) => Some(place("--log-on", name)?),
            None => names.iter().position(|name| *name == LOG),
        };
        let mut data =
            self.data_on.iter().map(|name| place("--data-on", name)).collect::<Result<Vec<_>, _>>()?;
        if data.is_empty() {
            data = (0..names.len()).filter(|volume| names.len() == 1 || Some(*volume) != log).collect();
        }
        let pool = array.volumes[data[0]].pool;
        if let Some(other) = data.iter().find(|volume| array.volumes[**volume].pool != pool) {
            return Err(format!(
                "the data lies on volumes of several pools ({:?} is of another than {:?}); name those of one with --data-on",
                names[*other], names[data[0]]
            ));
        }
        let log = log.unwrap_or(data[0]);
        Ok((data, log))
    }
}

/// Refuses to overwrite a file that no earlier plan has written.
fn check_own(path: &Path, begins: &str) -> Result<(), Failure> {
    let mut found = vec![0; begins.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut found));
    let is_own = match read {
        Ok(()) => found == begins.as_bytes(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    match is_own {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "{} exists and was not written by \"tier0 advise plan\"; name another file",
            path.display()
        ))),
    }
}

/// Reads the array file. What tier0 puts beside a file where that does not say another place is not of the file.
fn read(path: &Path) -> Result<Description, Failure> {
    let mut array = Description::read(path).map_err(Failure::input)?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    if let Ok(said) = Description::parse(&text, &path.display().to_string()) {
        array.control = array.control.filter(|_| said.control.is_some());
        array.events = array.events.filter(|_| said.events.is_some());
    }
    Ok(array)
}

/// Drives of the catalogue can be simulated, others not.
fn check_models(array: &Description) -> Result<(), String> {
    let without: Vec<&str> =
        array.drives.iter().filter(|drive| drive.model.is_none()).map(|drive| drive.name.as_str()).collect();
    match without.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!(
            "{} of {} drives have no model ({first:?} is the first), and the twin simulates models; add model = \"…\" (tier0 catalog list)",
            without.len(),
            array.drives.len()
        )),
    }
}

/// What an object takes beyond its size: its last piece, and a piece for what is appended.
const OBJECT_MORE: u64 = 3 << 20;
/// The log's size in a case, and what pieces waste.
const ROOM_MORE: f64 = 1.1e9;

fn check_room(load: &Load, array: &Description, data: &[usize]) -> Result<(), String> {
    let room: u64 = data.iter().map(|volume| array.volumes[*volume].sectors.bytes().0).sum();
    match load.bytes() + ROOM_MORE > room as f64 {
        true => Err(format!(
            "the objects of the samples take {:#}, and the volumes of the data have {:#}; make them larger, or name all of them with --data-on",
            ByteCount((load.bytes() as u64).next_multiple_of(1 << 20)),
            ByteCount(room)
        )),
        false => Ok(()),
    }
}

/// Volumes on which the read cache does not help.
fn settings(array: &Description, data: &[usize], log: usize, evidence: &Evidence) -> Vec<CacheSetting> {
    let name = |volume: usize| array.volumes[volume].name.clone();
    let mut settings = Vec::new();
    if !data.contains(&log) {
        settings.push(CacheSetting::log(name(log)));
    }
    if evidence.is_scanned() {
        settings.extend(data.iter().map(|volume| CacheSetting::scans(name(*volume))));
    }
    let is_open = |setting: &CacheSetting| {
        let volume = array.volumes.iter().find(|volume| volume.name == setting.volume);
        volume.is_some_and(|volume| volume.read_cache != Some(setting.read_cache))
    };
    settings.retain(is_open);
    settings
}

fn remarks(found: &Next) -> Remarks {
    let mut remarks = Remarks::default();
    remarks.add(format!("volume {}", found.volume), "name", "the objects of the plan");
    for drive in &found.next.drives[found.now.drives.len()..] {
        if drive.path.is_some() {
            remarks.add(format!("drive {}", drive.name), "path", "new: put its own path");
        }
    }
    remarks
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::Run(format!("cannot write {}: {error}; name another file", path.display())))
}
