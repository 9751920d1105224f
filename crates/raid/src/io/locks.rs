//! Locks on ranges of sets, so that writes of the same parity row or of the same mirrored sectors go one after the
//! other. Uncontended, a lock costs a look at one short list.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_world::sync::Notify;

use crate::set::SetIndex;

/// Lists of locked ranges; more of them mean fewer ranges to compare.
const BUCKETS: usize = 1024;
/// Sectors that share a list: a range is locked piece by piece, so the pieces must be the same for all.
const BUCKET_SECTORS_SHIFT: u32 = 11;

pub(crate) struct RowLocks {
    buckets: Vec<Bucket>,
}

#[derive(Default)]
struct Bucket {
    held: RefCell<Vec<Range>>,
    released: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    set: SetIndex,
    first: u64,
    end: u64,
}

impl Range {
    fn overlaps(&self, other: &Range) -> bool {
        self.set == other.set && self.first < other.end && other.first < self.end
    }
}

impl RowLocks {
    pub(crate) fn new() -> RowLocks {
        RowLocks { buckets: (0..BUCKETS).map(|_| Bucket::default()).collect() }
    }

    /// Waits until no overlapping range is locked, and locks this one. Pieces are taken in the order of addresses, so
    /// two lockers never wait for each other; a caller that holds several locks must have taken them in that order too,
    /// by set and address.
    pub(crate) async fn lock(self: &Rc<Self>, set: SetIndex, first: u64, end: u64) -> RowGuard {
        let mut guard = RowGuard { locks: self.clone(), set, first, end: first };
        while guard.end < end {
            let piece_end = (((guard.end >> BUCKET_SECTORS_SHIFT) + 1) << BUCKET_SECTORS_SHIFT).min(end);
            let range = Range { set, first: guard.end, end: piece_end };
            let bucket = self.bucket(&range);
            while bucket.held.borrow().iter().any(|held| held.overlaps(&range)) {
                bucket.released.wait().await;
            }
            bucket.held.borrow_mut().push(range);
            guard.end = piece_end;
        }
        guard
    }

    fn bucket(&self, range: &Range) -> &Bucket {
        let piece = (range.first >> BUCKET_SECTORS_SHIFT) ^ (u64::from(range.set.0) << 8);
        let hash = piece.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.buckets[hash as usize % BUCKETS]
    }
}

/// A locked range; dropping it unlocks.
pub(crate) struct RowGuard {
    locks: Rc<RowLocks>,
    set: SetIndex,
    first: u64,
    /// As far as it is locked.
    end: u64,
}

impl Drop for RowGuard {
    fn drop(&mut self) {
        let mut first = self.first;
        while first < self.end {
            let piece_end = (((first >> BUCKET_SECTORS_SHIFT) + 1) << BUCKET_SECTORS_SHIFT).min(self.end);
            let range = Range { set: self.set, first, end: piece_end };
            let bucket = self.locks.bucket(&range);
            let mut held = bucket.held.borrow_mut();
            let place = held.iter().position(|other| *other == range).expect("it is locked");
            held.swap_remove(place);
            drop(held);
            bucket.released.notify_all();
            first = piece_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tier0_units::Nanos;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn overlapping_ranges_exclude_each_other_and_others_do_not() {
        let runtime = VirtualRuntime::new(3, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let locks = Rc::new(RowLocks::new());
            let owners: Rc<Vec<Cell<bool>>> = Rc::new((0..8192).map(|_| Cell::new(false)).collect());
            let mut random = world.random(1);
            let tasks: Vec<_> = (0..500)
                .map(|_| {
                    let first = random.below(8000);
                    let end = first + 1 + random.below(8192 - first);
                    let time = Nanos(1 + random.below(50));
                    let (locks, owners, world) = (locks.clone(), owners.clone(), world.clone());
                    world.clone().spawn(async move {
                        let _guard = locks.lock(SetIndex(1), first, end).await;
                        let mine = &owners[first as usize..end as usize];
                        assert!(mine.iter().all(|owner| !owner.replace(true)), "somebody else holds a part");
                        world.sleep(time).await;
                        mine.iter().for_each(|owner| owner.set(false));
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            let before = world.now();
            let _a = locks.lock(SetIndex(1), 0, 10).await;
            let _b = locks.lock(SetIndex(1), 10, 20).await;
            let _c = locks.lock(SetIndex(2), 0, 10).await;
            assert_eq!(world.now(), before);
        });
    }
}
