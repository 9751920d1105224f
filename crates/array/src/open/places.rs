//! Whether what a running array has open still lies where it was opened: what was moved, replaced or overwritten under a
//! server shows only when the array starts again. Nothing is locked and nothing is written.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use super::media::{drive_at, each};
use super::missing::Owner;
use super::{Medium, in_real_world};
use crate::ArrayError;
use crate::admin::{DriveFacts, DriveState, PoolFacts};

/// A drive that serves, and where it should lie.
struct Place {
    name: String,
    id: Uuid,
    path: PathBuf,
}

/// Looks at the files and devices of the drives that serve: one sentence for each that is another one now. What is not
/// there at all is told by [`crate::Description::compare`].
///
/// # Errors
/// The system has no threads or no world for it.
pub fn look_at_places(facts: &[PoolFacts]) -> Result<Vec<String>, ArrayError> {
    let places: Vec<Place> = facts.iter().flat_map(|pool| &pool.drives).filter_map(place_of).collect();
    let peeks = places.iter().map(|place| {
        let drive = drive_at(place.name.clone(), place.path.clone());
        move || Medium::peek(&drive, 0).map(Arc::new)
    });
    let peeked = each(peeks)?;
    in_real_world(|world| async move {
        let mut told = Vec::new();
        for (place, peeked) in places.into_iter().zip(peeked) {
            let fact = match peeked {
                None => "does not answer".to_owned(),
                Some(None) => {
                    "cannot be read by this user, so that it is not known whether it is the drive".to_owned()
                }
                Some(Some(medium)) => match Owner::of(&world, &medium).await {
                    Owner::Member(id, _) if id == place.id => continue,
                    Owner::Member(..) => "is another drive by now".to_owned(),
                    Owner::Nobody => "is no drive of tier0 by now".to_owned(),
                    Owner::Unknown => "does not tell who it is".to_owned(),
                },
            };
            told.push(format!(
                "drive {:?}: what lies at {:?}, where the server opened it, {fact}: a start now may miss it; put it back",
                place.name, place.path
            ));
        }
        told
    })
}

fn place_of(drive: &DriveFacts) -> Option<Place> {
    let serves = drive.state != DriveState::Lost;
    let path = drive.path.clone().filter(|path| serves && path.exists())?;
    Some(Place { name: drive.name.clone(), id: drive.id?, path })
}
