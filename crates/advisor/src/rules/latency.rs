//! What rules about latency share: how slow objects are named, and the bound that holds for reads and writes alike.

use super::{Said, fires, names, silent, unknown};

/// The bound of published evaluations of arrays under OLTP.
const LIMIT_MS: f64 = 20.0;

/// Fires with the names of those that `is_slow` says it of, each with its latency in milliseconds; else silent.
pub(super) fn slow(
    timed: &[(String, f64)],
    is_slow: impl Fn(f64) -> bool,
    otherwise: impl FnOnce() -> String,
) -> Said {
    let slow = timed.iter().filter(|(_, ms)| is_slow(*ms));
    let slow: Vec<String> = slow.map(|(name, ms)| format!("{name} {ms:.1} ms")).collect();
    match slow.is_empty() {
        true => silent(otherwise()),
        false => fires(names(&slow)),
    }
}

/// Fires where the mean of `reads` or `writes`, as `what` says, is above the bound.
pub(super) fn slower_than_oltp_takes(timed: &[(String, f64)], what: &str) -> Said {
    if timed.is_empty() {
        return unknown(format!(
            "{what} were not timed on their own; give statistics with both stalls, iostat -x, or Perfmon"
        ));
    }
    slow(
        timed,
        |ms| ms > LIMIT_MS,
        || {
            let most = timed.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
            format!("the slowest mean is {most:.1} ms")
        },
    )
}
