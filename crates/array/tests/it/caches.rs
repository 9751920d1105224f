//! Caches that are switched while hosts write: what was acknowledged from a write cache lies in its place when it is off,
//! volumes go on as they were set when the pool's switch is on again, and all of it outlives a power cut.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::{AdminReply, AdminRequest};
use tier0_array::Volume;
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Nanos, WriteCache};
use tier0_world::{IoError, World};

use crate::rig::{Drives, create_volume, done, expect, pool, refused, try_write, volume, write};

fn of_volume(name: &str, read: Option<bool>, write: Option<WriteCache>) -> AdminRequest {
    AdminRequest::VolumeCache { volume: name.to_owned(), read, write }
}

fn of_pool(read: Option<bool>, write: Option<bool>) -> AdminRequest {
    AdminRequest::PoolCache { pool: None, read, write }
}

/// By volume: whether reads use the read cache, and when writes are acknowledged, as the status tells.
async fn told(engine: &Engine) -> Vec<(String, bool, WriteCache)> {
    let volumes = pool(engine).await.volumes;
    let known = |mode: Option<WriteCache>| mode.expect("there is a log");
    volumes.into_iter().map(|one| (one.name, one.read_cache, known(one.write_cache))).collect()
}

async fn dirty_bytes(engine: &Engine) -> u64 {
    pool(engine).await.log.expect("there is a log").dirty_bytes
}

/// Hosts that write to a volume, and what they know to be acknowledged: by page, the value.
struct Hosts {
    world: World,
    volume: Volume,
    stops: Cell<bool>,
    acknowledged: RefCell<BTreeMap<u64, u8>>,
}

impl Hosts {
    const COUNT: u64 = 16;

    fn of(world: &World, volume: Volume) -> Rc<Hosts> {
        let (stops, acknowledged) = (Cell::default(), RefCell::default());
        Rc::new(Hosts { world: world.clone(), volume, stops, acknowledged })
    }

    async fn write_on(&self, host: u64) {
        for round in 0u64.. {
            if self.stops.get() {
                return;
            }
            let (page, value) = (host + Hosts::COUNT * (round * 7 % 80), 1 + (round % 250) as u8);
            write(&self.world, &self.volume, page * 8, 8, value).await;
            self.acknowledged.borrow_mut().insert(page, value);
        }
    }

    async fn expect_all(&self, world: &World, volume: &Volume) {
        let acknowledged = self.acknowledged.borrow().clone();
        for (page, value) in acknowledged {
            expect(world, volume, page * 8, 8, value).await;
        }
    }
}

/// Lets hosts write for a while, has `switch` done, and waits until what they have under way has ended.
async fn while_hosts_write(world: &World, volume: Volume, switch: impl AsyncFnOnce()) -> Rc<Hosts> {
    let hosts = Hosts::of(world, volume);
    let each = (0..Hosts::COUNT).map(|host| {
        let hosts = hosts.clone();
        world.spawn(async move { hosts.write_on(host).await })
    });
    let each: Vec<_> = each.collect();
    world.sleep(Nanos::from_millis(200)).await;
    switch().await;
    hosts.stops.set(true);
    join_all(each).await;
    hosts
}

/// Writes that were under way in the old mode when it changed are acknowledged as the new one promises.
#[test]
fn a_write_cache_that_is_off_holds_nothing_that_was_acknowledged() {
    for mode in [WriteCache::Durable, WriteCache::Volatile] {
        for of_pool_too in [false, true] {
            Drives::founded("raid5", 4, 4, 3, 61).life(1, move |world, engine, _| async move {
                let lun0 = volume(&engine, "lun0");
                done(&engine, of_volume("lun0", None, Some(mode))).await;
                write(&world, &lun0, 0, 64, 9).await;
                assert!(dirty_bytes(&engine).await > 0, "the cache holds it for a while");
                let off = match of_pool_too {
                    true => of_pool(None, Some(false)),
                    false => of_volume("lun0", None, Some(WriteCache::Off)),
                };
                done(&engine, off.clone()).await;
                assert_eq!(dirty_bytes(&engine).await, 0, "{mode}");
                let on = match of_pool_too {
                    true => of_pool(None, Some(true)),
                    false => of_volume("lun0", None, Some(mode)),
                };
                done(&engine, on).await;
                assert_eq!(told(&engine).await, [("lun0".to_owned(), true, mode)]);
                let hosts =
                    while_hosts_write(&world, lun0.clone(), async || drop(done(&engine, off).await)).await;
                assert_eq!(dirty_bytes(&engine).await, 0, "{mode}, under load");
                hosts.expect_all(&world, &lun0).await;
                write(&world, &lun0, 0, 64, 10).await;
                assert_eq!(dirty_bytes(&engine).await, 0, "nor does it take anything");
            });
        }
    }
}

/// A write that hosts were told to be stable is, whatever mode it began in.
#[test]
fn a_stricter_mode_is_told_when_it_holds() {
    let array = Drives::founded("raid1", 2, 2, 2, 62);
    let kept: Rc<RefCell<Option<Rc<Hosts>>>> = Rc::default();
    let hosts = kept.clone();
    array.life(1, move |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        assert!(!lun0.info().volatile_cache);
        done(&engine, of_volume("lun0", None, Some(WriteCache::Volatile))).await;
        assert!(lun0.info().volatile_cache);
        let switch = async || {
            let text = done(&engine, of_volume("lun0", None, Some(WriteCache::Durable))).await;
            assert!(text.ends_with("from now on"), "no client is connected: {text}");
            assert!(!volume(&engine, "lun0").info().volatile_cache);
        };
        *hosts.borrow_mut() = Some(while_hosts_write(&world, lun0, switch).await);
        // The power fails now, and nobody has flushed.
    });
    array.life(2, move |world, engine, _| async move {
        let hosts = kept.borrow_mut().take().expect("they have written");
        let lun0 = volume(&engine, "lun0");
        hosts.expect_all(&world, &lun0).await;
    });
}

#[test]
fn switches_outlive_a_power_cut_and_a_volume_goes_on_as_it_was_set() {
    use WriteCache::{Durable, Off, Volatile};
    let array = Drives::founded("raid1", 2, 2, 2, 63);
    let all = |told: &[(&str, bool, WriteCache)]| -> Vec<(String, bool, WriteCache)> {
        told.iter().map(|(name, read, mode)| ((*name).to_owned(), *read, *mode)).collect()
    };
    array.life(1, move |world, engine, _| async move {
        assert_eq!(told(&engine).await, all(&[("lun0", true, Durable)]));
        let text = done(&engine, of_volume("lun0", Some(false), Some(Volatile))).await;
        assert!(text.starts_with("volume lun0: read cache off, write cache volatile from now on"), "{text}");
        write(&world, &volume(&engine, "lun0"), 0, 64, 3).await;
        // A clone acknowledges and reads as its volume does.
        done(&engine, AdminRequest::VolumeClone { volume: "lun0".to_owned(), name: "copy".to_owned() }).await;
        done(&engine, create_volume("other", ByteCount::mib(1), true)).await;
        let text = done(&engine, of_pool(None, Some(false))).await;
        assert_eq!(text, "pool pool0: write cache off from now on");
        assert_eq!(
            told(&engine).await,
            all(&[("lun0", false, Off), ("copy", false, Off), ("other", true, Off)])
        );
        assert!(!volume(&engine, "lun0").info().volatile_cache);
        // Neither a volume's own mode nor one that comes has a say now.
        let text = done(&engine, of_volume("other", None, Some(Volatile))).await;
        assert!(text.contains("once the write cache of pool pool0 is on"), "{text}");
        done(&engine, create_volume("late", ByteCount::mib(1), true)).await;
        write(&world, &volume(&engine, "late"), 0, 64, 3).await;
        write(&world, &volume(&engine, "other"), 0, 64, 3).await;
        assert_eq!(dirty_bytes(&engine).await, 0);
    });
    array.life(2, move |_, engine, _| async move {
        let off = [("lun0", false, Off), ("copy", false, Off), ("other", true, Off), ("late", true, Off)];
        assert_eq!(told(&engine).await, all(&off));
        let switches = pool(&engine).await.cache;
        assert_eq!((switches.read, switches.write), (true, false));
        done(&engine, of_pool(Some(false), Some(true))).await;
        let own = [("lun0", false, Volatile), ("copy", false, Volatile), ("other", false, Volatile)];
        assert_eq!(told(&engine).await, all(&[&own[..], &[("late", false, Durable)]].concat()));
        assert!(volume(&engine, "lun0").info().volatile_cache);
        assert!(!volume(&engine, "late").info().volatile_cache);
    });
    array.life(3, move |_, engine, _| async move {
        done(&engine, of_pool(Some(true), None)).await;
        let own = [("lun0", false, Volatile), ("copy", false, Volatile), ("other", true, Volatile)];
        assert_eq!(told(&engine).await, all(&[&own[..], &[("late", true, Durable)]].concat()));
    });
}

#[test]
fn what_cannot_be_switched_is_refused() {
    Drives::founded("raid1", 2, 2, 1, 64).life(1, |_, engine, _| async move {
        for (request, says) in [
            (of_volume("none", Some(true), None), "no volume"),
            (of_volume("lun0", None, None), "set cache.read"),
            (of_pool(None, None), "set cache.read"),
            (
                AdminRequest::PoolCache { pool: Some("none".to_owned()), read: Some(true), write: None },
                "no pool",
            ),
        ] {
            let text = refused(&engine, request).await;
            assert!(text.contains(says), "{says}: {text}");
        }
    });
}

/// What cannot be brought into its place is told, and asking again brings it there.
#[test]
fn a_cache_that_cannot_be_emptied_is_told_and_emptied_later() {
    let array = Drives::founded("raid1", 2, 2, 1, 65);
    array.troubled_life(1, |world, engine, troubles| async move {
        let lun0 = volume(&engine, "lun0");
        write(&world, &lun0, 0, 64, 9).await;
        troubles.of.iter().for_each(|trouble| trouble.fail(Some(IoError::Gone)));
        let AdminReply::Failed(text) = engine.administer(of_pool(None, Some(false))).await else {
            panic!("there are no drives")
        };
        assert!(text.contains("not completed yet"), "{text}");
        troubles.of.iter().for_each(|trouble| trouble.fail(None));
        world.sleep(Nanos::from_secs(30)).await;
        done(&engine, of_pool(None, Some(false))).await;
        assert_eq!(dirty_bytes(&engine).await, 0);
        try_write(&world, &lun0, 0, 64, 10).await.expect("it goes on");
        assert_eq!(dirty_bytes(&engine).await, 0);
    });
}
