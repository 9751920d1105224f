//! Drives that are to join a running array, and what has become of those that it has: what the control task asks of whoever
//! opens files and devices.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use tier0_description::DriveDescription;
use tier0_drive::DriveHandle;
use tier0_drive::guard::Health;
use tier0_pool::DriveClass;
use tier0_world::World;
use uuid::Uuid;

use crate::admin::AdminError;

/// What an opener answers when it has looked.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Opens drives that are to join a running array.
pub trait DriveOpener {
    /// Where a member lies of all drives that were found at the start; `None` if it is not among them.
    fn find(&self, member: Uuid) -> Answer<'_, Option<PathBuf>>;

    /// Where drives lie, or lay, that are open and were damaged from outside.
    fn damaged(&self) -> Vec<(PathBuf, Damage)>;

    /// Drives that are open, and that do not lie any more where they were opened. `None` if that is not answered in time.
    fn relocated(&self) -> Answer<'_, Option<Vec<RelocatedDrive>>>;

    /// Those of these paths at which nothing lies, as far as that is answered in time.
    fn gone(&self, paths: Vec<PathBuf>) -> Answer<'_, Vec<PathBuf>>;

    /// Opens a drive; a missing file is made where the description has a size. `force` permits that it holds something,
    /// and that it is one that the array has open and has given up. Nothing else in this world waits for it.
    fn open(&self, description: DriveDescription, force: bool) -> Answer<'_, Result<NewDrive, NotOpened>>;

    /// The drive of this health has left, and is about to be closed.
    fn forget(&self, health: &Arc<Health>);
}

/// From what every shard makes its own drive.
pub trait DriveSource: Send + Sync {
    /// A drive in the world of a shard, which shows no failure that may pass.
    ///
    /// # Errors
    /// Why the system does not give it: a sentence.
    fn drive_in(&self, world: &World) -> Result<DriveHandle, String>;
}

/// What a drive that is to join lies on. If its file was made for that, it is removed again when this is dropped, unless it is
/// kept before a label may call the drive a member.
pub trait JoiningMedium {
    /// Where it lies, if not in memory.
    fn path(&self) -> Option<PathBuf>;

    /// Where the drive lies at `known_at`, the path that it knows itself at: those of these places at which lies nothing that
    /// is open here, and whether the member lies there. `None` if that is not answered in time.
    fn left_places(
        &self,
        known_at: PathBuf,
        places: Vec<OtherPlace>,
    ) -> Answer<'_, Option<Vec<(OtherPlace, bool)>>>;

    /// The drive is about to join: its file stays, whatever comes.
    fn keep(&mut self);

    /// The drive is a member from now on, and stays open whatever becomes of it.
    fn hold(&self);

    /// For the shards.
    fn source(&self) -> Arc<dyn DriveSource>;
}

/// A drive that is to join.
pub struct NewDrive {
    /// As the control task's world has it.
    pub drive: DriveHandle,
    /// What it lies on; what was made for it goes with this if it does not join.
    pub medium: Box<dyn JoiningMedium>,
    /// What kind of drive it is, where something tells.
    pub class: Option<DriveClass>,
}

/// Why a drive that is to join is not opened.
#[derive(Debug)]
pub enum NotOpened {
    /// Nothing lies there.
    Missing(AdminError),
    /// What lies there holds something that is not tier0's.
    Foreign(AdminError),
    /// What lies there is a drive that this process has open and does without.
    HeldHere {
        /// Which member it says that it is.
        member: Uuid,
        /// What an administrator is told who cannot be told more.
        error: AdminError,
    },
    /// Something else.
    Other(AdminError),
}

impl From<NotOpened> for AdminError {
    fn from(why: NotOpened) -> AdminError {
        let (NotOpened::Missing(error)
        | NotOpened::Foreign(error)
        | NotOpened::HeldHere { error, .. }
        | NotOpened::Other(error)) = why;
        error
    }
}

/// What was done to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Its file has no name any more.
    Deleted {
        /// Whether another file has it.
        is_replaced: bool,
    },
    /// What lies below ends before the size that it had when it was opened.
    CutShort,
}

/// A drive that serves, and that the path at which it was opened does not lead to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelocatedDrive {
    /// Where it was opened.
    pub from: PathBuf,
    /// Where it lies now, if a path is known that leads to it.
    pub to: Option<PathBuf>,
    /// Whether something else lies where it was opened.
    pub is_replaced: bool,
}

/// Where a drive knows a member that serves here from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherPlace {
    /// The member's name.
    pub name: String,
    /// Its identity.
    pub id: Uuid,
    /// The place.
    pub path: PathBuf,
}
