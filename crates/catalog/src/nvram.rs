//! The parameters of a protected write cache: memory that a battery, a capacitor or a second controller keeps over a loss
//! of power, as the drive that an array's write log lies on.
//!
//! How a model is to read them: one command at a time passes the memory at `rate_mb_s`; its answer comes `latency_us`
//! after that, and what was written is stable then.

use crate::parameter::Parameter;
use crate::parameter_set::{Inconsistency, parameter_set};

parameter_set! {
    /// The parameters of a protected write cache.
    NvramParameters / NvramOverrides {
        /// What it holds of writes, counted once where two controllers mirror it.
        capacity_mib: Parameter<f64>, Mib, 1.0..=4_194_304.0;
        /// Time until a write is protected, without the time that its data take.
        latency_us: Parameter<f64>, Us, 0.1..=10_000.0;
        /// Rate at which writes are protected: of the memory or of the link to the partner, whichever is slower.
        rate_mb_s: Parameter<f64>, MbPerSecond, 10.0..=1_000_000.0;
        /// Whether a write is protected only when the partner's cache holds it too.
        mirrored: Parameter<bool>, Flag;
        /// Whether what it holds survives a loss of power.
        protected: Parameter<bool>, Flag;
    }
}

impl NvramParameters {
    fn find_contradictions(&self) -> Vec<Inconsistency> {
        Vec::new()
    }
}
