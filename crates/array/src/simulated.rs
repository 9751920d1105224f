//! An array of modelled drives in virtual time: the same sets, slots and volumes, no threads.

use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_catalog::Catalog;
use tier0_drive::{Content, DriveHandle};
use tier0_pool::MemberRecord;
use tier0_raid::io::{LostDrives, Members};
use tier0_world::World;
use tier0_world::sync::mailbox;
use uuid::Uuid;

use crate::direct::{self, Forgetful};
use crate::engine::{self, Engine};
use crate::models::Model;
use crate::plan::PoolPlan;
use crate::{ArrayError, Description, Volume};

/// Modelled drives by catalogue reference, preconditioned once and shared by all simulations.
#[derive(Clone, Default)]
pub struct ModelShelf(BTreeMap<String, Model>);

impl ModelShelf {
    /// Makes the models that `description` needs.
    pub fn prepare(&mut self, catalog: &Catalog, description: &Description) -> Result<(), ArrayError> {
        for drive in &description.drives {
            let reference = drive.model.as_ref().ok_or_else(|| ArrayError::Unusable {
                drive: drive.name.clone(),
                fact: "has no model, which virtual time needs; add model = \"…\", \"tier0 catalog list\" shows them".into(),
            })?;
            if !self.0.contains_key(reference) {
                self.0.insert(reference.clone(), Model::of(catalog, reference)?);
            }
        }
        Ok(())
    }
}

/// An array in virtual time.
pub struct SimulatedArray {
    /// Its volumes, in the order of pools and of the description.
    pub volumes: Vec<Volume>,
    /// Its drives, in the order of the description.
    pub drives: Vec<DriveHandle>,
}

/// Puts together the array of `description` in `world`: its writes go straight to the drives, without log and
/// checksums. Every drive needs a model of `shelf`. `wrap` may put something around each drive: a bus, faults.
pub fn build(
    world: &World,
    description: &Description,
    shelf: &ModelShelf,
    wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> Result<SimulatedArray, ArrayError> {
    let drives = make_drives(world, description, shelf, wrap)?;
    let mut random = world.random(0x1d);
    let mut id = || Uuid::from_u64_pair(random.bits(), random.bits());
    let (mut plans, mut members) = (Vec::new(), Vec::new());
    for (number, pool) in description.pools.iter().enumerate() {
        let own: Vec<DriveHandle> = pool.drives.iter().map(|drive| drives[*drive].clone()).collect();
        let records = own.iter().zip(&pool.drives).map(|(drive, place)| MemberRecord {
            id: id(),
            name: description.drives[*place].name.clone(),
            sectors: drive.info().sectors.0,
            lost: false,
        });
        let records = records.collect();
        let mut plan = PoolPlan::of_new_pool(&description.name, pool, records, id())?;
        for volume in description.volumes.iter().filter(|volume| volume.pool == number) {
            plan.add_volume(volume, id())?;
        }
        let own: Vec<Option<DriveHandle>> = own.into_iter().map(Some).collect();
        members.push(Members::new(own, LostDrives::new(pool.drives.len()), Rc::new(Forgetful)));
        plans.push(plan);
    }
    let plans: Vec<&PoolPlan> = plans.iter().collect();
    let (peer, inbox) = mailbox();
    let shard = direct::shard(world, 0, &plans, members, vec![peer]);
    world.spawn(shard.clone().answer(inbox)).detach();
    Ok(SimulatedArray { volumes: Volume::all(&shard), drives })
}

/// An array with write log and slot tables in virtual time, whose metadata live only as long as the world.
pub struct SimulatedEngine {
    /// The array.
    pub engine: Engine,
    /// Its drives, in the order of the description.
    pub drives: Vec<DriveHandle>,
}

/// As [`build`], with log and slot tables as on real drives.
pub async fn build_protected(
    world: &World,
    description: &Description,
    shelf: &ModelShelf,
    wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> Result<SimulatedEngine, ArrayError> {
    let drives = make_drives(world, description, shelf, wrap)?;
    let engine = engine::start_volatile(world, description, &drives).await?;
    Ok(SimulatedEngine { engine, drives })
}

fn make_drives(
    world: &World,
    description: &Description,
    shelf: &ModelShelf,
    mut wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> Result<Vec<DriveHandle>, ArrayError> {
    let mut drives = Vec::new();
    for (number, drive) in description.drives.iter().enumerate() {
        let reference = drive.model.as_deref().unwrap_or_default();
        let model = shelf.0.get(reference).ok_or_else(|| ArrayError::Unusable {
            drive: drive.name.clone(),
            fact: "has a model that was not prepared".into(),
        })?;
        let content = Content::memory(world);
        drives.push(wrap(number, model.drive(world, &drive.name, number as u64, content)));
    }
    Ok(drives)
}
