//! Whether a start would find what a running array has open: what was moved, deleted, replaced or overwritten under a server
//! shows only when the array starts again. Nothing is locked and nothing is written.

use std::path::PathBuf;
use std::sync::Arc;

use tier0_description::Description;
use tier0_description::facts::{DriveFacts, DriveState, PoolFacts};
use tier0_world::World;
use uuid::Uuid;

use super::media::{drive_at, each};
use super::missing::Owner;
use super::{Medium, in_real_world};
use crate::ArrayError;

/// A drive that serves, and that a start now would not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Displaced {
    /// Its identity.
    pub id: Uuid,
    /// The fact and the remedy.
    pub text: String,
    /// Whether it is certain that a start would not find it.
    pub is_certain: bool,
}

/// A drive that serves, and where it should lie.
struct Place {
    name: String,
    id: Uuid,
    path: PathBuf,
    /// What to do if it is not there.
    remedy: String,
    /// Whether what lies there is something else, as the server knows.
    is_replaced: bool,
}

/// Looks at the files and devices of the drives that serve: those that a start with this description would not find.
///
/// # Errors
/// The system has no threads or no world for it.
pub fn look_at_places(description: &Description, facts: &[PoolFacts]) -> Result<Vec<Displaced>, ArrayError> {
    let serving = || serving(facts);
    let mut found: Vec<Displaced> = serving().filter_map(|drive| displaced(description, drive)).collect();
    let is_told = |drive: &DriveFacts| found.iter().any(|one| Some(one.id) == drive.id);
    // One that leaves may have another in its place already.
    let leaves = |drive: &DriveFacts| {
        drive.leaving && serving().any(|other| other.id != drive.id && other.path == drive.path)
    };
    let is_looked_for_elsewhere = |drive: &DriveFacts| {
        drive.moved_from.is_some() && drive.path.as_deref().is_some_and(|to| description.leads_to(to))
    };
    let places =
        serving().filter(|drive| !is_told(drive) && !leaves(drive) && !is_looked_for_elsewhere(drive));
    let places: Vec<Place> = places.filter_map(Place::of).collect();
    let peeks = places.iter().map(|place| {
        let (name, path) = (place.name.clone(), place.path.clone());
        move || (path.exists(), Medium::peek(&drive_at(name, path), 0).map(Arc::new))
    });
    let peeked = each(peeks)?;
    let looked = in_real_world(|world| async move {
        let mut told = Vec::new();
        for (place, peeked) in places.into_iter().zip(peeked) {
            told.extend(look(&world, place, peeked).await);
        }
        told
    })?;
    found.extend(looked);
    Ok(found)
}

/// What the server knows itself: a file that was deleted, or moved to where nothing leads.
fn displaced(description: &Description, drive: &DriveFacts) -> Option<Displaced> {
    let (name, path) = (&drive.name, drive.path.as_deref()?);
    let text = match &drive.moved_from {
        // What lies in its place tells more.
        _ if drive.replaced => return None,
        _ if drive.deleted => format!(
            "drive {name:?}: its file {path:?} was deleted, and exists only while the server runs; do not \
             stop the server: replace the drive (tier0 drive replace)"
        ),
        Some(from) if !description.leads_to(path) => format!(
            "drive {name:?}: its file was moved from {from:?} to {path:?} while in use, and the next start \
             would not find it there; move it back, or correct its path in the array file"
        ),
        _ => return None,
    };
    Some(Displaced { id: drive.id?, text, is_certain: true })
}

/// The drives that serve.
pub(super) fn serving(facts: &[PoolFacts]) -> impl Iterator<Item = &DriveFacts> {
    let drives = facts.iter().flat_map(|pool| &pool.drives);
    drives.filter(|drive| drive.state != DriveState::Lost)
}

/// What lies in a drive's place, if it is not that drive: whether the path is there, and what could be opened.
async fn look(world: &World, place: Place, peeked: Option<(bool, Option<Arc<Medium>>)>) -> Option<Displaced> {
    let (fact, is_certain) = match peeked {
        None => ("does not respond", false),
        Some((false, None)) => ("no longer exists", true),
        Some((true, None)) => ("is not readable by this user, so its identity is unknown", false),
        Some((_, Some(medium))) => match Owner::of(world, &medium).await {
            Owner::Member(id, _) if id == place.id && !place.is_replaced => return None,
            Owner::Member(id, _) if id == place.id => return Some(place.taken_by_a_copy()),
            Owner::Member(..) => ("is now another drive", true),
            Owner::NoArray => ("is no longer a tier0 drive", true),
            Owner::Unknown => ("has no readable identity", false),
        },
    };
    let may = if is_certain { "would" } else { "may" };
    let text = format!(
        "drive {:?}: {:?}, the path where the server opened it, {fact}: the next start {may} miss it; {}",
        place.name, place.path, place.remedy
    );
    Some(Displaced { id: place.id, text, is_certain })
}

impl Place {
    fn of(drive: &DriveFacts) -> Option<Place> {
        let is = drive.path.as_ref()?;
        let remedy = match &drive.moved_from {
            _ if drive.deleted => {
                "do not stop the server, and replace the drive (tier0 drive replace)".to_owned()
            }
            Some(_) => format!("before the server stops, move it back from {is:?}"),
            None if drive.replaced => {
                "before the server stops, undo the rename, link or mount that put it there".to_owned()
            }
            None => "move it back".to_owned(),
        };
        let path = drive.moved_from.as_ref().unwrap_or(is).clone();
        Some(Place { name: drive.name.clone(), id: drive.id?, path, remedy, is_replaced: drive.replaced })
    }

    /// A start takes the copy for the drive, and nothing contradicts it.
    fn taken_by_a_copy(self) -> Displaced {
        let text = format!(
            "drive {:?}: {:?}, the path where the server opened it, is now a copy of it, and the next start \
             would use the copy, without later writes; {}",
            self.name, self.path, self.remedy
        );
        Displaced { id: self.id, text, is_certain: false }
    }
}
