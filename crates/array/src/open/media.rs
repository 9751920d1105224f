//! Opening what may be drives of an array. A drive that is not there is gone; one that is there and cannot be opened is
//! not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tier0_drive::OpenError;

use super::{Medium, OpenOptions};
use crate::description::DriveDescription;
use crate::{ArrayError, Description};

/// How long drives may take to be opened: as long as a command may take.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

/// The drives that could be opened, and what is to be told of the others.
pub(super) struct Opened {
    pub(super) media: Vec<Arc<Medium>>,
    pub(super) warnings: Vec<String>,
    /// All paths that were tried, made plain.
    tried: BTreeMap<PathBuf, ()>,
}

/// Whose word it is that a drive lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// The array file names it: it must be opened if it is there.
    ByFile,
    /// It lies in a directory to search, or a drive's label remembers it.
    ByChance,
}

impl Opened {
    /// Opens the drives of the description, and whatever lies in the directories to search.
    ///
    /// # Errors
    /// A drive that the file names is there and cannot be opened, and `options` do not permit to start without it.
    pub(super) fn of(description: &Description, options: &OpenOptions) -> Result<Opened, ArrayError> {
        let mut opened = Opened { media: Vec::new(), warnings: Vec::new(), tried: BTreeMap::new() };
        let named: Vec<DriveDescription> = description.drives.clone();
        opened.open(named, Named::ByFile, options)?;
        let found = opened.search(description)?;
        opened.open(found, Named::ByChance, options)?;
        Ok(opened)
    }

    /// Opens drives where labels remember them; whether any was opened.
    pub(super) fn open_remembered(&mut self, places: Vec<(String, PathBuf)>) -> Result<bool, ArrayError> {
        let before = self.media.len();
        let drives = places.into_iter().map(|(name, path)| drive_at(name, path)).collect();
        self.open(drives, Named::ByChance, &OpenOptions::default())?;
        for medium in &self.media[before..] {
            let path = medium.path().unwrap_or_default();
            let path = path.display();
            self.warnings.push(format!(
                "drive {:?} is not in the array file and was found at {path}, where it was last; \
                 \"tier0 config\" prints the file of what is",
                medium.name()
            ));
        }
        Ok(self.media.len() > before)
    }

    fn search(&self, description: &Description) -> Result<Vec<DriveDescription>, ArrayError> {
        let mut found = Vec::new();
        for directory in &description.search {
            let listing = std::fs::read_dir(directory).map_err(|source| ArrayError::System {
                what: format!("array.search: directory {directory:?} cannot be read"),
                source,
            })?;
            let mut paths: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
            paths.sort();
            let is_drive = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir());
            found.extend(paths.into_iter().filter(is_drive).map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                drive_at(name, path)
            }));
        }
        Ok(found)
    }

    /// Opens drives, each in a thread of its own, so that one that hangs holds up nobody but itself.
    fn open(
        &mut self,
        drives: Vec<DriveDescription>,
        named: Named,
        options: &OpenOptions,
    ) -> Result<(), ArrayError> {
        let mut fresh = |drive: &DriveDescription| {
            let path = drive.path.as_deref().expect("checked: every drive has a path");
            self.tried.insert(plain(path), ()).is_none()
        };
        let drives: Vec<DriveDescription> = drives.into_iter().filter(&mut fresh).collect();
        let (answer, answers) = channel();
        let mut waiting: BTreeMap<usize, DriveDescription> = BTreeMap::new();
        for (number, drive) in drives.into_iter().enumerate() {
            let (answer, description) = (answer.clone(), drive.clone());
            let first = self.media.len();
            let open = move || {
                // Whoever waited may have given up.
                let _ = answer.send((number, Medium::open(&description, first + number)));
            };
            let thread = std::thread::Builder::new().name("tier0-open".to_owned());
            thread.spawn(open).map_err(|source| ArrayError::System {
                what: "a thread to open a drive cannot be started".into(),
                source,
            })?;
            waiting.insert(number, drive);
        }
        #[expect(clippy::disallowed_methods, reason = "drives are opened before there is a world")]
        let end = Instant::now() + OPEN_LIMIT;
        let mut answered = BTreeMap::new();
        while !waiting.is_empty() {
            #[expect(clippy::disallowed_methods, reason = "drives are opened before there is a world")]
            let left = end.saturating_duration_since(Instant::now());
            match answers.recv_timeout(left) {
                Ok((number, result)) => {
                    let drive = waiting.remove(&number).expect("each answers once");
                    answered.insert(number, (drive, result));
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        // In their order, whoever was first: of several that fail always the same is told.
        for (drive, result) in answered.into_values() {
            let medium = self.judge(&drive, result, named, options)?;
            self.media.extend(medium.map(Arc::new));
        }
        for drive in waiting.values() {
            self.warnings.push(format!(
                "drive {:?} does not answer within {} s and counts as missing",
                drive.name,
                OPEN_LIMIT.as_secs()
            ));
        }
        Ok(())
    }

    fn judge(
        &mut self,
        drive: &DriveDescription,
        result: Result<Medium, ArrayError>,
        named: Named,
        options: &OpenOptions,
    ) -> Result<Option<Medium>, ArrayError> {
        match result {
            Ok(medium) => Ok(Some(medium)),
            Err(ArrayError::Open(OpenError::Missing { .. })) => Ok(None),
            Err(error) if named == Named::ByChance || options.without.contains(&drive.name) => {
                self.warnings.push(format!("{error}; it is not looked at"));
                Ok(None)
            }
            Err(ArrayError::Open(error @ OpenError::System { .. })) => {
                Err(ArrayError::NotOpened { drive: drive.name.clone(), fact: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }
}

/// A path as the file system knows it.
fn plain(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn drive_at(name: String, path: PathBuf) -> DriveDescription {
    DriveDescription { name, path: Some(path), size: None, ram: None, model: None }
}
