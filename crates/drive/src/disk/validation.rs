//! How far the model is from a measured drive.
//!
//! A measured trace is replayed in a closed loop: each request is issued as long after the *simulated* completion
//! of the one before as it was issued after the measured one. Of the service times, the distributions are
//! compared: the *demerit* (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer, March
//! 1994) is the root mean square of the horizontal distance between the two cumulative distributions, given as a
//! share of the measured mean.

use std::path::Path;

use tier0_units::Nanos;

use super::disksim::{self, DiskSimError, TraceRequest};
use super::{DiskModel, DiskParameters, DiskRequest, DiskStatistics, Geometry, Operation, OutOfRange};

/// The quantiles that a report lists.
pub const QUANTILES: [f64; 11] = [0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.95, 0.99];

/// Why a drive could not be validated.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// Its files are missing or wrong.
    #[error(transparent)]
    Files(#[from] DiskSimError),
    /// Its parameters describe no disk.
    #[error("the parameters of {name:?} are impossible: {source}")]
    Parameters {
        /// The drive.
        name: String,
        /// What is wrong.
        source: super::ParameterError,
    },
    /// A request of the trace does not fit the drive.
    #[error("request {number} of the trace of {name:?}: {source}")]
    Request {
        /// The drive.
        name: String,
        /// Number of the request, from 1.
        number: usize,
        /// What is wrong.
        source: OutOfRange,
    },
    /// Nothing to compare.
    #[error("the trace of {name:?} has no requests")]
    EmptyTrace {
        /// The drive.
        name: String,
    },
}

/// Simulated against measured service times.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationReport {
    /// The drive.
    pub name: String,
    /// All requests.
    pub all: Comparison,
    /// Reads alone; none where there are none.
    pub reads: Option<Comparison>,
    /// Writes alone.
    pub writes: Option<Comparison>,
    /// What the model did.
    pub statistics: DiskStatistics,
}

/// Two distributions of service times.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Requests.
    pub count: usize,
    /// Measured mean, in milliseconds.
    pub mean_measured_ms: f64,
    /// Simulated mean, in milliseconds.
    pub mean_simulated_ms: f64,
    /// Root mean square of the horizontal distance of the cumulative distributions, in milliseconds.
    pub rms_ms: f64,
    /// `rms_ms` as a share of `mean_measured_ms`.
    pub demerit: f64,
    /// Points of both distributions.
    pub quantiles: Vec<QuantilePair>,
}

/// One point of two distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantilePair {
    /// Share of the requests that are faster.
    pub share: f64,
    /// Measured, in milliseconds.
    pub measured_ms: f64,
    /// Simulated, in milliseconds.
    pub simulated_ms: f64,
}

/// Validates the model with the parameters and the trace of drive `name` in `dir`.
pub fn validate(dir: &Path, name: &str) -> Result<ValidationReport, ValidationError> {
    let parameters = disksim::load(dir, name)?;
    let trace = disksim::load_trace(dir, name)?;
    validate_trace(parameters, &trace)
}

/// Validates the model with given parameters on a given trace.
pub fn validate_trace(
    parameters: DiskParameters,
    trace: &[TraceRequest],
) -> Result<ValidationReport, ValidationError> {
    let name = parameters.name.clone();
    if trace.is_empty() {
        return Err(ValidationError::EmptyTrace { name });
    }
    let (simulated, statistics) = replay(parameters, trace)?;
    let compare = |wanted: &dyn Fn(&TraceRequest) -> bool| {
        let both = trace.iter().zip(&simulated).filter(|(request, _)| wanted(request));
        let (measured, simulated): (Vec<_>, Vec<_>) =
            both.map(|(request, simulated)| (request.service, *simulated)).unzip();
        compare(measured, simulated)
    };
    let (reads, writes) = (compare(&|request| !request.write), compare(&|request| request.write));
    let all = compare(&|_| true).ok_or(ValidationError::EmptyTrace { name: name.clone() })?;
    Ok(ValidationReport { name, all, reads, writes, statistics })
}

/// Service times of the trace's requests in the model, one outstanding.
pub fn replay(
    parameters: DiskParameters,
    trace: &[TraceRequest],
) -> Result<(Vec<Nanos>, DiskStatistics), ValidationError> {
    let name = parameters.name.clone();
    let geometry = Geometry::new(parameters)
        .map_err(|source| ValidationError::Parameters { name: name.clone(), source })?;
    let mut model = DiskModel::new(geometry, Nanos::ZERO);
    let mut now = Nanos::ZERO;
    let mut services = Vec::with_capacity(trace.len());
    for (index, request) in trace.iter().enumerate() {
        let operation = if request.write { Operation::Write } else { Operation::Read };
        let id = index as u64;
        let submitted = DiskRequest { id, operation, lba: request.lba, sectors: request.sectors };
        model.advance(now, &mut |_, _| {});
        let wrong = |source| ValidationError::Request { name: name.clone(), number: index + 1, source };
        model.submit(now, submitted).map_err(wrong)?;
        let mut end = None;
        while end.is_none() {
            let Some(next) = model.next_event() else { break };
            model.advance(next, &mut |completed, at| end = (completed == id).then_some(at).or(end));
        }
        let end = end.unwrap_or(now);
        services.push(end - now);
        now = end + request.idle_after;
    }
    Ok((services, model.statistics()))
}

/// `None` where there is nothing to compare. Both must have the same length.
fn compare(mut measured: Vec<Nanos>, mut simulated: Vec<Nanos>) -> Option<Comparison> {
    if measured.is_empty() {
        return None;
    }
    let count = measured.len();
    measured.sort_unstable();
    simulated.sort_unstable();
    let mean = |times: &[Nanos]| times.iter().map(|time| time.as_millis_f64()).sum::<f64>() / count as f64;
    // Two samples of one size: the n-th smallest of each stand at the same height of their distributions.
    let square = |(a, b): (&Nanos, &Nanos)| (a.as_millis_f64() - b.as_millis_f64()).powi(2);
    let rms_ms = (measured.iter().zip(&simulated).map(square).sum::<f64>() / count as f64).sqrt();
    let at =
        |times: &[Nanos], share: f64| times[((share * count as f64) as usize).min(count - 1)].as_millis_f64();
    let pair = |share| QuantilePair {
        share,
        measured_ms: at(&measured, share),
        simulated_ms: at(&simulated, share),
    };
    let mean_measured_ms = mean(&measured);
    Some(Comparison {
        count,
        mean_measured_ms,
        mean_simulated_ms: mean(&simulated),
        rms_ms,
        demerit: rms_ms / mean_measured_ms,
        quantiles: QUANTILES.map(pair).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demerit_is_the_distance_of_the_distributions() {
        let ms = |values: &[u64]| values.iter().map(|&v| Nanos::from_millis(v)).collect::<Vec<_>>();
        let same = compare(ms(&[1, 5, 3]), ms(&[3, 1, 5])).unwrap();
        assert_eq!((same.demerit, same.mean_measured_ms), (0.0, 3.0));
        let shifted = compare(ms(&[1, 5, 3]), ms(&[3, 5, 7])).unwrap();
        assert!((shifted.rms_ms - 2.0).abs() < 1e-12 && (shifted.demerit - 2.0 / 3.0).abs() < 1e-12);
        assert!(compare(Vec::new(), Vec::new()).is_none());
    }
}
