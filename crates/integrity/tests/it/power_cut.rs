//! Power cuts at any command of destaging and of recovery, with and without the loss of a drive: what was acknowledged
//! (is in the log or was destaged) is there afterwards, and all redundancy is whole.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;

use crate::bench::log::{LogIn, TestLog, Written};
use crate::bench::{Model, Rack, SHAPES, SMALL, Shape, Shard, TIGHT, content, is_noticed, page};
use tier0_drive::sim::PowerCut;
use tier0_integrity::{LogPlace, SlotOutcome, SlotWrite};
use tier0_units::{ExtentId, SlotRef};
use tier0_world::{PayloadWidth, PlantedBug, Random, VirtualRuntime, World};

const EXTENTS: u32 = 5;
const WORKERS: u64 = 3;
const LIVES: u64 = 4;
const SEEDS: u64 = 15;

/// What outlives power cuts.
struct Story {
    rack: Rack,
    log: TestLog,
    /// What was acknowledged: the mark of every page.
    truth: RefCell<Vec<Vec<u64>>>,
    /// The metadata: which slot an extent has.
    map: RefCell<BTreeMap<u32, SlotRef>>,
    next_allocation: RefCell<u64>,
    seed: u64,
}

/// One life of the engine, from start to power cut.
#[derive(Clone)]
struct Life {
    story: Rc<Story>,
    shard: Shard,
    free: Rc<RefCell<BTreeSet<u64>>>,
    /// Extents that a worker has.
    busy: Rc<RefCell<BTreeSet<u32>>>,
    log_seed: u64,
}

impl Life {
    fn open(story: &Rc<Story>, world: &World, log_seed: u64) -> Life {
        let shard = story.rack.open(world, TIGHT);
        let taken: BTreeSet<u64> = story.map.borrow().values().map(|slot| slot.slot).collect();
        let free = (0..shard.io.slots().count()).filter(|slot| !taken.contains(slot)).collect();
        Life { story: story.clone(), shard, free: Rc::new(RefCell::new(free)), busy: Rc::default(), log_seed }
    }

    /// The slot of an extent, allocated if it has none.
    fn slot(&self, extent: u32) -> SlotRef {
        if let Some(slot) = self.story.map.borrow().get(&extent) {
            return *slot;
        }
        let slot = self.free.borrow_mut().pop_first().expect("more slots than extents");
        *self.story.next_allocation.borrow_mut() += 1;
        let slot = SlotRef { slot, allocation: *self.story.next_allocation.borrow() };
        self.shard.io.allocate(slot);
        slot
    }

    /// Destages pages that are in the log: extent, page, mark and place.
    async fn destage(&self, pages: &BTreeMap<(u32, u32), (u64, LogPlace)>) {
        let extents: BTreeSet<u32> = pages.keys().map(|(extent, _)| *extent).collect();
        let write = |extent: u32| SlotWrite {
            extent: ExtentId { volume: 0, index: extent },
            slot: self.slot(extent),
            pages: pages
                .range((extent, 0)..=(extent, u32::MAX))
                .map(|((_, page), (mark, place))| (*page, content(PayloadWidth::REAL, *mark, *place)))
                .collect(),
        };
        let batch: Vec<SlotWrite> = extents.into_iter().map(write).collect();
        let random = RefCell::new(Random::new(self.log_seed, batch.len() as u64));
        let log = LogIn { log: &self.story.log, world: self.shard.world.clone(), random };
        let outcomes =
            self.shard.io.write_batch(batch, &log).await.expect("the level survives what was lost");
        outcomes.iter().for_each(|outcome| self.commit(outcome));
    }

    /// The metadata's record of one slot.
    fn commit(&self, outcome: &SlotOutcome) {
        let extent = outcome.extent.index;
        if outcome.all_zero {
            self.story.map.borrow_mut().remove(&extent);
            self.shard.io.free(outcome.slot);
            self.free.borrow_mut().insert(outcome.slot.slot);
        } else {
            self.story.map.borrow_mut().insert(extent, outcome.slot);
        }
    }

    /// Writes random pages of some extents that no other writer has, and destages them.
    async fn write(&self, random: &mut Random) {
        let mut own: Vec<u32> = (0..EXTENTS).filter(|extent| !self.busy.borrow().contains(extent)).collect();
        own.retain(|_| random.chance(0.5));
        if own.is_empty() {
            self.shard.world.sleep(tier0_units::Nanos::from_micros(50)).await;
            return;
        }
        self.busy.borrow_mut().extend(&own);
        let position = self.put(self.draw(&own, random)).await;
        self.story.log.done(position, random.chance(0.7));
        self.busy.borrow_mut().retain(|extent| !own.contains(extent));
    }

    /// Acknowledges pages, that is, logs them, and destages them.
    async fn put(&self, pages: Vec<Written>) -> u64 {
        for (extent, page, mark) in &pages {
            self.story.truth.borrow_mut()[*extent as usize][*page as usize] = *mark;
        }
        let position = self.story.log.append_pages(pages.clone());
        let placed = pages.iter().enumerate().map(|(n, (extent, page, mark))| {
            ((*extent, *page), (*mark, LogPlace { position, page: n as u32 }))
        });
        self.destage(&placed.collect()).await;
        position
    }

    /// Pages with fresh marks: a few, many, all, or zeros over everything.
    fn draw(&self, extents: &[u32], random: &mut Random) -> Vec<Written> {
        let mut pages = Vec::new();
        let slot_pages = self.shard.io.pages_per_slot(0);
        for extent in extents {
            let (density, zeros) = match random.below(8) {
                0 => (1.0, 1.0),
                1 => (1.0, 0.0),
                2 => (0.9, 0.2),
                3 => (0.15, 0.2),
                _ => (3.0 / f64::from(slot_pages), 0.2),
            };
            for page in 0..slot_pages {
                if random.chance(density) {
                    let mark = if random.chance(zeros) { 0 } else { random.bits() | 1 };
                    pages.push((*extent, page, mark));
                }
            }
        }
        pages
    }

    /// What a worker does next; now and then a drive goes.
    async fn step(&self, random: &mut Random, losses: bool) {
        let rack = &self.story.rack;
        if losses
            && random.chance(0.05)
            && let Some(drive) = rack.draw_loss(random)
        {
            rack.unplug(drive);
        }
        if random.chance(0.7) { self.write(random).await } else { self.read(random).await }
    }

    /// Reads an extent that is not being written.
    async fn read(&self, random: &mut Random) {
        let extent = random.below(u64::from(EXTENTS)) as u32;
        if self.busy.borrow_mut().insert(extent) {
            self.check(extent, &BTreeSet::new()).await;
            self.busy.borrow_mut().remove(&extent);
        }
    }

    /// Compares every page of an extent but some.
    async fn check(&self, extent: u32, but: &BTreeSet<(u32, u32)>) {
        let truth = self.story.truth.borrow()[extent as usize].clone();
        let mapped = self.story.map.borrow().get(&extent).copied();
        for (n, mark) in truth.iter().enumerate() {
            let page_number = n as u32;
            if but.contains(&(extent, page_number)) {
                continue;
            }
            let Some(slot) = mapped else {
                assert_eq!(*mark, 0, "page {n} of extent {extent} is lost with its slot");
                continue;
            };
            let (result, buf) = self.shard.io.read(slot, n as u64 * 8, self.shard.world.buffer(8)).await;
            assert_eq!(result, Ok(()), "page {n} of extent {extent}");
            let right = match mark {
                0 => buf.as_slice().iter().all(|byte| *byte == 0),
                mark => buf.as_slice() == page(PayloadWidth::REAL, *mark).as_slice(),
            };
            assert!(right, "page {n} of extent {extent} ({slot:?}) is not what was acknowledged");
        }
    }

    /// Replays intents, then destages what the log has; checks before and after.
    async fn recover(&self) {
        let mut intents = self.story.log.intents();
        let map = self.story.map.borrow().clone();
        intents.retain(|(intent, _)| map.get(&intent.extent.index) == Some(&intent.slot));
        let intents: Vec<_> = intents.iter().map(|(intent, pages)| (intent, pages.as_slice())).collect();
        self.shard.io.replay_intents(&intents).await.expect("a replay");
        self.shard.io.sync().await.expect("a sync");
        let dirty = self.story.log.dirty();
        let but = dirty.keys().copied().collect();
        for extent in 0..EXTENTS {
            self.check(extent, &but).await;
        }
        if !dirty.is_empty() {
            self.destage(&dirty).await;
        }
        self.story.log.clear();
    }

    /// Everything is right, and so is every drive.
    async fn check_all(&self) {
        for extent in 0..EXTENTS {
            self.check(extent, &BTreeSet::new()).await;
        }
        let slots: Vec<SlotRef> = self.story.map.borrow().values().copied().collect();
        for slot in slots {
            let scrub = self.shard.io.scrub_slot(slot).await.expect("a scrub");
            let rows = &scrub.rows;
            let faults = rows.rotten + rows.unreadable + rows.copies_different + rows.parity_different;
            assert_eq!((faults, scrub.tables_repaired), (0, 0), "{slot:?}: {scrub:?}");
        }
    }
}

impl Story {
    fn new(shape: Shape, seed: u64) -> Rc<Story> {
        let rack = Rack::new(shape, seed, PayloadWidth::REAL);
        let pages = rack.plan.pages_per_slot as usize;
        Rc::new(Story {
            rack,
            log: TestLog::default(),
            truth: RefCell::new(vec![vec![0; pages]; EXTENTS as usize]),
            map: RefCell::default(),
            next_allocation: RefCell::default(),
            seed,
        })
    }

    /// A life of random work, with drives that go and come back.
    fn live(self: &Rc<Self>, life: u64, changes: u64, losses: bool) {
        let mut random = Random::new(self.seed, life);
        self.rack.replug(&mut random);
        if losses
            && random.chance(0.3)
            && let Some(drive) = self.rack.draw_loss(&mut random)
        {
            self.rack.lost.borrow_mut().insert(drive);
        }
        let seed = self.seed ^ life << 32;
        self.run_life(life, changes, PowerCut::Any, |this| async move {
            this.recover().await;
            this.check_all().await;
            let workers = (0..WORKERS).map(|n| {
                let (this, mut random) = (this.clone(), Random::new(seed, n));
                async move {
                    for _ in 0..6 {
                        this.step(&mut random, losses).await;
                    }
                }
            });
            futures_util::future::join_all(workers).await;
        });
    }

    /// Works until the power fails: at a command that changes something, or when the work is done.
    fn run_life<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        life: u64,
        changes: u64,
        manner: PowerCut,
        work: impl FnOnce(Life) -> F,
    ) {
        let runtime = VirtualRuntime::new(self.seed << 8 | life, PayloadWidth::REAL);
        let switch = self.rack.switch.clone();
        switch.arm(changes);
        let this = Life::open(self, runtime.world(), self.seed ^ life);
        let work = work(this.clone());
        // The runtime ends it, drives and all; dropped before, it would leave commands unanswered.
        let work = async move {
            work.await;
            this.story.rack.switch.cut();
        };
        runtime.world().spawn(work).detach();
        runtime.run(async move { switch.wait_off().await });
        drop(runtime);
        self.rack.media.iter().for_each(|medium| medium.power_cut(manner));
        self.rack.switch.restore();
    }

    /// The last life: nothing fails any more.
    fn end(self: &Rc<Self>) {
        self.rack.replug(&mut Random::new(self.seed, LIVES));
        let runtime = VirtualRuntime::new(self.seed, PayloadWidth::REAL);
        let this = Life::open(self, runtime.world(), self.seed);
        runtime.run(async move {
            this.recover().await;
            this.check_all().await;
        });
    }
}

fn tell(shape: Shape, seed: u64, losses: bool) {
    println!("{shape:?}, seed {seed}, losses {losses}");
    let story = Story::new(shape, seed);
    let mut random = Random::new(seed, 1 << 40);
    for life in 0..LIVES {
        let most = if random.chance(0.5) { 60 } else { 600 };
        story.live(life, 1 + random.below(most), losses);
    }
    story.end();
}

/// Stories of every shape, without and with the loss of drives.
fn tell_all(seeds: u64, losses: bool) {
    for (n, shape) in SHAPES.into_iter().enumerate() {
        for seed in 0..seeds {
            tell(shape, seed << 8 | n as u64, losses);
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_power_cuts() {
    tell_all(SEEDS, false);
}

#[test]
fn nothing_acknowledged_is_lost_by_power_cuts_that_take_drives_along() {
    tell_all(SEEDS, true);
}

/// A harness that finds no bugs proves nothing.
#[test]
fn planted_bugs_are_noticed() {
    for bug in [PlantedBug::SkipFlushBeforeRelease, PlantedBug::IgnoreIntents, PlantedBug::ForgetParityUpdate]
    {
        assert!(is_noticed(bug, || tell_all(SEEDS, true)), "{bug:?}");
    }
    assert!(is_noticed(PlantedBug::CommitRebuildBeforeFlush, rebuild_and_cut));
}

#[test]
fn a_slot_is_stable_when_it_is_rebuilt() {
    rebuild_and_cut();
}

/// Rebuilds a lost drive's columns, cuts the power at once, and does without another drive.
fn rebuild_and_cut() {
    for (n, shape) in SHAPES.into_iter().enumerate() {
        println!("{shape:?}");
        let rack = Rack::new(shape, n as u64, PayloadWidth::REAL);
        let mut random = Random::new(n as u64, 2);
        let Some(lost) = rack.draw_loss(&mut random) else { continue };
        let (tx, rx) = std::sync::mpsc::channel();
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let (world, own, mut own_random) = (runtime.world().clone(), rack.clone(), random.clone());
        runtime.run(async move {
            let shard = own.open(&world, TIGHT);
            let mut model = Model::allocate(&shard, shard.io.slots().count());
            for _ in 0..4 {
                model.write(&shard, &mut own_random).await.expect("a batch");
            }
            own.media[lost].disconnect();
            model.check(&shard).await;
            own.lost.borrow_mut().insert(lost);
            model.rebuild(&own, &shard, lost, &mut own_random).await;
            tx.send(model).expect("the test waits");
            own.switch.cut();
        });
        drop(runtime);
        rack.media.iter().for_each(|medium| medium.power_cut(PowerCut::KeepNothing));
        rack.switch.restore();
        let model = rx.recv().expect("it was sent");
        if let Some(other) = rack.draw_loss(&mut random) {
            rack.lost.borrow_mut().insert(other);
        }
        let runtime = VirtualRuntime::new(2, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let shard = model.reopen(&rack, &world, TIGHT);
            model.check(&shard).await;
        });
    }
}

#[test]
fn each_single_command_may_be_the_last() {
    for shape in SHAPES {
        // Stories of large extents are long: a part of them will do.
        let stride = if shape.2 == SMALL { 1 } else { 7 };
        for last in (1..120).step_by(stride) {
            println!("{shape:?}, cut at change {last}");
            let story = Story::new(shape, 4711);
            // A life whole, so that there is something to lose; then one that ends at this very command.
            story.live(0, 100_000, false);
            story.live(1, last, false);
            story.end();
        }
    }
}

/// The entries of a large extent's table lie in two sectors: a batch that changes both may leave any mixture of them in
/// any copy.
#[test]
fn a_torn_table_is_not_the_only_one() {
    for shape in SHAPES.into_iter().filter(|shape| shape.2 != SMALL) {
        for (seed, last) in (0..12).flat_map(|seed| (1..16).map(move |last| (seed, last))) {
            println!("{shape:?}, seed {seed}, cut at change {last}");
            let story = Story::new(shape, seed);
            let last_page = story.rack.plan.pages_per_slot - 1;
            let write = |marks: [u64; 2]| {
                move |this: Life| async move {
                    this.recover().await;
                    this.put(vec![(0, 0, marks[0]), (0, last_page, marks[1])]).await;
                }
            };
            story.run_life(0, 100_000, PowerCut::KeepCompleted, write([1, 2]));
            story.run_life(1, last, PowerCut::Sectors, write([3, 4]));
            story.end();
        }
    }
}
