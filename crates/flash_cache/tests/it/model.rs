//! The cache on good drives: what comes in, what gives way, and that nothing else than what a slot holds is read.

use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_flash_cache::{FlashCache, FlashError, FlashIdentity, FlashOptions, FlashPlace, Offer};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{BufMut, PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

use crate::common::{DEVICE, IDENTITY, PAGES, PIECE_SECTORS, PIECES_MAX, Pool, Rig, SLOTS, options, pieces};
use crate::lives::{Counts, live};

fn run<F: Future<Output = ()> + 'static>(act: impl FnOnce(Rig) -> F + 'static) {
    let pool = Pool::new(1);
    let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
    let rig = Rig::new(runtime.world(), &pool);
    runtime.run(async move {
        rig.format().await.expect("the drive is good");
        act(rig).await;
    });
}

/// Long lives without a crash: offers, reads, changes, slots that are forgotten, and other sizes.
#[test]
fn what_is_read_is_what_the_slot_holds() {
    let counts = Rc::new(Counts::default());
    for seed in 1000..1020 {
        let pool = Pool::new(seed);
        live(&pool, seed, 400, None, &counts).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    let (hits, evicted) = (counts.hits.get(), counts.evicted.get());
    assert!(hits > 5_000 && evicted > 10_000, "{hits} hits, {evicted} evicted");
    assert!(counts.offered_written.get() > 500, "{} pages written", counts.offered_written.get());
}

#[test]
fn pages_come_in_and_are_read() {
    run(|rig| async move {
        rig.offer(1, 3, 6, Offer::Again);
        assert!(!rig.cache.has(1, 24, 8), "it is on its way");
        rig.rest().await;
        assert!(rig.cache.has(1, 24, 48) && !rig.cache.has(1, 16, 8) && !rig.cache.has(1, 24, 49));
        assert_eq!(rig.read(1, 3, 6).await, Ok(true));
        assert_eq!(rig.read_sectors(1, 27, 30).await, Ok(true), "parts of pages too");
        assert_eq!(rig.read(1, 2, 2).await, Ok(false));
        // The other half of a line comes in by itself.
        rig.offer(1, 2, 1, Offer::First);
        rig.rest().await;
        assert_eq!(rig.read(1, 2, 7).await, Ok(true));
        let status = rig.cache.status();
        assert_eq!((status.hits, status.misses, status.bytes), (3, 1, 7 * 4096));
        assert_eq!((status.offered, status.admitted), (5, 5));
        assert_eq!(status.written_bytes, 7 * 4096);
        // What is there is not offered again.
        rig.offer(1, 2, 7, Offer::Again);
        rig.rest().await;
        assert_eq!(rig.cache.status().offered, 5);
    });
}

/// What hosts read much stays on flash when it is written; what they do not read does not.
#[test]
fn written_pages_stay_where_they_were_read() {
    run(|rig| async move {
        rig.offer(1, 0, 4, Offer::Again);
        rig.rest().await;
        assert_eq!(rig.read(1, 0, 2).await, Ok(true));
        let read_lately = rig.change(1, 0..4);
        assert_eq!(read_lately, [0, 1], "one line was read, and another was not");
        rig.settle().await;
        rig.offer_written(1, &read_lately);
        rig.rest().await;
        assert_eq!(rig.read(1, 0, 2).await, Ok(true));
        assert_eq!(rig.read(1, 2, 1).await, Ok(false));
        // It changes again before it has come in.
        rig.change(1, 0..1);
        rig.settle().await;
        rig.offer_written(1, &[0]);
        rig.change(1, 0..1);
        rig.settle().await;
        rig.rest().await;
        assert_eq!(rig.read(1, 0, 1).await, Ok(false));
    });
}

#[test]
fn parts_of_pages_are_not_offered() {
    run(|rig| async move {
        let buf = rig.pool.content(2, 0, 4);
        rig.cache.offer(2, 4, &buf, Offer::Again);
        rig.rest().await;
        assert!(!rig.cache.has(2, 0, 8) && rig.cache.has(2, 8, 24) && !rig.cache.has(2, 32, 8));
    });
}

#[test]
fn large_reads_go_past_it() {
    run(|rig| async move {
        for page in (0..32).step_by(16) {
            rig.offer(1, page, 16, Offer::Again);
        }
        rig.rest().await;
        assert_eq!(rig.read(1, 0, 16).await, Ok(true));
        assert_eq!(rig.read(1, 0, 17).await, Ok(false));
    });
}

#[test]
fn what_is_read_once_does_not_displace_what_is_there() {
    run(|rig| async move {
        rig.fill().await;
        let evicted = rig.cache.status().evicted;
        let missing: Vec<u32> =
            (0..PAGES).step_by(2).filter(|page| !rig.cache.has(0, u64::from(*page) * 8, 8)).collect();
        assert!(missing.len() > 4, "not all fits");
        missing.iter().for_each(|page| rig.offer(0, *page, 2, Offer::First));
        rig.rest().await;
        assert!(rig.cache.status().evicted <= evicted + 2, "the doorkeeper turns them away");
        missing.iter().for_each(|page| rig.offer(0, *page, 2, Offer::First));
        rig.rest().await;
        assert!(rig.cache.status().evicted > evicted + 2, "it knows them the second time");
    });
}

#[test]
fn what_is_struck_on_its_way_does_not_come_in() {
    run(|rig| async move {
        // In the queue, and at every moment of the write.
        for delay in (0..1200).step_by(20) {
            rig.offer(3, 0, 16, Offer::Again);
            rig.world.sleep(Nanos::from_millis(499)).await;
            rig.world.sleep(Nanos::from_micros(900 + delay)).await;
            rig.change(3, 1..16);
            rig.rest().await;
            assert!((1..16).all(|page| !rig.cache.has(3, page * 8, 8)));
            rig.settle().await;
        }
    });
}

#[test]
fn too_much_at_once_is_dropped() {
    run(|rig| async move {
        // A device with a budget for more than may wait.
        rig.cache.drop_device(DEVICE);
        let larger = place(drive(&rig.world, "larger", 20 * PIECE_SECTORS), 20);
        rig.cache.add_new(DEVICE, larger, IDENTITY, 1).await.expect("the drive is good");
        let lines = SLOTS * u64::from(PAGES) / 2;
        for slot in 0..3 * SLOTS {
            let buf = BufMut::zeroed(PAGES * 8, PayloadWidth::REAL);
            rig.cache.offer(slot, 0, &buf, Offer::Again);
        }
        let status = rig.cache.status();
        assert_eq!((status.offered, status.admitted), (3 * lines, 512));
        assert_eq!(status.dropped_queue, 3 * lines - 512);
        rig.rest().await;
        assert!(rig.cache.status().bytes > 0);
    });
}

#[test]
fn more_pieces_keep_everything_and_fewer_most() {
    run(|rig| async move {
        rig.fill().await;
        let held = rig.verify().await.expect("it is right");
        let resize = |count: usize| {
            rig.pool.pieces.set(count);
            rig.cache.resize(DEVICE, pieces(count))
        };
        resize(PIECES_MAX).await.expect("there is room");
        assert_eq!(rig.verify().await, Ok(held));
        rig.fill().await;
        let more = rig.verify().await.expect("it is right");
        assert!(more > held, "{more} pages are there, and {held} were");
        resize(4).await.expect("they are enough");
        let fewer = rig.verify().await.expect("it is right");
        assert!(fewer > 0 && fewer < more);
        assert_eq!(rig.cache.resize(DEVICE, pieces(0)).await, Err(FlashError::TooSmall { pages: 0 }));
        let mut others = pieces(5);
        others.swap(0, 1);
        assert_eq!(rig.cache.resize(DEVICE, others).await, Err(FlashError::BadPieces));
        assert_eq!(rig.verify().await, Ok(fewer), "it stays as it was");
    });
}

fn drive(world: &World, name: &str, sectors: u64) -> DriveHandle {
    let switch = PowerSwitch::new();
    let options = SimOptions { width: world.width(), ..SimOptions::new(name, SectorCount(sectors), 8) };
    SimMedium::new(options, &switch).open(world)
}

fn place(drive: DriveHandle, count: u64) -> FlashPlace {
    FlashPlace {
        drive,
        pieces: (0..count).map(|n| Lba(n * PIECE_SECTORS)).collect(),
        piece_sectors: PIECE_SECTORS,
    }
}

#[test]
fn several_devices_share_the_lines_and_strikes_reach_all() {
    let pool = Pool::new(1);
    let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
    let world = runtime.world().clone();
    let rig = Rig::new(&world, &pool);
    runtime.run(async move {
        rig.format().await.expect("the drive is good");
        rig.fill().await;
        let held = rig.verify().await.expect("it is right");
        let second = place(drive(&rig.world, "second", 40 * PIECE_SECTORS), 20);
        let identity = FlashIdentity { id: Uuid::from_u128(2), ..IDENTITY };
        rig.cache.add_new(8, second, identity, 55).await.expect("the drive is good");
        assert_eq!(rig.verify().await, Ok(held), "what was there is found");
        rig.fill().await;
        let all = rig.verify().await.expect("it is right");
        assert!(all > held);
        for slot in 0..SLOTS {
            rig.change(slot, 0..10);
        }
        rig.settle().await;
        rig.verify().await.expect("nothing old is left on either device");
        assert_eq!(rig.cache.status().devices, 2);
        rig.cache.drop_device(DEVICE);
        let left = rig.verify().await.expect("it is right");
        assert!(left > 0 && left < all);
    });
}

/// Without content, and with a little of it, the same happens.
#[test]
fn worlds_without_content_have_hits_too() {
    let hits = |width: PayloadWidth| {
        let pool = Pool::new(1);
        let runtime = VirtualRuntime::new(3, width);
        let world = runtime.world().clone();
        let drive = drive(&world, "flash", 20 * PIECE_SECTORS);
        let cache = Rc::new(FlashCache::new(&world, options(), pool.clone()));
        runtime.run(async move {
            cache.add_new(DEVICE, place(drive, 5), IDENTITY, 1).await.expect("the drive is good");
            let mut data = world.buffer(16 * 8);
            data.as_mut_slice().fill(5);
            for page in (0..PAGES).step_by(16) {
                cache.offer(1, u64::from(page) * 8, &data, Offer::Again);
            }
            world.sleep(Nanos::from_secs(2)).await;
            for page in (0..PAGES).step_by(3) {
                let (hit, buf) = cache.read(1, u64::from(page) * 8, world.buffer(8)).await;
                assert!(!hit || buf.as_slice().iter().all(|byte| *byte == 5));
            }
            cache.strike(1, 0..7);
            cache.settle().await;
            let status = cache.status();
            assert_eq!(status.read_errors, 0);
            (status.hits, status.misses, status.bytes, world.event_hash())
        })
    };
    let real = hits(PayloadWidth::REAL);
    assert!(real.0 > 10);
    assert_eq!(real, hits(PayloadWidth::NONE));
    assert_eq!(real, hits(PayloadWidth::new(4)));
}

/// A large device costs eight bytes of memory for each line of 8 KiB.
#[test]
fn tables_take_a_gibibyte_of_memory_for_each_tebibyte() {
    let pool = Pool::new(1);
    let runtime = VirtualRuntime::new(3, PayloadWidth::NONE);
    let world = runtime.world().clone();
    runtime.run(async move {
        let sectors = 2 * (1u64 << 30) / 512;
        let drive = drive(&world, "large", 2 * sectors);
        let options = FlashOptions::new(4096);
        let cache = Rc::new(FlashCache::new(&world, options, pool.clone()));
        let place = |count: u64| FlashPlace {
            drive: drive.clone(),
            pieces: (0..count).map(|n| Lba(n * sectors / 8)).collect(),
            piece_sectors: sectors / 8,
        };
        cache.add_new(DEVICE, place(4), IDENTITY, 1).await.expect("the drive is good");
        assert!(cache.memory_bytes() <= (1 << 30) / 1024, "{} bytes", cache.memory_bytes());
        assert!(cache.memory_bytes() > (1 << 30) / 1100, "all of it is used");
        cache.resize(DEVICE, place(16).pieces).await.expect("there is room");
        assert!(cache.memory_bytes() <= 4 * (1 << 30) / 1024, "{} bytes", cache.memory_bytes());
        cache.resize(DEVICE, place(2).pieces).await.expect("there is room");
        assert!(cache.memory_bytes() <= (1 << 29) / 1024, "{} bytes", cache.memory_bytes());
    });
}

/// A device that has grown beyond 255 ways does not use the rest, and says so.
#[test]
fn what_is_too_much_for_the_ways_is_told() {
    let pool = Pool::new(1);
    let runtime = VirtualRuntime::new(3, PayloadWidth::NONE);
    let world = runtime.world().clone();
    runtime.run(async move {
        let drive = drive(&world, "long", 100 * PIECE_SECTORS);
        let cache = Rc::new(FlashCache::new(&world, options(), pool.clone()));
        cache.add_new(DEVICE, place(drive.clone(), 2), IDENTITY, 1).await.expect("the drive is good");
        assert_eq!(cache.status().unused_bytes, 0);
        assert!(!cache.room(DEVICE).is_outgrown());
        cache.resize(DEVICE, place(drive.clone(), 40).pieces).await.expect("there is room");
        let status = cache.status();
        assert_eq!(status.room_bytes, 255 * 8192);
        assert!(status.unused_bytes > 1 << 20, "{} bytes", status.unused_bytes);
        assert_eq!(
            (cache.room(DEVICE).unused_bytes, cache.room(DEVICE).is_outgrown()),
            (status.unused_bytes, true)
        );
        cache.drop_device(DEVICE);
        let small = FlashPlace { piece_sectors: 8 * 8, ..place(drive, 1) };
        let refused = cache.add_new(DEVICE, small, IDENTITY, 2).await;
        assert_eq!(refused, Err(FlashError::TooSmall { pages: 8 }));
    });
}
