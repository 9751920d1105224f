//! Write caches under a load until destaging is in a steady state: as much reaches the drives as the hosts write.
//!
//! They begin empty. A load that hardly writes leaves them so: its pages age and go. Under any other they are filled
//! to where destaging goes by need; where they still fill after a window, because the drives do not keep up, to where
//! writers are delayed; and they find their level from there.

use std::cell::Cell;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_cache::Stage;
use tier0_units::{Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_workload::run::LoadRun;
use tier0_world::World;

use super::Look;
use super::filling::Filling;

/// How often the caches are looked at.
const ROUND: Nanos = Nanos::from_millis(100);
/// The first look, at empty caches.
const FIRST_ROUNDS: usize = 5;
/// A load that in so long writes less than this share of the log's size hardly writes: the write cache destages pages of
/// that age, and by need only what exceeds that share.
const AGED: Nanos = Nanos::from_secs(10);
const AGED_SHARE: f64 = 0.3;
/// A window in which so much of the log's size was written is judged: some of the steps in which it is given back.
const WINDOW_SHARE: f64 = 0.25;
/// One of so many rounds is judged all the same: next to nothing is written.
const WINDOW_ROUNDS_MAX: usize = 30;
/// A cache that rises or falls by less than this share of what is written is in balance.
const BALANCE: f64 = 0.12;
/// The longest that is waited for: a load just at the drives' limit fills or empties the caches slowly, and it matters
/// little where they stand.
pub(crate) const SETTLING_MAX: Nanos = Nanos::from_secs(6);
/// Another seed than the measurement's.
pub(crate) const SEED: u64 = 0x5e77;

/// The write caches that a load writes into.
pub(crate) struct WriteCaches {
    world: World,
    parts: Vec<Part>,
}

/// Write caches that are judged together: that of a group of sets in every member, or the one that all groups share.
struct Part {
    caches: Vec<Filling>,
    window: Window,
    filling: Rc<Cell<usize>>,
    is_settled: bool,
}

/// What is seen of the caches, their mean.
struct Window {
    /// Levels after each round.
    levels: Vec<f64>,
    /// What had been written when it began, in sizes of the log.
    written: f64,
    /// What the caches were filled to before it; nothing where they were left empty.
    filled: Option<Stage>,
}

impl WriteCaches {
    /// Those of each element together; none where there are none.
    pub(crate) fn new(world: &World, parts: Vec<Vec<Filling>>) -> Option<WriteCaches> {
        let parts: Vec<Part> = parts.into_iter().map(Part::new).collect();
        (!parts.is_empty()).then(|| WriteCaches { world: world.clone(), parts })
    }

    /// Has a run of the load judged after each round, and ended once the caches are settled, which the cell then says, or once
    /// `look` says so.
    pub(crate) fn judge<T: BlockTarget + 'static>(
        mut self,
        run: LoadRun<T>,
        mut look: Look,
    ) -> (LoadRun<T>, Rc<Cell<bool>>) {
        let stop = run.stop_handle();
        let settled = Rc::new(Cell::new(false));
        let told = settled.clone();
        let judge = move |_: &_| {
            self.parts.iter_mut().for_each(|part| part.judge(&self.world));
            told.set(self.parts.iter().all(|part| part.is_settled));
            if told.get() || !look("settling the write cache") {
                stop.stop();
            }
        };
        (run.on_progress(ROUND, judge), settled)
    }
}

impl Part {
    fn new(caches: Vec<Filling>) -> Part {
        let window = Window { levels: Vec::new(), written: 0.0, filled: None };
        let mut part = Part { caches, window, filling: Rc::new(Cell::new(0)), is_settled: false };
        part.begin_window(None);
        part
    }

    fn begin_window(&mut self, filled: Option<Stage>) {
        self.window = Window { levels: Vec::new(), written: self.written(), filled };
    }

    /// Looks at the caches after a round.
    fn judge(&mut self, world: &World) {
        if self.is_settled {
            return;
        }
        if self.filling.get() > 0 {
            return self.begin_window(self.window.filled);
        }
        self.window.levels.push(self.level());
        let Some(next) = self.window.judge(self.written() - self.window.written) else { return };
        match next {
            Next::Measure => self.is_settled = true,
            Next::Fill(stage) => self.fill(world, stage),
            Next::Wait => {}
        }
        self.begin_window(next.filled().or(self.window.filled));
    }

    /// Fills the caches beside the load.
    fn fill(&self, world: &World, stage: Stage) {
        for (number, cache) in (0u64..).zip(&self.caches) {
            let random = world.random(0xb0ff_0000 ^ number << 8 ^ stage as u64);
            let filled = cache.clone().fill(world.clone(), random, stage);
            let filling = self.filling.clone();
            filling.set(filling.get() + 1);
            let task = async move {
                filled.await;
                filling.set(filling.get() - 1);
            };
            world.spawn(task).detach();
        }
    }

    fn level(&self) -> f64 {
        let levels: f64 = self.caches.iter().map(|cache| cache.status().level).sum();
        levels / self.caches.len() as f64
    }

    fn written(&self) -> f64 {
        let shares = self.caches.iter().map(|cache| {
            let status = cache.status();
            (status.written_pages * PAGE_SECTORS * SECTOR_BYTES) as f64 / status.log_bytes as f64
        });
        shares.sum::<f64>() / self.caches.len() as f64
    }
}

/// What follows a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The caches are settled.
    Measure,
    /// They are to be filled.
    Fill(Stage),
    /// Another window.
    Wait,
}

impl Next {
    fn filled(self) -> Option<Stage> {
        match self {
            Next::Fill(stage) => Some(stage),
            _ => None,
        }
    }
}

impl Window {
    /// What is to be done, given what was written in the window in sizes of the log; nothing while it goes on.
    fn judge(&self, written: f64) -> Option<Next> {
        let rounds = self.levels.len();
        let Some(stage) = self.filled else {
            let aged = written * AGED.as_secs_f64() / (ROUND.as_secs_f64() * FIRST_ROUNDS as f64);
            let next = if aged < AGED_SHARE { Next::Measure } else { Next::Fill(Stage::Pressing) };
            return (rounds >= FIRST_ROUNDS).then_some(next);
        };
        if written < WINDOW_SHARE && rounds < WINDOW_ROUNDS_MAX {
            return None;
        }
        let rise = self.rise();
        let is_balanced = rise.abs() <= BALANCE * written;
        Some(match stage {
            _ if is_balanced => Next::Measure,
            // The drives keep up: less is destaged at a time the emptier the cache, which ends this by itself.
            Stage::Pressing if rise < 0.0 => Next::Measure,
            Stage::Pressing => Next::Fill(Stage::Throttling),
            _ => Next::Wait,
        })
    }

    /// By how much the level rose within it: twice the distance of its halves' means, since single levels jump by what a
    /// batch gives back.
    fn rise(&self) -> f64 {
        let (first, second) = self.levels.split_at(self.levels.len() / 2);
        let mean = |levels: &[f64]| levels.iter().sum::<f64>() / levels.len().max(1) as f64;
        if first.is_empty() { 0.0 } else { 2.0 * (mean(second) - mean(first)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(filled: Option<Stage>, levels: &[f64], written: f64) -> Option<Next> {
        Window { levels: levels.to_vec(), written: 0.0, filled }.judge(written)
    }

    #[test]
    fn a_load_that_hardly_writes_leaves_the_cache_empty() {
        let levels = [0.0; FIRST_ROUNDS];
        assert_eq!(judge(None, &levels[1..], 0.5), None);
        // 1 % of the log in half a second are 20 % until a page is old.
        assert_eq!(judge(None, &levels, 0.01), Some(Next::Measure));
        assert_eq!(judge(None, &levels, 0.02), Some(Next::Fill(Stage::Pressing)));
    }

    #[test]
    fn a_cache_that_fills_is_filled_and_one_in_balance_is_measured() {
        let (pressing, full) = (Some(Stage::Pressing), Some(Stage::Throttling));
        assert_eq!(judge(pressing, &[0.3, 0.31], 0.1), None, "too little is written to judge");
        assert_eq!(judge(pressing, &[0.30, 0.35], 0.3), Some(Next::Fill(Stage::Throttling)));
        assert_eq!(judge(pressing, &[0.30, 0.31], 0.3), Some(Next::Measure));
        assert_eq!(judge(pressing, &[0.30, 0.20], 0.3), Some(Next::Measure));
        assert_eq!(judge(full, &[0.70, 0.75], 0.3), Some(Next::Wait));
        assert_eq!(judge(full, &[0.86, 0.85], 0.3), Some(Next::Measure));
    }
}
