//! Whose turn it is among writers that are delayed: fair between volumes by their weights, in the order of arrival within one.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): every volume has a virtual time, which a page puts on by
//! `PAGE / weight`, and the volume that is furthest behind has the turn. Volumes that always have writers waiting so get pages in
//! proportion to their weights, as by deficit round robin. It has the advantage over that scheme that it also says of a volume
//! that comes and goes whether it is *within its share*: whether it is behind the others even with what it asks for. Such a
//! writer needs no delay, because the others are slower for it. What a volume has not used is kept for it up to [`QUANTUM`]:
//! 16 pages at the weight 10.
//!
//! `Turns` is pure; `FairQueue` lets tasks wait for their turns. A task that gives up waiting leaves the queue.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use tier0_world::{PlantedBug, planted};

/// The weight of a volume of which nothing is said.
const WEIGHT_DEFAULT: u32 = 10;
/// A page's virtual time at the weight 1: fine enough that the weights up to 100 differ.
const PAGE: u64 = 10_000;
/// Virtual time that a volume may be behind by what it has not used: 16 pages at the default weight.
const QUANTUM: u64 = 16 * PAGE / WEIGHT_DEFAULT as u64;

/// Writers that wait, by volume.
#[derive(Debug)]
struct Turns {
    volumes: BTreeMap<u32, Volume>,
    /// Volumes with waiting writers, by their virtual times.
    order: BTreeSet<(u64, u32)>,
    /// The virtual time at which the newest turn began that was not that of a volume far behind.
    clock: u64,
    /// The next writer's number.
    next: u64,
    /// Other than the default.
    weights: BTreeMap<u32, u32>,
}

/// One volume among them.
#[derive(Debug, Default)]
struct Volume {
    time: u64,
    /// Numbers of writers, and their pages.
    waiting: VecDeque<(u64, f64)>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            volumes: BTreeMap::new(),
            order: BTreeSet::new(),
            clock: QUANTUM,
            next: 0,
            weights: BTreeMap::new(),
        }
    }
}

impl Turns {
    /// A writer of so many pages comes, and gets a number.
    fn join(&mut self, volume: u32, pages: f64) -> u64 {
        let (number, earliest) = (self.next, self.clock - QUANTUM);
        self.next += 1;
        let line = self.volumes.entry(volume).or_insert(Volume { time: earliest, waiting: VecDeque::new() });
        if line.waiting.is_empty() {
            line.time = line.time.max(earliest);
            self.order.insert((line.time, volume));
        }
        line.waiting.push_back((number, pages));
        number
    }

    /// Whose turn it is.
    fn first(&self) -> Option<u64> {
        let (_, volume) = self.order.first()?;
        self.volumes.get(volume)?.waiting.front().map(|(number, _)| *number)
    }

    /// Whether the volume's first writer can go on without making the volume's share greater than the others'.
    fn is_within_share(&self, volume: u32) -> bool {
        // A volume alone has no share: it is delayed as the log gets rid of pages.
        if self.order.len() < 2 {
            return false;
        }
        let Some(line) = self.volumes.get(&volume) else { return false };
        let pages = line.waiting.front().map_or(0.0, |(_, pages)| *pages);
        line.time + self.cost(volume, pages) <= self.clock
    }

    /// The volume's first writer has had its turn.
    fn serve(&mut self, volume: u32) {
        let Some(line) = self.volumes.get_mut(&volume) else { return };
        let Some((_, pages)) = line.waiting.pop_front() else { return };
        let began = line.time;
        self.clock = self.clock.max(began);
        self.move_on(volume, began, self.cost(volume, pages));
    }

    /// A writer waits no more, and has not had its turn.
    fn leave(&mut self, volume: u32, number: u64) {
        let Some(line) = self.volumes.get_mut(&volume) else { return };
        line.waiting.retain(|(other, _)| *other != number);
        let began = line.time;
        self.move_on(volume, began, 0);
    }

    /// A volume's virtual time goes on by `cost`; volumes of which there is nothing to be remembered are forgotten.
    fn move_on(&mut self, volume: u32, began: u64, cost: u64) {
        self.order.remove(&(began, volume));
        let Some(line) = self.volumes.get_mut(&volume) else { return };
        line.time = began + cost;
        if !line.waiting.is_empty() {
            self.order.insert((line.time, volume));
        }
        let earliest = self.clock - QUANTUM;
        self.volumes.retain(|_, line| !line.waiting.is_empty() || line.time > earliest);
    }

    fn cost(&self, volume: u32, pages: f64) -> u64 {
        let weight = self.weights.get(&volume).copied().unwrap_or(WEIGHT_DEFAULT);
        (pages * PAGE as f64) as u64 / u64::from(weight)
    }
}

/// Writers that wait for their turns.
#[derive(Default)]
pub(super) struct FairQueue {
    turns: RefCell<Turns>,
    /// By number.
    wakers: RefCell<BTreeMap<u64, Waker>>,
}

impl FairQueue {
    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.borrow().order.is_empty()
    }

    /// A volume's share counts so much from now on, in comparison with the other volumes'.
    pub(super) fn set_weight(&self, volume: u32, weight: u32) {
        let weights = &mut self.turns.borrow_mut().weights;
        match weight {
            WEIGHT_DEFAULT => weights.remove(&volume),
            weight => weights.insert(volume, weight.max(1)),
        };
    }

    /// A writer of so many pages comes.
    pub(super) fn join(&self, volume: u32, pages: f64) -> Place<'_> {
        let number = self.turns.borrow_mut().join(volume, pages);
        Place { queue: self, volume, number, waits: true }
    }

    /// Tells the one whose turn it is now, behind a writer of a volume that has left.
    fn tell_first(&self, left: u32) {
        let turns = self.turns.borrow();
        let Some(first) = turns.first() else { return };
        if planted(PlantedBug::QueueSkipsVolume) && turns.order.first().is_some_and(|(_, next)| *next != left)
        {
            return;
        }
        drop(turns);
        let waker = self.wakers.borrow_mut().remove(&first);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A writer's place in the queue, which it leaves when this is dropped.
pub(super) struct Place<'a> {
    queue: &'a FairQueue,
    volume: u32,
    number: u64,
    waits: bool,
}

impl Place<'_> {
    /// Whether it is its turn. A volume that comes and is further behind can take the turn away.
    pub(super) fn is_first(&self) -> bool {
        self.queue.turns.borrow().first() == Some(self.number)
    }

    /// Waits until it is its turn.
    pub(super) async fn until_first(&self) {
        let look = |context: &mut std::task::Context<'_>| {
            if self.is_first() {
                return Poll::Ready(());
            }
            self.queue.wakers.borrow_mut().insert(self.number, context.waker().clone());
            Poll::Pending
        };
        poll_fn(look).await;
    }

    /// Whether its volume has had less than the others, even with this writer. Only for the one whose turn it is.
    pub(super) fn is_within_share(&self) -> bool {
        self.queue.turns.borrow().is_within_share(self.volume)
    }

    /// Takes the turn, and leaves.
    pub(super) fn take(mut self) {
        self.waits = false;
        self.queue.turns.borrow_mut().serve(self.volume);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.queue.turns.borrow_mut().leave(self.volume, self.number);
        }
        self.queue.wakers.borrow_mut().remove(&self.number);
        self.queue.tell_first(self.volume);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::prelude::*;
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    /// Lets writers of these pages of two volumes wait always, and counts each volume's pages in so many turns.
    fn pages_of(turns: &mut Turns, pages: [f64; 2], count: usize) -> [f64; 2] {
        let mut numbers = [0, 1].map(|volume| turns.join(volume as u32, pages[volume]));
        let mut had = [0.0; 2];
        for _ in 0..count {
            let first = turns.first().expect("some wait");
            let volume = numbers.iter().position(|number| *number == first).expect("one of them");
            turns.serve(volume as u32);
            had[volume] += pages[volume];
            numbers[volume] = turns.join(volume as u32, pages[volume]);
        }
        had
    }

    #[test]
    fn volumes_that_always_wait_get_pages_by_their_weights() {
        for (weights, expected) in
            [([10, 10], 1.0), ([100, 10], 10.0), ([1, 100], 0.01), ([7, 21], 1.0 / 3.0)]
        {
            for pages in [[1.0, 1.0], [32.0, 2.0], [0.25, 32.0]] {
                let by_volume = (0..).zip(weights).collect();
                let mut turns = Turns { weights: by_volume, ..Turns::default() };
                let had = pages_of(&mut turns, pages, 100_000);
                let ratio = had[0] / had[1] / expected;
                assert!((0.97..1.03).contains(&ratio), "{weights:?}, {pages:?} pages: {had:?}");
            }
        }
    }

    #[test]
    fn writers_of_a_volume_have_their_turns_in_order() {
        let mut turns = Turns::default();
        let numbers: Vec<u64> = (0..5).map(|pages| turns.join(3, f64::from(pages))).collect();
        for number in numbers {
            assert_eq!(turns.first(), Some(number));
            turns.serve(3);
        }
        assert_eq!(turns.first(), None);
    }

    #[test]
    fn who_comes_has_its_turn_before_a_flood_and_is_within_its_share() {
        let mut turns = Turns::default();
        (0..100).for_each(|_| _ = turns.join(0, 32.0));
        (0..10).for_each(|_| turns.serve(0));
        assert!(!turns.is_within_share(0));
        for round in 0..3 {
            let quiet = turns.join(1, 2.0);
            assert_eq!(turns.first(), Some(quiet), "round {round}");
            assert!(turns.is_within_share(1), "round {round}");
            turns.serve(1);
        }
    }

    #[test]
    fn a_volume_alone_has_no_share() {
        let mut turns = Turns::default();
        let within = |turns: &mut Turns| {
            turns.join(0, 4.0);
            let within = turns.is_within_share(0);
            turns.serve(0);
            within
        };
        let all: Vec<bool> = (0..8).map(|_| within(&mut turns)).collect();
        assert_eq!(all, [false; 8]);
    }

    #[test]
    fn what_is_not_used_is_kept_up_to_a_quantum() {
        let mut turns = Turns::default();
        (0..1000).for_each(|_| _ = turns.join(0, 32.0));
        (0..900).for_each(|_| turns.serve(0));
        (0..100).for_each(|_| _ = turns.join(1, 2.0));
        let mut within = 0;
        while turns.is_within_share(1) {
            turns.serve(1);
            within += 1;
        }
        assert_eq!(within, 8, "16 pages");
    }

    #[test]
    fn volumes_that_are_gone_are_forgotten() {
        let mut turns = Turns::default();
        for volume in 0..1000 {
            turns.join(volume, 32.0);
            turns.serve(volume);
        }
        (0..100).for_each(|_| {
            turns.join(7, 32.0);
            turns.serve(7);
        });
        assert_eq!(turns.volumes.len(), 1, "{turns:?}");
    }

    proptest! {
        /// Every volume is served, and none waits longer than its weight says.
        #[test]
        fn everybody_has_a_turn(
            steps in prop::collection::vec((0u32..5, 0u32..40, any::<bool>()), 1..300),
        ) {
            let mut turns = Turns::default();
            let mut waiting: BTreeMap<u64, u32> = BTreeMap::new();
            for (volume, pages, leaves) in steps {
                match leaves {
                    false => _ = waiting.insert(turns.join(volume, f64::from(pages).max(0.25)), volume),
                    true => {
                        if let Some((number, volume)) = waiting.pop_last() {
                            turns.leave(volume, number);
                        }
                    }
                }
                if pages % 3 == 0 && let Some(first) = turns.first() {
                    turns.serve(waiting.remove(&first).expect("it waits"));
                }
            }
            while let Some(first) = turns.first() {
                turns.serve(waiting.remove(&first).expect("it waits"));
            }
            prop_assert!(waiting.is_empty(), "{waiting:?}");
        }
    }

    #[test]
    fn who_gives_up_leaves_the_turn_to_the_next() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let queue = Rc::new(FairQueue::default());
            let first = queue.join(0, 1.0);
            let gone = queue.join(0, 1.0);
            let waits = {
                let queue = queue.clone();
                world.spawn(async move {
                    let place = queue.join(1, 8.0);
                    place.until_first().await;
                    place.take();
                })
            };
            world.sleep(tier0_units::Nanos::from_millis(1)).await;
            drop(gone);
            first.take();
            waits.await;
            assert!(queue.is_empty() && queue.wakers.borrow().is_empty());
        });
    }
}
