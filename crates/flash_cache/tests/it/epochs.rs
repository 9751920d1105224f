//! A device that was away: its epoch tells, whatever is put back when.

use std::rc::Rc;

use tier0_drive::sim::MediumImage;
use tier0_flash_cache::{FlashError, FlashIdentity, Offer};
use tier0_world::{PayloadWidth, VirtualRuntime};
use uuid::Uuid;

use crate::common::{DEVICE, IDENTITY, PAGES, Pool, Rig, SLOTS, options};

/// The slot that was filled last, so that it is there.
const LAST: u64 = SLOTS - 1;

/// Does something in a world of its own with the pool's drive.
fn run<T: 'static, F: Future<Output = T> + 'static>(pool: &Rc<Pool>, act: impl FnOnce(Rig) -> F) -> T {
    let runtime = VirtualRuntime::new(9, PayloadWidth::REAL);
    let rig = Rig::new(runtime.world(), pool);
    let result = runtime.run(act(rig));
    drop(runtime);
    pool.medium.kill();
    result
}

/// A pool whose cache was filled under its first epoch.
fn filled() -> Rc<Pool> {
    let pool = Pool::new(1);
    run(&pool, |rig| async move {
        rig.format().await.expect("it is formatted");
        rig.fill().await;
        rig.rest().await;
    });
    pool
}

fn reason(error: FlashError) -> String {
    match error {
        FlashError::NotOurs { reason } => reason,
        other => panic!("{other}"),
    }
}

#[test]
fn an_image_of_an_earlier_run_is_refused() {
    let pool = filled();
    let image = pool.medium.image();
    run(&pool, |rig| async move {
        assert!(rig.start().await.expect("it starts").is_some_and(|report| report.lines > 0));
        rig.change(LAST, 0..PAGES);
        rig.settle().await;
    });
    pool.medium.restore(&image);
    run(&pool, |rig| async move {
        let epoch = rig.pool.epoch.get().expect("it has one");
        let refused = reason(rig.warm(epoch).await.expect_err("it missed a strike"));
        assert!(refused.contains("it missed what has changed"), "{refused}");
        assert!(!rig.cache.is_on() && rig.read(1, 0, 1).await == Ok(false));
        rig.format().await.expect("it is made new");
        assert!(rig.cache.is_on() && rig.read(LAST, 0, 1).await == Ok(false));
    });
}

/// Which step of the renewal was done when the crash came, and whether the pool had the next epoch.
#[derive(Clone, Copy, Debug)]
enum Step {
    Announced,
    InMetadata,
    Confirmed,
}

/// Goes as far as a step in renewing the epoch, and returns how the drive was then.
fn renew_up_to(pool: &Rc<Pool>, step: Step) -> MediumImage {
    run(pool, move |rig| async move {
        let next = rig.announce().await.expect("the drive is good");
        if matches!(step, Step::Announced) {
            return;
        }
        rig.pool.epoch.set(Some(next));
        if matches!(step, Step::Confirmed) {
            rig.warm(next).await.expect("it counts");
        }
    });
    pool.medium.image()
}

#[test]
fn a_crash_at_any_step_of_the_renewal_costs_nothing_and_leaves_no_image_that_counts_later() {
    for step in [Step::Announced, Step::InMetadata, Step::Confirmed] {
        let pool = filled();
        let early = renew_up_to(&pool, step);
        // The next start finds everything, and renews the epoch as a whole.
        let lines = run(&pool, |rig| async move {
            let report = rig.start().await.expect("it starts").expect("it is warm");
            rig.change(LAST, 0..PAGES);
            rig.settle().await;
            report.lines
        });
        assert!(lines > 50, "{step:?}: {lines} lines were found");
        // What was taken away at the crash does not count any more.
        pool.medium.restore(&early);
        run(&pool, move |rig| async move {
            let epoch = rig.pool.epoch.get().expect("it has one");
            let refused = rig.warm(epoch).await.expect_err("it missed a strike");
            assert!(reason(refused).contains("epoch"), "{step:?}");
        });
    }
}

#[test]
fn a_crash_between_the_two_places_of_the_header_leaves_one_that_counts() {
    let changes = |pool: &Rc<Pool>| pool.switch.changes();
    let total = {
        let pool = filled();
        let before = changes(&pool);
        renew_up_to(&pool, Step::Confirmed);
        changes(&pool) - before
    };
    assert!(total >= 4, "two headers are written twice");
    for cut in 1..=total {
        let pool = filled();
        pool.switch.arm(cut);
        let runtime = VirtualRuntime::new(9, PayloadWidth::REAL);
        let rig = Rig::new(runtime.world(), &pool);
        let switch = pool.switch.clone();
        runtime.run(async move {
            let off = std::pin::pin!(switch.wait_off());
            futures_util::future::select(std::pin::pin!(rig.start()), off).await;
        });
        drop(runtime);
        pool.switch.restore();
        pool.medium.power_cut(tier0_drive::sim::PowerCut::Any);
        run(&pool, |rig| async move {
            let report = rig.start().await.expect("it starts").expect("it is warm");
            assert!(report.lines > 50);
        });
    }
}

#[test]
fn what_belongs_elsewhere_is_refused_with_a_reason() {
    let pool = filled();
    run(&pool, |rig| async move {
        let epoch = rig.pool.epoch.get().expect("it has one");
        for (identity, word) in [
            (FlashIdentity { id: Uuid::from_u128(5), ..IDENTITY }, "part"),
            (FlashIdentity { shard: 0, ..IDENTITY }, "shard"),
            (FlashIdentity { shards: 4, ..IDENTITY }, "shard"),
        ] {
            let refused = rig.cache.add_warm(DEVICE, rig.place(), identity, epoch, |_| true).await;
            assert!(reason(refused.expect_err("it is another")).contains(word), "{identity:?}");
        }
        let others = tier0_flash_cache::FlashOptions { pages_per_slot: PAGES * 2, ..options() };
        let others = Rig::on(&rig.world, &rig.pool, rig.drive.clone(), others);
        assert!(reason(others.warm(epoch).await.expect_err("its slots are larger")).contains("pages"));
        rig.pool.medium.wipe();
        assert_eq!(reason(rig.warm(epoch).await.expect_err("it is empty")), "it has no header");
    });
}

/// Slots that were not ours when the device was opened, and are later, do not come back with what they held before.
#[test]
fn lines_of_others_are_dropped_for_good() {
    let pool = filled();
    run(&pool, |rig| async move {
        let epoch = rig.renew().await.expect("the drive is good");
        let warm = rig.cache.add_warm(DEVICE, rig.place(), IDENTITY, epoch, |slot| slot != LAST).await;
        let report = warm.expect("it counts");
        assert!(report.dropped > 0);
        // The slot is taken, and what it holds changes; there is nothing to be struck.
        rig.change(LAST, 0..PAGES);
        rig.settle().await;
    });
    run(&pool, |rig| async move {
        rig.start().await.expect("it starts").expect("it is warm");
        rig.verify().await.expect("nothing old came back");
        assert!(!rig.cache.has(LAST, 0, 8));
    });
}

#[test]
fn a_cache_without_devices_costs_nothing() {
    let pool = Pool::new(1);
    run(&pool, |rig| async move {
        assert!(!rig.cache.is_on());
        rig.change(0, 0..PAGES);
        rig.settle().await;
        rig.offer(0, 0, 8, Offer::Again);
        assert_eq!(rig.read(0, 0, 8).await, Ok(false));
        assert_eq!(rig.cache.status(), tier0_flash_cache::FlashCacheStatus::default());
    });
}
