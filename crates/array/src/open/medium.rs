//! What a drive of a real array consists of: a file, a device or memory, and perhaps a model in front of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tier0_catalog::Catalog;
use tier0_control::{Damage, DriveSource, RelocatedDrive};
use tier0_description::DriveDescription;
use tier0_drive::guard::{Guard, Health, Patience};
use tier0_drive::{Content, DriveHandle, FileMedium, OpenError, RamMedium, SystemUse};
use tier0_units::{ByteCount, SectorCount};
use tier0_world::World;

use crate::ArrayError;
use crate::models::Model;

#[derive(Clone)]
enum Base {
    File(Arc<FileMedium>),
    Ram(Arc<RamMedium>, ByteCount),
}

/// An open drive, from which every shard makes its own.
pub(crate) struct Medium {
    name: String,
    base: Base,
    model: Option<Model>,
    number: u64,
    /// What the guards of all shards know of it.
    health: Arc<Health>,
}

impl Medium {
    /// Opens the drive of a description; its file must exist.
    pub(crate) fn open(description: &DriveDescription, number: usize) -> Result<Medium, ArrayError> {
        let unusable =
            |fact: &str| ArrayError::Unusable { drive: description.name.clone(), fact: fact.to_owned() };
        let base = match (&description.path, description.ram) {
            (Some(path), _) => {
                let opened = FileMedium::open(path);
                Base::File(opened.map_err(|error| not_opened(&description.name, path, error))?)
            }
            (None, Some(size)) => {
                let memory =
                    RamMedium::new(&description.name, size).map_err(|source| ArrayError::System {
                        what: format!(
                            "drive {:?}: cannot allocate {size} of memory; make it smaller",
                            description.name
                        ),
                        source,
                    })?;
                Base::Ram(memory, size)
            }
            (None, None) => {
                return Err(unusable(
                    "has a model but no storage; add path or ram, or run the file in virtual time (tier0 load)",
                ));
            }
        };
        let mut medium = Medium {
            name: description.name.clone(),
            base,
            model: None,
            number: number as u64,
            health: Health::new(),
        };
        medium.model = model_of(description, medium.base_sectors())?;
        Ok(medium)
    }

    /// Opens what another process holds, to read who it is and nothing else.
    pub(crate) fn peek(description: &DriveDescription, number: usize) -> Option<Medium> {
        let base = Base::File(FileMedium::peek(description.path.as_deref()?).ok()?);
        let (name, health) = (description.name.clone(), Health::new());
        Some(Medium { name, base, model: None, number: number as u64, health })
    }

    /// The same drive under this name, at a path that leads to it, of the size that it has now, with nothing known of its
    /// health: it was given up, and joins again.
    pub(crate) fn renewed(&self, name: &str, path: &Path) -> Medium {
        let base = match &self.base {
            Base::File(file) => Base::File(file.known_as(path)),
            base => base.clone(),
        };
        Medium {
            name: name.to_owned(),
            base,
            model: self.model.clone(),
            number: self.number,
            health: Health::new(),
        }
    }

    /// Its name in the array.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the guards of all shards know of it.
    pub(crate) fn health(&self) -> &Arc<Health> {
        &self.health
    }

    /// Where it lies, if not in memory.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match &self.base {
            // The next server may run in another directory.
            Base::File(file) => std::path::absolute(&file.info().name).ok(),
            Base::Ram(..) => None,
        }
    }

    /// Whether a path leads to it.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        matches!(&self.base, Base::File(file) if file.is_at(path))
    }

    /// What was done to it from outside while it is open.
    pub(crate) fn damage(&self) -> Option<Damage> {
        match &self.base {
            Base::File(file) if file.is_deleted() => {
                Some(Damage::Deleted { is_replaced: file.is_replaced() })
            }
            Base::File(file) if file.is_cut_short() => Some(Damage::CutShort),
            _ => None,
        }
    }

    /// Where a file lies that was moved since it was opened.
    pub(crate) fn moved_to(&self) -> Option<PathBuf> {
        match &self.base {
            Base::File(file) => file.moved_to(),
            Base::Ram(..) => None,
        }
    }

    /// What has become of a file, or of the path at which it was opened, where that does not lead to it any more; none where it
    /// was deleted. File systems are asked, and may not answer.
    pub(crate) fn displacement(&self) -> Option<RelocatedDrive> {
        let Base::File(file) = &self.base else { return None };
        if file.is_deleted() {
            return None;
        }
        let (moved_to, is_in_place) = (file.moved_to(), file.is_in_place());
        let is_replaced = !is_in_place && file.is_place_taken();
        if moved_to.is_none() && (is_in_place || file.is_device() && !is_replaced) {
            return None;
        }
        Some(RelocatedDrive { from: self.path()?, to: moved_to.or_else(|| file.reached_at()), is_replaced })
    }

    /// Sectors that the array can use.
    pub(crate) fn sectors(&self) -> SectorCount {
        self.model.as_ref().map_or(self.base_sectors(), Model::sectors)
    }

    /// Sets the space of the first sectors aside: metadata and write log must not want for it when the file system under a
    /// sparse file is full. Behind a model files stay sparse: they are as large as the modelled drive.
    ///
    /// # Errors
    /// There is no such space.
    pub(crate) fn allocate(&self, sectors: SectorCount) -> Result<(), ArrayError> {
        let Base::File(file) = &self.base else { return Ok(()) };
        if self.model.is_some() {
            return Ok(());
        }
        file.allocate(sectors).map_err(|source| ArrayError::System {
            what: format!(
                "the file system of drive {:?} has no {} for its metadata and log; free space there",
                self.name,
                sectors.bytes()
            ),
            source,
        })
    }

    /// Has the kernel forget the partitions of a device whose partition table was erased.
    pub(crate) fn reread_partitions(&self) {
        if let Base::File(file) = &self.base {
            file.reread_partitions();
        }
    }

    /// Whether it outlives the process.
    pub(crate) fn is_persistent(&self) -> bool {
        matches!(self.base, Base::File(_))
    }

    /// Whether it behaves like a drive of the catalogue.
    pub(crate) fn is_modelled(&self) -> bool {
        self.model.is_some()
    }

    /// A drive on it in a world, with its model's timing.
    pub(crate) fn drive(&self, world: &World) -> Result<DriveHandle, ArrayError> {
        let plain = self.plain_drive(world)?;
        Ok(match &self.model {
            Some(model) => {
                model.drive(world, &self.name, self.number, Content::Drive(plain), model.sectors())
            }
            None => plain,
        })
    }

    /// A drive on it without the model's timing: for metadata at start, which the administrator does not want to wait
    /// for.
    pub(crate) fn plain_drive(&self, world: &World) -> Result<DriveHandle, ArrayError> {
        let system = |source| ArrayError::System {
            what: format!("drive {:?} cannot be opened again", self.name),
            source,
        };
        Ok(match &self.base {
            Base::File(file) => DriveHandle::new(file.drive(world).map_err(system)?),
            Base::Ram(memory, _) => DriveHandle::new(memory.open(world)),
        })
    }

    /// Sectors of what it lies on.
    pub(super) fn base_sectors(&self) -> SectorCount {
        match &self.base {
            Base::File(file) => file.info().sectors,
            Base::Ram(_, size) => SectorCount::in_bytes(*size),
        }
    }
}

/// The model of a drive whose storage has so many sectors.
///
/// # Errors
/// It is not in the catalogue, exists only in virtual time, or is larger than the storage.
pub(super) fn model_of(
    description: &DriveDescription,
    has: SectorCount,
) -> Result<Option<Model>, ArrayError> {
    let unusable = |fact: String| ArrayError::Unusable { drive: description.name.clone(), fact };
    let Some(id) = &description.model else { return Ok(None) };
    let model = Model::of(&Catalog::embedded(), id)?;
    if model.is_nvram() {
        return Err(unusable(
            "models a protected write cache, which exists only in virtual time; run the file with \
             \"tier0 load\", or put the write log on persistent drives"
                .to_owned(),
        ));
    }
    if model.sectors() > has {
        let (needs, has) = (model.sectors().bytes().0, has.bytes().0);
        return Err(unusable(format!(
            "models a drive of {needs} bytes, but its storage has {has}; enlarge it (a sparse file takes no space)"
        )));
    }
    Ok(Some(model))
}

/// Why a drive cannot be opened: the system itself may have it.
fn not_opened(name: &str, path: &Path, error: OpenError) -> ArrayError {
    let is_busy = matches!(error, OpenError::Busy { .. });
    match SystemUse::of(path).filter(|_| is_busy) {
        Some(usage) => ArrayError::InUse { drive: name.to_owned(), path: path.to_owned(), usage },
        None => ArrayError::of_opening(name, error),
    }
}

/// A drive that shows no failure that may pass.
pub(crate) fn guarded_drive(medium: &Medium, world: &World) -> Result<DriveHandle, ArrayError> {
    Ok(Guard::new(medium.drive(world)?, Patience::default(), medium.health().clone()).handle())
}

impl DriveSource for Medium {
    fn drive_in(&self, world: &World) -> Result<DriveHandle, String> {
        guarded_drive(self, world).map_err(|error| error.to_string())
    }
}
