//! The files and sockets that an array file names besides drives: none is anything else that the array has. The server writes
//! to them, or an administrator takes them away.

use std::path::Path;

use tier0_world::net::PeerAddress;

use super::{Description, DescriptionError, moved_events};

impl Description {
    /// Whether each file is one thing alone; `file` is the array file's own place.
    pub(super) fn check_files(&self, file: &Path) -> Result<(), DescriptionError> {
        let drives = self.drives.iter().filter_map(|drive| Some(("a drive", drive.path.as_deref()?)));
        let mut known: Vec<(&'static str, &Path)> = drives.chain([("the array file", file)]).collect();
        let moved = self.events.as_deref().map(moved_events);
        for (field, own, path) in self.named_files() {
            if let Some((what, _)) = known.iter().find(|(_, other)| *other == path) {
                return Err(DescriptionError::Taken { field, path: path.to_owned(), what });
            }
            known.push((own, path));
        }
        match known.iter().find(|(_, path)| moved.as_deref() == Some(*path)) {
            Some((what, path)) => Err(DescriptionError::MovedEvents { path: path.to_path_buf(), what }),
            None => Ok(()),
        }
    }

    /// The field that names a file, what that is, and where it lies.
    fn named_files(&self) -> impl Iterator<Item = (&'static str, &'static str, &Path)> {
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
