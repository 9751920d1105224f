//! A pool on simulated drives that survive power cuts.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerCut, PowerSwitch, SimMedium, SimOptions};
use tier0_pool::metadata::{FoundPool, LossHook, Metadata, Survey, survey};
use tier0_pool::{
    ChunkletAddress, DriveClass, Geometry, Member, MemberState, MetaRecord, MetadataArea, PoolError,
    PoolState, RaidRecord, Run, Volume,
};
use tier0_units::{ExtentId, Lba, SectorCount, SlotRef, WriteCache};
use tier0_world::{PayloadWidth, VirtualRuntime, World};
use uuid::Uuid;

pub(crate) const CHUNKLET_SECTORS: u64 = 1024;
pub(crate) const EXTENT_SECTORS: u64 = 64;
pub(crate) const SLOTS_PER_SET: u32 = 16;
pub(crate) const DRIVE_SECTORS: u64 = 16_384;

pub(crate) fn extent(volume: u32, index: u32) -> ExtentId {
    ExtentId { volume, index }
}

pub(crate) fn slot(slot: u64, allocation: u64) -> SlotRef {
    SlotRef { slot, allocation }
}

pub(crate) fn member(number: u32) -> Member {
    Member {
        id: Uuid::from_u128(100 + u128::from(number)),
        name: format!("drive{number}"),
        sectors: DRIVE_SECTORS,
        class: DriveClass::Disk,
        state: MemberState::Active,
        leaving: false,
        role: Default::default(),
        group: 0,
        path: String::new(),
    }
}

pub(crate) fn volume(number: u32, extents: u64) -> Volume {
    Volume {
        number,
        id: Uuid::from_u128(1000 + u128::from(number)),
        name: format!("volume{number}"),
        sectors: extents * EXTENT_SECTORS,
        thin: true,
        write_cache: WriteCache::Durable,
        read_cache: true,
        group: 0,
        branch: None,
    }
}

/// Mirrors on so many drives, four sets, one thin volume of 64 extents.
pub(crate) fn new_state(members: u32) -> PoolState {
    let geometry = Geometry {
        chunklet_sectors: CHUNKLET_SECTORS,
        extent_sectors: EXTENT_SECTORS,
        slots_per_set: SLOTS_PER_SET,
        spare_chunklets: 1,
        raid: RaidRecord { level: "raid1".into(), set_size: 2, groups: 1, stripe_unit_sectors: 8 },
        checksums: true,
        area: MetadataArea::plan([DRIVE_SECTORS; 6], CHUNKLET_SECTORS, EXTENT_SECTORS),
    };
    let all = (0..members).map(member).collect();
    let mut state = PoolState::new("lab", "pool0", Uuid::from_u128(7), geometry, all).expect("valid");
    let set = |set: u32| {
        [0, 1].map(|column| ChunkletAddress {
            drive: (set + column) % members,
            index: 2 * (set / members) + column,
        })
    };
    let records = [
        MetaRecord::SetsAdded { columns: (0..4).flat_map(set).collect(), sets_per_band: 2, group: 0 },
        MetaRecord::VolumeCreated(volume(0, 64)),
        MetaRecord::AllocationsReserved { end: 1 << 40 },
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// What of a state must survive: all but the members, whose losses are recorded elsewhere too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Essence {
    pub(crate) volumes: Vec<(Volume, Vec<Run>)>,
    table: Vec<ChunkletAddress>,
    rebuilds: Vec<(u32, u32, ChunkletAddress, u64)>,
    allocation_end: u64,
    scrub: tier0_pool::ScrubCursor,
    cache_switches: tier0_pool::CacheSwitches,
}

pub(crate) fn essence(state: &PoolState) -> Essence {
    let runs = |volume: &Volume| state.map(volume.number).expect("it has a map").runs().collect();
    Essence {
        volumes: state.volumes().map(|volume| (volume.clone(), runs(volume))).collect(),
        table: state.set_table().to_vec(),
        rebuilds: state
            .rebuilds()
            .map(|(s, c, rebuild)| (s, c, rebuild.target, rebuild.rebuilt.count()))
            .collect(),
        allocation_end: state.allocation_end(),
        scrub: state.scrub(),
        cache_switches: state.cache_switches(),
    }
}

/// Drives that outlive worlds.
pub(crate) struct Rack {
    pub(crate) switch: PowerSwitch,
    pub(crate) media: Vec<SimMedium>,
    pub(crate) seed: u64,
}

impl Rack {
    pub(crate) fn new(drives: usize, seed: u64) -> Rack {
        let switch = PowerSwitch::new();
        let media = (0..drives)
            .map(|number| {
                let options = SimOptions::new(
                    &format!("sim{number}"),
                    SectorCount(DRIVE_SECTORS),
                    seed * 100 + number as u64,
                );
                SimMedium::new(options, &switch)
            })
            .collect();
        Rack { switch, media, seed }
    }

    pub(crate) fn open(&self, world: &World) -> Vec<DriveHandle> {
        self.media.iter().map(|medium| medium.open(world)).collect()
    }

    /// What all drives hold, byte by byte.
    pub(crate) fn images(&self) -> Vec<Vec<u8>> {
        let image = |medium: &SimMedium| {
            let mut bytes = vec![0; DRIVE_SECTORS as usize * 512];
            medium.peek(Lba(0), &mut bytes);
            bytes
        };
        self.media.iter().map(image).collect()
    }

    /// The power fails and comes back.
    pub(crate) fn power_cut(&self) {
        self.media.iter().for_each(|medium| medium.power_cut(PowerCut::Any));
        self.switch.restore();
    }

    /// Runs `work` in a world of its own with the drives that answer, until it ends or the power fails; none then.
    pub(crate) fn run<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        life: u64,
        work: impl FnOnce(World, Vec<DriveHandle>) -> F,
    ) -> Option<T> {
        // The drives outlive the world, so that the I/Os under way end with it.
        let held: Vec<DriveHandle>;
        let runtime = VirtualRuntime::new(self.seed ^ (life << 32), PayloadWidth::REAL);
        let world = runtime.world().clone();
        held = self.open(&world);
        let work = work(world.clone(), held.clone());
        let result = Rc::new(RefCell::new(None));
        let (kept, switch) = (result.clone(), self.switch.clone());
        let task = world.spawn(async move { *kept.borrow_mut() = Some(work.await) });
        runtime.run(async move {
            let off = std::pin::pin!(switch.wait_off());
            if let Either::Right((_, task)) = select(task, off).await {
                task.detach();
            }
        });
        drop(runtime);
        drop(held);
        result.take()
    }
}

pub(crate) fn no_hook() -> LossHook {
    Rc::new(|_, _| {})
}

/// The only pool that these drives hold.
pub(crate) fn only_pool(survey: Survey) -> Option<FoundPool> {
    let mut pools = survey.pools;
    assert!(pools.len() <= 1, "{pools:?}");
    pools.pop()
}

/// Finds and opens the only pool.
pub(crate) async fn open(world: &World, drives: Vec<DriveHandle>) -> Result<Metadata, PoolError> {
    let found = only_pool(survey(drives).await).expect("there is a pool");
    found.open(world, no_hook()).await
}

/// Creates the pool on the first drives.
pub(crate) async fn create(world: &World, drives: Vec<DriveHandle>, members: u32) -> Metadata {
    let drives = drives.into_iter().take(members as usize).collect();
    Metadata::create(world, drives, new_state(members), no_hook()).await.expect("created")
}
