//! Copies of drives that serve: a start that finds both cannot know which of them the array is, and is refused. Nothing is
//! locked and nothing is written.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use tier0_description::Description;
use tier0_description::facts::{DriveFacts, PoolFacts};

use super::identity::identity;
use super::media::{candidates, drive_at, each};
use super::missing::Owner;
use super::places::serving;
use super::{Medium, in_real_world};
use crate::ArrayError;

/// Why a start with this description would be refused for copies of the drives that serve: a sentence each. What does not
/// answer is taken for none.
///
/// # Errors
/// The system has no threads or no world for it.
pub fn look_for_copies(description: &Description, facts: &[PoolFacts]) -> Result<Vec<String>, ArrayError> {
    let serving: Vec<&DriveFacts> = serving(facts).collect();
    // What lies in their places is looked at in another way.
    let places = serving.iter().flat_map(|drive| drive.path.iter().chain(&drive.moved_from));
    let places: Vec<PathBuf> = places.cloned().collect();
    let looks = places.clone().into_iter().map(|path| move || (identity(&path), path));
    let there: Vec<_> = each(looks)?.into_iter().flatten().collect();
    let own: BTreeSet<_> = there.iter().filter_map(|(identity, _)| *identity).collect();
    // Of one that does not lie in its place, what is found elsewhere may be the drive itdescription.
    let is_in_place = |drive: &&DriveFacts| {
        let lies_at = |path: &PathBuf| there.iter().any(|(found, at)| at == path && found.is_some());
        !drive.replaced && drive.path.as_ref().is_some_and(lies_at)
    };
    let listings =
        each(description.search.iter().cloned().map(|at| move || candidates(&at).unwrap_or_default()))?;
    let named = description.drives.iter().filter_map(|drive| drive.path.clone());
    let elsewhere: BTreeSet<PathBuf> =
        named.chain(listings.into_iter().flatten().flatten()).filter(|path| !places.contains(path)).collect();
    let peeks = elsewhere.into_iter().map(|path| {
        let own = own.clone();
        move || {
            let is_another = identity(&path).is_some_and(|found| !own.contains(&found));
            let medium =
                is_another.then(|| Medium::peek(&drive_at(String::new(), path.clone()), 0)).flatten();
            (path, medium.map(Arc::new))
        }
    });
    let peeked = each(peeks)?.into_iter().flatten();
    let seen: Vec<_> = peeked.filter_map(|(path, medium)| Some((path, medium?))).collect();
    let owners = in_real_world(|world| async move {
        let mut owners = Vec::new();
        for (path, medium) in seen {
            owners.push((path, Owner::of(&world, &medium).await));
        }
        owners
    })?;
    let copy = |(path, owner): (PathBuf, Owner)| {
        let Owner::Member(id, _) = owner else { return None };
        let drive = serving.iter().find(|drive| drive.id == Some(id)).filter(|drive| is_in_place(drive))?;
        Some(format!(
            "{path:?} is a copy of drive {:?}, which is online at {:?}: a start would find both and be \
             refused; move the copy to a place that the array file does not name",
            drive.name,
            drive.path.clone().unwrap_or_default()
        ))
    };
    Ok(owners.into_iter().filter_map(copy).collect())
}
