//! The files and sockets that an array file names besides drives: none is anything else that the array has. The server writes
//! to them, or an administrator takes them away.

use std::path::Path;

use tier0_world::net::PeerAddress;

use super::{Description, DescriptionError, moved_events};

/// The field that names a file, what that is, and where it lies.
type Named<'a> = (&'static str, &'static str, &'a Path);

impl Description {
    /// Whether each file is one thing alone; `file` is the array file's own place.
    pub(super) fn check_files(&self, file: &Path) -> Result<(), DescriptionError> {
        let drives =
            self.drives.iter().filter_map(|drive| Some(("drive.path", "a drive", drive.path.as_deref()?)));
        let mut known: Vec<Named<'_>> = drives.chain([("", "the array's file", file)]).collect();
        let moved = self.events.as_deref().map(moved_events);
        for one in self.named_files() {
            if let Some((_, what, path)) = known.iter().find(|(_, _, path)| *path == one.2) {
                return Err(DescriptionError::Taken { field: one.0, path: path.to_path_buf(), what });
            }
            known.push(one);
        }
        match known.iter().find(|(_, _, path)| moved.as_deref() == Some(*path)) {
            Some((_, what, path)) => Err(DescriptionError::MovedEvents { path: path.to_path_buf(), what }),
            None => Ok(()),
        }
    }

    fn named_files(&self) -> impl Iterator<Item = Named<'_>> {
        let sockets = self.listen.iter().filter_map(|address| match &address.0 {
            PeerAddress::Unix(path) => Some(("nbd.listen", "a socket of nbd.listen", path.as_path())),
            PeerAddress::Tcp(_) => None,
        });
        let others = [
            ("array.witness", "array.witness", self.witness.as_deref()),
            ("array.control", "array.control", self.control.as_deref()),
            ("array.events", "array.events", self.events.as_deref()),
        ];
        sockets.chain(others.into_iter().filter_map(|(field, what, path)| Some((field, what, path?))))
    }
}
