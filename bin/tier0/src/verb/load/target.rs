//! What is to be loaded, and whether it may be written to.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tier0_nbd::protocol::{ExportInfo, NbdUri};
use tier0_workload::spec::LoadSpec;

use crate::failure::Failure;

/// A target by its kind.
pub(super) enum Target {
    /// An export of an NBD server.
    Nbd(NbdUri),
    /// An array's file: the array it describes, in virtual time.
    Array(PathBuf),
    /// A file or a block device.
    File(PathBuf),
}

impl Target {
    /// A text with a scheme is an NBD address, a path that ends in .toml an array's file, any other a drive.
    pub(super) fn parse(text: &str) -> Result<Target, Failure> {
        if text.contains("://") {
            return text.parse().map(Target::Nbd).map_err(Failure::input);
        }
        let path = PathBuf::from(text);
        Ok(if path.extension().is_some_and(|end| end == "toml") {
            Target::Array(path)
        } else {
            Target::File(path)
        })
    }
}

/// Whether a load may write where it is sent.
pub(super) struct Consent {
    writes: bool,
    given: bool,
}

impl Consent {
    /// Of a load, with or without the user's `--overwrite`.
    pub(super) fn of(load: &LoadSpec, given: bool) -> Consent {
        Consent { writes: load.streams.iter().any(|stream| stream.read_percent < 100.0), given }
    }

    /// A file that occupies no space holds no data; any other file, and any device, may.
    pub(super) fn check_file(&self, path: &Path) -> Result<(), Failure> {
        let empty = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.blocks() == 0);
        if !self.writes || self.given || empty {
            return Ok(());
        }
        Err(refusal(&path.display().to_string()))
    }

    /// An export may always hold data.
    pub(super) fn check_nbd(&self, uri: &NbdUri, export: &ExportInfo) -> Result<(), Failure> {
        if self.writes && export.features.read_only {
            let text = format!("{uri} is read-only, but the load writes; use --read 100");
            return Err(Failure::Input(text));
        }
        if !self.writes || self.given {
            return Ok(());
        }
        Err(refusal(&uri.to_string()))
    }
}

fn refusal(target: &str) -> Failure {
    Failure::Input(format!(
        "the load writes, and {target} may hold data; say --overwrite if that may be lost, or use --read 100"
    ))
}
