//! What administrators ask for, carried out.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_api::{AdminReply, AdminRequest, EventKind};
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;
use tier0_world::sync::oneshot;
use uuid::Uuid;

use super::Control;
use super::joining::NewPlace;
use super::leaving::Leave;
use crate::admin::{AdminError, described, drive_class_of, reserve_of};

pub(super) type Done = Result<String, AdminError>;

/// For so long a change waits for drives, or space under them, before the administrator is told.
const PAUSED_PATIENCE: Nanos = Nanos::from_secs(5);

impl Control {
    /// Does what an administrator asks, also where the caller stops waiting.
    pub async fn ask(self: &Rc<Self>, request: AdminRequest) -> AdminReply {
        let (reply, answer) = oneshot::channel();
        let control = self.clone();
        self.world.spawn(async move { control.carry_out(request, reply).await }).detach();
        answer.await.expect("every request is answered")
    }

    /// Does what an administrator asks, and answers. A change that waits for drives of a paused pool, or for
    /// space under them, is answered before its end, which an event tells.
    pub(crate) async fn carry_out(
        self: &Rc<Self>,
        request: AdminRequest,
        reply: oneshot::Sender<AdminReply>,
    ) {
        let work = pin!(self.administer(request));
        let paused = pin!(self.has_waited_for(PAUSED_PATIENCE));
        // The client may be gone; then the answer is not needed.
        let ((waits_for, remedy), work) = match select(work, paused).await {
            Either::Left((answer, _)) => {
                let _ = reply.send(answer);
                return;
            }
            Either::Right((waits_for, work)) => (waits_for, work),
        };
        let _ = reply.send(AdminReply::Failed(format!(
            "not completed yet: {waits_for}; {remedy}, and the request continues automatically (its result \
             is an event in \"tier0 status\")"
        )));
        match work.await {
            AdminReply::Refused(text) | AdminReply::Held(text) | AdminReply::Failed(text) => {
                self.tell(self.array_subject(), EventKind::RequestFailed { text });
            }
            AdminReply::Done(_)
            | AdminReply::Status(_)
            | AdminReply::Io(_)
            | AdminReply::Described(_)
            | AdminReply::Objections(_) => {}
        }
    }

    /// Does what an administrator asks.
    async fn administer(self: &Rc<Self>, request: AdminRequest) -> AdminReply {
        let done = match request {
            AdminRequest::Status => return AdminReply::Status(Box::new(self.status().await)),
            AdminRequest::Io => return AdminReply::Io(Box::new(self.io_report().await)),
            AdminRequest::Describe => {
                return AdminReply::Described(self.describe().await.into_iter().map(described).collect());
            }
            AdminRequest::StartWithout { drives } => {
                return AdminReply::Objections(self.refusals_without(&drives));
            }
            AdminRequest::CouldFail { drive } => {
                return AdminReply::Objections(
                    self.refusal_to_fail(&drive).err().iter().map(ToString::to_string).collect(),
                );
            }
            AdminRequest::DriveFail { drive } => self.fail_drive(&drive).await,
            AdminRequest::DriveRejoin { drive, path, in_file, force } => {
                self.rejoin_drive(&drive, path, in_file, force).await
            }
            AdminRequest::DriveRemove { drive, stop: true, .. } => self.keep_drive(&drive).await,
            AdminRequest::DriveRemove { drive, force, .. } => {
                self.remove_drive(&drive, if force { Leave::AtOnce } else { Leave::CopyFirst }).await
            }
            AdminRequest::ScrubStart { pool, rate } => self.begin_scrubs(pool.as_deref(), rate),
            AdminRequest::ScrubStop { pool } => self.end_scrubs(pool.as_deref()),
            AdminRequest::VolumeCache { volume, read, write } => {
                self.set_volume_cache(&volume, read, write).await
            }
            AdminRequest::PoolCache { pool, read, write } => {
                self.set_pool_cache(pool.as_deref(), read, write).await
            }
            AdminRequest::VolumeCreate { pool, name, size, thin, write_cache, group } => {
                self.create_volume(pool.as_deref(), &name, size, thin, write_cache, group).await
            }
            AdminRequest::VolumeClone { volume, name } => self.clone_volume(&volume, &name).await,
            AdminRequest::VolumeResize { volume, size } => self.resize_volume(&volume, size).await,
            AdminRequest::VolumeShrink { volume, size, force } => {
                self.shrink_volume(&volume, size, force).await
            }
            AdminRequest::VolumeRename { volume, name } => self.rename_volume(&volume, &name).await,
            AdminRequest::VolumeDelete { volume, force } => self.delete_volume(&volume, force).await,
            AdminRequest::DriveAdd { pool, name, path, size, force, group, class } => {
                let place = NewPlace { name, path, size, force, class: class.map(drive_class_of) };
                self.add_drive(pool.as_deref(), group.as_deref(), place).await
            }
            AdminRequest::DriveReplace { drive, name, path, size, force, class } => {
                let place = NewPlace { name, path, size, force, class: class.map(drive_class_of) };
                self.replace_drive(&drive, place).await
            }
            AdminRequest::PoolGrow { pool, stop: true } => self.stop_growing(pool.as_deref()),
            AdminRequest::PoolGrow { pool, stop: false } => self.grow(pool.as_deref()).await,
            AdminRequest::PoolLog { pool, drives } => self.move_log(pool.as_deref(), &drives),
            AdminRequest::PoolFlashCache { pool, size, drives } => {
                self.set_flash_cache(pool.as_deref(), size, &drives).await
            }
            AdminRequest::PoolReserve { pool, reserve } => {
                self.set_reserve(pool.as_deref(), reserve_of(reserve))
            }
            AdminRequest::PoolRestripe { pool, rate, stop } => self.restripe(pool.as_deref(), rate, stop),
        };
        match done {
            Ok(text) => {
                // Who looks at the events later wants to know what was asked for.
                self.tell(self.array_subject(), EventKind::RequestDone { text: text.clone() });
                AdminReply::Done(text)
            }
            Err(error) => error.into(),
        }
    }

    /// The pools that an administrator means: the named one, or all.
    pub(super) fn pools_meant(&self, name: Option<&str>) -> Result<Vec<usize>, AdminError> {
        let is_meant = |number: &usize| name.is_none_or(|name| self.pools[*number].name == name);
        let meant: Vec<usize> = (0..self.pools.len()).filter(is_meant).collect();
        match name {
            _ if !meant.is_empty() => Ok(meant),
            Some(name) if !self.pools.is_empty() => {
                Err(AdminError::new(format!("no pool {name:?}; \"tier0 status\" lists the pools")))
            }
            _ => Err(AdminError::new(
                "the array is in memory only and cannot be administered; edit the array file and restart it",
            )),
        }
    }

    /// The one pool that an administrator means.
    pub(super) fn pool_meant(&self, name: Option<&str>) -> Result<usize, AdminError> {
        match self.pools_meant(name)?[..] {
            [only] => Ok(only),
            _ => Err(AdminError::new("the array has several pools; choose one with --pool")),
        }
    }

    fn begin_scrubs(self: &Rc<Self>, pool: Option<&str>, rate: Option<ByteCount>) -> Done {
        if rate == Some(ByteCount(0)) {
            return Err(AdminError::new(
                "a scrub at rate 0 would never end; omit the rate for full speed, or stop the scrub (--stop)",
            ));
        }
        let started = self
            .pools_meant(pool)?
            .into_iter()
            .filter(|number| self.start_scrub(*number, rate.map(|rate| rate.0)));
        match started.count() {
            0 if self.pools_meant(pool)?.into_iter().any(|number| self.is_scrub_stopping(number)) => {
                Err(AdminError::new("the previous scrub is still stopping; try again in a moment"))
            }
            0 if rate.is_some() => Err(AdminError::new(
                "a scrub is already running and keeps its rate; to change it, stop the scrub (--stop) and \
                 start it again",
            )),
            0 => {
                Err(AdminError::unchanged("a scrub is already running; \"tier0 status\" shows its progress"))
            }
            _ => Ok("scrub started; \"tier0 status\" shows its progress".to_owned()),
        }
    }

    fn end_scrubs(&self, pool: Option<&str>) -> Done {
        let pools = self.pools_meant(pool)?;
        let stopping = pools.iter().filter(|number| self.is_scrub_stopping(**number)).count();
        let stopped = pools.into_iter().filter(|number| self.stop_scrub(*number)).count();
        match stopped - stopping {
            0 if stopping > 0 => Err(AdminError::unchanged("the scrub is already stopping")),
            0 => Err(AdminError::unchanged("no scrub is running; nothing to stop")),
            _ => Ok("scrub stopping; the next one resumes from here".to_owned()),
        }
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
