//! Why a request is not carried out, as the control task has it.

use thiserror::Error;
use tier0_api::AdminReply;
use tier0_plan::PlanError;
use tier0_pool::{MetaError, PoolError};

/// Why a request cannot be carried out, as text: the fact, then the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AdminError {
    /// Everything is as it was asked for already: nothing was changed, and no event tells of a change.
    #[error("{0}")]
    Unchanged(String),
    /// What was asked for cannot be, as the array is; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// The same of a drive that is to join and holds something, which is not overwritten without `force`.
    #[error("{0}")]
    Held(String),
    /// It could be, and something failed on the way: a drive, the log, the system.
    #[error("{0}")]
    Failed(String),
}

impl AdminError {
    /// A request that cannot be carried out as it is; nothing was changed.
    pub fn new(text: impl Into<String>) -> AdminError {
        AdminError::Refused(text.into())
    }

    /// A request for what is so already.
    pub fn unchanged(text: impl Into<String>) -> AdminError {
        AdminError::Unchanged(text.into())
    }

    /// A request that failed while it was carried out.
    pub fn failed(text: impl Into<String>) -> AdminError {
        AdminError::Failed(text.into())
    }
}

impl From<AdminError> for AdminReply {
    fn from(error: AdminError) -> AdminReply {
        match error {
            // Who asks has what was asked for.
            AdminError::Unchanged(text) => AdminReply::Done(text),
            AdminError::Refused(text) => AdminReply::Refused(text),
            AdminError::Held(text) => AdminReply::Held(text),
            AdminError::Failed(text) => AdminReply::Failed(text),
        }
    }
}

impl From<MetaError> for AdminError {
    fn from(error: MetaError) -> AdminError {
        AdminError::Refused(error.to_string())
    }
}

impl From<PoolError> for AdminError {
    /// What a drive refuses has failed; what else is wrong is in the request.
    fn from(error: PoolError) -> AdminError {
        match error.is_failure() {
            true => AdminError::Failed(error.to_string()),
            false => AdminError::Refused(error.to_string()),
        }
    }
}

impl From<PlanError> for AdminError {
    fn from(error: PlanError) -> AdminError {
        match error {
            PlanError::Pool(error) => error.into(),
            error => AdminError::Refused(error.to_string()),
        }
    }
}
