//! Creating an array: checks first, then the drive files that are asked for, then the metadata.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::try_join_all;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use tier0_catalog::Catalog;
use tier0_description::{Description, DriveDescription, class};
use tier0_drive::{DriveHandle, SystemUse};
use tier0_plan::{Lanes, PoolDrives, fill};
use tier0_pool::metadata::{OtherDrive, Survey, survey};
use tier0_pool::{DATA_START_SECTORS, PoolState, foreign};
use tier0_units::{SECTOR_BYTES, SectorCount};
use uuid::Uuid;

use super::assemble::consents_of;
use super::cores::cores_of;
use super::identity::{check_distinct, identity};
use super::medium::model_of;
use super::room::{check_room, directory_of, no_room};
use super::{Kind, Medium, OpenArray, OpenPool, ToOpen, in_real_world};
use crate::ArrayError;
use crate::engine::{clear, found_pool, new_state};
use crate::models::Model;

/// How an array is created.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateOptions {
    /// Overwrite drives that hold something.
    pub force: bool,
}

/// Creates the array of `description` on its drives. Drive files that do not exist and have a size are created; on
/// failure they are removed again, and nothing else has been written.
pub fn create(description: &Description, options: CreateOptions) -> Result<OpenArray, ArrayError> {
    check_distinct(&description.drives)?;
    let mut media: Vec<Option<Arc<Medium>>> = Vec::new();
    for (number, drive) in description.drives.iter().enumerate() {
        media.push(if is_to_be_made(drive) { None } else { Some(Arc::new(open_free(drive, number)?)) });
    }
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        check_no_log(description)?;
        return create_in_memory(description, media);
    }
    if let Some(ram) = description.drives.iter().find(|drive| drive.path.is_none()) {
        return Err(memory_among_others(ram));
    }
    if !options.force {
        check_unused(&media, Some(&description.name))?;
    }
    let (cores, states) = plan(description, &media)?;
    let mut made = MadeFiles(Vec::new());
    for (number, drive) in description.drives.iter().enumerate() {
        if media[number].is_none() {
            made.make(drive)?;
            media[number] = Some(Arc::new(Medium::open(drive, number)?));
            // Another creation may have taken the file before it was locked, and be done: then it is that one's.
            check_unused(&media[number..=number], Some(&description.name))?;
            made.locked();
        }
    }
    let media: Vec<Arc<Medium>> = media.into_iter().flatten().collect();
    for (pool, state) in description.pools.iter().zip(&states) {
        for (member, place) in PoolDrives::of(pool).all.into_iter().enumerate() {
            media[place].allocate(front_of(state, member as u32))?;
        }
    }
    for (pool, state) in description.pools.iter().zip(&states) {
        let places = PoolDrives::of(pool).all;
        let own = places.iter().map(|place| media[*place].clone()).collect();
        write_metadata(own, state.clone(), options.force)?;
    }
    media.iter().for_each(|medium| medium.reread_partitions());
    made.keep();
    Ok(OpenArray {
        name: description.name.clone(),
        cores,
        cores_wanted: cores,
        keep_awake: description.keep_awake,
        events: None,
        memory: description.memory,
        pause_timeout: description.pause_timeout,
        space: description.space_rules(),
        log_drives: description.log_drives(),
        caches: description.caches(),
        pools: states.iter().map(OpenPool::of_state).collect(),
        kind: Kind::Lasting {
            media,
            pools: states.iter().map(|state| ToOpen { id: state.id(), additions: Vec::new() }).collect(),
            consents: consents_of(description, Vec::new()),
        },
        warnings: Vec::new(),
        doubts: Vec::new(),
    })
}

/// The shards of a new array, and the states of its pools; no medium where a file is to be made.
///
/// # Errors
/// What of the file, the sizes of the drives and the room for them does not go together.
pub(super) fn plan(
    description: &Description,
    media: &[Option<Arc<Medium>>],
) -> Result<(usize, Vec<PoolState>), ArrayError> {
    if let Some(pool) = description.pools.iter().find(|pool| !pool.checksums) {
        return Err(ArrayError::WithoutChecksums { pool: pool.name.clone() });
    }
    // Of drives without bounds, the plan alone would take long.
    let to_be_made = || description.drives.iter().filter(|drive| is_to_be_made(drive));
    for drive in to_be_made() {
        let has = drive.size.map(SectorCount::in_bytes).unwrap_or_default();
        model_of(drive, has)?;
    }
    check_room(to_be_made())?;
    let cores = cores_of(description, media.iter().flatten())?;
    let sizes = sizes_of(description, media)?;
    let mut description = description.clone();
    description.drives.iter_mut().for_each(|drive| drive.class = class::of_place(drive));
    let states = (0..description.pools.len()).map(|number| {
        let places = PoolDrives::of(&description.pools[number]).all;
        let sizes = places.iter().map(|place| sizes[*place]).collect();
        new_state(&description, number, sizes, (cores, Lanes::PerGroup), Uuid::new_v4)
    });
    Ok((cores, states.collect::<Result<_, _>>()?))
}

/// The sectors of a member's metadata and of its copies of the write log, which lie behind them.
fn front_of(state: &PoolState, member: u32) -> SectorCount {
    let copies = state.log().rings.iter().flat_map(|ring| &ring.copies);
    let ends = copies.filter(|copy| copy.member == member).map(|copy| copy.first_sector + copy.sectors);
    SectorCount(ends.max().unwrap_or(0).max(state.geometry().area.data_start_sectors))
}

pub(super) fn is_to_be_made(drive: &DriveDescription) -> bool {
    drive.size.is_some() && drive.path.as_ref().is_some_and(|path| !path.exists())
}

/// Opens what is to become a drive, unless the system uses it: a mounted file system would go on writing to it.
pub(super) fn open_free(drive: &DriveDescription, number: usize) -> Result<Medium, ArrayError> {
    let Some(path) = &drive.path else { return Medium::open(drive, number) };
    let in_use = |usage| ArrayError::InUse { drive: drive.name.clone(), path: path.clone(), usage };
    SystemUse::open_unused(path, || Medium::open(drive, number), in_use)
}

/// An array is on memory, or on drives that remember, not on both.
pub(super) fn memory_among_others(drive: &DriveDescription) -> ArrayError {
    let fact = "is in memory, but other drives are not; make it a file, or put all drives in memory".into();
    ArrayError::Unusable { drive: drive.name.clone(), fact }
}

/// Memory keeps no log: what it acknowledges is gone with the process.
pub(super) fn check_no_log(description: &Description) -> Result<(), ArrayError> {
    let volumes = description.volumes.iter().filter(|volume| volume.write_cache.is_some());
    let volumes =
        volumes.map(|volume| (&description.pools[volume.pool], format!("volume {:?}", volume.name)));
    let pools = description.pools.iter().filter(|pool| pool.write_cache.is_some());
    let mut asked = volumes.chain(pools.map(|pool| (pool, format!("pool {:?}", pool.name))));
    let Some((pool, section)) = asked.next() else { return Ok(()) };
    let drive = &description.drives[pool.drives[0]];
    let fact = format!(
        "is in memory and has no write log; remove write_cache from {section}, or make the drives files"
    );
    Err(ArrayError::Unusable { drive: drive.name.clone(), fact })
}

fn create_in_memory(
    description: &Description,
    media: Vec<Option<Arc<Medium>>>,
) -> Result<OpenArray, ArrayError> {
    let cores = cores_of(description, media.iter().flatten())?;
    let sizes = sizes_of(description, &media)?;
    let mut pools = Vec::new();
    for (number, pool) in description.pools.iter().enumerate() {
        let places = PoolDrives::of(pool).all;
        let own = places.iter().map(|place| sizes[*place]).collect();
        let mut state = new_state(description, number, own, (cores, Lanes::PerGroup), Uuid::new_v4)?;
        // What was never written is zeros there anyway.
        fill(&mut state)?;
        pools.push((state, places.iter().filter_map(|place| media[*place].clone()).collect()));
    }
    Ok(OpenArray {
        name: description.name.clone(),
        cores,
        cores_wanted: cores,
        keep_awake: description.keep_awake,
        events: None,
        memory: description.memory,
        pause_timeout: description.pause_timeout,
        space: description.space_rules(),
        log_drives: description.log_drives(),
        caches: description.caches(),
        pools: pools.iter().map(|(state, _)| OpenPool::of_state(state)).collect(),
        kind: Kind::InMemory(pools),
        warnings: Vec::new(),
        doubts: Vec::new(),
    })
}

/// A drive that joins a running array: a missing file is made where a size is given.
pub(crate) fn open_new_medium(drive: &DriveDescription, force: bool) -> Result<NewMedium, ArrayError> {
    let mut made = MadeFiles(Vec::new());
    if is_to_be_made(drive) {
        if let Some(size) = drive.size.filter(|size| !size.0.is_multiple_of(SECTOR_BYTES)) {
            let fact =
                format!("cannot be created with {size:#}; set the size to a multiple of {SECTOR_BYTES}B");
            return Err(ArrayError::Unusable { drive: drive.name.clone(), fact });
        }
        check_room(std::iter::once(drive))?;
        made.make(drive)?;
    }
    let medium = Arc::new(open_free(drive, 0)?);
    made.locked();
    let found = medium.sectors().bytes();
    if let Some(size) = drive.size.filter(|size| *size != found) {
        let fact = match found.0 {
            0 => format!(
                "exists and is empty, but the requested size is {size:#}; remove the file, and it is created"
            ),
            _ => format!(
                "exists with {found:#}, but the requested size is {size:#}; omit the size, or name another file"
            ),
        };
        return Err(ArrayError::Unusable { drive: drive.name.clone(), fact });
    }
    if !force && made.0.is_empty() {
        check_unused(&[Some(medium.clone())], None)?;
    }
    medium.allocate(SectorCount(DATA_START_SECTORS))?;
    Ok(NewMedium { medium, made })
}

/// A drive that is to join, open and locked. If its file was made for that, it is removed again when this is dropped,
/// unless it is [kept](NewMedium::keep) before a label may call the drive a member.
pub(crate) struct NewMedium {
    pub(crate) medium: Arc<Medium>,
    made: MadeFiles,
}

impl NewMedium {
    /// A drive that is open already.
    pub(crate) fn of(medium: Medium) -> NewMedium {
        NewMedium { medium: Arc::new(medium), made: MadeFiles(Vec::new()) }
    }

    /// The drive is about to join: its file stays, whatever comes.
    pub(crate) fn keep(&mut self) {
        self.made.0.clear();
    }
}

fn write_metadata(media: Vec<Arc<Medium>>, state: PoolState, clears: bool) -> Result<(), ArrayError> {
    in_real_world(|world| async move {
        let drives: Vec<DriveHandle> =
            media.iter().map(|medium| medium.plain_drive(&world)).collect::<Result<_, _>>()?;
        match clears {
            true => clear(&drives).await?,
            // The checks have found both ends of each blank.
            false => drop(try_join_all(drives.iter().map(foreign::erase_copies)).await?),
        }
        try_join_all(drives.iter().map(foreign::discard)).await?;
        found_pool(&world, drives, state).await
    })?
}

fn size_of_new(drive: &DriveDescription) -> Result<SectorCount, ArrayError> {
    let size = SectorCount::in_bytes(drive.size.expect("a file to be made has a size"));
    match &drive.model {
        Some(id) => Ok(size.min(Model::of(&Catalog::embedded(), id)?.sectors())),
        None => Ok(size),
    }
}

/// The sizes of the description's drives, those that are to be made included.
fn sizes_of(description: &Description, media: &[Option<Arc<Medium>>]) -> Result<Vec<u64>, ArrayError> {
    let size = |(drive, medium): (&DriveDescription, &Option<Arc<Medium>>)| match medium {
        Some(medium) => Ok(medium.sectors().0),
        None => Ok(size_of_new(drive)?.0),
    };
    description.drives.iter().zip(media).map(size).collect()
}

/// Nothing may be on drives that are to be used; `own` is the array that is to be created.
pub(super) fn check_unused(media: &[Option<Arc<Medium>>], own: Option<&str>) -> Result<(), ArrayError> {
    for medium in media.iter().flatten().filter(|medium| medium.is_persistent()) {
        let opened = medium.clone();
        let found = in_real_world(|world| async move {
            Ok::<_, ArrayError>(survey(vec![opened.plain_drive(&world)?]).await)
        })??;
        check_blank(found, medium.name(), own)?;
    }
    Ok(())
}

/// A drive, alone in a survey, holds nothing.
///
/// # Errors
/// What it holds.
pub(crate) fn check_blank(found: Survey, drive: &str, own: Option<&str>) -> Result<(), ArrayError> {
    let drive = drive.to_owned();
    if let Some(pool) = found.pools.into_iter().next() {
        let (pool, array) = (pool.label.name, pool.label.array);
        return Err(match own == Some(array.as_str()) {
            true => ArrayError::CreatedAlready { drive, pool, array },
            false => ArrayError::Taken { drive, pool, array },
        });
    }
    match found.others.into_iter().next() {
        Some(OtherDrive::Foreign(_)) => Err(ArrayError::Foreign { drive }),
        Some(OtherDrive::Unreadable(_, error)) => Err(error.into()),
        Some(OtherDrive::Blank(_)) | None => Ok(()),
    }
}

/// Files that were made and are removed again unless all goes well.
pub(crate) struct MadeFiles(Vec<MadeFile>);

/// A drive's file that was made.
struct MadeFile {
    /// The drive's name.
    drive: String,
    path: PathBuf,
    /// Whether it is locked by this process, which has made it.
    is_locked: bool,
}

impl MadeFiles {
    /// All went well: the files stay.
    pub(crate) fn keep(mut self) {
        self.0.clear();
    }

    /// The file that was made last has been opened as a drive.
    fn locked(&mut self) {
        self.0.iter_mut().for_each(|made| made.is_locked = true);
    }

    /// Makes a drive's file with its space allocated, so that a full disk shows now and not under a database. Behind
    /// a model the file is sparse: it is as large as the modelled drive, usually much larger than what is written.
    fn make(&mut self, drive: &DriveDescription) -> Result<(), ArrayError> {
        let path = drive.path.clone().expect("a file to be made has a path");
        let bytes = drive.size.expect("a file to be made has a size").0;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).and_then(|file| {
            self.0.push(MadeFile { drive: drive.name.clone(), path: path.clone(), is_locked: false });
            if drive.model.is_some() {
                return file.set_len(bytes);
            }
            if bytes == 0 {
                // No space can be set aside; that it is too small, the pool says.
                return Ok(());
            }
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::OPNOTSUPP) => file.set_len(bytes),
                result => Ok(result?),
            }
        });
        made.map_err(|source| match (source.kind(), self.made_at(&path)) {
            // Directories may be one by a link.
            (std::io::ErrorKind::AlreadyExists, Some(first)) => {
                ArrayError::SameDrive { first: first.to_owned(), second: drive.name.clone() }
            }
            // Others take it meanwhile.
            (std::io::ErrorKind::StorageFull, _) => no_room(directory_of(&path), bytes),
            _ => ArrayError::CreateFile { path, source },
        })
    }

    /// The drive whose file was made where this path leads.
    fn made_at(&self, path: &Path) -> Option<&str> {
        let there = identity(path)?;
        let made = self.0.iter().find(|made| identity(&made.path) == Some(there));
        made.map(|made| made.drive.as_str())
    }
}

impl Drop for MadeFiles {
    fn drop(&mut self) {
        for MadeFile { path, is_locked, .. } in &self.0 {
            // Another process that has taken it meanwhile, as another creation does, has it locked; and a process that
            // waits for the lock must find that the file is gone.
            let lock = std::fs::File::open(path).ok().filter(|file| file.try_lock().is_ok());
            if *is_locked || lock.is_some() {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
