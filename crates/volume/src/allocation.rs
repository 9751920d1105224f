//! Which slots of a pool are free: what the volumes of its record have not taken.

use thiserror::Error;
use tier0_pool::SlotRun;

/// A pool has not enough free slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{wanted} extents are wanted and {free} are free")]
pub struct NoSpace {
    /// Slots asked for.
    pub wanted: u64,
    /// Slots there are.
    pub free: u64,
}

/// The free slots of a pool.
#[derive(Clone, Debug)]
pub struct FreeSlots {
    /// Free runs by ascending slot; no two touch.
    free: Vec<SlotRun>,
}

impl FreeSlots {
    /// What is free of `count` slots when `taken` is taken. Taken runs that overlap or lie outside are an error: the
    /// text says which.
    pub fn new(count: u64, taken: impl IntoIterator<Item = SlotRun>) -> Result<FreeSlots, String> {
        let mut taken: Vec<SlotRun> = taken.into_iter().filter(|run| run.count > 0).collect();
        taken.sort_by_key(|run| run.first);
        let mut free = Vec::new();
        let mut at = 0;
        for run in taken {
            if run.first < at {
                return Err(format!("slot {} has two extents", run.first));
            }
            let Some(end) = run.first.checked_add(run.count).filter(|end| *end <= count) else {
                return Err(format!("slots {}+{} lie behind the pool's {count}", run.first, run.count));
            };
            if run.first > at {
                free.push(SlotRun { first: at, count: run.first - at });
            }
            at = end;
        }
        if at < count {
            free.push(SlotRun { first: at, count: count - at });
        }
        Ok(FreeSlots { free })
    }

    /// How many are free.
    pub fn count(&self) -> u64 {
        self.free.iter().map(|run| run.count).sum()
    }

    /// Takes `wanted` slots, the lowest first.
    pub fn take(&mut self, wanted: u64) -> Result<Vec<SlotRun>, NoSpace> {
        if wanted > self.count() {
            return Err(NoSpace { wanted, free: self.count() });
        }
        let mut left = wanted;
        let mut taken = Vec::new();
        while left > 0 {
            let run = &mut self.free[0];
            let count = run.count.min(left);
            taken.push(SlotRun { first: run.first, count });
            left -= count;
            *run = SlotRun { first: run.first + count, count: run.count - count };
            if run.count == 0 {
                self.free.remove(0);
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, count: u64) -> SlotRun {
        SlotRun { first, count }
    }

    #[test]
    fn gaps_are_filled_first() {
        let mut free = FreeSlots::new(100, [run(40, 10), run(0, 5)]).expect("valid");
        assert_eq!(free.count(), 85);
        assert_eq!(free.take(40), Ok(vec![run(5, 35), run(50, 5)]));
        assert_eq!(free.take(46), Err(NoSpace { wanted: 46, free: 45 }));
        assert_eq!(free.take(45), Ok(vec![run(55, 45)]));
        assert_eq!(free.take(0), Ok(vec![]));
    }

    #[test]
    fn a_record_that_contradicts_itself_is_refused() {
        assert!(FreeSlots::new(100, [run(0, 5), run(4, 2)]).is_err());
        assert!(FreeSlots::new(100, [run(99, 2)]).is_err());
        assert!(FreeSlots::new(100, [run(u64::MAX, 2)]).is_err());
    }
}
