//! Caches that administrators switch while the users work.
//!
//! Invariants: no volume ever promises less than its options say, so the auditor expects what it expects of the same seed
//! without this.

use std::rc::Rc;

use tier0_units::{Nanos, WriteCache};
use tier0_world::Random;

use crate::administrator::ask;
use crate::config::{acknowledges_stable, pick};
use crate::life::Life;
use crate::system::{Admin, Running};

/// Pauses of a user that one of the administrator's is as long as.
const THINKS: u64 = 4;

/// Switches caches of volumes and of the pool until the users are done.
pub(crate) async fn switch<R: Running>(life: Rc<Life<R>>) {
    let mut random = life.session.random(0x5317);
    let pause = life.session.config.load.think.0.saturating_mul(THINKS) as f64;
    while !life.done.get() {
        let (request, counted) = draw(&life, &mut random);
        if let Err(sentence) = ask(&life, request, counted).await {
            return life.break_off(sentence);
        }
        life.world.sleep(Nanos(random.exponential(pause) as u64)).await;
    }
}

fn draw<R: Running>(life: &Life<R>, random: &mut Random) -> (Admin, &'static str) {
    if life.session.config.array.flash_cache.is_some() && random.chance(0.3) {
        return (Admin::SizeFlashCache { chunklets: random.below(8) }, "flash caches resized");
    }
    let mut on = |share| random.chance(share).then(|| random.chance(0.5));
    if on(0.4).is_some() {
        let (read, write) = (on(0.6), on(0.6));
        return (Admin::SwitchPool { read, write }, "caches of the pool switched");
    }
    let read = on(0.5);
    let volumes = &life.session.config.array.volumes;
    let volume = random.below(volumes.len() as u64) as usize;
    let modes = match acknowledges_stable(volumes[volume].write_cache) {
        true => &[WriteCache::Durable, WriteCache::Off][..],
        false => &[WriteCache::Durable, WriteCache::Volatile, WriteCache::Off],
    };
    let write = Some(pick(modes, random));
    (Admin::SwitchVolume { volume, read, write }, "caches of volumes switched")
}
