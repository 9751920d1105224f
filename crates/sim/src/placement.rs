//! Extents that move between the groups of a pool while the users work.
//!
//! Invariants: nothing that a user sees changes by it, so the auditor expects what it expects of the same seed without this.

use std::rc::Rc;

use tier0_api::VolumePlace;
use tier0_units::{Nanos, SECTOR_BYTES};

use crate::administrator::{Outcome, ask, request};
use crate::life::Life;
use crate::session::Session;
use crate::system::{Admin, Running, Status};

/// Pauses of a user that one of these is as long as.
const THINKS: u64 = 2;
/// Extents that are asked for at once, at most.
const EXTENTS_MAX: u64 = 8;
/// The first of them, at most: more than a volume has wraps around.
const FIRST_MAX: u64 = 64;

/// So often in a life, at most: users may wait for hours.
const REQUESTS_MAX: u32 = 2_000;

/// Moves extents of any volume to any group until the users are done.
pub(crate) async fn move_about<R: Running>(life: Rc<Life<R>>) {
    let mut random = life.session.random(0x6d07);
    let pause = life.session.config.load.think.0.saturating_mul(THINKS) as f64;
    let volumes = life.session.config.array.volumes.len() as u64;
    for _ in 0..REQUESTS_MAX {
        if life.done.get() {
            return;
        }
        let wish = Admin::MoveExtents {
            volume: random.below(volumes) as usize,
            first: random.below(FIRST_MAX) as u32,
            count: 1 + random.below(EXTENTS_MAX) as u32,
            group: random.below(2) as u32,
        };
        if let Err(sentence) = ask(&life, wish, "extents asked to another group").await {
            return life.break_off(sentence);
        }
        life.world.sleep(Nanos(random.exponential(pause) as u64)).await;
    }
}

/// Where volumes may be placed.
const PLACES: [VolumePlace; 3] = [VolumePlace::Slow, VolumePlace::Auto, VolumePlace::Fast];
/// Pauses of a user that lie between two wishes for a place: rounds of a tier take five seconds.
const PLACE_THINKS: u64 = 200;
/// Of the wishes these are for a part of a volume.
const PIN_SHARE: f64 = 0.3;
/// And these for another group.
const MIGRATE_SHARE: f64 = 0.25;
/// And these have a group leave, and as many let one stay.
const REMOVE_SHARE: f64 = 0.06;
/// A pin lasts for up to so many seconds, or for ever.
const PIN_SECONDS: u64 = 60;

/// Where volumes are to lie is as it was acknowledged. After the last resort it may be as it was before.
pub(crate) fn check(session: &Session, status: &Status) -> Result<(), String> {
    if session.config.has_ordeals() {
        return Ok(());
    }
    for (volume, place) in session.volume_places.borrow().iter() {
        let told = status.places.get(*volume);
        if told != Some(place) {
            return Err(format!("volume {volume} was placed {place:?}, and the array says {told:?}"));
        }
    }
    Ok(())
}

/// Places volumes, pins parts of them, and has groups leave, until the users are done.
pub(crate) async fn place_by_hand<R: Running>(life: Rc<Life<R>>) {
    let mut random = life.session.random(0x71e2);
    let pause = life.session.config.load.think.0.saturating_mul(PLACE_THINKS) as f64;
    let volumes = life.session.config.array.volumes.clone();
    for _ in 0..REQUESTS_MAX {
        if life.done.get() {
            return;
        }
        let volume = random.below(volumes.len() as u64) as usize;
        let place = PLACES[random.below(3) as usize];
        let share = random.unit();
        let wishes = if share < MIGRATE_SHARE {
            vec![Admin::MigrateVolume { volume, group: random.below(2) as u32 }]
        } else if share < MIGRATE_SHARE + PIN_SHARE {
            let size = volumes[volume].sectors.0 * SECTOR_BYTES;
            let from = random.below(size);
            let bytes = from..from + 1 + random.below(size - from);
            let now_s = life.world.unix_s();
            let until_s = if random.chance(0.5) { 0 } else { now_s + 1 + random.below(PIN_SECONDS) };
            vec![Admin::PinVolume { volume, bytes, place, until_s }]
        } else if share < MIGRATE_SHARE + PIN_SHARE + REMOVE_SHARE {
            let sizes = volumes.iter().map(|volume| volume.sectors.0 * SECTOR_BYTES);
            leave(random.below(2) as u32, sizes)
        } else if share < MIGRATE_SHARE + PIN_SHARE + 2.0 * REMOVE_SHARE {
            vec![Admin::RemoveGroup { group: random.below(2) as u32, cancel: true }]
        } else {
            vec![Admin::PlaceVolume { volume, place }]
        };
        for wish in wishes {
            if let Err(sentence) = place_as_asked(&life, wish).await {
                return life.break_off(sentence);
            }
        }
        life.world.sleep(Nanos(random.exponential(pause) as u64)).await;
    }
}

/// What an administrator asks for so that a group leaves: volumes of these sizes are of the other one, and nothing is to lie in it.
fn leave(group: u32, sizes: impl Iterator<Item = u64>) -> Vec<Admin> {
    let of_volume = |(volume, size): (usize, u64)| {
        [
            Admin::MigrateVolume { volume, group: 1 - group },
            Admin::PlaceVolume { volume, place: VolumePlace::Auto },
            Admin::PinVolume { volume, bytes: 0..size, place: VolumePlace::Slow, until_s: 0 },
        ]
    };
    let all = sizes.enumerate().flat_map(of_volume);
    all.chain([Admin::RemoveGroup { group, cancel: false }]).collect()
}

/// Asks for something that says where volumes are to lie, and remembers what is known then.
async fn place_as_asked<R: Running>(life: &Rc<Life<R>>, wish: Admin) -> Result<(), String> {
    // Where a group has no disks a volume's place is forgotten.
    let (volume, place, counted) = match &wish {
        Admin::PlaceVolume { volume, place } => (Some(*volume), Some(*place), "volumes placed"),
        Admin::MigrateVolume { volume, .. } => (Some(*volume), None, "volumes migrated"),
        Admin::RemoveGroup { cancel: false, .. } => (None, None, "groups asked to leave"),
        Admin::RemoveGroup { cancel: true, .. } => (None, None, "groups asked to stay"),
        _ => (None, None, "volumes placed"),
    };
    let places = &life.session.volume_places;
    // Until it is answered either may be.
    let before = volume.and_then(|volume| places.borrow_mut().remove(&volume));
    let known = match request(life, wish, counted).await? {
        Outcome::Done => place,
        Outcome::Refused => before,
        Outcome::Unfinished => None,
    };
    if let Some((volume, known)) = volume.zip(known) {
        places.borrow_mut().insert(volume, known);
    }
    Ok(())
}
