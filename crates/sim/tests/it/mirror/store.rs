//! The mirrored sectors: reading, writing, recovery, repair, rebuild.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_sim::{Admin, ArrayConfig, Status, SystemError};
use tier0_units::{Lba, WriteCache};
use tier0_world::sync::{Permit, Semaphore};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, World};

use super::Bug;
use super::layout::{Header, SECTOR, Superblock, place};
use super::members::{self, Member, timed};

/// Sectors that share a lock.
const GROUP: u64 = 16;

/// A volume's sectors among all.
pub(crate) struct Span {
    pub(crate) first: u64,
    pub(crate) sectors: u64,
    pub(crate) durable: bool,
}

/// What is known of a sector.
#[derive(Clone, Copy, Default)]
struct Current {
    /// 0: never written.
    sequence: u64,
    /// Written in this epoch of flushes.
    epoch: u64,
}

/// The running array.
pub(crate) struct Store {
    pub(crate) world: World,
    pub(crate) bug: Option<Bug>,
    pub(crate) volumes: Vec<Span>,
    pub(crate) recovered: Cell<u64>,
    members: RefCell<Vec<Member>>,
    superblock: RefCell<Superblock>,
    lost: RefCell<Vec<String>>,
    wanted: usize,
    current: RefCell<Vec<Current>>,
    locks: Vec<Semaphore>,
    membership: Semaphore,
    epoch: Cell<u64>,
    flushed: Cell<u64>,
    rebuilding: Cell<bool>,
    scrubbing: Cell<bool>,
    scrub_repaired: Cell<u64>,
    unrecoverable: Cell<u64>,
}

impl Store {
    pub(crate) async fn open(
        world: &World,
        bug: Option<Bug>,
        config: &ArrayConfig,
        drives: Vec<DriveHandle>,
    ) -> Result<Rc<Store>, SystemError> {
        let (superblock, members) = members::find(world, drives, bug == Some(Bug::BelieveStale)).await?;
        let mut first = 0;
        let mut volumes = Vec::new();
        for volume in &config.volumes {
            let durable = volume.write_cache == WriteCache::Durable;
            volumes.push(Span { first, sectors: volume.sectors.0, durable });
            first += volume.sectors.0.next_multiple_of(GROUP);
        }
        let missing = members.len() < superblock.members.len();
        let store = Rc::new(Store {
            world: world.clone(),
            bug,
            volumes,
            recovered: Cell::default(),
            members: RefCell::new(members),
            superblock: RefCell::new(superblock),
            lost: RefCell::default(),
            wanted: config.drives,
            current: RefCell::new(vec![Current::default(); first as usize]),
            locks: (0..first / GROUP).map(|_| Semaphore::new(1)).collect(),
            membership: Semaphore::new(1),
            epoch: Cell::new(1),
            flushed: Cell::new(0),
            rebuilding: Cell::default(),
            scrubbing: Cell::default(),
            scrub_repaired: Cell::default(),
            unrecoverable: Cell::default(),
        });
        if missing && bug != Some(Bug::ForgetLoss) {
            store.write_members().await.map_err(|error| SystemError::Failed(error.to_string()))?;
        }
        store.recover().await.map_err(|error| SystemError::Failed(error.to_string()))?;
        Ok(store)
    }

    /// Brings every copy of every sector to the newest.
    async fn recover(&self) -> Result<(), IoError> {
        let sectors = self.current.borrow().len() as u64;
        for sector in 0..sectors {
            let mut newest: Option<(Header, Vec<u8>)> = None;
            let mut sequences = Vec::new();
            for member in self.whole_members() {
                let mut own = 0;
                for place in 0..2 {
                    if let Some((header, data)) = self.read_place(&member, sector, place).await {
                        own = header.sequence.max(own);
                        if newest.as_ref().is_none_or(|(newest, _)| newest.sequence < header.sequence) {
                            newest = Some((header, data));
                        }
                    }
                }
                sequences.push(own);
            }
            let Some((header, data)) = newest else { continue };
            self.current.borrow_mut()[sector as usize] = Current { sequence: header.sequence, epoch: 0 };
            if sequences.iter().any(|own| *own != header.sequence) && self.bug != Some(Bug::ServeUnrepaired) {
                self.recovered.set(self.recovered.get() + 1);
                self.put(sector, header.sequence, &data, true).await?;
            }
        }
        // What the copies agree in may still be in their caches.
        self.flush_members().await
    }

    /// Which place holds a sequence number.
    fn place_of(&self, sequence: u64) -> u64 {
        if self.bug == Some(Bug::OverwriteInPlace) { 0 } else { sequence % 2 }
    }

    async fn lock(&self, first: u64, sectors: u64) -> Vec<Permit> {
        let mut permits = Vec::new();
        if self.bug != Some(Bug::NoLocks) {
            for group in first / GROUP..(first + sectors).div_ceil(GROUP) {
                permits.push(self.locks[group as usize].acquire(1).await);
            }
        }
        permits
    }

    pub(crate) async fn read(&self, first: u64, bytes: &mut [u8]) -> Result<(), IoError> {
        let _locked = self.lock(first, (bytes.len() / SECTOR) as u64).await;
        let reads = (first..).zip(bytes.chunks_exact_mut(SECTOR)).map(async |(sector, bytes)| {
            let current = self.current.borrow()[sector as usize];
            if current.sequence == 0 {
                bytes.fill(0);
                return Ok(());
            }
            self.get(sector, current.sequence).await.map(|(data, _)| bytes.copy_from_slice(&data))
        });
        join_all(reads.collect::<Vec<_>>()).await.into_iter().collect()
    }

    pub(crate) async fn write(&self, first: u64, buf: &Buf, durable: bool) -> Result<(), IoError> {
        let durable = durable && self.bug != Some(Bug::SkipFlush);
        let _locked = self.lock(first, u64::from(buf.sectors())).await;
        let sectors = first..first + u64::from(buf.sectors());
        // The place that is about to be overwritten may hold the only version that is stable.
        let newest = sectors.clone().map(|sector| self.current.borrow()[sector as usize].epoch).max();
        if newest.is_some_and(|epoch| epoch > self.flushed.get()) && self.bug != Some(Bug::SkipFlush) {
            self.flush_members().await?;
        }
        let writes = sectors.zip(buf.as_slice().chunks_exact(SECTOR)).map(async |(sector, data)| {
            let sequence = self.current.borrow()[sector as usize].sequence + 1;
            self.put(sector, sequence, data, durable).await?;
            let epoch = if durable { 0 } else { self.epoch.get() };
            self.current.borrow_mut()[sector as usize] = Current { sequence, epoch };
            Ok(())
        });
        join_all(writes.collect::<Vec<_>>()).await.into_iter().collect()
    }

    pub(crate) async fn flush(&self) -> Result<(), IoError> {
        if self.bug == Some(Bug::IgnoreFlush) {
            return Ok(());
        }
        self.flush_members().await
    }

    async fn flush_members(&self) -> Result<(), IoError> {
        let epoch = self.epoch.get();
        self.epoch.set(epoch + 1);
        let members = self.members.borrow().clone();
        let flushes = members.iter().map(|member| timed(&self.world, self.waits(), member.drive.flush()));
        let results = join_all(flushes.collect::<Vec<_>>()).await;
        self.strike_off(&members, &results).await?;
        self.flushed.set(self.flushed.get().max(epoch));
        Ok(())
    }

    /// Writes a sector to every copy.
    async fn put(&self, sector: u64, sequence: u64, data: &[u8], durable: bool) -> Result<(), IoError> {
        let bytes = Header { sequence, sector }.encode(data);
        let buf = BufMut::copy_from(&bytes, PayloadWidth::REAL).freeze();
        let lba = Lba(place(sector, self.place_of(sequence)));
        let members = self.members.borrow().clone();
        let writes = members.iter().map(|member| {
            let (world, waits) = (self.world.clone(), self.waits());
            let (drive, buf) = (member.drive.clone(), buf.clone());
            async move { timed(&world, waits, drive.write(lba, buf, durable)).await }
        });
        let mut writes: Vec<_> = writes.map(Box::pin).collect();
        if self.bug == Some(Bug::AckBeforeMirror) {
            let first = writes.remove(0);
            for other in writes {
                self.world.spawn(other).detach();
            }
            let result = first.await;
            return self.strike_off(&members[..1], &[result]).await;
        }
        let results = join_all(writes).await;
        self.strike_off(&members, &results).await
    }

    /// The data of a sector, from any copy that has it, and how many copies had to be repaired.
    async fn get(&self, sector: u64, sequence: u64) -> Result<(Vec<u8>, u64), IoError> {
        let members = self.whole_members();
        let start = (sector + sequence) as usize % members.len().max(1);
        let mut wrong = 0;
        for at in 0..members.len() {
            let member = &members[(start + at) % members.len()];
            let found = self.read_place(member, sector, self.place_of(sequence)).await;
            match found.filter(|(header, _)| header.sequence == sequence) {
                Some((_, data)) => {
                    if wrong > 0 {
                        self.put(sector, sequence, &data, true).await?;
                    }
                    return Ok((data, wrong));
                }
                None => wrong += 1,
            }
        }
        self.unrecoverable.set(self.unrecoverable.get() + 1);
        Err(IoError::Medium)
    }

    async fn read_place(&self, member: &Member, sector: u64, at: u64) -> Option<(Header, Vec<u8>)> {
        let buf = BufMut::new(2, PayloadWidth::REAL);
        let read = async {
            let (result, buf) = member.drive.read(Lba(place(sector, at)), buf).await;
            result.map(|()| buf)
        };
        match timed(&self.world, self.waits(), read).await {
            Ok(buf) => {
                let header = Header::decode(buf.as_slice(), sector, self.bug == Some(Bug::IgnoreChecksum))?;
                Some((header, buf.as_slice()[SECTOR..].to_vec()))
            }
            Err(IoError::Medium) => None,
            Err(error) => {
                // If no member is left the caller finds no copy either.
                let _ = self.strike_off(std::slice::from_ref(member), &[Err(error)]).await;
                None
            }
        }
    }

    fn waits(&self) -> bool {
        self.bug == Some(Bug::WaitForEver)
    }

    fn whole_members(&self) -> Vec<Member> {
        self.members.borrow().iter().filter(|member| member.whole).cloned().collect()
    }

    /// Takes the drives that failed out of service, and writes that down before anything else happens.
    async fn strike_off(&self, members: &[Member], results: &[Result<(), IoError>]) -> Result<(), IoError> {
        let failed = members.iter().zip(results).filter(|(_, result)| result.is_err());
        let failed: Vec<u64> = failed.map(|(member, _)| member.number).collect();
        if failed.is_empty() {
            return Ok(());
        }
        self.expel(&failed).await
    }

    async fn expel(&self, numbers: &[u64]) -> Result<(), IoError> {
        let _turn = self.membership.acquire(1).await;
        let gone = |member: &&Member| numbers.contains(&member.number);
        let names = self.members.borrow().iter().filter(gone).map(|m| m.drive.info().name.clone()).collect();
        let names: Vec<String> = names;
        if names.is_empty() {
            return Ok(());
        }
        self.members.borrow_mut().retain(|member| !gone(&member));
        self.lost.borrow_mut().extend(names);
        if self.bug == Some(Bug::ForgetLoss) {
            return Ok(());
        }
        self.write_members_now().await
    }

    async fn write_members(&self) -> Result<(), IoError> {
        let _turn = self.membership.acquire(1).await;
        self.write_members_now().await
    }

    /// The caller holds the turn.
    async fn write_members_now(&self) -> Result<(), IoError> {
        loop {
            let members = self.whole_members();
            if members.is_empty() {
                return Err(IoError::RedundancyLost);
            }
            self.superblock.borrow_mut().generation += 1;
            self.superblock.borrow_mut().members = members.iter().map(|member| member.number).collect();
            let newest = self.superblock.borrow().clone();
            let mut failed = Vec::new();
            for member in &members {
                let own = Superblock { own: member.number, ..newest.clone() };
                if members::write_superblock(&self.world, &member.drive, &own).await.is_err() {
                    failed.push(member.number);
                }
            }
            if failed.is_empty() {
                return Ok(());
            }
            self.members.borrow_mut().retain(|member| !failed.contains(&member.number));
        }
    }

    pub(crate) fn describe(&self) -> Status {
        let members = self.whole_members();
        let names: Vec<String> = members.iter().map(|member| member.drive.info().name.clone()).collect();
        Status {
            redundant: members.len() >= self.wanted.min(2) && !self.rebuilding.get(),
            sentence: format!("{} of {} copies in service", names.len(), self.wanted),
            active: names.clone(),
            lost: self.lost.borrow().clone(),
            log: names.clone(),
            metadata: names,
            rebuilding: self.rebuilding.get(),
            moving: false,
            moved: 0,
            misplaced: false,
            scrubbing: self.scrubbing.get(),
            scrub_repaired: self.scrub_repaired.get(),
            unrecoverable: self.unrecoverable.get(),
            used_sectors: None,
            places: Vec::new(),
        }
    }

    pub(crate) async fn administer(self: &Rc<Self>, request: Admin) -> Result<(), SystemError> {
        let failed = |error: IoError| SystemError::Failed(error.to_string());
        match request {
            Admin::Fail { drive } => {
                let numbers = self.numbers_of(&drive);
                if self.whole_members().len() <= numbers.len() {
                    return Err(SystemError::Refused("it is the last copy".to_owned()));
                }
                self.expel(&numbers).await.map_err(failed)
            }
            Admin::Replace { old, new } => {
                let numbers = self.numbers_of(&old);
                if self.rebuilding.get() || self.whole_members().len() <= numbers.len() {
                    return Err(SystemError::Refused(
                        "it is the last copy, or a rebuild is going on".to_owned(),
                    ));
                }
                self.expel(&numbers).await.map_err(failed)?;
                self.lost.borrow_mut().retain(|name| *name != old);
                self.begin_rebuild(new);
                Ok(())
            }
            Admin::Add { drive } => {
                if self.rebuilding.get() || self.whole_members().len() >= self.wanted {
                    return Err(SystemError::Refused(
                        "no copy is missing, or a rebuild is going on".to_owned(),
                    ));
                }
                self.begin_rebuild(drive);
                Ok(())
            }
            Admin::Remove { .. } | Admin::Rejoin { .. } | Admin::Empty { .. } | Admin::Keep { .. } => {
                Err(SystemError::Refused("drives neither leave nor return".to_owned()))
            }
            Admin::Scrub if self.scrubbing.get() => {
                Err(SystemError::Refused("a scrub is going on".to_owned()))
            }
            Admin::Scrub => {
                self.scrubbing.set(true);
                let store = self.clone();
                self.world.spawn(async move { store.scrub().await }).detach();
                Ok(())
            }
            Admin::Grow
            | Admin::CreateVolume { .. }
            | Admin::CloneVolume { .. }
            | Admin::SwitchVolume { .. }
            | Admin::SwitchPool { .. }
            | Admin::PlaceVolume { .. }
            | Admin::MigrateVolume { .. }
            | Admin::PinVolume { .. }
            | Admin::RemoveGroup { .. }
            | Admin::SizeFlashCache { .. }
            | Admin::MoveExtents { .. }
            | Admin::ShrinkVolume { .. }
            | Admin::DeleteVolume { .. } => Err(SystemError::Refused("a mirror stays as it is".to_owned())),
        }
    }

    fn numbers_of(&self, name: &str) -> Vec<u64> {
        let members = self.members.borrow();
        members.iter().filter(|member| member.drive.info().name == name).map(|member| member.number).collect()
    }

    fn begin_rebuild(self: &Rc<Self>, drive: DriveHandle) {
        self.rebuilding.set(true);
        self.lost.borrow_mut().retain(|name| *name != drive.info().name);
        let store = self.clone();
        self.world
            .spawn(async move {
                // A drive that fails while it is filled is left alone; the array stays as it was.
                let _ = store.rebuild(drive).await;
                store.rebuilding.set(false);
            })
            .detach();
    }

    async fn rebuild(&self, drive: DriveHandle) -> Result<(), IoError> {
        let number = self.superblock.borrow().given + 1;
        self.superblock.borrow_mut().given = number;
        self.members.borrow_mut().push(Member { number, drive, whole: false });
        let sectors = self.current.borrow().len() as u64;
        let skipped = if self.bug == Some(Bug::IncompleteRebuild) { 1 } else { 0 };
        for group in skipped..sectors / GROUP {
            let _locked = self.lock(group * GROUP, GROUP).await;
            for sector in group * GROUP..(group + 1) * GROUP {
                let sequence = self.current.borrow()[sector as usize].sequence;
                if sequence > 0 {
                    let (data, _) = self.get(sector, sequence).await?;
                    self.put(sector, sequence, &data, true).await?;
                }
            }
        }
        let _turn = self.membership.acquire(1).await;
        match self.members.borrow_mut().iter_mut().find(|member| member.number == number) {
            Some(member) => member.whole = true,
            None => return Err(IoError::Gone),
        }
        self.write_members_now().await
    }

    async fn scrub(&self) {
        self.scrub_repaired.set(0);
        let sectors = self.current.borrow().len() as u64;
        for group in 0..sectors / GROUP {
            let _locked = self.lock(group * GROUP, GROUP).await;
            for sector in group * GROUP..(group + 1) * GROUP {
                self.scrub_sector(sector).await;
            }
        }
        // Superblocks may have rotted too; a loss while they are written is found by the next command.
        let _ = self.write_members().await;
        self.scrubbing.set(false);
    }

    async fn scrub_sector(&self, sector: u64) {
        let sequence = self.current.borrow()[sector as usize].sequence;
        if sequence == 0 {
            return;
        }
        let mut wrong = 0;
        for member in self.whole_members() {
            let found = self.read_place(&member, sector, self.place_of(sequence)).await;
            wrong += u64::from(found.is_none_or(|(header, _)| header.sequence != sequence));
        }
        if wrong == 0 {
            return;
        }
        if let Ok((data, _)) = self.get(sector, sequence).await {
            self.scrub_repaired.set(self.scrub_repaired.get() + wrong);
            // A copy that cannot be written is struck off, and the next scrub does not look at it.
            let _ = self.put(sector, sequence, &data, true).await;
        }
    }
}
