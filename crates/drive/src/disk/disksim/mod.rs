//! Parameters and traces from the files of the DiskSim validation suite.
//!
//! A measured drive NAME has three files in DiskSim's parameter language, `NAME.diskspecs` (controller and buffer),
//! `NAME.model` (geometry and mechanics) and `NAME.seek` (measured seek curve), and a trace of requests with their
//! measured service times, `NAME.trace` or `NAME.trace.gz`.
//!
//! The parsers are pure functions from text to data; they never panic, and say which line they cannot read.
//! [`load`] and [`load_trace`] read the files.

mod controller;
mod layout;
mod mechanism;
mod syntax;
mod trace;

use std::io::Read;
use std::path::{Path, PathBuf};

use super::DiskParameters;
pub use syntax::{Block, Entry, Value};
pub use trace::{TraceRequest, parse_trace};

/// No file of the suite is near this size.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What is wrong with the files of a drive.
#[derive(Debug, thiserror::Error)]
pub enum DiskSimError {
    /// A file cannot be read.
    #[error("cannot read {path:?}: {source}; check the directory and the drive's name")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// None of the files that may hold something exists.
    #[error("no {kind} for drive {name:?} in {dir:?}; expected {expected}")]
    Missing {
        /// What is missing.
        kind: &'static str,
        /// The drive.
        name: String,
        /// Where it was looked for.
        dir: PathBuf,
        /// The file name.
        expected: String,
    },
    /// A file that is not in its format.
    #[error("{file}, line {line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// Parameters that describe no disk.
    #[error("{file}: {source}")]
    Parameter {
        /// The file.
        file: String,
        /// What is wrong.
        source: super::ParameterError,
    },
}

/// A problem at a line of a text; the caller knows the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub text: String,
}

impl Problem {
    fn new(line: usize, text: impl Into<String>) -> Problem {
        Problem { line, text: text.into() }
    }

    fn in_file(self, path: &Path) -> DiskSimError {
        DiskSimError::Syntax { file: path.display().to_string(), line: self.line, problem: self.text }
    }
}

/// Reads the parameters of drive `name` from the files in `dir`.
pub fn load(dir: &Path, name: &str) -> Result<DiskParameters, DiskSimError> {
    let specs_path = find(dir, name, "specification", &[format!("{name}.diskspecs")])?;
    let specs = syntax::parse(&read_text(&specs_path)?).map_err(|problem| problem.in_file(&specs_path))?;
    let disk = specs.block_of(&["disksim_disk"]).unwrap_or(&specs);
    let in_specs = |problem: Problem| problem.in_file(&specs_path);

    let own_model;
    let (model_path, model) = match disk.entry("Model").map(|entry| &entry.value) {
        Some(Value::Block(block)) => (specs_path.clone(), block),
        reference => {
            let referenced = reference.and_then(Value::as_source).unwrap_or_default();
            let path = find(dir, name, "model", &[referenced.to_owned(), format!("{name}.model")])?;
            own_model = syntax::parse(&read_text(&path)?).map_err(|problem| problem.in_file(&path))?;
            (path, own_model.block_of(&["dm_disk"]).unwrap_or(&own_model))
        }
    };
    let in_model = |problem: Problem| problem.in_file(&model_path);
    let layout = layout::read(model).map_err(in_model)?;
    let seek_file = |referenced: &str| {
        let path = find(dir, name, "seek curve", &[referenced.to_owned(), format!("{name}.seek")])?;
        let points =
            mechanism::parse_seek_points(&read_text(&path)?).map_err(|problem| problem.in_file(&path))?;
        Ok((path, points))
    };
    let mechanism = mechanism::read(model, layout.cylinders, seek_file, in_model)?;
    let (controller, buffer) = controller::read(disk).map_err(in_specs)?;
    Ok(DiskParameters { name: name.to_owned(), mechanism, layout, controller, buffer })
}

/// Reads the trace of drive `name` in `dir`, packed or not.
pub fn load_trace(dir: &Path, name: &str) -> Result<Vec<TraceRequest>, DiskSimError> {
    let path = find(dir, name, "trace", &[format!("{name}.trace.gz"), format!("{name}.trace")])?;
    parse_trace(&read_text(&path)?).map_err(|problem| problem.in_file(&path))
}

/// The first of the files that exists.
fn find(dir: &Path, name: &str, kind: &'static str, names: &[String]) -> Result<PathBuf, DiskSimError> {
    let usable = names.iter().filter(|file| !file.is_empty() && !file.contains(['/', '\\']));
    usable.clone().map(|file| dir.join(file)).find(|path| path.is_file()).ok_or_else(|| {
        DiskSimError::Missing {
            kind,
            name: name.to_owned(),
            dir: dir.to_owned(),
            expected: usable.cloned().collect::<Vec<_>>().join(" or "),
        }
    })
}

/// Reads a file, unpacking it where its name ends in `.gz`.
fn read_text(path: &Path) -> Result<String, DiskSimError> {
    let io = |source| DiskSimError::Io { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(io)?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> =
        if packed { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut bytes = Vec::new();
    reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Problem::new(1, format!("larger than {} MiB", FILE_BYTES_MAX >> 20)).in_file(path));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a model text with its seek points given, for tests and fuzzing without files.
pub fn parse(specs: &str, model: &str, seek: &str) -> Result<DiskParameters, DiskSimError> {
    let in_file = |file: &'static str| move |problem: Problem| problem.in_file(Path::new(file));
    let specs = syntax::parse(specs).map_err(in_file("diskspecs"))?;
    let model = syntax::parse(model).map_err(in_file("model"))?;
    let disk = specs.block_of(&["disksim_disk"]).unwrap_or(&specs);
    let model = model.block_of(&["dm_disk"]).unwrap_or(&model);
    let layout = layout::read(model).map_err(in_file("model"))?;
    let seek_file = |_: &str| {
        let points = mechanism::parse_seek_points(seek).map_err(in_file("seek"))?;
        Ok((PathBuf::from("seek"), points))
    };
    let mechanism = mechanism::read(model, layout.cylinders, seek_file, in_file("model"))?;
    let (controller, buffer) = controller::read(disk).map_err(in_file("diskspecs"))?;
    Ok(DiskParameters { name: "parsed".to_owned(), mechanism, layout, controller, buffer })
}
