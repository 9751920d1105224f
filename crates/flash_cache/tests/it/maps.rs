//! Map pages: of a part that has several in each way, and such as are torn.

use std::rc::Rc;

use tier0_drive::sim::PowerCut;
use tier0_flash_cache::{
    FlashCache, FlashIdentity, FlashOptions, FlashPlace, LoadReport, Offer, announce_epoch,
};
use tier0_units::{Lba, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::common::{DEVICE, FRONT_PAGES, IDENTITY, PAGES, Pool, RING_PAGES, Rig, SLOTS, options, pieces};

/// Ways of the small part that the other tests use, and the pages of each: one map page, two lines.
const WAYS: u64 = 50;
const WAY_PAGES: u64 = 5;

/// Fills, and settles so often that the map pages are written.
async fn with_checkpoints(rig: &Rig) {
    rig.fill().await;
    for round in 0..60u32 {
        rig.change(u64::from(round) % SLOTS, round..round + 1);
        rig.settle().await;
    }
    rig.rest().await;
}

/// The first sector of the map page of a way.
fn map_lba(way: u64) -> Lba {
    let page = FRONT_PAGES + way * WAY_PAGES;
    Lba(pieces(5)[(page / 64) as usize].0 + page % 64 * 8)
}

/// A page that is torn loses lines; it never brings one back.
#[test]
fn torn_map_pages_count_as_empty_and_bring_nothing_back() {
    let mut lost = 0;
    for seed in 0..30 {
        let pool = Pool::new(seed);
        let start = |pool: &Rc<Pool>, is_first: bool| {
            let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
            let rig = Rig::new(runtime.world(), pool);
            let report = runtime.run(async move {
                let report = rig.start().await.expect("the drive is good");
                rig.verify().await.expect("nothing comes back");
                if is_first {
                    with_checkpoints(&rig).await;
                    rig.verify().await.expect("it is right");
                }
                report
            });
            drop(runtime);
            pool.medium.power_cut(PowerCut::KeepNothing);
            report
        };
        start(&pool, true);
        let torn = (0..WAYS).filter(|way| (seed + way) % 3 == 0);
        let torn = torn.filter(|way| pool.medium.rot(Lba(map_lba(*way).0 + seed % 8))).count() as u64;
        let report = start(&pool, false).expect("it is warm");
        assert_eq!(report.map_pages + report.void_map_pages, WAYS);
        assert!(report.void_map_pages >= torn && torn > 15, "{report:?}");
        let again = start(&pool, false).expect("it is warm");
        assert!(again.lines <= report.lines, "{again:?} after {report:?}");
        lost += 2 * WAYS - report.lines;
        assert!(report.lines > 0, "others are whole");
    }
    assert!(lost > 0, "what a torn page held is lost");
}

/// The log has two copies: whatever block of one is wrong, even of the newest record, nothing that was struck out comes back, and
/// all else is found.
#[test]
fn a_wrong_block_of_the_log_changes_nothing() {
    let pool = Pool::new(5);
    let start = |seed: u64, changes: bool| {
        let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
        let rig = Rig::new(runtime.world(), &pool);
        let report = runtime.run(async move {
            let report = rig.start().await.expect("the drive is good");
            rig.verify().await.expect("nothing comes back");
            if changes {
                rig.fill().await;
                for slot in 0..SLOTS {
                    rig.change(slot, 3..4);
                    rig.settle().await;
                }
            }
            report
        });
        pool.medium.power_cut(PowerCut::KeepNothing);
        report
    };
    start(1, true);
    let (image, epoch) = (pool.medium.image(), pool.epoch.get());
    let whole = start(2, false).expect("it is warm");
    assert!(whole.lines > 0);
    for block in 0..2 * RING_PAGES {
        pool.medium.restore(&image);
        pool.epoch.set(epoch);
        let first = pieces(5)[0].0 + (2 + block) * 8;
        let wrong = (first..first + 8).filter(|sector| pool.medium.scramble(Lba(*sector))).count();
        let report = start(3 + block, false).expect("it is warm");
        assert_eq!(report.lines, whole.lines, "block {block}, {wrong} sectors wrong");
    }
}

/// A part of 200 MiB has two map pages in each way, and records that are cut.
#[test]
fn a_larger_part_is_found_again() {
    let pool = Pool::new(2);
    let sectors = (200 << 20) / 512 / 16;
    let medium = {
        let options = tier0_drive::sim::SimOptions::new("larger", tier0_units::SectorCount(17 * sectors), 7);
        tier0_drive::sim::SimMedium::new(options, &pool.switch)
    };
    let slots = 80u64;
    let life = |epoch: Option<u64>, act: fn(Rc<FlashCache>, Rc<Pool>, u64)| -> (LoadReport, u64) {
        let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let place = FlashPlace {
            drive: medium.open(&world),
            pieces: (0..16).map(|n| Lba(n * sectors)).collect(),
            piece_sectors: sectors,
        };
        let options = FlashOptions { writes_per_day: f64::INFINITY, ..options() };
        let cache = Rc::new(FlashCache::new(&world, options, pool.clone()));
        let pool = pool.clone();
        let identity = FlashIdentity { shard: 0, ..IDENTITY };
        let result = runtime.run(async move {
            let report = match epoch {
                Some(epoch) => {
                    let told = announce_epoch(&world, &place, &identity, (epoch, epoch + 1), &options).await;
                    assert_eq!(told, Ok(true));
                    let warm = cache.add_warm(DEVICE, place, identity, epoch + 1, |_| true).await;
                    warm.expect("it counts")
                }
                None => {
                    cache.add_new(DEVICE, place, identity, 1).await.expect("the drive is good");
                    LoadReport::default()
                }
            };
            for slot in 0..slots {
                act(cache.clone(), pool.clone(), slot);
                world.sleep(Nanos::from_millis(600)).await;
                cache.settle().await;
            }
            world.sleep(Nanos::from_secs(2)).await;
            let mut found = 0;
            for slot in 0..slots {
                for page in 0..PAGES {
                    let (hit, buf) = cache.read(slot, u64::from(page) * 8, world.buffer(8)).await;
                    assert!(!hit || buf.as_slice() == pool.content(slot, page, 1).as_slice());
                    found += u64::from(hit);
                }
            }
            assert_eq!(cache.status().read_errors, 0);
            // In one go, in more than a record takes.
            if epoch == Some(2) {
                (0..slots).for_each(|slot| cache.forget_slot(slot));
                cache.settle().await;
            }
            (report, found)
        });
        drop(runtime);
        medium.power_cut(PowerCut::KeepNothing);
        result
    };
    let offer = |cache: Rc<FlashCache>, pool: Rc<Pool>, slot: u64| {
        cache.offer(slot, 0, &pool.content(slot, 0, PAGES), Offer::Again);
    };
    let (_, found) = life(None, offer);
    assert_eq!(found, slots * u64::from(PAGES), "all fit");
    // So often that map pages are written.
    let strike = |cache: Rc<FlashCache>, pool: Rc<Pool>, slot: u64| {
        cache.strike(slot, std::iter::once(0));
        cache.offer(slot, 0, &pool.content(slot, 0, 1), Offer::Again);
    };
    let (report, found) = life(Some(1), strike);
    assert_eq!(report.lines, slots * u64::from(PAGES) / 2);
    assert_eq!(found, slots * u64::from(PAGES - 1), "what was beside a page that changed went with it");
    let (report, _) = life(Some(2), |_, _, _| {});
    assert_eq!(report.lines, slots * u64::from(PAGES) / 2);
    assert!(report.map_pages > 15, "{report:?}");
    let (report, found) = life(Some(3), |_, _, _| {});
    assert_eq!((report.lines, found), (0, 0));
}
