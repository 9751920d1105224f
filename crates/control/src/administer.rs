//! What administrators ask for, carried out.

use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_api::{AdminReply, AdminRequest, EventKind, GroupDrive};
use tier0_pool::CeilingsChange;
use tier0_units::{Nanos, counted};
use tier0_world::sync::oneshot;

use crate::Control;
use crate::admin::{AdminError, described, drive_class_of, reserve_of};
use crate::context::Done;
use crate::membership::arrival::NewPlace;
use crate::membership::new_group::NewGroup;
use crate::membership::removal::Removal;
use crate::tiering::settings::PinnedPart;

/// For so long a change waits for drives, or space under them, before the administrator is told.
const PAUSED_PATIENCE: Nanos = Nanos::from_secs(5);

impl Control {
    /// Does what an administrator asks, also where the caller stops waiting.
    pub async fn ask(self: &Rc<Self>, request: AdminRequest) -> AdminReply {
        let (reply, answer) = oneshot::channel();
        let control = self.clone();
        self.context.world.spawn(async move { control.carry_out(request, reply).await }).detach();
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
        let paused = pin!(self.repair.has_waited_for(PAUSED_PATIENCE));
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
                self.context.tell(self.context.array_subject(), EventKind::RequestFailed { text });
            }
            AdminReply::Done(_)
            | AdminReply::Status(_)
            | AdminReply::Io(_)
            | AdminReply::TierExplained(_)
            | AdminReply::TierPlanned(_)
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
                return AdminReply::Objections(self.membership.refusals_without(&drives));
            }
            AdminRequest::CouldFail { drive } => {
                return AdminReply::Objections(
                    self.membership.refusal_to_fail(&drive).err().iter().map(ToString::to_string).collect(),
                );
            }
            AdminRequest::TierExplain { volume, offset } => match self.tiering.explain(&volume, offset).await
            {
                Ok(explained) => return AdminReply::TierExplained(Box::new(explained)),
                Err(error) => return error.into(),
            },
            AdminRequest::TierPlan { pool } => match self.tiering.plan(pool.as_deref()) {
                Ok(plan) => return AdminReply::TierPlanned(Box::new(plan)),
                Err(error) => return error.into(),
            },
            AdminRequest::DriveFail { drive } => self.membership.fail_drive(&drive).await,
            AdminRequest::DriveRejoin { drive, path, in_file, force } => {
                self.membership.rejoin_drive(&drive, path, in_file, force).await
            }
            AdminRequest::DriveRemove { drive, stop: true, .. } => self.membership.keep_drive(&drive).await,
            AdminRequest::DriveRemove { drive, force, .. } => {
                self.membership
                    .remove_drive(&drive, if force { Removal::AtOnce } else { Removal::CopyFirst })
                    .await
            }
            AdminRequest::ScrubStart { pool, rate } => self.repair.begin_scrubs(pool.as_deref(), rate),
            AdminRequest::ScrubStop { pool } => self.repair.end_scrubs(pool.as_deref()),
            AdminRequest::VolumeCache { volume, read, write } => {
                self.caches.set_volume_cache(&volume, read, write).await
            }
            AdminRequest::VolumeCeilings { volume, iops_max, mbps_max, burst_seconds } => {
                let change = CeilingsChange { iops_max, mbps_max, burst_seconds };
                self.volumes.set_ceilings(&volume, change).await
            }
            AdminRequest::VolumeWeight { volume, weight } => self.volumes.set_weight(&volume, weight).await,
            AdminRequest::PoolCache { pool, read, write } => {
                self.caches.set_pool_cache(pool.as_deref(), read, write).await
            }
            AdminRequest::VolumePlace { volume, place } => self.tiering.set_place(&volume, place).await,
            AdminRequest::VolumePin { volume, from, to, place, until_unix_s } => {
                let part = PinnedPart { bytes: from.0..to.0, to: place, until_unix_s };
                self.tiering.pin(&volume, part).await
            }
            AdminRequest::VolumeUnpin { volume, from, to } => self.tiering.unpin(&volume, from.0..to.0).await,
            AdminRequest::PoolTier { pool, on, rate } => {
                self.tiering.set_tier(pool.as_deref(), on, rate).await
            }
            AdminRequest::VolumeCreate { pool, name, size, thin, write_cache, group } => {
                self.volumes.create_volume(pool.as_deref(), &name, size, thin, write_cache, group).await
            }
            AdminRequest::VolumeClone { volume, name } => self.volumes.clone_volume(&volume, &name).await,
            AdminRequest::VolumeMigrate { volume, group } => self.tiering.migrate(&volume, &group).await,
            AdminRequest::VolumeResize { volume, size } => self.volumes.resize_volume(&volume, size).await,
            AdminRequest::VolumeShrink { volume, size, force } => {
                self.volumes.shrink_volume(&volume, size, force).await
            }
            AdminRequest::VolumeRename { volume, name } => self.volumes.rename_volume(&volume, &name).await,
            AdminRequest::VolumeDelete { volume, force } => self.volumes.delete_volume(&volume, force).await,
            AdminRequest::DriveAdd { pool, name, path, size, force, group, class } => {
                let place = NewPlace { name, path, size, force, class: class.map(drive_class_of) };
                self.membership.add_drive(pool.as_deref(), group.as_deref(), place).await
            }
            AdminRequest::PoolAddGroup { pool, name, first_name, shape, drives, without_sets, force } => {
                let place = |drive: GroupDrive| NewPlace {
                    name: drive.name,
                    path: drive.path,
                    size: drive.size,
                    force,
                    class: drive.class.map(drive_class_of),
                };
                let drives = drives.into_iter().map(place).collect();
                let new = NewGroup { name, first_name, shape, drives };
                self.add_group(pool.as_deref(), new, without_sets).await
            }
            AdminRequest::PoolRemoveGroup { pool, group, cancel: false } => {
                self.tiering.remove_group(pool.as_deref(), &group).await
            }
            AdminRequest::PoolRemoveGroup { pool, group, cancel: true } => {
                self.tiering.keep_group(pool.as_deref(), &group).await
            }
            AdminRequest::DriveReplace { drive, name, path, size, force, class } => {
                let place = NewPlace { name, path, size, force, class: class.map(drive_class_of) };
                self.membership.replace_drive(&drive, place).await
            }
            AdminRequest::PoolGrow { pool, stop: true } => self.balance.stop_growing(pool.as_deref()),
            AdminRequest::PoolGrow { pool, stop: false } => self.balance.grow(pool.as_deref()).await,
            AdminRequest::PoolLog { pool, drives } => self.caches.move_log(pool.as_deref(), &drives),
            AdminRequest::PoolFlashCache { pool, size, drives } => {
                self.caches.set_flash_cache(pool.as_deref(), size, &drives).await
            }
            AdminRequest::PoolReserve { pool, reserve } => {
                self.space.set_reserve(pool.as_deref(), reserve_of(reserve))
            }
            AdminRequest::PoolRestripe { pool, rate, stop } => {
                self.balance.restripe(pool.as_deref(), rate, stop)
            }
        };
        match done {
            Ok(text) => {
                // Who looks at the events later wants to know what was asked for.
                self.context
                    .tell(self.context.array_subject(), EventKind::RequestDone { text: text.clone() });
                AdminReply::Done(text)
            }
            Err(error) => error.into(),
        }
    }

    /// Adds a group with its drives to a pool, and forms its first sets, or leaves that for later.
    async fn add_group(self: &Rc<Self>, pool: Option<&str>, new: NewGroup, without_sets: bool) -> Done {
        let name = new.name.clone();
        let (number, group) = self.membership.add_group(pool, new).await?;
        if without_sets {
            let drives = self.membership.drives_in_words(number, group);
            let pool = &self.context.pools[number];
            return Ok(format!(
                "pool {} has the group {name} of {drives}, without sets; \"tier0 pool grow\" makes them",
                pool.name
            ));
        }
        let (sets, bytes) = self.balance.form_first_sets(number, group).await.map_err(|error| {
            AdminError::failed(format!(
                "group {name:?} and its drives are in the pool, without sets: {error}"
            ))
        })?;
        let drives = self.membership.drives_in_words(number, group);
        let pool = &self.context.pools[number].name;
        Ok(format!(
            "pool {pool} has the group {name} of {drives}: {} and {bytes}; \"tier0 config\" prints the array file with it",
            counted(sets, "set")
        ))
    }
}
