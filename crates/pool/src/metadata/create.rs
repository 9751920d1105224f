//! Creating a pool: its metadata first, the superblocks last, so that nothing is found before all is there.

use tier0_drive::DriveHandle;
use tier0_journal::Region;
use tier0_units::PAGE_SECTORS;
use tier0_world::{BufMut, PayloadWidth, World};

use super::carriers;
use super::core::{Core, LossHook, Metadata};
use super::labels::Labels;
use super::pages::Pages;
use super::superblock::{self, Superblock};
use crate::PoolError;
use crate::checkpoint::PageTable;
use crate::state::PoolState;

impl Metadata {
    /// Makes `state` the state of a new pool on `drives`, the members in order. What lay on the drives' metadata areas
    /// is overwritten. After an error nothing is found on drives whose superblock was not reached.
    pub async fn create(
        world: &World,
        drives: Vec<DriveHandle>,
        state: PoolState,
        on_loss: LossHook,
    ) -> Result<Metadata, PoolError> {
        check(&drives, &state)?;
        let carriers = carriers::choose(&state, &[], |_| true);
        let labels = Labels::of(&state, carriers);
        if !superblock::fits(&labels.label) {
            return Err(PoolError::LabelTooLarge);
        }
        let places = drives.iter().cloned().map(Some).collect();
        let pages = Pages::new(PageTable::empty(0, 0));
        let core = Core::new(world, state, pages, labels, places, true, on_loss);
        core.roll_over().await?;
        wipe_checkpoints(&core, &drives).await?;
        if let Some(member) = (0..drives.len()).find(|member| core.drive(*member as u32).is_none()) {
            return Err(drive_error(&drives[member], tier0_world::IoError::Gone));
        }
        write_superblocks(&core, &drives).await?;
        Ok(Metadata(core))
    }
}

fn check(drives: &[DriveHandle], state: &PoolState) -> Result<(), PoolError> {
    assert_eq!(drives.len(), state.members().len(), "every member needs a drive");
    for (drive, member) in drives.iter().zip(state.members()) {
        let info = drive.info();
        if info.sectors.0 < member.sectors {
            let (drive, sectors) = (info.name.clone(), info.sectors.0);
            return Err(PoolError::TooSmall { drive, sectors, needed: member.sectors });
        }
    }
    assert!(state.geometry().area.journal_sectors >= Region::SECTORS_MIN, "areas are planned large enough");
    Ok(state.verify()?)
}

/// The checkpoint slots that the first checkpoint is not in: what an earlier life left there must not be found.
async fn wipe_checkpoints(core: &Core, drives: &[DriveHandle]) -> Result<(), PoolError> {
    let (area, generation) = (core.state.borrow().geometry().area, core.journal.borrow().generation);
    for (member, drive) in (0u32..).zip(drives) {
        let carries = core.labels.borrow().label.carriers.contains(&member);
        for slot in (0..2).filter(|slot| !carries || *slot != generation % 2) {
            let zeros = BufMut::zeroed(PAGE_SECTORS as u32, PayloadWidth::REAL).freeze();
            let written = drive.write(area.checkpoint_start(slot), zeros, true).await;
            written.map_err(|source| drive_error(drive, source))?;
        }
    }
    Ok(())
}

/// All copies on every drive, so that no older superblock survives anywhere.
async fn write_superblocks(core: &Core, drives: &[DriveHandle]) -> Result<(), PoolError> {
    {
        let mut labels = core.labels.borrow_mut();
        labels.generation += 1;
        let first = labels.generation;
        labels.label.starts.begin(&core.world, first);
    }
    let superblock = |member: usize| {
        let labels = core.labels.borrow();
        let id = labels.label.members[member].id;
        Superblock { generation: labels.generation, member: id, label: labels.label.clone() }
    };
    for (member, drive) in drives.iter().enumerate() {
        let own = superblock(member);
        let last = {
            let labels = core.labels.borrow();
            core.last_copy(drive, &labels.label.members[member])
        };
        superblock::write_last(drive, &own, last).await.map_err(|source| drive_error(drive, source))?;
    }
    for copy in [1, 0] {
        for (member, drive) in drives.iter().enumerate() {
            let own = superblock(member);
            superblock::write_copy(drive, &own, copy).await.map_err(|source| drive_error(drive, source))?;
        }
    }
    let mut labels = core.labels.borrow_mut();
    labels.next_copy.fill(1);
    labels.complete = labels.generation;
    Ok(())
}

fn drive_error(drive: &DriveHandle, source: tier0_world::IoError) -> PoolError {
    PoolError::Drive { drive: drive.info().name.clone(), source }
}
