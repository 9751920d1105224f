//! Everything that may be a drive of an array, open: what the file names, what lies in the directories to search, and what
//! the labels of those remember.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tier0_pool::metadata::{FoundPool, Standing, survey_without};
use tier0_world::World;
use uuid::Uuid;

use super::assemble::guarded;
use super::media::{Opened, Unopened, plain};
use super::{Medium, OpenOptions, in_real_world};
use crate::{ArrayError, Description};

/// Everything that may be a drive of an array, open.
pub(super) struct Opening {
    pub(super) media: Vec<Arc<Medium>>,
    /// What is to be told of what could not be opened.
    pub(super) warnings: Vec<String>,
    /// What may be a member and could not be opened.
    pub(super) unopened: Vec<Unopened>,
}

impl Opening {
    /// Opens the drives of a description, and where labels remember members that it does not name.
    pub(super) fn of(description: &Description, options: &OpenOptions) -> Result<Opening, ArrayError> {
        let mut opened = Opened::of(description, options)?;
        // Drives that are found so may know of others, which joined later.
        while opened.open_more(description)? {}
        let Opened { media, warnings, unopened, .. } = opened;
        Ok(Opening { media, warnings, unopened })
    }
}

impl Opened {
    /// Opens drives where labels remember them; whether any was found.
    fn open_more(&mut self, description: &Description) -> Result<bool, ArrayError> {
        let remembered = in_real_world({
            let (media, wanted) = (self.media.clone(), description.clone());
            |world| async move { remembered(&world, &media, &wanted).await }
        })??;
        let Remembered { missing, moved, members } = remembered;
        // Copies remember where their originals lay: those are another array by now.
        let is_copy = !missing.is_empty() && !moved.is_empty() && {
            let Opened { media, unopened, .. } = self.originals(&moved)?;
            // Whoever has it open serves it.
            !unopened.is_empty()
                || in_real_world(|world| async move { hold_any(&world, &media, &members).await })??
        };
        if is_copy {
            self.warnings.extend(missing.iter().map(|(name, path)| {
                format!(
                    "drive {name:?} is not looked for at {path:?}, where it was last: the drives here are copies of others, \
                     which lie there too, and a copy leaves the original alone"
                )
            }));
            return Ok(false);
        }
        self.open_remembered(missing)
    }
}

/// What labels remember of where the members of the description's pools lie, by name.
struct Remembered {
    /// Those that are not there.
    missing: Vec<(String, PathBuf)>,
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
    let (mut missing, mut moved, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for member in remembered {
        let known = (member.member.name.clone(), PathBuf::from(&member.member.path));
        match &member.drive {
            None if member.standing == Standing::Missing => missing.push(known),
            Some(drive) if !is_same_place(Path::new(&drive.info().name), &known.1) => {
                moved.push(known);
                ids.push(member.member.id);
            }
            _ => {}
        }
    }
    Ok(Remembered { missing, moved, members: ids })
}

/// Whether drives hold any of these members.
async fn hold_any(world: &World, media: &[Arc<Medium>], members: &[Uuid]) -> Result<bool, ArrayError> {
    let found = survey_without(guarded(world, media)?, &[]).await;
    let there = found.pools.iter().flat_map(|pool| &pool.members).filter(|member| member.drive.is_some());
    Ok(there.into_iter().any(|member| members.contains(&member.member.id)))
}

fn is_same_place(one: &Path, other: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(one) == absolute(other) || plain(one) == plain(other)
}
