//! The flash cache of arrays under these requests: its own sets, replacement, doorkeeper and budget of writes, without I/O.
//!
//! A block of the trace is one of its pages, as which it has 4 KiB. All that is missing is offered as read from slow drives for
//! the first time: there is no cache in memory before it. A write strikes out what it changes, and what was read lately comes in
//! again.

use tier0_flash_cache::FlashModel;
use tier0_units::Nanos;

use super::Answer;
use super::cache::{Served, Tally};
use super::requests::{Requests, Touch};

/// A cache of fewer blocks has no line.
pub(super) const BLOCKS_MIN: usize = 2;

/// What a flash cache of `blocks` serves of all requests. Where the trace has no times, its budget of writes never ends.
pub(super) fn serve(requests: &Requests, blocks: usize, writes_per_day: f64) -> Served {
    let times = requests.times();
    let writes_per_day = if times.is_some() { writes_per_day } else { f64::INFINITY };
    let mut model = FlashModel::new(blocks as u64, writes_per_day);
    let mut tally = Tally::default();
    let pairs = requests.pairs();
    let mut times = times.into_iter().flatten();
    // Traces of several disks may step back in time. Without times, each request is a nanosecond after the one before, in which a
    // budget without an end is full again.
    let mut now = Nanos::ZERO;
    let mut lines: Vec<(u64, u8)> = Vec::new();
    for request in requests.touches().chunk_by(|_, next| next.continues()) {
        now = times.next().unwrap_or(Nanos(now.0 + 1)).max(now);
        let first = request[0];
        if first.forgets() {
            model.strike(pairs[first.block() as usize].0.into());
            continue;
        }
        lines_of(request, &pairs, &mut lines);
        let is_read_hit = !first.is_write() && model.read(&lines, now);
        for touch in request {
            let (line, half) = pairs[touch.block() as usize];
            let is_hit = is_read_hit || touch.is_write() && model.held(line.into()) & 1 << half != 0;
            tally.touched(*touch, Answer { is_hit, is_written: false }, requests.bytes_of(touch.block()));
        }
        if first.is_write() {
            lines.iter().for_each(|(line, halves)| model.write(*line, *halves, now));
        }
    }
    let written_blocks = model.written_pages();
    Served {
        written_blocks,
        written_bytes: written_blocks.saturating_mul(requests.block_bytes()),
        refused_blocks: model.refused_budget_pages(),
        ..tally.served()
    }
}

/// The lines of a request, and which pages of each it touches, a bit each.
fn lines_of(request: &[Touch], pairs: &[(u32, u8)], lines: &mut Vec<(u64, u8)>) {
    lines.clear();
    for touch in request {
        let (line, half) = pairs[touch.block() as usize];
        match lines.last_mut().filter(|last| last.0 == u64::from(line)) {
            Some(last) => last.1 |= 1 << half,
            None => lines.push((line.into(), 1 << half)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_policy::PolicyKind;

    use super::super::{Keeper, Writes, cache};
    use super::*;

    /// A loop that fits and a scan that does not come back, one request a second.
    fn loop_and_scan() -> Requests {
        let mut requests = Requests::new(4096, Writes::Allocate);
        for n in 0..100_000 {
            requests.set_time(Some(Nanos::from_secs(n)));
            requests.read(0, n % 500 * 2, 2).expect("room");
            requests.read(1, n * 2, 2).expect("room");
        }
        requests
    }

    #[test]
    fn flash_is_not_written_for_what_is_read_once() {
        let requests = loop_and_scan();
        let flash = serve(&requests, 4800, f64::INFINITY);
        let lru = cache::serve(&requests, Keeper::Policy(PolicyKind::Lru), 4800);
        assert!((0.5..0.53).contains(&flash.miss_ratio), "{flash:?}");
        assert!(flash.written_blocks * 10 < lru.written_blocks, "{flash:?} against {lru:?}");
        assert_eq!(flash.written_bytes, flash.written_blocks * 4096);
    }

    #[test]
    fn the_budget_limits_what_is_written_where_there_are_times() {
        let of = |has_times: bool| {
            let mut requests = Requests::new(4096, Writes::Allocate);
            for n in 0..200_000_u64 {
                requests.set_time(has_times.then_some(Nanos::from_millis(n)));
                // Each block twice, soon one after the other: the doorkeeper lets it in.
                requests.read(0, n / 200 * 200 + n % 100 * 2, 2).expect("room");
            }
            serve(&requests, 960, 3.0)
        };
        let (limited, free) = (of(true), of(false));
        assert!(limited.refused_blocks > 0 && free.refused_blocks == 0, "{limited:?} and {free:?}");
        assert!(
            limited.written_blocks <= 2 * 960 + 10 && free.written_blocks > 10 * 960,
            "{limited:?} and {free:?}"
        );
    }

    #[test]
    fn writes_and_discards_strike_out() {
        let mut requests = Requests::new(4096, Writes::Allocate);
        requests.read(0, 0, 2).expect("room");
        requests.read(0, 0, 2).expect("room");
        requests.write(0, 0, 1).expect("room");
        requests.read(0, 0, 1).expect("room");
        requests.forget(0, 0, 2).expect("room");
        requests.read(0, 0, 1).expect("room");
        let served = serve(&requests, 960, 3.0);
        assert_eq!((served.miss_ratio, served.written_blocks), (2.0 / 5.0, 2 + 1 + 1), "{served:?}");
    }
}
