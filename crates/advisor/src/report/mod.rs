//! Figures of an advice as texts, for the terminal and the page.
//!
//! | file | concept |
//! |---|---|
//! | `html` | the page |

mod html;

use crate::advice::Ranked;
use crate::evidence::Kind;
use crate::gain::Gain;

pub use html::{Provenance, html};

/// What stands where nothing was measured.
pub const NOT_MEASURED: &str = "not measured";

/// A row of the table of objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: &'static str,
    /// Its size.
    pub size: String,
    /// Its share of the I/Os.
    pub ios: String,
    /// Its share of the waits.
    pub waits: String,
    /// Milliseconds of an I/O.
    pub ms: String,
    /// The expected gain.
    pub gain: String,
    /// Its interval.
    pub interval: String,
    /// The gain for each GB.
    pub per_gb: String,
    /// Why.
    pub why: String,
}

impl Row {
    /// The row of an object.
    pub fn of(row: &Ranked) -> Row {
        Row {
            name: row.name.clone(),
            kind: row.kind.word(),
            size: row.bytes.map_or_else(not_measured, gb),
            // Shares are of the I/Os of data.
            ios: match row.kind {
                Kind::Log => String::new(),
                _ => row.io_share.map_or_else(not_measured, percent),
            },
            waits: row.wait_share.map_or_else(not_measured, percent),
            ms: row.ms_per_io.map_or_else(not_measured, |ms| format!("{ms:.1}")),
            gain: row.gain.map_or_else(not_measured, |gain| change(gain.expected)),
            interval: row.gain.map_or_else(String::new, interval),
            per_gb: row.gain_per_gb.map_or_else(not_measured, |gain| format!("{:+.2} %", gain * 100.0)),
            why: row.why.clone(),
        }
    }
}

fn not_measured() -> String {
    NOT_MEASURED.to_owned()
}

/// A share in per cent; below ten with a decimal.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// A gain: `+17 %`.
pub fn change(gain: f64) -> String {
    // No "-0 %".
    format!("{:+.0} %", (gain * 100.0).round() + 0.0)
}

/// The interval of a gain.
pub fn interval(gain: Gain) -> String {
    format!("{} to {}", change(gain.low), change(gain.high))
}

/// Bytes in MB, GB or TB.
pub fn gb(bytes: f64) -> String {
    match bytes / 1e9 {
        gb if gb < 0.1 => format!("{:.1} MB", bytes / 1e6),
        gb if gb < 10.0 => format!("{gb:.1} GB"),
        gb if gb < 9_999.5 => format!("{gb:.0} GB"),
        gb => format!("{:.1} TB", gb / 1e3),
    }
}
