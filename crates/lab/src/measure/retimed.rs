//! Flash drives with another command time than the catalogue's, for fits of a drive to a study's calibration figure.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tier0_catalog::FlashSpec;
use tier0_drive::flash::{FlashModel, FlashParameters, FlashParametersError, Precondition};
use tier0_units::Nanos;

/// Models by drive and command time, each preconditioned once.
#[derive(Default)]
pub(super) struct Retimed(Mutex<BTreeMap<(String, u64), FlashModel>>);

impl Retimed {
    /// The model of `spec` whose controller takes `read_us` for a read.
    pub(super) fn model(&self, spec: &FlashSpec, read_us: f64) -> Result<FlashModel, FlashParametersError> {
        let read = Nanos((read_us * 1e3).round() as u64);
        let key = (format!("{}@{}", spec.id, spec.calibration), read.0);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(model) = known {
            return Ok(model);
        }
        let parameters = FlashParameters { controller_read_time: read, ..FlashParameters::try_from(spec)? };
        let mut model = FlashModel::new(parameters, 0)?;
        model.precondition(Precondition::default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, model.clone());
        Ok(model)
    }
}
