//! Members that are missing although what may be them is there: a start does not give up a drive that is only not to be
//! had now, or not recognised. Nothing is written.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tier0_description::Description;
use tier0_pool::Member;
use tier0_pool::metadata::superblock::{self, Superblock};
use tier0_pool::metadata::{FoundPool, Standing};
use tier0_units::{Nanos, SectorCount};
use tier0_world::World;
use uuid::Uuid;

use super::Medium;
use super::assemble::guarded;
use super::media::Unopened;
use crate::ArrayError;

/// How long what another process holds may take to tell who it is.
const LOOK_LIMIT: Nanos = Nanos::from_secs(5);

/// What was opened, and what could not be.
pub(super) struct AtHand<'a> {
    pub(super) media: &'a [Arc<Medium>],
    /// How many of `media`, from the first, the array file names.
    pub(super) named: usize,
    pub(super) unopened: &'a [Unopened],
}

/// Whose a drive is.
pub(crate) enum Owner {
    /// A member's of some array.
    Member(Uuid, String),
    /// No member's that tier0 knows.
    NoArray,
    /// That cannot be told.
    Unknown,
}

impl Owner {
    pub(crate) async fn of(world: &World, medium: &Medium) -> Owner {
        let Ok(drive) = medium.plain_drive(world) else { return Owner::Unknown };
        let limit = pin!(world.sleep(LOOK_LIMIT));
        match select(pin!(superblock::read(&drive)), limit).await {
            Either::Left((Ok(Some(found)), _)) => {
                let Superblock { member, label, .. } = found.superblock;
                Owner::Member(member, label.array)
            }
            Either::Left((Ok(None), _)) => Owner::NoArray,
            _ => Owner::Unknown,
        }
    }
}

impl AtHand<'_> {
    /// Checks that what the array file names answers, unless the array does without it.
    ///
    /// # Errors
    /// One that does not.
    pub(super) fn check_answers(&self, dispensable: &[String]) -> Result<(), ArrayError> {
        let is_needed = |one: &&Unopened| one.named.as_ref().is_some_and(|name| !dispensable.contains(name));
        let Some(silent) = self.unopened.iter().find(is_needed) else { return Ok(()) };
        let drive = silent.named.clone().unwrap_or_default();
        Err(ArrayError::NotOpened { drive, fact: silent.fact.clone() })
    }

    /// Checks that every member of a pool that is missing, and that is not done without, is nowhere.
    ///
    /// # Errors
    /// It may be what could not be opened, or what the array file names and is not recognised.
    pub(super) async fn check_missing(
        &self,
        world: &World,
        description: &Description,
        found: &FoundPool,
    ) -> Result<(), ArrayError> {
        let mut overwritten = found.stale_members(Standing::Overwritten);
        if let Some((member, path, _)) = overwritten.find(|(member, ..)| !found.is_done_without(member)) {
            let (drive, pool) = (member.name.clone(), found.label.name.clone());
            let fact = format!(
                "the start of {path:?} was overwritten, and perhaps more of it; find out what wrote to it \
                 and restore it, or return the drive once the array runs without it (tier0 drive rejoin)"
            );
            return Err(ArrayError::Unrecognised { drive, pool, fact });
        }
        let missing = found.standing(Standing::Missing).map(|(_, member)| member);
        for member in missing.filter(|member| !found.is_done_without(member)) {
            self.check_opened(world, member).await?;
            self.check_whole(world, found, member).await?;
            self.check_recognised(world, description, found, member).await?;
        }
        Ok(())
    }

    /// A member that is missing because it could not be opened is not gone.
    async fn check_opened(&self, world: &World, member: &Member) -> Result<(), ArrayError> {
        for one in self.unopened {
            let fact = match one.is_at(&member.path) {
                true => one.fact.clone(),
                false if self.may_be(world, one, member).await => {
                    format!(
                        "drive {:?} is missing, and may be the one that cannot be opened: {}",
                        member.name, one.fact
                    )
                }
                false => continue,
            };
            return Err(ArrayError::NotOpened { drive: member.name.clone(), fact });
        }
        Ok(())
    }

    async fn may_be(&self, world: &World, one: &Unopened, member: &Member) -> bool {
        let Some(seen) = &one.seen else { return true };
        match Owner::of(world, seen).await {
            Owner::Member(id, _) => id == member.id,
            Owner::NoArray => false,
            Owner::Unknown => true,
        }
    }

    /// A member that has shrunk is not recognised, wherever it lies.
    async fn check_whole(&self, world: &World, found: &FoundPool, member: &Member) -> Result<(), ArrayError> {
        for medium in self.media {
            let (has, had) = (medium.base_sectors(), SectorCount(member.sectors));
            let is_it = has < had
                && matches!(Owner::of(world, medium).await, Owner::Member(id, _) if id == member.id);
            if is_it {
                let fact = format!(
                    "it is at {:?} and has shrunk from {:#} to {:#}; restore its size",
                    medium.path().unwrap_or_default(),
                    had.bytes(),
                    has.bytes()
                );
                let (drive, pool) = (member.name.clone(), found.label.name.clone());
                return Err(ArrayError::Unrecognised { drive, pool, fact });
            }
        }
        Ok(())
    }

    /// What lies where the array file has a member is that member, or blank, or another one of the array.
    async fn check_recognised(
        &self,
        world: &World,
        description: &Description,
        found: &FoundPool,
        member: &Member,
    ) -> Result<(), ArrayError> {
        let named = self.media[..self.named].iter();
        let mut named = named.filter(|medium| medium.name() == member.name);
        let Some(medium) = named.next() else { return Ok(()) };
        let at = medium.path().unwrap_or_default();
        let (has, had) = (medium.base_sectors(), SectorCount(member.sectors));
        let owner = Owner::of(world, medium).await;
        let fact = match owner {
            Owner::Member(id, array) if id != member.id && array == description.name => return Ok(()),
            Owner::Member(id, array) if id != member.id => {
                format!("{at:?}, its path in the array file, belongs to array {array:?}; correct the path")
            }
            Owner::NoArray | Owner::Unknown if has < had => format!(
                "{at:?}, its path in the array file, has no readable identity and holds {:#}, but the drive \
                 held {:#}; restore its size if it has shrunk, or correct the path if it is something else",
                has.bytes(),
                had.bytes()
            ),
            Owner::NoArray if is_blank(world, medium).await => return Ok(()),
            Owner::NoArray => format!(
                "{at:?}, its path in the array file, holds data that is not tier0's; correct the path if it \
                 is another drive"
            ),
            Owner::Unknown => format!(
                "{at:?}, its path in the array file, has no readable identity: its superblocks are damaged \
                 or unreadable; correct the path if it is another drive"
            ),
            // It is there and was left out by its history.
            Owner::Member(..) => return Ok(()),
        };
        let (drive, pool) = (member.name.clone(), found.label.name.clone());
        Err(ArrayError::Unrecognised { drive, pool, fact })
    }

    /// What may be of this array, or is named by its file: the rest is let go, for others may need it.
    pub(super) async fn of_array(&self, world: &World, array: &str) -> Vec<Arc<Medium>> {
        let mut own: Vec<Arc<Medium>> = self.media[..self.named].to_vec();
        for medium in &self.media[self.named..] {
            if matches!(Owner::of(world, medium).await, Owner::Member(_, of) if of == array) {
                own.push(medium.clone());
            }
        }
        own
    }
}

async fn is_blank(world: &World, medium: &Arc<Medium>) -> bool {
    let Ok(drives) = guarded(world, std::slice::from_ref(medium)) else { return false };
    let survey = tier0_pool::metadata::survey(drives).await;
    matches!(&survey.others[..], [tier0_pool::metadata::OtherDrive::Blank(_)])
}

/// Whether the array file names what lies at a path.
pub(super) fn is_named(description: &Description, path: &str) -> bool {
    description.drives.iter().any(|drive| drive.path.as_deref() == Some(Path::new(path)))
}
