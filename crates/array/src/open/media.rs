//! Opening what may be drives of an array. A drive that is not there is gone; one that is there and cannot be opened is
//! not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tier0_description::{Description, DriveDescription, plain};
use tier0_drive::OpenError;
use tier0_world::real::each_in_time;

use super::identity::{Identity, identity};
use super::{Medium, OpenOptions};
use crate::ArrayError;

/// The error number of a device into which nothing is inserted, ENOMEDIUM.
const NO_MEDIUM: i32 = 123;
/// How long drives may take to be opened: as long as a command may take.
const OPEN_LIMIT: Duration = Duration::from_secs(30);

/// The drives that could be opened, and what is to be told of the others.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) media: Vec<Arc<Medium>>,
    pub(super) warnings: Vec<String>,
    /// What is there, could not be opened, and may be no drive of the array.
    pub(super) unopened: Vec<Unopened>,
    /// How many of `media`, from the first, the array file names.
    pub(super) named: usize,
    /// All paths that were tried, made plain.
    tried: BTreeSet<PathBuf>,
    /// What lies there, and the first drive that is it.
    known: BTreeMap<Identity, String>,
}

/// Something that is there and could not be opened. Only who knows the array's members can say whether that matters.
#[derive(Clone)]
pub(super) struct Unopened {
    /// As it was named, and as the file system knows it.
    pub(super) paths: [PathBuf; 2],
    /// What the array file calls it, if it names it.
    pub(super) named: Option<String>,
    /// Why not.
    pub(super) fact: String,
    /// What another process holds can still be read.
    pub(super) seen: Option<Arc<Medium>>,
}

impl Unopened {
    /// Whether it lies where a label remembers a drive.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.paths.iter().any(|one| one.as_os_str() == path)
    }
}

/// Whose word it is that a drive lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// The array file names it: it must be opened if it is there.
    ByFile,
    /// It lies in a directory to search, or a drive's label remembers it.
    ByChance,
}

/// What was to be opened.
struct Tried<'a> {
    drive: &'a DriveDescription,
    path: PathBuf,
    /// What can be read of it although it could not be opened.
    seen: Option<Arc<Medium>>,
    named: Named,
}

impl Opened {
    /// Opens the drives of the description, and whatever lies in the directories to search.
    ///
    /// # Errors
    /// A drive that the file names is there and cannot be opened, and `options` do not permit to start without it.
    pub(super) fn of(description: &Description, options: &OpenOptions) -> Result<Opened, ArrayError> {
        let mut opened = Opened::default();
        let named: Vec<DriveDescription> = description.drives.clone();
        opened.open(named, Named::ByFile, options)?;
        opened.named = opened.media.len();
        let found = opened.search(description)?;
        opened.open(found, Named::ByChance, options)?;
        Ok(opened)
    }

    /// What lies where labels remember drives that were found elsewhere: open, and apart from the others.
    pub(super) fn originals(&self, places: &[(String, PathBuf)]) -> Result<Opened, ArrayError> {
        let mut originals =
            Opened { tried: self.tried.clone(), known: self.known.clone(), ..Opened::default() };
        let drives = places.iter().map(|(name, path)| drive_at(name.clone(), path.clone())).collect();
        originals.open(drives, Named::ByChance, &OpenOptions::default())?;
        Ok(originals)
    }

    /// Opens drives where labels remember them, those that are `missing` and those that have left; whether any was opened.
    pub(super) fn open_remembered(
        &mut self,
        missing: &[(String, PathBuf)],
        left: Vec<(String, PathBuf)>,
        description: &Description,
    ) -> Result<bool, ArrayError> {
        let before = self.media.len();
        let places: Vec<(String, PathBuf)> = missing.iter().cloned().chain(left).collect();
        // Before anything is read there: it may hang.
        for (name, path) in &places {
            tracing::info!(drive = name, "not at the path of the array file; trying {}", path.display());
        }
        let drives = places.into_iter().map(|(name, path)| drive_at(name, path)).collect();
        self.open(drives, Named::ByChance, &OpenOptions::default())?;
        // Of one that has left there is nothing to tell.
        let is_missed = |medium: &&Arc<Medium>| missing.iter().any(|(name, _)| name == medium.name());
        for medium in self.media[before..].iter().filter(is_missed) {
            let path = medium.path().unwrap_or_default();
            let (name, path) = (medium.name(), path.display());
            let named = description.drives.iter().find(|named| named.name == name);
            self.warnings.push(match named.and_then(|named| named.path.as_ref()) {
                Some(wrong) => format!(
                    "drive {name:?} is not at {wrong:?} as in the array file, but was found at its last path \
                     {path}; correct its path in the file"
                ),
                None => format!(
                    "drive {name:?} is not in the array file, but was found at its last path {path}; \"tier0 \
                     config\" prints the file with it"
                ),
            });
        }
        Ok(self.media.len() > before)
    }

    fn search(&mut self, description: &Description) -> Result<Vec<DriveDescription>, ArrayError> {
        let listings =
            each(description.search.iter().cloned().map(|directory| move || candidates(&directory)))?;
        let mut found = Vec::new();
        for (directory, listing) in description.search.iter().zip(listings) {
            let Some(listing) = listing else {
                self.warnings.push(format!(
                    "array.search: directory {directory:?} does not respond within {} s and is skipped",
                    OPEN_LIMIT.as_secs()
                ));
                continue;
            };
            let paths = match listing {
                Ok(paths) => paths,
                // Whatever is missing for that is told as missing.
                Err(error) => {
                    self.warnings.push(format!(
                        "array.search: directory {directory:?} cannot be read ({error}) and is skipped; \
                         create it, mount it, or remove it from the list"
                    ));
                    continue;
                }
            };
            found.extend(paths.into_iter().map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                drive_at(name, path)
            }));
        }
        Ok(found)
    }

    fn open(
        &mut self,
        drives: Vec<DriveDescription>,
        named: Named,
        options: &OpenOptions,
    ) -> Result<(), ArrayError> {
        let path_of = |drive: &DriveDescription| drive.path.clone().expect("checked: every drive has a path");
        let paths = each(drives.iter().map(path_of).map(|path| move || (plain(&path), identity(&path))))?;
        let mut fresh = Vec::new();
        for (drive, path) in drives.into_iter().zip(paths) {
            // A link in a drive's place would make that one missing, or busy, which says nothing of the cause.
            if let Some((_, Some(identity))) = path
                && !options.is_without(&drive.name, &path_of(&drive))
                && let Some(first) = self.known.insert(identity, drive.name.clone())
            {
                match named {
                    Named::ByFile => return Err(ArrayError::SameDrive { first, second: drive.name }),
                    // A directory to search may have it under another name too.
                    Named::ByChance => continue,
                }
            }
            match path.map(|(path, _)| path) {
                None => self.note_silent(&drive, named),
                Some(path) if self.tried.insert(path.clone()) => fresh.push((drive, path)),
                Some(_) => {}
            }
        }
        let first = self.media.len();
        let opening = fresh.iter().enumerate().map(|(number, (drive, _))| {
            let drive = drive.clone();
            move || {
                let opened = Medium::open(&drive, first + number);
                // What another process holds can still be read.
                let seen = opened.is_err().then(|| Medium::peek(&drive, 0).map(Arc::new)).flatten();
                (opened, seen)
            }
        });
        let opened = each(opening)?;
        // In their order, whichever was opened first: of several that fail always the same is told.
        for ((drive, path), result) in fresh.into_iter().zip(opened) {
            let Some((result, seen)) = result else {
                self.note_silent(&drive, named);
                continue;
            };
            let medium = self.judge(Tried { drive: &drive, path, seen, named }, result, options)?;
            self.media.extend(medium.map(Arc::new));
        }
        Ok(())
    }

    /// What does not answer may still be the drive: who knows the array's members decides.
    fn note_silent(&mut self, drive: &DriveDescription, named: Named) {
        let fact = format!("drive {:?} does not respond within {} s", drive.name, OPEN_LIMIT.as_secs());
        self.warnings.push(format!("{fact}; skipped"));
        let given = absolute(drive);
        let named = (named == Named::ByFile).then(|| drive.name.clone());
        self.unopened.push(Unopened { paths: [given.clone(), given], named, fact, seen: None });
    }

    fn judge(
        &mut self,
        tried: Tried<'_>,
        result: Result<Medium, ArrayError>,
        options: &OpenOptions,
    ) -> Result<Option<Medium>, ArrayError> {
        let Tried { drive, path, seen, named } = tried;
        match result {
            Ok(medium) => Ok(Some(medium)),
            Err(ArrayError::Open(OpenError::Missing { .. })) => Ok(None),
            // A link to a directory, a terminal, an empty card reader.
            Err(ArrayError::NotADrive { .. }) if named == Named::ByChance => Ok(None),
            Err(ArrayError::Open(OpenError::System { ref source, .. }))
                if named == Named::ByChance && source.raw_os_error() == Some(NO_MEDIUM) =>
            {
                Ok(None)
            }
            Err(error)
                if named == Named::ByChance
                    || options.is_without(&drive.name, drive.path.as_deref().unwrap_or(&path)) =>
            {
                self.warnings.push(format!("{error}; skipped"));
                let paths = [absolute(drive), path];
                self.unopened.push(Unopened { paths, named: None, fact: error.to_string(), seen });
                Ok(None)
            }
            Err(ArrayError::Open(
                error @ (OpenError::System { .. } | OpenError::Busy { .. } | OpenError::ReadOnly { .. }),
            )) => Err(ArrayError::NotOpened { drive: drive.name.clone(), fact: told(&error) }),
            Err(error) => Err(error),
        }
    }
}

/// Why a drive cannot be opened. The process that holds it may be a server of the very array, started with another
/// file.
fn told(error: &OpenError) -> String {
    match error {
        OpenError::Busy { .. } => format!(
            "{error}; this array may already be running: query it with \"tier0 status\" and the array file \
             it was started with"
        ),
        error => error.to_string(),
    }
}

/// Does each piece of work in a thread of its own ([`each_in_time`]). What takes longer than [`OPEN_LIMIT`] has no result.
///
/// # Errors
/// The system has no thread for one.
pub(super) fn each<T, W>(work: impl Iterator<Item = W>) -> Result<Vec<Option<T>>, ArrayError>
where
    T: Send + 'static,
    W: FnOnce() -> T + Send + 'static,
{
    let result = |result: std::io::Result<T>| match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => Ok(None),
        Err(source) => {
            Err(ArrayError::System { what: "a thread to open a drive cannot be started".into(), source })
        }
    };
    each_in_time(OPEN_LIMIT, work).into_iter().map(result).collect()
}

/// What lies in a directory and may be a drive, in order. Nothing of it is looked at: one file may hang.
pub(super) fn candidates(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_drive = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| !kind.is_dir());
    let entries = std::fs::read_dir(directory)?.filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.filter(is_drive).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Where a drive is said to lie.
fn absolute(drive: &DriveDescription) -> PathBuf {
    let given = drive.path.clone().unwrap_or_default();
    std::path::absolute(&given).unwrap_or(given)
}

pub(crate) fn drive_at(name: String, path: PathBuf) -> DriveDescription {
    DriveDescription { name, path: Some(path), size: None, ram: None, model: None, class: None }
}
