//! Opening files and devices that are to join a running array.

use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{Either, select};
use tier0_control::{
    Answer, Damage, DriveOpener, DriveSource, JoiningMedium, NewDrive, NotOpened, OtherPlace, RelocatedDrive,
};
use tier0_description::{DriveDescription, class};
use tier0_drive::OpenError;
use tier0_drive::guard::Health;
use tier0_pool::metadata::{superblock, survey};
use tier0_units::{Nanos, counted};
use tier0_world::World;
use tier0_world::sync::oneshot;
use uuid::Uuid;

use crate::ArrayError;
use crate::open::medium::guarded_drive;
use crate::open::{Medium, NewMedium, Owner, check_blank, drive_at, open_new_medium};

/// How long a drive that is to join may take to be opened and looked at.
const OPEN_LIMIT: Nanos = Nanos::from_secs(30);
/// How often one who waits for another's look tries again.
const TURN: Nanos = Nanos::from_millis(5);

/// Opens files and devices that are to join a running array.
pub(crate) struct MediumOpener {
    pub(crate) world: World,
    /// Drives that this process has open, those that were given up and not removed included: no other process can open them.
    pub(crate) known: Rc<RefCell<Vec<Arc<Medium>>>>,
    /// Whether it is being asked what lies at paths.
    pub(crate) is_asking: Arc<AtomicBool>,
    /// Whether it is being looked where drives lie.
    pub(crate) is_looking: Arc<AtomicBool>,
}

/// A file system that does not answer holds up one thread, whoever else asks: the turn of that thread.
struct Turn(Arc<AtomicBool>);

impl Turn {
    /// None while another thread has it.
    fn take(taken: &Arc<AtomicBool>) -> Option<Turn> {
        (!taken.swap(true, Ordering::Relaxed)).then(|| Turn(taken.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl DriveOpener for MediumOpener {
    fn find(&self, member: Uuid) -> Answer<'_, Option<PathBuf>> {
        Box::pin(async move {
            let known = self.known.borrow().clone();
            // One that was moved and joined again is known by its newest path.
            for medium in known.into_iter().rev() {
                let Ok(drive) = guarded_drive(&medium, &self.world) else { continue };
                let limit = pin!(self.world.sleep(OPEN_LIMIT));
                let looked = pin!(superblock::read(&drive));
                if let Either::Left((Ok(Some(found)), _)) = select(looked, limit).await
                    && found.superblock.member == member
                {
                    return medium.moved_to().or_else(|| medium.path());
                }
            }
            None
        })
    }

    fn damaged(&self) -> Vec<(PathBuf, Damage)> {
        displaced_of(&self.known.borrow(), Medium::damage)
    }

    fn relocated(&self) -> Answer<'_, Option<Vec<RelocatedDrive>>> {
        Box::pin(async move {
            // The caller waits as long as it likes.
            let looking = loop {
                match Turn::take(&self.is_looking) {
                    Some(turn) => break turn,
                    None => self.world.sleep(TURN).await,
                }
            };
            let known = self.known.borrow().clone();
            let work = move || {
                let _until_it_ends = looking;
                let moved = displaced_of(&known, Medium::displacement).into_iter().map(|(_, moved)| moved);
                // Drives of the array that have changed places are known by what they hold.
                let is_ours = |path: &Path| known.iter().any(|medium| medium.is_at(path));
                let told = |moved: RelocatedDrive| RelocatedDrive {
                    is_replaced: moved.is_replaced && !is_ours(&moved.from),
                    ..moved
                };
                moved.map(told).collect()
            };
            beside(&self.world, "that was moved", work).await.ok()
        })
    }

    fn gone(&self, paths: Vec<PathBuf>) -> Answer<'_, Vec<PathBuf>> {
        Box::pin(async move {
            let Some(asking) = Turn::take(&self.is_asking) else { return Vec::new() };
            let work = move || {
                let _until_it_ends = asking;
                let is_gone = |path: &PathBuf| {
                    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
                };
                paths.into_iter().filter(is_gone).collect()
            };
            beside(&self.world, "that is lost", work).await.unwrap_or_default()
        })
    }

    fn open(&self, description: DriveDescription, force: bool) -> Answer<'_, Result<NewDrive, NotOpened>> {
        let world = self.world.clone();
        Box::pin(async move {
            let class = {
                let description = description.clone();
                beside(&world, &description.name.clone(), move || class::of_place(&description)).await?
            };
            let known = match &description.path {
                Some(path) => self.held_at(&description.name, path).await?,
                None => None,
            };
            if let Some(medium) = known.as_ref().filter(|_| !force) {
                check_held(&world, medium, &description.name).await?;
            }
            let new = match known {
                Some(medium) => NewMedium::of(medium),
                None => open_beside(&world, description, force).await?,
            };
            let drive = guarded_drive(&new.medium, &world)?;
            let medium = Joining { new, world, known: self.known.clone() };
            Ok(NewDrive { drive, medium: Box::new(medium), class })
        })
    }

    fn forget(&self, health: &Arc<Health>) {
        self.known.borrow_mut().retain(|medium| !Arc::ptr_eq(medium.health(), health));
    }
}

/// What a drive lies on that is to join.
struct Joining {
    new: NewMedium,
    world: World,
    /// The opener's.
    known: Rc<RefCell<Vec<Arc<Medium>>>>,
}

impl JoiningMedium for Joining {
    fn path(&self) -> Option<PathBuf> {
        self.new.medium.path()
    }

    fn left_places(
        &self,
        known_at: PathBuf,
        places: Vec<OtherPlace>,
    ) -> Answer<'_, Option<Vec<(OtherPlace, bool)>>> {
        Box::pin(async move {
            let (itself, held) = (self.new.medium.clone(), self.known.borrow().clone());
            let work = move || {
                // One that lies elsewhere than it knows was moved or copied itself.
                if !itself.is_at(&known_at) {
                    return Vec::new();
                }
                let is_held = |place: &OtherPlace| held.iter().any(|medium| medium.is_at(&place.path));
                let left = places.into_iter().filter(|place| !is_held(place));
                let peeked = |place: OtherPlace| {
                    let medium = Medium::peek(&drive_at(place.name.clone(), place.path.clone()), 0);
                    (place, medium.map(Arc::new))
                };
                left.map(peeked).collect::<Vec<_>>()
            };
            let peeked = beside(&self.world, "that was copied", work).await.ok()?;
            let mut left = Vec::new();
            for (place, medium) in peeked {
                let lies_there = match medium {
                    Some(medium) => {
                        matches!(Owner::of(&self.world, &medium).await, Owner::Member(id, _) if id == place.id)
                    }
                    None => false,
                };
                left.push((place, lies_there));
            }
            Some(left)
        })
    }

    fn keep(&mut self) {
        self.new.keep();
    }

    fn hold(&self) {
        let (medium, world) = (self.new.medium.clone(), self.world.clone());
        self.known.borrow_mut().push(medium.clone());
        let reread = async move {
            let (name, limit) = (medium.name().to_owned(), OPEN_LIMIT.0 / Nanos::from_secs(1).0);
            if beside(&world, &name, move || medium.reread_partitions()).await.is_err() {
                tracing::warn!(
                    "the kernel has not read the partition table of drive {name:?} again within {limit} s"
                );
            }
        };
        self.world.spawn(reread).detach();
    }

    fn source(&self) -> Arc<dyn DriveSource> {
        self.new.medium.clone()
    }
}

impl From<ArrayError> for NotOpened {
    fn from(error: ArrayError) -> NotOpened {
        match error {
            ArrayError::Open(OpenError::Missing { .. }) => NotOpened::Missing(error.into()),
            ArrayError::Foreign { .. } => NotOpened::Foreign(error.into()),
            ArrayError::HeldHere { member: Some(member), .. } => {
                NotOpened::HeldHere { member, error: error.into() }
            }
            error => NotOpened::Other(error.into()),
        }
    }
}

impl MediumOpener {
    /// What this process holds of a path, under whatever name. What was deleted or replaced since is not what lies there.
    ///
    /// # Errors
    /// It cannot be told in time, or writes from before it was lost have not ended: they would change what is written next.
    async fn held_at(&self, name: &str, path: &Path) -> Result<Option<Medium>, ArrayError> {
        let held = self.known.borrow().clone();
        let path = path.to_owned();
        let known = {
            let path = path.clone();
            let there = move || held.into_iter().filter(|medium| medium.is_at(&path)).collect::<Vec<_>>();
            beside(&self.world, name, there).await?
        };
        let strays: u64 = known.iter().map(|medium| medium.health().strays()).sum();
        if strays > 0 {
            return Err(ArrayError::Unusable {
                drive: name.to_owned(),
                fact: format!(
                    "has {} pending since before it was lost, which may still change it; try again when they \
                     have completed or the device is gone",
                    counted(strays, "write")
                ),
            });
        }
        Ok(known.first().map(|medium| medium.renewed(name, &path)))
    }
}

/// What has become of drives that do not lie any more where they were opened: that path, and what `became` knows.
fn displaced_of<T>(known: &[Arc<Medium>], became: impl Fn(&Medium) -> Option<T>) -> Vec<(PathBuf, T)> {
    let known = known.iter().filter_map(|medium| Some((medium.path()?, became(medium))));
    let (there, displaced): (Vec<_>, Vec<_>) = known.partition(|(_, became)| became.is_none());
    // A new drive may lie where an old one was.
    let is_free = |path: &PathBuf| there.iter().all(|(taken, _)| taken != path);
    displaced
        .into_iter()
        .filter_map(|(path, became)| Some((path, became?)))
        .filter(|(path, _)| is_free(path))
        .collect()
}

/// What this process holds joins as a blank drive only if it is blank.
///
/// # Errors
/// [`ArrayError::HeldHere`] where it was a drive of an array, else what it holds.
async fn check_held(world: &World, medium: &Medium, name: &str) -> Result<(), ArrayError> {
    let drive = guarded_drive(medium, world)?;
    let limit = pin!(world.sleep(OPEN_LIMIT));
    let Either::Left((found, _)) = select(pin!(survey(vec![drive.clone()])), limit).await else {
        return Err(silent(name));
    };
    match check_blank(found, name, None) {
        Err(ArrayError::Taken { .. }) => {
            let own = superblock::read(&drive).await.ok().flatten();
            let member = own.map(|newest| newest.superblock.member);
            Err(ArrayError::HeldHere { drive: name.to_owned(), member })
        }
        result => result,
    }
}

/// A drive that is to join has not answered in time.
fn silent(drive: &str) -> ArrayError {
    ArrayError::Unusable {
        drive: drive.to_owned(),
        fact: format!(
            "does not respond within {} s; check the system log, and try again",
            OPEN_LIMIT.0 / Nanos::from_secs(1).0
        ),
    }
}

/// Opens a drive beside the shard.
async fn open_beside(
    world: &World,
    description: DriveDescription,
    force: bool,
) -> Result<NewMedium, ArrayError> {
    let name = description.name.clone();
    // The caller may have stopped waiting; then the drive is closed, and a file that was made goes again.
    beside(world, &name, move || open_new_medium(&description, force)).await?
}

/// Does what concerns a drive in a thread of its own: opening, locking and reading it may take as long as the drive likes,
/// and the shard serves hosts meanwhile.
///
/// # Errors
/// It has not ended in time.
async fn beside<T: Send + 'static>(
    world: &World,
    drive: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ArrayError> {
    let (reply, answer) = oneshot::channel();
    let work = move || drop(reply.send(work()));
    let thread = std::thread::Builder::new().name("tier0-open".to_owned());
    thread.spawn(work).map_err(|source| ArrayError::System {
        what: "a thread to open the drive cannot be started".into(),
        source,
    })?;
    let limit = pin!(world.sleep(OPEN_LIMIT));
    match select(answer, limit).await {
        Either::Left((Ok(done), _)) => Ok(done),
        Either::Left((Err(_), _)) | Either::Right(_) => Err(silent(drive)),
    }
}
