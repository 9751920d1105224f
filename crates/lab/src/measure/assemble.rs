//! From a configuration to its array in a world: the engine's own array, with the path of the lab around it.

use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{Lanes, SimulatedOptions, build};
use tier0_catalog::DriveSpec;
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos};
use tier0_world::VirtualRuntime;

use super::Bench;
use super::describe::Part;
use crate::LabError;
use crate::path::{BackEnd, FrontEnd, FrontEndCosts, Group, Member, Usage};
use crate::power::watts;
use crate::study::{Configuration, Setup};
use crate::work::Counters;

/// Arrays that share a load, in a world.
pub(super) struct Assembled {
    /// What is measured.
    pub(super) group: Rc<Group<Volume>>,
    /// The other groups of sets of the only array.
    pub(super) neighbours: Vec<Rc<Group<Volume>>>,
    /// Whether writes to what is measured, and to each neighbour, go into a write cache and are acknowledged there.
    pub(super) writes_are_cached: Vec<bool>,
    /// Names of the groups of sets, what is measured first.
    names: Vec<String>,
    engines: Vec<Engine>,
}

impl Assembled {
    /// What the arrays have done so far.
    pub(super) fn counters(&self) -> impl Future<Output = Counters> + use<> {
        let (group, engines) = (self.group.clone(), self.engines.clone());
        async move {
            let mut counters = Counters::default();
            for (member, engine) in group.members().iter().zip(&engines) {
                counters.add(&engine.io_report().await, &member.back_end.drive_stats());
            }
            counters
        }
    }

    /// The usage of arrays from their beginning to now, which is `elapsed` later, with that of the write caches of what is
    /// measured.
    pub(super) fn usage(&self, elapsed: Nanos) -> Usage {
        // Volumes of a group of sets share a cache.
        let caches = self.group.members().iter().filter_map(|member| member.volumes.first());
        let delayed: f64 = caches.map(|volume| volume.write_cache().delayed.as_secs_f64()).sum();
        let usage = Usage::of(&self.group, &self.names, elapsed);
        Usage { delayed_writes: delayed / elapsed.as_secs_f64().max(1e-9), ..usage }
    }
}

impl Bench {
    /// What a configuration can hold: the drives' data space, without redundancy, of all members.
    ///
    /// # Errors
    /// [`LabError`] where the configuration is impossible.
    pub fn usable(&self, configuration: &Configuration) -> Result<ByteCount, LabError> {
        let space: f64 = self.parts(configuration)?.iter().map(Part::data_space).sum();
        Ok(ByteCount((space * f64::from(configuration.setup.members)) as u64))
    }

    /// What the drives of a configuration draw with this usage, in watts: between idle and under load, by the time in which
    /// they are at work. Those of a flash cache count as always at work. Controllers and enclosures are not in it.
    ///
    /// # Errors
    /// [`LabError`] where a drive is not known.
    pub fn drive_watts(&self, configuration: &Configuration, usage: &Usage) -> Result<f64, LabError> {
        let members = f64::from(configuration.setup.members);
        let draw = |drive: &DriveSpec, count: u32, busy: f64| f64::from(count) * members * watts(drive, busy);
        let parts = self.parts(configuration)?;
        let data = parts.iter().zip(usage.drives_busy());
        let data: f64 = data.map(|(part, busy)| draw(&part.drive, part.sets.drives, busy)).sum();
        let Some(flash) = &configuration.setup.caches.flash else { return Ok(data) };
        Ok(data + draw(&self.catalog.drive_by_reference(&flash.drive)?, flash.drives, 1.0))
    }

    /// The array in a world, with its front end and back end.
    pub(super) fn assemble(
        &self,
        runtime: &VirtualRuntime,
        description: &Description,
        configuration: &Configuration,
    ) -> Result<Assembled, LabError> {
        let (world, setup) = (runtime.world(), &configuration.setup);
        let array = &self.array(setup)?.parameters;
        let link = &self.catalog.link(&array.front_end_link.value)?.parameters;
        let costs = FrontEndCosts::of(array, link);
        let parts = self.parts(configuration)?;
        let drives: Vec<usize> = parts.iter().map(|part| part.sets.drives as usize).collect();
        let all: usize = drives.iter().sum();
        let mut groups: Vec<Vec<Member<Volume>>> = parts.iter().map(|_| Vec::new()).collect();
        let mut engines = Vec::new();
        for _ in 0..setup.members {
            let back_end = BackEnd::new(world, array, drives.clone());
            // The write cache is the controllers' own and lies on no bus.
            let attach = |number, drive| if number < all { back_end.attach(number, drive) } else { drive };
            let built = runtime.run(build(world, description, &self.shelf, options(setup), attach));
            let built = built.map_err(|source| LabError::Array {
                configuration: configuration.id.clone(),
                source: Box::new(source),
            })?;
            let front_end = Rc::new(FrontEnd::new(world, costs));
            let named = built.volumes.into_iter().map(|volume| (volume.name().to_string(), volume));
            let mut named: BTreeMap<String, Volume> = named.collect();
            let mut first_volume = 0;
            for (number, (part, members)) in parts.iter().zip(&mut groups).enumerate() {
                let own = part.volume_names(number == 0).filter_map(|name| named.remove(&name));
                let volumes: Rc<[Volume]> = own.collect();
                let count = volumes.len();
                members.push(Member {
                    front_end: front_end.clone(),
                    back_end: back_end.clone(),
                    reads_cached: volumes.iter().any(Volume::reads_cached),
                    volumes,
                    first_volume,
                });
                first_volume += count;
            }
            engines.push(built.engine);
        }
        let mut groups = groups.into_iter().map(|members| Rc::new(Group::new(members)));
        Ok(Assembled {
            group: groups.next().expect("something is measured"),
            neighbours: groups.collect(),
            writes_are_cached: parts.iter().map(|part| part.writes_are_cached(setup)).collect(),
            names: parts.into_iter().map(|part| part.sets.name).collect(),
            engines,
        })
    }
}

/// How the engine builds an array of a setup.
fn options(setup: &Setup) -> SimulatedOptions {
    let lanes = if setup.caches.write_is_shared { Lanes::Shared } else { Lanes::PerGroup };
    SimulatedOptions { born: Born::Full, read_cache: setup.caches.read, lanes }
}
