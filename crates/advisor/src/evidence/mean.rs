//! Means over intervals, weighted.

/// A weighted mean that knows whether anything was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    /// Adds a value, if it was measured.
    pub(super) fn add(&mut self, value: Option<f64>, weight: f64) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    /// The mean; none where nothing had a weight.
    pub(super) fn get(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}
