//! Volumes created, grown, renamed and deleted while the array runs: the metadata first, then the shards; of a volume that
//! goes, hosts and shards first. [`shrink`](super::shrink) makes them smaller.
//!
//! A crash leaves a volume as it was before or as it is after: what decides is its record in the metadata journal. The
//! slots of a deleted volume are allocated again only when no shard knows them any more.

use std::rc::Rc;
use std::sync::Arc;

use tier0_description::{VOLUME_SIZE, VolumeDescription, is_name};
use tier0_plan::{PlanError, check_fits, new_volume};
use tier0_pool::{CeilingsChange, MetaRecord, Volume as VolumeRecord};
use tier0_units::{ByteCount, SectorCount, WriteCache, counted};
use tier0_world::sync::oneshot;

use super::Volumes;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::request::ShardRequest;
use crate::message::volumes::VolumesCommand;
use crate::report::to_group;

/// A volume that an administrator means.
pub(crate) struct Meant {
    pub(crate) pool: usize,
    pub(crate) record: VolumeRecord,
    /// Its number in the array.
    pub(crate) number: u32,
}

impl Volumes {
    pub(crate) async fn create_volume(
        self: &Rc<Self>,
        pool: Option<&str>,
        name: &str,
        size: ByteCount,
        thin: bool,
        write_cache: WriteCache,
        group: Option<String>,
    ) -> Done {
        let pool = self.pool_meant(pool)?;
        let _turn = self.turn.acquire(1).await;
        check_size(size)?;
        self.check_is_new(name)?;
        let description = VolumeDescription {
            name: name.to_owned(),
            pool,
            sectors: SectorCount::in_bytes(size),
            thin,
            write_cache: Some(write_cache),
            read_cache: None,
            place: None,
            group,
            ceilings: CeilingsChange::default(),
            weight: None,
        };
        let core = self.core(pool);
        let id = self.new_id();
        let records = {
            let state = core.metadata.state();
            check_fits(&state, &description).map_err(no_room)?;
            new_volume(&state, &description, id)
        };
        core.metadata.commit(records).await.map_err(AdminError::from)?;
        let record = core.metadata.state().volumes().find(|volume| volume.id == id).cloned();
        let record = record.ok_or_else(|| AdminError::failed("the volume was deleted meanwhile"))?;
        self.add_volume(pool, &record).await?;
        Ok(format!("created volume {name} ({size})"))
    }

    /// Tells every shard of a volume, then hosts.
    pub(crate) async fn add_volume(&self, pool: usize, record: &VolumeRecord) -> Result<(), AdminError> {
        let number = self.number_volume(pool, record.number);
        let caching = self.core(pool).metadata.state().caching(record);
        let add = |reply| VolumesCommand::Add { number, pool, record: record.clone(), caching, reply };
        self.command(add).await?;
        self.offer_volume(number).await
    }

    /// Whether a volume can have this name, and no other has it.
    pub(crate) fn check_is_new(&self, name: &str) -> Result<(), AdminError> {
        if !is_name(name) {
            return Err(AdminError::new(format!(
                "{name:?} is not a valid name; use 1 to 64 letters, digits, '-', '_' or '.'"
            )));
        }
        match self.find_volume(name) {
            Some(_) => Err(AdminError::new(format!("volume {name:?} already exists; choose another name"))),
            None => Ok(()),
        }
    }

    pub(crate) async fn resize_volume(self: &Rc<Self>, name: &str, size: ByteCount) -> Done {
        let _turn = self.turn.acquire(1).await;
        check_size(size)?;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        let (now, sectors) = (SectorCount(record.sectors).bytes(), SectorCount::in_bytes(size).0);
        if sectors < record.sectors {
            return Err(AdminError::new(format!(
                "volume {name:?} has {now:#}, and resize makes volumes larger only; \"tier0 volume shrink\" makes it smaller and \
                 discards the data beyond {size:#}"
            )));
        }
        if sectors == record.sectors {
            return Err(AdminError::unchanged(format!("volume {name} already has {now:#}; nothing changed")));
        }
        self.check_grows(pool, &record, sectors)?;
        let resized = MetaRecord::VolumeResized { volume: record.number, sectors };
        self.core(pool).metadata.commit(vec![resized]).await.map_err(AdminError::from)?;
        self.command(|reply| VolumesCommand::Resize { number, sectors, reply }).await?;
        self.offer_volume(number).await?;
        Ok(format!(
            "resized volume {name} from {now:#} to {size}; connected clients see the new size after they reconnect"
        ))
    }

    /// Gives a volume another name. Connections keep the volume that they use; its old name is free for another volume.
    pub(crate) async fn rename_volume(self: &Rc<Self>, name: &str, new: &str) -> Done {
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        if name == new {
            return Err(AdminError::unchanged(format!(
                "volume {name} already has that name; nothing changed"
            )));
        }
        self.check_is_new(new)?;
        let renamed = MetaRecord::VolumeRenamed { volume: record.number, name: new.to_owned() };
        self.core(pool).metadata.commit(vec![renamed]).await.map_err(AdminError::from)?;
        let new: Arc<str> = new.into();
        let rename = |reply| VolumesCommand::Rename { number, name: new.clone(), reply };
        let renamed = self.command(rename).await?;
        renamed.into_iter().collect::<Result<(), String>>().map_err(AdminError::failed)?;
        Ok(format!(
            "renamed volume {name} to {new}; clients stay connected, and reconnect under the new name"
        ))
    }

    /// Whether there is space for what a volume is to grow by. Thin ones take theirs later.
    fn check_grows(&self, pool: usize, volume: &VolumeRecord, sectors: u64) -> Result<(), AdminError> {
        let state = self.core(pool).metadata.state();
        let more = state.extents_of(sectors) - state.extents_of(volume.sectors);
        let free = state.room_in(volume.group);
        if volume.thin || more <= free {
            return Ok(());
        }
        let bytes = |extents: u64| SectorCount(extents * state.geometry().extent_sectors).bytes();
        Err(AdminError::new(format!(
            "volume {:?} cannot grow from {:#} to {:#}: it needs {:#} more, and pool {:?} has {:#} free; grow it by \
             less, add drives (tier0 drive add{}, then tier0 pool grow), or delete other volumes",
            volume.name,
            SectorCount(volume.sectors).bytes(),
            SectorCount(sectors).bytes(),
            bytes(more),
            state.name(),
            bytes(free),
            to_group(&state, volume.group)
        )))
    }

    pub(crate) async fn delete_volume(self: &Rc<Self>, name: &str, force: bool) -> Done {
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        if let Err(error) = self.withdraw_volume(name, number, force).await {
            self.offer_volume(number).await?;
            return Err(error);
        }
        self.command(|reply| VolumesCommand::Close { number, reply }).await?;
        let core = self.core(pool);
        let gone = MetaRecord::VolumeDeleted { volume: record.number };
        if let Err(error) = core.metadata.commit_keeping_slots(vec![gone]).await {
            self.command(|reply| VolumesCommand::Open { number, reply }).await?;
            self.offer_volume(number).await?;
            return Err(error.into());
        }
        let slots = self.command(|reply| VolumesCommand::Forget { number, reply }).await?;
        self.numbers.borrow_mut().remove(&(pool, record.number));
        core.discards.release(&core.metadata, slots.iter().flatten().map(|slot| slot.slot).collect());
        Ok(format!("deleted volume {name}"))
    }

    /// Offers a volume no more.
    ///
    /// # Errors
    /// It is used, and not to be taken from its users: then some shards may have withdrawn it.
    pub(crate) async fn withdraw_volume(
        &self,
        name: &str,
        number: u32,
        force: bool,
    ) -> Result<(), AdminError> {
        let answers = self.command(|reply| VolumesCommand::Withdraw { number, force, reply }).await?;
        let users: usize = answers.into_iter().filter_map(Result::err).sum();
        if users == 0 {
            return Ok(());
        }
        Err(AdminError::new(format!(
            "volume {name:?} is used by {}; disconnect them, or add --force",
            counted(users as u64, "connection")
        )))
    }

    /// Offers a volume to hosts, and tells them what its writes promise.
    pub(crate) async fn offer_volume(&self, number: u32) -> Result<(), AdminError> {
        let volatile = self.is_volatile(number);
        let offered = self.command(|reply| VolumesCommand::Offer { number, volatile, reply }).await?;
        offered.into_iter().collect::<Result<(), String>>().map_err(AdminError::failed)
    }

    /// Whether only a flush makes stable what was written to a volume, by its number in the array.
    fn is_volatile(&self, number: u32) -> bool {
        let numbers = self.numbers.borrow();
        let mut known = numbers.iter().filter(|(_, known)| **known == number).map(|(place, _)| *place);
        known.next().is_some_and(|(pool, volume)| {
            let state = self.core(pool).metadata.state();
            state.volume(volume).is_some_and(|volume| state.caching(volume).write == WriteCache::Volatile)
        })
    }

    /// Orders something of every shard; they end only with the array.
    pub(crate) async fn command<T>(
        &self,
        command: impl Fn(oneshot::Sender<T>) -> VolumesCommand,
    ) -> Result<Vec<T>, AdminError> {
        let answers = self.ask_every(|reply| ShardRequest::Volumes(command(reply))).await;
        answers.into_iter().collect::<Option<_>>().ok_or_else(|| AdminError::failed("the array is ending"))
    }

    pub(crate) fn volume_meant(&self, name: &str) -> Result<Meant, AdminError> {
        self.pools_meant(None)?;
        self.find_volume(name)
            .ok_or_else(|| AdminError::new(format!("no volume {name:?}; \"tier0 status\" lists the volumes")))
    }

    pub(crate) fn find_volume(&self, name: &str) -> Option<Meant> {
        (0..self.pools.len()).find_map(|pool| {
            let record = self.core(pool).metadata.state().volume_named(name)?.clone();
            let number = self.number_of(pool, record.number)?;
            Some(Meant { pool, record, number })
        })
    }

    /// The number in the array of a volume of a pool.
    pub(crate) fn number_of(&self, pool: usize, volume: u32) -> Option<u32> {
        self.numbers.borrow().get(&(pool, volume)).copied()
    }

    /// The next number in the array, for a volume of a pool.
    pub(crate) fn number_volume(&self, pool: usize, volume: u32) -> u32 {
        let number = self.ever.replace(self.ever.get() + 1);
        self.numbers.borrow_mut().insert((pool, volume), number);
        number
    }
}

/// Why a volume does not fit a pool that serves, and can grow.
fn no_room(error: PlanError) -> AdminError {
    let PlanError::NoSpace { volume, size, place, free } = error else { return error.into() };
    AdminError::new(format!(
        "volume {volume:?} ({size:#}) does not fit in {place}, which has {free:#} free; make it smaller or thin \
         (--thin), add drives (tier0 drive add, then tier0 pool grow), or delete other volumes"
    ))
}

pub(crate) fn check_size(size: ByteCount) -> Result<(), AdminError> {
    VOLUME_SIZE.check(size).map_err(AdminError::new)
}
