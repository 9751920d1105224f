//! Whom a verb asks: the server of an array file, also where the file is broken or gone.

use std::path::{Path, PathBuf};

use tier0_api::{AdminReply, AdminRequest, Status};
use tier0_description::{Description, Remnant};
use tier0_world::real::listens;

use super::client::{ask_at, ask_if_served, unserved};
use crate::failure::Failure;

/// The server of an array file.
pub(crate) struct Addressee {
    file: PathBuf,
    known: Known,
}

/// What is known of the array.
enum Known {
    /// All that its file says.
    Described(Box<Description>),
    /// What is left of a file that is broken or gone, and the fault of it.
    Left { remnant: Remnant, fault: String },
}

impl Addressee {
    /// The server of the array file at `file`. Where the file is broken or gone and a server listens at its control socket,
    /// a warning says so, and that one is asked all the same.
    ///
    /// # Errors
    /// The fault of the file, where no server listens.
    pub(crate) fn of(file: &Path) -> Result<Addressee, Failure> {
        let of = |known| Addressee { file: file.to_owned(), known };
        let fault = match Description::read(file) {
            Ok(description) => return Ok(of(Known::Described(Box::new(description)))),
            Err(error) => Failure::input(error),
        };
        let is_asked = |remnant: &Remnant| listens(&remnant.control).is_ok();
        let Some(remnant) = Remnant::of(file).filter(is_asked) else { return Err(fault) };
        let fault = fault.text().unwrap_or_default();
        tracing::warn!("{fault}; using the control socket {:?} of the running server", remnant.control);
        Ok(of(Known::Left { remnant, fault }))
    }

    /// Asks it.
    ///
    /// # Errors
    /// It refuses, fails, or does not answer.
    pub(crate) fn ask(&self, request: &AdminRequest) -> Result<AdminReply, Failure> {
        match &self.known {
            Known::Described(description) => {
                ask_if_served(description, request)?.ok_or_else(|| unserved(description, &self.file))
            }
            Known::Left { remnant, fault } => ask_at(&remnant.control, remnant.name.as_deref(), request)?
                .ok_or_else(|| Failure::Input(fault.clone())),
        }
    }

    /// Asks how the array does.
    pub(crate) fn status(&self) -> Result<Status, Failure> {
        match self.ask(&AdminRequest::Status)? {
            AdminReply::Status(status) => Ok(*status),
            _ => Err(misunderstood()),
        }
    }

    /// What the file says; where it is broken, as much as is known.
    pub(crate) fn description(&self) -> Result<&Description, Broken<'_>> {
        match &self.known {
            Known::Described(description) => Ok(description),
            Known::Left { remnant, fault } => Err(Broken { remnant, fault }),
        }
    }
}

/// An array file that is broken or gone.
pub(crate) struct Broken<'a> {
    /// What is left of it.
    pub(crate) remnant: &'a Remnant,
    /// The fault of it, and the remedy.
    pub(crate) fault: &'a str,
}

/// An answer to another question.
pub(crate) fn misunderstood() -> Failure {
    Failure::Run(
        "the server sent an unexpected reply; check that server and client have the same version".into(),
    )
}
