//! Everything that may be a drive of an array, open: what the file names, what lies in the directories to search, and what
//! the labels of those remember.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tier0_description::names::drives;
use tier0_description::{Description, DriveDescription, plain};
use tier0_pool::metadata::{FoundPool, Standing, survey_without};
use tier0_world::World;
use uuid::Uuid;

use super::assemble::guarded;
use super::media::{Opened, Unopened};
use super::{Medium, OpenOptions, in_real_world, is_path};
use crate::ArrayError;

/// Everything that may be a drive of an array, open.
pub(super) struct Opening {
    pub(super) media: Vec<Arc<Medium>>,
    /// What is to be told of what could not be opened.
    pub(super) warnings: Vec<String>,
    /// What may be a member and could not be opened.
    pub(super) unopened: Vec<Unopened>,
    /// How many of `media`, from the first, the array file names.
    pub(super) named: usize,
}

impl Opening {
    /// Opens the drives of a description, and where labels remember members that it does not name.
    ///
    /// # Errors
    /// A drive that the file names cannot be opened, or drives that are missing lie where they were last while others have
    /// moved: those may be copies.
    pub(super) fn of(description: &Description, options: &OpenOptions) -> Result<Opening, ArrayError> {
        let mut opened = Opened::of(description, options)?;
        // Drives that are found so may know of others, which joined later.
        while opened.open_more(description, options)? {}
        let Opened { media, warnings, unopened, named, .. } = opened;
        Ok(Opening { media, warnings, unopened, named })
    }
}

impl Opened {
    /// Opens drives where labels remember them; whether any was found.
    fn open_more(&mut self, description: &Description, options: &OpenOptions) -> Result<bool, ArrayError> {
        let remembered = in_real_world({
            let (media, wanted) = (self.media.clone(), description.clone());
            |world| async move { remembered(&world, &media, &wanted).await }
        })??;
        let Remembered { missing, absent, moved, members } = remembered;
        // Copies remember where their originals lay: those are another array by now.
        if missing.is_empty() || moved.is_empty() {
            let missing: Vec<_> = missing.into_iter().map(|(name, path, _)| (name, path)).collect();
            let absent = if missing.is_empty() { Vec::new() } else { absent };
            return self.open_remembered(&missing, absent, description);
        }
        if self.lie_at(&moved, &members)? {
            self.warnings.extend(missing.iter().map(|(name, path, _)| {
                format!(
                    "drive {name:?} is not used from its last path {path:?}: the drives here are copies, \
                     whose originals are there too, and a copy must not touch the original"
                )
            }));
            return Ok(false);
        }
        self.check_left_behind(missing, &moved, options)?;
        Ok(false)
    }

    /// Whether these members lie, or something that is in use lies, at those places.
    fn lie_at(&self, places: &[(String, PathBuf)], members: &[Uuid]) -> Result<bool, ArrayError> {
        let Opened { media, unopened, .. } = self.originals(places)?;
        let members = members.to_vec();
        // A process that has it open serves it.
        Ok(!unopened.is_empty()
            || in_real_world(|world| async move { hold_any(&world, &media, &members).await })??)
    }

    /// Where drives have moved they may be copies, and what lies where a missing one was last may be the original's, also
    /// where nothing is left of the others there. Only the administrator knows: it is not used.
    fn check_left_behind(
        &mut self,
        missing: Vec<(String, PathBuf, Uuid)>,
        moved: &[(String, PathBuf)],
        options: &OpenOptions,
    ) -> Result<(), ArrayError> {
        for (drive, path, member) in missing {
            if !self.lie_at(&[(drive.clone(), path.clone())], &[member])? {
                continue;
            }
            if !options.is_without(&drive, &path) {
                let moved = drives(moved.iter().map(|(name, _)| name.as_str()));
                return Err(ArrayError::LeftBehind { drive, path, moved });
            }
            self.warnings.push(format!("drive {drive:?} is at its last path {path:?}, and is not used"));
        }
        Ok(())
    }
}

impl Opening {
    /// The drives to do without, each that was given by a path by that of what lies there, or by the name of what the array
    /// file has there and cannot be opened.
    ///
    /// # Errors
    /// A path at which nothing lies.
    pub(super) fn without(
        &self,
        description: &Description,
        asked: &[String],
    ) -> Result<Vec<String>, ArrayError> {
        let known = |path: &Path| {
            let mut media = self.media.iter().filter_map(|medium| medium.path());
            let at = media.find(|at| is_same_place(at, path)).and_then(|at| at.to_str().map(str::to_owned));
            let mut unopened = self.unopened.iter().flat_map(|one| &one.paths);
            let is_unopened = unopened.any(|at| is_same_place(at, path));
            let is_there = |drive: &&DriveDescription| {
                is_unopened && drive.path.as_deref().is_some_and(|at| is_same_place(at, path))
            };
            at.or_else(|| description.drives.iter().find(is_there).map(|drive| drive.name.clone()))
        };
        let found = |one: &String| match is_path(one) {
            true => known(Path::new(one)).ok_or_else(|| ArrayError::NothingThere { path: one.clone() }),
            false => Ok(one.clone()),
        };
        asked.iter().map(found).collect()
    }
}

/// What labels remember of where the members of the description's pools lie, by name.
struct Remembered {
    /// Those that should serve and are not there.
    missing: Vec<(String, PathBuf, Uuid)>,
    /// Those that serve no more and are not there: what is missing may lie where they were.
    absent: Vec<(String, PathBuf)>,
    /// Those that are there, at another place: where they were.
    moved: Vec<(String, PathBuf)>,
    /// Who those are.
    members: Vec<Uuid>,
}

/// Where labels remember members of the description's pools.
async fn remembered(
    world: &World,
    media: &[Arc<Medium>],
    description: &Description,
) -> Result<Remembered, ArrayError> {
    let found = survey_without(guarded(world, media)?, &[]).await;
    let ours = |pool: &&FoundPool| {
        pool.label.array == description.name
            && description.pools.iter().any(|one| one.name == pool.label.name)
    };
    let members = found.pools.iter().filter(ours).flat_map(|pool| &pool.members);
    let remembered = members.filter(|member| !member.member.path.is_empty());
    let (mut missing, mut absent, mut moved, mut ids) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for member in remembered {
        let known = (member.member.name.clone(), PathBuf::from(&member.member.path));
        match &member.drive {
            None if member.standing == Standing::Missing => {
                missing.push((known.0, known.1, member.member.id));
            }
            None if matches!(member.standing, Standing::Lost | Standing::Removed) => absent.push(known),
            Some(drive) if !is_same_place(Path::new(&drive.info().name), &known.1) => {
                moved.push(known);
                ids.push(member.member.id);
            }
            _ => {}
        }
    }
    Ok(Remembered { missing, absent, moved, members: ids })
}

/// Whether drives hold any of these members.
async fn hold_any(world: &World, media: &[Arc<Medium>], members: &[Uuid]) -> Result<bool, ArrayError> {
    let found = survey_without(guarded(world, media)?, &[]).await;
    let there = found.pools.iter().flat_map(|pool| &pool.members).filter(|member| member.drive.is_some());
    Ok(there.into_iter().any(|member| members.contains(&member.member.id)))
}

pub(super) fn is_same_place(one: &Path, other: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(one) == absolute(other) || plain(one) == plain(other)
}
