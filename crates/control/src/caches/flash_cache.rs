//! The flash read cache while the array serves: it comes, grows, shrinks and goes, and a device of it that has missed something
//! is disowned.
//!
//! Nothing of the cache is needed by anybody, so whatever happens to one of its drives costs speed and nothing else. But what a
//! device holds must not be believed once it has missed that a page has changed: its epoch changes in the metadata before
//! anything goes on, and no opening believes it under the old one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_api::{EventKind, Subject};
use tier0_description::CacheSettings;
use tier0_flash_cache::FlashRoom;
use tier0_plan::plan_flash_cache;
use tier0_pool::{FlashCacheDevice, FlashCachePlacement, Member, MemberState, MetaRecord, PoolState};
use tier0_units::{ByteCount, Nanos, SECTOR_BYTES, named};
use tier0_world::sync::Semaphore;
use uuid::Uuid;

use super::{Caches, CachesPool};
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::command::ShardCommand;
use crate::pool::ALL_PLACES;
use crate::pool::not_written;

/// How long a device is left alone that was disowned, before it is made anew; it doubles with each time.
const REST_MIN: Nanos = Nanos::from_secs(30);
/// The longest.
const REST_MAX: Nanos = Nanos::from_secs(3600);
/// So long after one rest, the next is the shortest again: the drive has been well meanwhile.
const REST_FORGOTTEN: Nanos = Nanos::from_secs(6 * 3600);
/// How long the metadata are waited for before they are asked again: nothing may go on without them.
const RETRY: Nanos = Nanos::from_secs(1);
/// By so much the epoch of a device that is disowned changes: by more than by an opening, which announces the next one to the
/// device before.
const DISOWNED: u64 = 2;

impl Caches {
    /// What the array file says of caches, by pool.
    pub(crate) fn follow_caches(&self, wishes: &BTreeMap<String, CacheSettings>) {
        for pool in &self.by_pool {
            let said = wishes.get(&pool.name);
            *pool.flash_cache.wish.borrow_mut() = said.and_then(FlashCacheWish::of);
        }
    }

    /// All shards are there: they let go of what was disowned or lost while they started, and the cache gets what the array
    /// file says.
    pub(crate) fn begin_flash_cache(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        self.end_flash_cache_on_leaving(number);
        let disowned: Vec<u32> = std::mem::take(&mut *core.flash_cache.disowned.borrow_mut());
        let follows_file = core.flash_cache.wish.borrow().is_some();
        if !follows_file {
            *core.flash_cache.wish.borrow_mut() = core.flash_cache_there();
        }
        if disowned.is_empty() && !follows_file {
            return;
        }
        // It may wait for a drive that hangs.
        let caches = self.clone();
        let begin = async move {
            for member in disowned {
                caches.drop_flash_cache(number, member as usize).await;
                caches.make_anew_later(number, member);
            }
            if follows_file {
                caches.follow_wish(number, true).await;
            }
        };
        self.world.spawn(begin).detach();
    }

    /// A drive has joined: if it is one of the flash cache that was away, it gets its part of it again.
    pub(crate) fn restore_flash_cache(self: &Rc<Self>, number: usize) {
        let lacks_none = self.core(number).flash_cache_lacks().is_empty();
        if lacks_none || !self.upkeep.get() {
            return;
        }
        let caches = self.clone();
        self.world.spawn(async move { caches.follow_wish(number, false).await }).detach();
    }

    /// The cache gets the size and the drives that it is to have, but for drives that are lost, whose parts wait for them.
    /// `is_in_file`: the array file says so, and an error tells that it can be corrected.
    async fn follow_wish(self: &Rc<Self>, number: usize, is_in_file: bool) {
        let core = self.core(number);
        let Some(FlashCacheWish { bytes, drives }) = core.flash_cache.wish.borrow().clone() else { return };
        let lost = core.lost_of(&drives);
        let there: Vec<String> = drives.iter().filter(|drive| !lost.contains(drive)).cloned().collect();
        if !lost.is_empty() && bytes.0 > 0 {
            self.tell(self.pool_subject(number), EventKind::FlashCacheIncomplete { drives: lost });
        }
        if !drives.is_empty() && there.is_empty() {
            return;
        }
        let bytes = match drives.is_empty() {
            true => bytes,
            false => ByteCount(bytes.0.div_ceil(drives.len() as u64) * there.len() as u64),
        };
        let there = if there.is_empty() { None } else { Some(there) };
        let is_so = {
            let state = core.metadata.state();
            let planned = plan_flash_cache(&state, bytes, there.as_deref(), Uuid::nil);
            planned.is_ok_and(|planned| planned == *state.flash_cache())
        };
        if is_so {
            return;
        }
        if let Err(error) = self.size_flash_cache(number, bytes, there.as_deref()).await {
            let error = error.to_string();
            self.tell(self.pool_subject(number), EventKind::FlashCacheDiffers { error, is_in_file });
        }
    }

    /// A flash cache of this size, zero for none, on these drives; where none are named on those that have it, or on all flash
    /// drives.
    pub(crate) async fn set_flash_cache(
        self: &Rc<Self>,
        pool: Option<&str>,
        bytes: ByteCount,
        drives: &[String],
    ) -> Done {
        let number = self.pool_meant(pool)?;
        let drives = if drives.is_empty() { None } else { Some(drives) };
        let anew = self.size_flash_cache(number, bytes, drives).await?;
        let core = self.core(number);
        let there = core.flash_cache_there().map_or_else(Vec::new, |there| there.drives);
        *core.flash_cache.wish.borrow_mut() = Some(FlashCacheWish { bytes, drives: there });
        let state = core.metadata.state();
        let placement = state.flash_cache();
        let name = &self.pools[number].name;
        if placement.devices.is_empty() {
            return Ok(format!(
                "flash cache of pool {name} removed; remove flash_cache from the array file too, or the next \
                 start creates it again"
            ));
        }
        let drives: Vec<String> =
            placement.devices.iter().map(|device| core.drive_name(device.member)).collect();
        let chunklets: u64 = placement.devices.iter().map(FlashCacheDevice::chunklet_count).sum();
        let anew: Vec<String> = anew.into_iter().map(|member| core.drive_name(member)).collect();
        let empty = match anew.is_empty() {
            true => String::new(),
            false => format!(
                ", emptied on {}, where it was laid out for a much smaller size",
                named("drive", &anew)
            ),
        };
        Ok(format!(
            "the flash cache of pool {name} is now {} on {}{empty}; set flash_cache in the array file too, \
             or the next start resets it",
            ByteCount(chunklets * state.geometry().chunklet_sectors * SECTOR_BYTES),
            named("drive", &drives)
        ))
    }

    /// Places it; the members on which it was made anew, because it has outgrown what it was made for.
    async fn size_flash_cache(
        self: &Rc<Self>,
        number: usize,
        bytes: ByteCount,
        drives: Option<&[String]>,
    ) -> Result<Vec<u32>, AdminError> {
        let core = self.core(number);
        let _turn = core.flash_cache.turn.acquire(1).await;
        let planned = || {
            let state = core.metadata.state();
            plan_flash_cache(&state, bytes, drives, || self.new_id()).map_err(AdminError::new)
        };
        let before = core.metadata.state().flash_cache().clone();
        let wanted = planned()?;
        let command =
            |reply| ShardCommand::CheckFlashCache { pool: number, placement: wanted.clone(), reply };
        let fits = self.ask_all(command).await.into_iter().flatten().collect::<Result<(), String>>();
        fits.map_err(AdminError::new)?;
        // What is given up is read and written no more before another may have it: first what may be refused.
        if let Err(error) = self.give_up(number, &before, &wanted).await {
            // What is there still has the size that the metadata tell. A shard that cannot has it disowned.
            let state = core.metadata.state().clone();
            for device in state.flash_cache().devices.iter().filter(|device| is_smaller(&wanted, device)) {
                let _ = self.place_flash_cache(number, device).await;
            }
            return Err(error);
        }
        let planned = {
            // A task that has chosen a chunklet for a column has recorded that by then.
            let _alone = core.column_places.acquire(ALL_PLACES).await;
            let _record = core.flash_cache.record.acquire(1).await;
            let planned = planned()?;
            core.commit(vec![MetaRecord::FlashCachePlaced(planned.clone())]).await.map_err(not_written)?;
            planned
        };
        let mut anew = Vec::new();
        for device in &planned.devices {
            let known = before.on(device.member);
            if device.chunklet_count() < known.map_or(0, FlashCacheDevice::chunklet_count) {
                continue;
            }
            // One that stays as it is may rest after a failure: whoever asks for it has it made anew now.
            let mut placed = self.place_flash_cache(number, device).await;
            if placed.as_ref().is_ok_and(FlashRoom::is_outgrown) && known.is_some() {
                // No opening may believe what was there before it was made anew.
                self.forgo_flash_cache(number, device.member).await?;
                let device = core.metadata.state().flash_cache().on(device.member).cloned();
                let Some(device) = device else { continue };
                placed = self.place_flash_cache(number, &device).await;
                anew.push(device.member);
            }
            if let Err(why) = placed {
                self.go_back(number, device.member, known).await?;
                return Err(AdminError::new(why));
            }
        }
        Ok(anew)
    }

    /// Shards use no more of the cache than is `wanted`.
    async fn give_up(
        &self,
        number: usize,
        before: &FlashCachePlacement,
        wanted: &FlashCachePlacement,
    ) -> Result<(), AdminError> {
        for device in &before.devices {
            if let Some(after) = wanted.on(device.member).filter(|_| is_smaller(wanted, device)) {
                self.place_flash_cache(number, after).await.map_err(AdminError::failed)?;
            }
        }
        for device in before.devices.iter().filter(|device| wanted.on(device.member).is_none()) {
            self.forgo_flash_cache(number, device.member).await?;
        }
        Ok(())
    }

    /// The part of the cache on a member cannot be as large as it was to be: it has the chunklets that it had.
    async fn go_back(
        &self,
        number: usize,
        member: u32,
        before: Option<&FlashCacheDevice>,
    ) -> Result<(), AdminError> {
        let core = self.core(number);
        let Some(before) = before else {
            self.forgo_flash_cache(number, member).await?;
            return self.record_without(number, member).await;
        };
        let now = core.metadata.state().flash_cache().on(member).cloned();
        let Some(now) = now else { return Ok(()) };
        let smaller = FlashCacheDevice { chunklets: before.chunklets.clone(), ..now };
        // A shard that cannot has it disowned.
        let _ = self.place_flash_cache(number, &smaller).await;
        let _record = core.flash_cache.record.acquire(1).await;
        let placement = {
            let state = core.metadata.state();
            let now = state.flash_cache().on(member).cloned();
            now.map(|now| {
                state.flash_cache().with(FlashCacheDevice { chunklets: before.chunklets.clone(), ..now })
            })
        };
        let Some(placement) = placement else { return Ok(()) };
        core.commit(vec![MetaRecord::FlashCachePlaced(placement)]).await.map_err(not_written)
    }

    /// No shard uses the part of the cache on a member any more, which still has its chunklets. First it is disowned: from the moment
    /// at which shards strike nothing out there any more, no opening may believe it.
    async fn forgo_flash_cache(&self, number: usize, member: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        {
            let _record = core.flash_cache.record.acquire(1).await;
            let disowned = {
                let state = core.metadata.state();
                state.flash_cache().on(member).map(|device| self.disowned(&state, device))
            };
            let Some(disowned) = disowned else { return Ok(()) };
            core.commit(vec![MetaRecord::FlashCachePlaced(disowned)]).await.map_err(not_written)?;
        }
        self.drop_flash_cache(number, member as usize).await;
        Ok(())
    }

    /// The same placement, in which a device has another identity and epoch.
    fn disowned(&self, state: &PoolState, device: &FlashCacheDevice) -> FlashCachePlacement {
        let (id, epoch) = (self.new_id(), device.epoch + DISOWNED);
        state.flash_cache().with(FlashCacheDevice { id, epoch, ..device.clone() })
    }

    async fn record_without(&self, number: usize, member: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        let _record = core.flash_cache.record.acquire(1).await;
        let without = core.metadata.state().flash_cache().without(member);
        core.commit(vec![MetaRecord::FlashCachePlaced(without)]).await.map_err(not_written)
    }

    /// A member is to leave: it holds nothing of the cache any more.
    pub(crate) async fn take_flash_cache_from(&self, number: usize, member: u32) -> Result<(), AdminError> {
        let core = self.core(number);
        let _turn = core.flash_cache.turn.acquire(1).await;
        if core.metadata.state().flash_cache().on(member).is_none() {
            return Ok(());
        }
        self.forgo_flash_cache(number, member).await?;
        self.record_without(number, member).await
    }

    /// A crash may have come before a drive that leaves gave up its part of the cache.
    fn end_flash_cache_on_leaving(self: &Rc<Self>, number: usize) {
        let parts: Vec<u32> = {
            let state = self.core(number).metadata.state();
            let leaving = state.members_by_place().filter(|(_, member)| member.is_being_emptied());
            leaving.map(|(place, _)| place).filter(|place| state.flash_cache().on(*place).is_some()).collect()
        };
        if parts.is_empty() {
            return;
        }
        let caches = self.clone();
        let end = async move {
            for member in parts {
                if let Err(error) = caches.take_flash_cache_from(number, member).await {
                    tracing::warn!("a drive that leaves keeps its part of the flash cache: {error}");
                }
            }
            caches.repair.start_rebuilds(number);
        };
        self.world.spawn(end).detach();
    }

    /// A device of the cache has missed something in a shard: when this ends, no opening believes what it holds.
    pub(crate) async fn disown_flash_cache(
        self: &Rc<Self>,
        number: usize,
        member: u32,
        id: Uuid,
        why: Option<String>,
    ) {
        let core = self.core(number);
        {
            // Whoever changes the place of the cache may wait for a drive that hangs: this must not.
            let _record = core.flash_cache.record.acquire(1).await;
            let disowned = {
                let state = core.metadata.state();
                let device = state.flash_cache().on(member).filter(|device| device.id == id);
                device.map(|device| self.disowned(&state, device))
            };
            // Another shard has told the same, or the drive is lost.
            let Some(placement) = disowned else { return };
            while core.commit(vec![MetaRecord::FlashCachePlaced(placement.clone())]).await.is_err() {
                let is_lost = core.metadata.state().flash_cache().on(member).is_none();
                if is_lost {
                    return;
                }
                self.world.sleep(RETRY).await;
            }
        }
        self.tell(Subject::drive(core.drive_name(member)), EventKind::FlashCacheOff { error: why });
        if !self.upkeep.get() {
            core.flash_cache.disowned.borrow_mut().push(member);
            return;
        }
        let caches = self.clone();
        let begin = async move {
            caches.drop_flash_cache(number, member as usize).await;
            caches.make_anew_later(number, member);
        };
        self.world.spawn(begin).detach();
    }

    /// Makes the part of the cache on a member anew when it has had its rest.
    fn make_anew_later(self: &Rc<Self>, number: usize, member: u32) {
        let core = self.core(number);
        let rest = {
            let mut rests = core.flash_cache.rests.borrow_mut();
            let now = self.world.now();
            let is_recent = |(_, since): &(Nanos, Nanos)| now.saturating_sub(*since) < REST_FORGOTTEN;
            let last = rests.get(&member).copied().filter(is_recent);
            let rest = last.map_or(REST_MIN, |(rest, _)| Nanos((rest.0 * 2).min(REST_MAX.0)));
            rests.insert(member, (rest, now));
            rest
        };
        let caches = self.clone();
        let make = async move {
            caches.world.sleep(rest).await;
            let core = caches.core(number);
            let turn = core.flash_cache.turn.acquire(1).await;
            let device = core.metadata.state().flash_cache().on(member).cloned();
            let Some(device) = device else { return };
            if let Err(why) = caches.place_flash_cache(number, &device).await {
                drop(turn);
                caches.disown_flash_cache(number, member, device.id, Some(why)).await;
            }
        };
        self.world.spawn(make).detach();
    }

    /// Every shard uses a device as it lies now.
    async fn place_flash_cache(&self, number: usize, device: &FlashCacheDevice) -> Result<FlashRoom, String> {
        let command = |reply| ShardCommand::PlaceFlashCache { pool: number, device: device.clone(), reply };
        let ended = || Err("a core of the array has ended".to_owned());
        let mut placed = self.ask_all(command).await.into_iter();
        placed.try_fold(FlashRoom::default(), |sum, placed| Ok(sum.with(placed.unwrap_or_else(ended)?)))
    }

    /// No shard uses the part of the cache on a member any more.
    pub(crate) async fn drop_flash_cache(&self, pool: usize, member: usize) {
        if self.upkeep.get() {
            self.ask_all(|reply| ShardCommand::DropFlashCache { pool, member, reply }).await;
        }
    }
}

/// What the flash cache of a pool is to be.
#[derive(Clone, Debug)]
struct FlashCacheWish {
    /// Over all of its drives; zero for none.
    bytes: ByteCount,
    /// The names of its drives; chosen where there are none.
    drives: Vec<String>,
}

impl FlashCacheWish {
    /// What an array file says, if it does.
    fn of(settings: &CacheSettings) -> Option<FlashCacheWish> {
        Some(FlashCacheWish { bytes: settings.flash_bytes?, drives: settings.flash_drives.clone() })
    }
}

impl CachesPool {
    /// The flash cache as it lies now; `None` if there is none.
    fn flash_cache_there(&self) -> Option<FlashCacheWish> {
        let state = self.metadata.state();
        // That of a drive that leaves is about to go.
        let stays = |device: &&FlashCacheDevice| {
            state.member(device.member).is_some_and(|member| !member.is_being_emptied())
        };
        let devices: Vec<_> = state.flash_cache().devices.iter().filter(stays).collect();
        let chunklets: u64 = devices.iter().map(|device| device.chunklet_count()).sum();
        let bytes = ByteCount(chunklets * state.geometry().chunklet_sectors * SECTOR_BYTES);
        let drives = devices.iter().map(|device| self.drive_name(device.member)).collect();
        (!devices.is_empty()).then_some(FlashCacheWish { bytes, drives })
    }

    /// Of these drives the ones that are lost.
    fn lost_of(&self, drives: &[String]) -> Vec<String> {
        let state = self.metadata.state();
        let is = |name: &String, wanted: MemberState| {
            state.members().iter().any(|member| member.name == *name && member.state == wanted)
        };
        let is_lost = |name: &&String| is(name, MemberState::Lost) && !is(name, MemberState::Active);
        drives.iter().filter(is_lost).cloned().collect()
    }

    /// Members that serve and are to have a part of the flash cache, and have none.
    fn flash_cache_lacks(&self) -> Vec<u32> {
        let wish = self.flash_cache.wish.borrow();
        let Some(wish) = wish.as_ref().filter(|wish| wish.bytes.0 > 0) else { return Vec::new() };
        let state = self.metadata.state();
        let serving = state.members_by_place().filter(|(_, member)| member.takes_more());
        let lacks = |(place, member): &(u32, &Member)| {
            wish.drives.contains(&member.name) && state.flash_cache().on(*place).is_none()
        };
        serving.filter(lacks).map(|(place, _)| place).collect()
    }

    /// A new drive takes the place of another, also as a drive of the flash cache.
    pub(crate) fn replace_flash_cache_drive(&self, old: &str, new: &str) {
        if let Some(wish) = &mut *self.flash_cache.wish.borrow_mut() {
            wish.drives.iter_mut().filter(|drive| *drive == old).for_each(|drive| new.clone_into(drive));
        }
    }
}

/// What the control task keeps of the flash cache of a pool.
pub(crate) struct FlashCacheUpkeep {
    /// Its place changes once at a time.
    turn: Semaphore,
    /// One reads where it lies and records where it lies then.
    record: Semaphore,
    /// What it is to be, as far as somebody has said so.
    wish: RefCell<Option<FlashCacheWish>>,
    /// Members whose part was disowned while shards started.
    disowned: RefCell<Vec<u32>>,
    /// How long the last rest of a member's part was, and when it began.
    rests: RefCell<BTreeMap<u32, (Nanos, Nanos)>>,
}

impl Default for FlashCacheUpkeep {
    fn default() -> FlashCacheUpkeep {
        FlashCacheUpkeep {
            turn: Semaphore::new(1),
            record: Semaphore::new(1),
            wish: RefCell::default(),
            disowned: RefCell::default(),
            rests: RefCell::default(),
        }
    }
}

/// Whether a device stays, and is to be smaller.
fn is_smaller(wanted: &FlashCachePlacement, device: &FlashCacheDevice) -> bool {
    wanted.on(device.member).is_some_and(|after| after.chunklet_count() < device.chunklet_count())
}
