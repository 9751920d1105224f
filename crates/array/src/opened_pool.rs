//! A pool whose metadata are open: what its shards and the control task begin with.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tier0_control::message::control::ControlMessage;
use tier0_control::{ControlledPool, MemberArbiter, budget_of, without_unfinished};
use tier0_description::FLASH_WRITES_PER_DAY;
use tier0_drive::DriveHandle;
use tier0_plan::{PoolShape, members_max};
use tier0_pool::metadata::{Inspected, LossHook, Metadata};
use tier0_pool::{MetaRecord, PoolState, Volume};
use tier0_raid::io::LostDrives;
use tier0_volume::Budget;
use tier0_world::World;
use tier0_world::sync::MailSender;

use crate::ArrayError;
use crate::born::Born;
use crate::flash_cache::announce_epochs;
use crate::log_lane::format_ring;
use crate::pool_shard::{PoolSeed, ShardMemory};

/// A pool whose metadata are open.
pub(crate) struct OpenedPool {
    pub(crate) metadata: Metadata,
    pub(crate) seed: PoolSeed,
    /// By member.
    pub(crate) drives: Vec<Option<DriveHandle>>,
}

impl OpenedPool {
    /// What the control task takes over of it.
    pub(crate) fn for_control(self) -> ControlledPool {
        let OpenedPool { metadata, seed, drives } = self;
        ControlledPool { metadata, shape: seed.shape, lost: seed.lost, drives }
    }

    /// Opens a pool that was examined, and adds to it what a description says.
    pub(crate) async fn open(
        world: &World,
        number: usize,
        examined: Inspected,
        additions: Vec<MetaRecord>,
        control: &MailSender<ControlMessage>,
    ) -> Result<OpenedPool, ArrayError> {
        // Those too that only the metadata know.
        let members = examined.state().members().len();
        let lost = LostDrives::new(members_max(members));
        let drives: Vec<Option<DriveHandle>> =
            (0..members as u32).map(|place| examined.drive(place).cloned()).collect();
        let metadata = examined.open(world, loss_hook(number, &lost, control)).await?;
        let unfinished = without_unfinished(&metadata.state());
        for record in unfinished.into_iter().chain(additions) {
            metadata.commit(vec![record]).await?;
        }
        make_log(world, &metadata, &drives).await?;
        announce_epochs(world, &metadata, &drives).await?;
        let (state, shape) = {
            let state = metadata.state();
            (Arc::new(state.clone()), PoolShape::new(&state)?)
        };
        for (place, member) in state.members().iter().enumerate() {
            if !member.is_active() {
                lost.set_lost(place);
            }
        }
        let drives = drives.into_iter().enumerate();
        let drives: Vec<Option<DriveHandle>> =
            drives.map(|(place, drive)| drive.filter(|_| !lost.is_lost(place))).collect();
        for (place, drive) in drives.iter().enumerate() {
            drive.iter().for_each(|drive| MemberArbiter::appoint(drive, number, place, control));
        }
        let seed = PoolSeed {
            number,
            budgets: budgets(world, &state),
            state,
            shape,
            lost,
            born: None,
            memory: ShardMemory::default(),
            read_cache: None,
            flash_writes_per_day: FLASH_WRITES_PER_DAY,
        };
        Ok(OpenedPool { metadata, seed, drives })
    }

    /// A new pool, whose metadata live only as long as its world.
    pub(crate) fn new(
        world: &World,
        number: usize,
        state: PoolState,
        drives: Vec<DriveHandle>,
        born: Born,
        control: &MailSender<ControlMessage>,
    ) -> Result<OpenedPool, ArrayError> {
        let lost = LostDrives::new(members_max(drives.len()));
        let metadata = Metadata::volatile(world, state.clone(), loss_hook(number, &lost, control));
        let shape = PoolShape::new(&state)?;
        let (state, memory) = (Arc::new(state), ShardMemory::default());
        let seed = PoolSeed {
            number,
            budgets: budgets(world, &state),
            state,
            shape,
            lost,
            born: Some(born),
            memory,
            read_cache: None,
            flash_writes_per_day: FLASH_WRITES_PER_DAY,
        };
        Ok(OpenedPool { metadata, seed, drives: drives.into_iter().map(Some).collect() })
    }
}

/// By volume: what hosts may ask of it, for all shards together. Volumes without ceilings have none.
fn budgets(world: &World, state: &PoolState) -> BTreeMap<u32, Arc<Budget>> {
    let now = world.common_time();
    let budget = |volume: &Volume| Some((volume.number, budget_of(state.ceilings(volume.number), now)?));
    state.volumes().filter_map(budget).collect()
}

/// Makes the parts of the log that were placed and not made.
async fn make_log(
    world: &World,
    metadata: &Metadata,
    drives: &[Option<DriveHandle>],
) -> Result<(), ArrayError> {
    let state = metadata.state().clone();
    if state.log().void_rings().next().is_none() {
        return Ok(());
    }
    for ring in state.log().void_rings() {
        let copies = ring.copies.iter().filter(|copy| state.is_active(copy.member)).copied().collect();
        let drive = |member: u32| drives.get(member as usize).cloned().flatten();
        format_ring(world, state.name(), ring, copies, drive).await?;
    }
    metadata.commit(vec![MetaRecord::LogPlaced(state.log().made())]).await?;
    Ok(())
}

/// A member that the metadata finds lost is lost for the data, too.
pub(crate) fn loss_hook(
    number: usize,
    lost: &Arc<LostDrives>,
    control: &MailSender<ControlMessage>,
) -> LossHook {
    let (lost, control) = (lost.clone(), control.clone());
    Rc::new(move |member, _| {
        lost.set_lost(member as usize);
        control.send(ControlMessage::Lost { pool: number, member: member as usize });
    })
}
