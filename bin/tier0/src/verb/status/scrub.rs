//! The scrub of a pool: the one that is running, or the result of the last one.

use tier0_api::{LastScrub, ScrubResult, ScrubStatus};
use tier0_units::{ByteCount, counted};

use super::duration;

/// A line for the running scrub and one for the last; none of a pool that was never scrubbed.
pub(super) fn text(scrub: Option<&ScrubStatus>, finished_ever: u64) -> Vec<String> {
    let running = scrub.filter(|scrub| scrub.running).map(running);
    let last = scrub.and_then(|scrub| Some(ended(&scrub.last?, scrub)));
    let lines: Vec<String> = running.into_iter().chain(last).collect();
    match finished_ever {
        count if lines.is_empty() && count > 0 => vec![format!(
            "  last scrub: before the server started ({} finished so far; \"tier0 events\" has their results)",
            counted(count, "scrub")
        )],
        _ => lines,
    }
}

fn running(scrub: &ScrubStatus) -> String {
    let bytes = ByteCount(scrub.bytes_verified);
    let errors = errors(scrub.repaired, scrub.unrecoverable, scrub.extents_skipped);
    format!("  scrub: running, {} %, {bytes} verified, {errors}", percent(scrub.progress))
}

/// A scrub that was stopped is told with its progress, as long as no other has begun.
fn ended(last: &LastScrub, now: &ScrubStatus) -> String {
    let how = match last.result {
        ScrubResult::Finished => "finished",
        ScrubResult::Stopped => "stopped",
        ScrubResult::Failed => "failed: a shard did not answer,",
    };
    let progress = match (last.result, now.running) {
        (ScrubResult::Finished, _) => ", 100 %".to_owned(),
        (_, true) => String::new(),
        (_, false) => format!(" at {} %", percent(now.progress)),
    };
    format!(
        "  last scrub: {how} {} ago{progress}, {} verified, {}",
        duration(last.ended_s),
        ByteCount(last.bytes_verified),
        errors(last.repaired, last.unrecoverable, last.extents_skipped)
    )
}

/// Rounded down: 100 % is all of it.
fn percent(share: f64) -> String {
    format!("{:.1}", (share * 1000.0).floor() / 10.0)
}

fn errors(repaired: u64, unrecoverable: u64, skipped: u64) -> String {
    if [repaired, unrecoverable, skipped] == [0; 3] {
        return "no errors".to_owned();
    }
    let pages = format!("{} repaired, {unrecoverable} unrecoverable", counted(repaired, "page"));
    match skipped {
        0 => pages,
        extents => format!("{pages}, {} not verified", counted(extents, "extent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(running: bool, progress: f64, last: Option<LastScrub>) -> ScrubStatus {
        ScrubStatus {
            running,
            progress,
            pages_verified: 256,
            bytes_verified: 1 << 20,
            repaired: 0,
            unrecoverable: 0,
            extents_skipped: 0,
            last,
        }
    }

    fn last(result: ScrubResult, repaired: u64) -> LastScrub {
        LastScrub {
            result,
            ended_s: 75,
            bytes_verified: 24 << 20,
            repaired,
            unrecoverable: 0,
            extents_skipped: 0,
        }
    }

    /// A scrub that had ended was "not running, 90.7 %".
    #[test]
    fn the_last_scrub_is_told_with_its_result_and_age() {
        let told = |scrub: &ScrubStatus| text(Some(scrub), 1).join("\n");
        let finished = scrub(false, 1.0, Some(last(ScrubResult::Finished, 0)));
        assert_eq!(
            told(&finished),
            "  last scrub: finished 1 min 15 s ago, 100 %, 24MiB verified, no errors"
        );
        let stopped = scrub(false, 0.907, Some(last(ScrubResult::Stopped, 2)));
        let line = "  last scrub: stopped 1 min 15 s ago at 90.7 %, 24MiB verified, 2 pages repaired, 0 unrecoverable";
        assert_eq!(told(&stopped), line);
        let both = scrub(true, 0.4999, Some(last(ScrubResult::Finished, 0)));
        assert!(
            told(&both)
                .starts_with("  scrub: running, 49.9 %, 1MiB verified, no errors\n  last scrub: finished")
        );
        assert_eq!(text(Some(&scrub(true, 0.0, None)), 0).len(), 1);
    }

    #[test]
    fn scrubs_before_the_start_are_counted() {
        assert_eq!(text(None, 0), Vec::<String>::new());
        assert!(text(None, 3)[0].contains("before the server started (3 scrubs finished so far"));
    }
}
