//! A cache under requests, and what it counts.

use serde::Serialize;
use tier0_policy::{PageKey, Part, Policy};

use super::requests::{Requests, Touch};
use super::{Answer, Keeper, optimum};

/// What a cache served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Served {
    /// The part of the requests of which some block was missing.
    pub miss_ratio: f64,
    /// The part of the touched bytes that was missing.
    pub byte_miss_ratio: f64,
    /// Blocks that were written into the cache: those that came in, and those that were written while they were in it.
    pub written_blocks: u64,
    /// The same in bytes.
    pub written_bytes: u64,
    /// Blocks that the flash cache refused because its budget of writes did not last.
    pub refused_blocks: u64,
}

/// Counts what the touches of requests come to.
#[derive(Default)]
pub(super) struct Tally {
    requests: u64,
    missed_requests: u64,
    bytes: u64,
    missed_bytes: u64,
    written_blocks: u64,
    written_bytes: u64,
    /// Whether the request under way has missed already.
    has_missed: bool,
}

impl Tally {
    /// What came of a touch of so many bytes.
    pub(super) fn touched(&mut self, touch: Touch, answer: Answer, bytes: u64) {
        if !touch.continues() {
            self.requests += 1;
            self.has_missed = false;
        }
        self.bytes += bytes;
        if !answer.is_hit {
            self.missed_bytes += bytes;
            self.missed_requests += u64::from(!self.has_missed);
            self.has_missed = true;
        }
        if answer.is_written {
            self.written_blocks += 1;
            self.written_bytes += bytes;
        }
    }

    /// What all came to.
    pub(super) fn served(&self) -> Served {
        Served {
            miss_ratio: self.missed_requests as f64 / self.requests.max(1) as f64,
            byte_miss_ratio: self.missed_bytes as f64 / self.bytes.max(1) as f64,
            written_blocks: self.written_blocks,
            written_bytes: self.written_bytes,
            refused_blocks: 0,
        }
    }
}

/// What a cache of `blocks` serves of all requests.
pub(super) fn serve(requests: &Requests, keeper: Keeper, blocks: usize) -> Served {
    let mut tally = Tally::default();
    misses(requests.touches(), keeper, blocks, |touch, answer| {
        tally.touched(touch, answer, requests.bytes_of(touch.block()));
    });
    tally.served()
}

/// Has a cache serve touches; `told` learns of each that is no forgetting what came of it.
pub(super) fn misses(touches: &[Touch], keeper: Keeper, blocks: usize, mut told: impl FnMut(Touch, Answer)) {
    match keeper {
        Keeper::Optimum => optimum::misses(touches, blocks, told),
        Keeper::Policy(kind) => {
            let mut policy = kind.of(blocks);
            for request in touches.chunk_by(|_, next| next.continues()) {
                ask(policy.as_mut(), request, &mut told);
            }
        }
    }
}

/// Asks for the blocks of a request. As in the product, all are looked for before those that are missing come in.
fn ask(policy: &mut dyn Policy, request: &[Touch], told: &mut impl FnMut(Touch, Answer)) {
    let page = |touch: &Touch| PageKey(touch.block().into());
    let mut part = Part::First;
    for touch in request {
        if touch.forgets() {
            policy.remove(page(touch));
            continue;
        }
        let is_hit = policy.get(page(touch), part).is_some();
        // All that is missing comes in.
        told(*touch, Answer { is_hit, is_written: !is_hit || touch.is_write() });
        part = Part::Next;
    }
    let mut part = Part::First;
    for touch in request.iter().filter(|touch| !touch.forgets()) {
        let is_missing = policy.peek(page(touch)).is_none();
        if is_missing {
            policy.insert(page(touch), part);
        }
        part = if is_missing { Part::Next } else { Part::First };
    }
}

#[cfg(test)]
mod tests {
    use tier0_policy::PolicyKind;

    use super::super::Writes;
    use super::*;

    #[test]
    fn a_request_misses_once_however_many_of_its_blocks_do() {
        let mut requests = Requests::new(4096, Writes::Allocate);
        requests.read(0, 0, 4).expect("room");
        requests.read(0, 0, 2).expect("room");
        requests.write(0, 1, 2).expect("room");
        requests.read(0, 3, 2).expect("room");
        requests.forget(0, 0, 8).expect("room");
        requests.read(0, 0, 1).expect("room");
        let served = serve(&requests, Keeper::Policy(PolicyKind::Lru), 100);
        assert_eq!(served.miss_ratio, 3.0 / 5.0);
        assert_eq!(served.byte_miss_ratio, 6.0 / 11.0);
        assert_eq!((served.written_blocks, served.written_bytes), (8, 8 * 4096));
        // Nothing has to give way, and four of the first read's blocks are worth their place.
        let best = serve(&requests, Keeper::Optimum, 100);
        assert_eq!((best.miss_ratio, best.byte_miss_ratio), (served.miss_ratio, served.byte_miss_ratio));
        assert_eq!(best.written_blocks, 4);
    }

    #[test]
    fn objects_count_with_their_own_bytes() {
        let mut requests = Requests::new(1, Writes::Allocate);
        for (id, bytes) in [(5, 100), (6, 300), (5, 100), (6, 300)] {
            requests.read_object(id, bytes).expect("room");
        }
        let served = serve(&requests, Keeper::Policy(PolicyKind::Lru), 2);
        assert_eq!((served.miss_ratio, served.byte_miss_ratio, served.written_bytes), (0.5, 0.5, 400));
    }
}
