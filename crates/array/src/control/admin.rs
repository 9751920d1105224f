//! What administrators ask for, carried out.

use std::rc::Rc;

use tier0_pool::{MetaRecord, Volume as VolumeRecord};
use tier0_units::{ByteCount, SectorCount, WriteCache};

use tier0_world::{IoError, World};
use uuid::Uuid;

use super::Control;
use super::drives::NewPlace;
use crate::Volume;
use crate::admin::{AdminError, AdminReply, AdminRequest};
use crate::description::VolumeDescription;
use crate::plan::{check_fits, new_volume};
use crate::shard::Shard;
use crate::upkeep::Order;

pub(super) type Done = Result<String, AdminError>;

impl Control {
    /// Does what an administrator asks.
    pub(crate) async fn administer(self: &Rc<Self>, request: AdminRequest) -> AdminReply {
        let done = match request {
            AdminRequest::Status => return AdminReply::Status(Box::new(self.status().await)),
            AdminRequest::DriveFail { drive } => self.fail_drive(&drive).await,
            AdminRequest::DriveRemove { drive } => self.remove_drive(&drive).await,
            AdminRequest::ScrubStart { pool, rate } => self.begin_scrubs(pool.as_deref(), rate),
            AdminRequest::ScrubStop { pool } => self.end_scrubs(pool.as_deref()),
            AdminRequest::VolumeCache { volume, write_cache } => {
                self.change_cache(&volume, write_cache).await
            }
            AdminRequest::VolumeCreate { pool, name, size, thin, write_cache } => {
                self.create_volume(pool.as_deref(), &name, size, thin, write_cache).await
            }
            AdminRequest::DriveAdd { pool, name, path, size, force } => {
                let place = NewPlace { name, path, size, force };
                self.add_drive(pool.as_deref(), place).await
            }
            AdminRequest::DriveReplace { drive, name, path, size, force } => {
                let place = NewPlace { name, path, size, force };
                self.replace_drive(&drive, place).await
            }
            AdminRequest::PoolGrow { pool } => self.grow(pool.as_deref()).await,
        };
        match done {
            Ok(text) => AdminReply::Done(text),
            Err(error) => AdminReply::Refused(error.to_string()),
        }
    }

    /// The pools that an administrator means: the named one, or all.
    pub(super) fn pools_meant(&self, name: Option<&str>) -> Result<Vec<usize>, AdminError> {
        let protected = (0..self.pools.len()).filter(|number| self.pools[*number].guarded.is_some());
        let meant: Vec<usize> =
            protected.filter(|number| name.is_none_or(|name| self.pools[*number].name == name)).collect();
        match (meant.is_empty(), name) {
            (false, _) => Ok(meant),
            (true, Some(name)) => Err(AdminError::new(format!(
                "there is no pool {name:?} with metadata; \"tier0 status\" lists the pools"
            ))),
            (true, None) => {
                Err(AdminError::new("the array's drives are memory, so there is nothing to administer"))
            }
        }
    }

    /// The one pool that an administrator means.
    pub(super) fn pool_meant(&self, name: Option<&str>) -> Result<usize, AdminError> {
        match self.pools_meant(name)?[..] {
            [only] => Ok(only),
            _ => Err(AdminError::new("the array has several pools; say which with --pool")),
        }
    }

    fn begin_scrubs(self: &Rc<Self>, pool: Option<&str>, rate: Option<ByteCount>) -> Done {
        let started = self
            .pools_meant(pool)?
            .into_iter()
            .filter(|number| self.start_scrub(*number, rate.map(|rate| rate.0)));
        match started.count() {
            0 => Ok("a scrub is going on already; \"tier0 status\" shows how far".to_owned()),
            _ => Ok("the scrub has begun; \"tier0 status\" shows how far".to_owned()),
        }
    }

    fn end_scrubs(&self, pool: Option<&str>) -> Done {
        let stopped = self.pools_meant(pool)?.into_iter().filter(|number| self.stop_scrub(*number));
        match stopped.count() {
            0 => Ok("no scrub is going on".to_owned()),
            _ => Ok("the scrub stops; the next one goes on from here".to_owned()),
        }
    }

    async fn create_volume(
        self: &Rc<Self>,
        pool: Option<&str>,
        name: &str,
        size: ByteCount,
        thin: bool,
        write_cache: WriteCache,
    ) -> Done {
        let number = self.pool_meant(pool)?;
        if size.0 == 0 || !size.0.is_multiple_of(4096) {
            return Err(AdminError::new(format!("a size of {size} does not do; use a multiple of 4KiB")));
        }
        let description = VolumeDescription {
            name: name.to_owned(),
            pool: number,
            sectors: SectorCount::in_bytes(size),
            thin,
            write_cache: Some(write_cache),
        };
        let guarded = self.guarded(number);
        let record = {
            let state = guarded.metadata.state();
            check_fits(&state, &description).map_err(|error| AdminError::new(error.to_string()))?;
            new_volume(&state, &description, self.new_id())
        };
        guarded.metadata.commit(vec![record]).await.map_err(|error| AdminError::new(error.to_string()))?;
        Ok(format!("volume {name} of {size} is created; it is served from the next start on"))
    }

    async fn change_cache(self: &Rc<Self>, name: &str, write_cache: WriteCache) -> Done {
        let unknown = || AdminError::new(format!("there is no volume {name:?}; \"tier0 status\" lists them"));
        let (number, volume) = self
            .pools_meant(None)?
            .into_iter()
            .find_map(|number| {
                let state = self.guarded(number).metadata.state();
                state.volume_named(name).map(|volume| (number, volume.clone()))
            })
            .ok_or_else(unknown)?;
        let array_number = self.first_volume(number) + self.place_of(number, &volume);
        // A stricter promise must not be told before it holds, a laxer one not after.
        let record = MetaRecord::ModeChanged { volume: volume.number, write_cache };
        self.guarded(number)
            .commit(vec![record])
            .await
            .map_err(|error| AdminError::new(error.to_string()))?;
        let order = |reply| Order::SetMode { volume: array_number, mode: write_cache, reply };
        for result in self.ask_all(order).await {
            result
                .unwrap_or(Err(IoError::Gone))
                .map_err(|error| AdminError::new(format!("the log cannot be written: {error}")))?;
        }
        Ok(format!(
            "volume {name}: write cache {write_cache} from now on; clients that are connected were told {} when they came",
            volume.write_cache
        ))
    }

    /// The number in the array of a pool's first volume.
    fn first_volume(&self, number: usize) -> u32 {
        (0..number).map(|pool| self.guarded(pool).metadata.state().volumes().count() as u32).sum()
    }

    fn place_of(&self, number: usize, volume: &VolumeRecord) -> u32 {
        let state = self.guarded(number).metadata.state();
        state.volumes().take_while(|other| other.number != volume.number).count() as u32
    }

    /// The volumes as a shard has them, in the order of pools and numbers.
    pub(crate) fn volumes(&self, shard: &Rc<Shard>) -> Vec<Volume> {
        let mut names = Vec::new();
        for pool in self.pools.iter().filter_map(|pool| pool.guarded.as_ref()) {
            names.extend(pool.metadata.state().volumes().map(|volume| volume.name.clone()));
        }
        let known = shard.volumes.borrow().len();
        (0u32..).zip(names).take(known).map(|(number, name)| Volume::new(shard, number, &name)).collect()
    }

    pub(super) fn new_id(&self) -> Uuid {
        new_id(&self.world, &self.identities)
    }
}

/// A fresh identity: of the world's randomness in virtual time, so that a seed reproduces it.
fn new_id(world: &World, count: &std::cell::Cell<u64>) -> Uuid {
    count.set(count.get() + 1);
    if world.is_virtual() {
        let mut random = world.random(0x1de0_0000 ^ count.get() ^ world.now().0 << 20);
        return Uuid::from_u64_pair(random.bits(), random.bits());
    }
    Uuid::new_v4()
}
