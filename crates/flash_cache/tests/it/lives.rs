//! Crash points: lives of a cache that end by a power cut or a kill, at any command that changes the drive, and the
//! next life on what is left.
//!
//! Whatever the cut leaves, nothing is ever read that the slot does not hold, and nothing fails its check, because the
//! drive does what it is told.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_drive::sim::PowerCut;
use tier0_flash_cache::Offer;
use tier0_units::Nanos;
use tier0_world::{Random, VirtualRuntime};

use crate::common::{DEVICE, PAGES, PIECE_SECTORS, PIECES_MAX, Pool, Rig, SLOTS, pieces};

/// What the lives have exercised, so that a test cannot pass by doing nothing.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) lives: Cell<u64>,
    pub(crate) cuts: Cell<u64>,
    pub(crate) warm: Cell<u64>,
    pub(crate) anew: Cell<u64>,
    pub(crate) found: Cell<u64>,
    pub(crate) hits: Cell<u64>,
    pub(crate) evicted: Cell<u64>,
    pub(crate) offered_written: Cell<u64>,
    pub(crate) resizes: Cell<u64>,
    pub(crate) formats: Cell<u64>,
}

fn add(cell: &Cell<u64>, value: u64) {
    cell.set(cell.get() + value);
}

/// One life: a start, a look at everything, then steps until the power goes or `steps` are done.
async fn life(rig: Rig, mut random: Random, steps: u64, counts: Rc<Counts>) -> Result<(), String> {
    let was_known = rig.pool.epoch.get().is_some();
    match rig.start().await.map_err(|error| error.to_string())? {
        Some(report) => {
            add(&counts.warm, 1);
            add(&counts.found, report.lines);
        }
        None => add(&counts.anew, u64::from(was_known)),
    }
    rig.verify().await?;
    rig.replay().await;
    let wrong: Rc<std::cell::RefCell<Option<String>>> = Rc::default();
    rig.world.spawn(read_for_ever(rig.clone(), wrong.clone(), counts.clone())).detach();
    for _ in 0..steps {
        step(&rig, &mut random, &counts).await?;
        if let Some(wrong) = wrong.borrow_mut().take() {
            return Err(wrong);
        }
    }
    add(&counts.evicted, rig.cache.status().evicted);
    Ok(())
}

/// Somebody reads all the time.
async fn read_for_ever(rig: Rig, wrong: Rc<std::cell::RefCell<Option<String>>>, counts: Rc<Counts>) {
    let mut random = rig.world.random(77);
    loop {
        let (slot, page) = (random.below(SLOTS), random.below(u64::from(PAGES - 6)) as u32);
        let pages = 1 + random.below(6) as u32;
        match rig.read(slot, page, pages).await {
            Ok(hit) => add(&counts.hits, u64::from(hit)),
            Err(error) => *wrong.borrow_mut() = Some(error),
        }
        rig.world.sleep(Nanos::from_micros(1 + random.below(20_000))).await;
    }
}

async fn step(rig: &Rig, random: &mut Random, counts: &Counts) -> Result<(), String> {
    let slot = random.below(SLOTS);
    match random.below(100) {
        0..35 => {
            for _ in 0..1 + random.below(20) {
                let (slot, page) = (random.below(SLOTS), random.below(u64::from(PAGES - 16)) as u32);
                let offer = if random.chance(0.7) { Offer::Again } else { Offer::First };
                rig.offer(slot, page, 1 + random.below(16) as u32, offer);
            }
        }
        35..70 => {
            let mut read_lately = Vec::new();
            for _ in 0..1 + random.below(3) {
                let (slot, page) = (random.below(SLOTS), random.below(u64::from(PAGES - 8)) as u32);
                read_lately.push((slot, rig.change(slot, page..page + 1 + random.below(8) as u32)));
            }
            if random.chance(0.3) {
                rig.world.sleep(Nanos::from_micros(random.below(500))).await;
            }
            rig.settle().await;
            for (slot, pages) in read_lately {
                rig.offer_written(slot, &pages);
                add(&counts.offered_written, pages.len() as u64);
            }
        }
        70..73 => {
            rig.change(slot, 0..PAGES);
            rig.settle().await;
        }
        73..78 => {
            // A batch begins at once, and pages change in the midst of it; the power may go when that is settled.
            for slot in 0..SLOTS {
                rig.offer(slot, random.below(16) as u32, 48, Offer::Again);
                // Each moment the budget is full again.
                rig.world.sleep(Nanos(1)).await;
            }
            let most = [200, 3000][random.below(2) as usize];
            rig.world.sleep(Nanos::from_micros(random.below(most))).await;
            let (times, pages) = [(1, 1), (4, 16)][random.below(2) as usize];
            for _ in 0..times {
                let (slot, page) = (random.below(SLOTS), random.below(u64::from(PAGES - pages)) as u32);
                rig.change(slot, page..page + pages);
            }
            rig.settle().await;
            if random.chance(0.3) && rig.pool.steps_cut.get() {
                rig.pool.switch.cut();
                rig.world.sleep(Nanos(1)).await;
            }
        }
        78..90 => rig.world.sleep(Nanos::from_millis(random.below(700))).await,
        90..98 => {
            resize(rig, 3 + random.below((PIECES_MAX - 2) as u64) as usize, random).await?;
            add(&counts.resizes, 1);
        }
        98 => {
            rig.verify().await?;
        }
        _ => {
            rig.cache.drop_device(DEVICE);
            rig.format().await.map_err(|error| error.to_string())?;
            // No device holds what was struck before.
            rig.settle().await;
            add(&counts.formats, 1);
        }
    }
    Ok(())
}

/// The pool takes pieces before the cache has them, and others have pieces after the cache has given them back.
async fn resize(rig: &Rig, count: usize, random: &mut Random) -> Result<(), String> {
    let before = rig.pool.pieces.get();
    if count > before {
        rig.pool.pieces.set(count);
    }
    rig.cache.resize(DEVICE, pieces(count)).await.map_err(|error| error.to_string())?;
    rig.pool.pieces.set(count);
    if count < before && random.chance(0.5) {
        for piece in &pieces(before)[count..] {
            let mut scribble = rig.world.buffer(PIECE_SECTORS as u32);
            scribble.as_mut_slice().fill(random.bits() as u8);
            rig.drive.write(*piece, scribble.freeze(), false).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Lives one life; the power is cut at the `cut`-th command that changes the drive, if that comes.
pub(crate) fn live(
    pool: &Rc<Pool>,
    seed: u64,
    steps: u64,
    cut: Option<u64>,
    counts: &Rc<Counts>,
) -> Result<(), String> {
    add(&counts.lives, 1);
    let runtime = VirtualRuntime::new(seed, tier0_world::PayloadWidth::REAL);
    let world = runtime.world().clone();
    let switch = pool.switch.clone();
    if let Some(cut) = cut {
        switch.arm(cut);
    }
    let rig = Rig::new(&world, pool);
    let (random, lived) = (world.random(1), counts.clone());
    let result = runtime.run(async move {
        let off = switch.wait_off();
        match select(pin!(life(rig, random, steps, lived)), pin!(off)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Ok(()),
        }
    });
    drop(runtime);
    let mut random = Random::new(seed, 2);
    let was_cut = pool.switch.is_off();
    add(&counts.cuts, u64::from(was_cut));
    pool.switch.restore();
    match random.chance(0.7) {
        true => pool.medium.power_cut(PowerCut::Any),
        false => pool.medium.kill(),
    }
    result.and_then(|()| match pool.disowned.get() {
        0 => Ok(()),
        count => Err(format!("a good device was disowned {count} times")),
    })
}

/// Some lives on one drive, each cut somewhere.
pub(crate) fn lives(seed: u64, count: u64, counts: &Rc<Counts>) -> Result<(), String> {
    let pool = Pool::new(seed);
    pool.steps_cut.set(true);
    let mut random = Random::new(seed, 3);
    for n in 0..count {
        let most = [20, 200, 800][random.below(3) as usize];
        let cut = random.chance(0.8).then(|| 1 + random.below(most));
        let steps = 20 + random.below(80);
        let result = live(&pool, seed << 16 | n, steps, cut, counts);
        result.map_err(|error| format!("seed {seed}, life {n}: {error}"))?;
    }
    Ok(())
}

#[test]
fn nothing_is_read_that_the_slot_does_not_hold() {
    let counts = Rc::new(Counts::default());
    for seed in 0..40 {
        lives(seed, 8, &counts).unwrap_or_else(|error| panic!("{error}"));
    }
    let count = |cell: &Cell<u64>| cell.get();
    println!(
        "{} lives, {} cut, {} warm with {} lines, {} anew though known; {} hits, {} evicted, {} resizes, {} formats",
        count(&counts.lives),
        count(&counts.cuts),
        count(&counts.warm),
        count(&counts.found),
        count(&counts.anew),
        count(&counts.hits),
        count(&counts.evicted),
        count(&counts.resizes),
        count(&counts.formats)
    );
    assert!(count(&counts.cuts) > 200 && count(&counts.warm) > 200);
    assert!(count(&counts.found) > 5_000 && count(&counts.hits) > 3_000, "caches were warm");
    assert!(count(&counts.evicted) > 1_000 && count(&counts.resizes) > 300 && count(&counts.formats) > 50);
    assert!(count(&counts.anew) * 5 < count(&counts.warm), "a crash seldom costs what the cache holds");
}

/// A fixed life is cut at each of its commands; two more follow.
#[test]
fn every_command_may_be_the_last() {
    for seed in [5, 6] {
        let counts = Rc::new(Counts::default());
        let changes = {
            let pool = Pool::new(seed);
            live(&pool, seed, 15, None, &counts).unwrap_or_else(|error| panic!("{error}"));
            live(&pool, seed + 1, 15, None, &counts).unwrap_or_else(|error| panic!("{error}"));
            pool.switch.changes()
        };
        assert!(changes > 100, "{changes} changes are few");
        for cut in 1..=changes {
            let pool = Pool::new(seed);
            let in_life = |number: u64, cut| {
                let result = live(&pool, seed + number, 15, cut, &counts);
                result.unwrap_or_else(|error| panic!("seed {seed}, cut at {cut:?}: {error}"));
            };
            in_life(0, Some(cut));
            in_life(1, Some(cut.saturating_sub(pool.switch.changes()).max(1)));
            in_life(2, None);
        }
        assert!(counts.warm.get() > 0 && counts.hits.get() > 0);
    }
}

/// A line that has just given way is not in memory any more, and its record is not yet stable: who strikes it out then
/// still waits for that record.
#[test]
fn what_gives_way_while_it_is_struck_out_does_not_come_back() {
    let mut struck = 0;
    for seed in 0..10 {
        let pool = Pool::new(seed);
        let runtime = VirtualRuntime::new(seed, tier0_world::PayloadWidth::REAL);
        let rig = Rig::new(runtime.world(), &pool);
        let switch = pool.switch.clone();
        struck += runtime.run(async move {
            rig.start().await.expect("the drive is good");
            rig.fill().await;
            let pages = || (0..SLOTS).flat_map(|slot| (0..PAGES).map(move |page| (slot, page)));
            let there: Vec<(u64, u32)> =
                pages().filter(|(slot, page)| rig.cache.has(*slot, u64::from(*page) * 8, 8)).collect();
            let evicted = rig.cache.status().evicted;
            pages().for_each(|(slot, page)| rig.offer(slot, page, 1, Offer::Again));
            while rig.cache.status().evicted == evicted {
                rig.world.sleep(Nanos::from_micros(1)).await;
            }
            let gone = |(slot, page): &(u64, u32)| !rig.cache.has(*slot, u64::from(*page) * 8, 8);
            let gone: Vec<(u64, u32)> = there.into_iter().filter(gone).collect();
            for (slot, page) in &gone {
                rig.change(*slot, *page..*page + 1);
            }
            rig.settle().await;
            switch.cut();
            gone.len()
        });
        drop(runtime);
        pool.switch.restore();
        pool.medium.power_cut(PowerCut::KeepNothing);
        let counts = Rc::new(Counts::default());
        live(&pool, seed, 0, None, &counts).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(counts.warm.get(), 1);
    }
    assert!(struck > 100, "{struck} pages gave way");
}

/// What was there in a quiet moment is there after a power cut.
#[test]
fn a_power_cut_leaves_a_quiet_cache_warm() {
    for seed in 0..20 {
        let pool = Pool::new(seed);
        let held = {
            let runtime = VirtualRuntime::new(seed, tier0_world::PayloadWidth::REAL);
            let rig = Rig::new(runtime.world(), &pool);
            runtime.run(async move {
                rig.start().await.expect("the drive is good");
                rig.fill().await;
                for page in 0..PAGES / 4 {
                    rig.change(u64::from(page) % SLOTS, page..page + 1);
                    rig.settle().await;
                }
                rig.rest().await;
                assert!(rig.cache.status().evicted > 0, "there is more than fits");
                rig.verify().await.expect("it is right")
            })
        };
        let manners = [PowerCut::KeepNothing, PowerCut::Sectors, PowerCut::Torn, PowerCut::Any];
        pool.medium.power_cut(manners[seed as usize % 4]);
        assert!(held > 150, "{held} pages are few");
        let runtime = VirtualRuntime::new(seed, tier0_world::PayloadWidth::REAL);
        let rig = Rig::new(runtime.world(), &pool);
        let found = runtime.run(async move {
            let report = rig.start().await.expect("the drive is good").expect("it is warm");
            assert!(report.records > 0 && report.map_pages > 0, "{report:?}");
            rig.verify().await.expect("it is right")
        });
        assert!(found * 100 >= held * 95, "seed {seed}: {found} of {held} pages are there");
    }
}
