//! Whether a drive that is to be taken back is the original's: a copy of an array remembers where the drives of the original
//! lay, and leaves them alone.

use std::path::{Path, PathBuf};

use tier0_pool::Member;
use tier0_pool::metadata::superblock;
use tier0_units::named;

use super::Membership;
use crate::admin::AdminError;
use crate::membership::opener::{NewDrive, OtherPlace};

/// Whose word it is that a drive lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathSource {
    /// The administrator's, with the verb or in the array file.
    Administrator,
    /// The drives remember it.
    Superblocks,
}

impl Membership {
    /// Checks that a drive which lies at `path` and is to be taken back as `name` is not the original's.
    ///
    /// # Errors
    /// It knows members that serve here from places where those lie too, or from places where they do not lie any more, and
    /// the administrator has not named its path.
    pub(crate) async fn check_is_no_original(
        &self,
        number: usize,
        (name, path): (&str, &Path),
        new: &NewDrive,
        said: PathSource,
    ) -> Result<(), AdminError> {
        let Ok(Some(found)) = superblock::read(&new.drive).await else { return Ok(()) };
        let own = found.superblock;
        let Some(itself) = own.label.members.iter().find(|known| known.id == own.member) else {
            return Ok(());
        };
        let places = {
            let state = self.core(number).metadata.state();
            let serves_elsewhere = |known: &&Member| {
                let is_it =
                    |here: &Member| here.is_active() && here.id == known.id && here.path != known.path;
                !known.path.is_empty() && state.members().iter().any(is_it)
            };
            let place = |known: &Member| OtherPlace {
                name: known.name.clone(),
                id: known.id,
                path: PathBuf::from(&known.path),
            };
            own.label.members.iter().filter(serves_elsewhere).map(place).collect::<Vec<_>>()
        };
        if places.is_empty() {
            return Ok(());
        }
        let known_at = PathBuf::from(&itself.path);
        let left = new.medium.left_places(known_at, places).await.ok_or_else(|| {
            AdminError::failed(format!(
                "drive {name:?} records paths of other drives that do not respond, so {path:?} may belong to \
                 the original of which this array is a copy; check those file systems, and try again"
            ))
        })?;
        let copied: Vec<_> =
            left.iter().filter(|(_, lies_there)| *lies_there).map(|(place, _)| place).collect();
        if let Some(first) = copied.first() {
            let names: Vec<_> = copied.iter().map(|place| place.name.clone()).collect();
            return Err(AdminError::new(format!(
                "{path:?} belongs to the array of which this one is a copy: it records {} at {:?}, which \
                 exists too; a copy must not touch the original: copy the drive next to the others and give \
                 its place with --path, or replace {name:?} by a new one (tier0 drive replace); if this \
                 array is the original, {:?} is a leftover of a cloned drive: remove it first",
                named("drive", &names),
                first.path,
                first.path,
            )));
        }
        if let Some((moved, _)) = left.first()
            && said == PathSource::Superblocks
        {
            return Err(AdminError::new(format!(
                "the array was moved or copied since drive {name:?} was lost (drive {:?} was at {:?}), so \
                 its last path {path:?} may belong to the original; if it belongs to this array, confirm with --path",
                moved.name, moved.path
            )));
        }
        Ok(())
    }
}
