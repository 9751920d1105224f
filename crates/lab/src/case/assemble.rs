//! A described array in a world: the engine's own, with ports, processors and buses around it.

use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{Lanes, ModelShelf, SimulatedOptions, build};
use tier0_catalog::{Catalog, DriveSpec};
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos};
use tier0_world::VirtualRuntime;

use super::{CaseFrontEnd, drives_of};
use crate::LabError;
use crate::path::{BackEnd, FrontEnd, FrontEndCosts, Group, Member, Usage};
use crate::work::Counters;

/// A described array, with what is around it.
pub(crate) struct Site<'a> {
    /// What it is called in messages.
    pub(crate) name: &'a str,
    /// The array.
    pub(crate) system: &'a Description,
    /// Ports, processors and buses; they cost nothing where absent.
    pub(crate) front_end: Option<&'a CaseFrontEnd>,
    /// Memory for clean pages beside that of the description.
    pub(crate) read_cache: Option<ByteCount>,
}

/// An array that runs.
#[derive(Clone)]
pub(crate) struct Assembled {
    /// By volume, in the order of the description.
    pub(crate) volumes: Vec<Rc<Group<Volume>>>,
    /// The names of its kinds of drives.
    kinds: Vec<String>,
    back_end: BackEnd,
    engine: Engine,
}

impl Assembled {
    /// What it has done so far.
    pub(crate) async fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        counters.add(&self.engine.io_report().await, &self.back_end.drive_stats());
        counters
    }

    /// How busy everything was from the beginning to now, which is `elapsed` later. Drives have their models' names.
    pub(crate) fn usage(&self, elapsed: Nanos) -> Usage {
        let mut usage = Usage::of(&self.volumes[0], &self.kinds, elapsed);
        let first = usage.rows.len() - self.kinds.len();
        for (row, kind) in usage.rows[first..].iter_mut().zip(&self.kinds) {
            row.resource = drives_of(kind);
        }
        usage
    }
}

/// Puts an array together, its volumes full.
pub(crate) fn assemble(
    runtime: &VirtualRuntime,
    site: &Site<'_>,
    catalog: &Catalog,
) -> Result<Assembled, LabError> {
    let (world, system) = (runtime.world(), site.system);
    let refused = |source| LabError::Array { configuration: site.name.to_owned(), source: Box::new(source) };
    let mut shelf = ModelShelf::default();
    shelf.prepare(catalog, system).map_err(refused)?;
    // Drives on buses, by runs of one model; a write cache lies on none.
    let mut numbers = vec![None; system.drives.len()];
    let mut kinds: Vec<(String, usize)> = Vec::new();
    let mut on_buses = 0;
    for (place, drive) in system.drives.iter().enumerate() {
        let model = drive.model.clone().unwrap_or_default();
        if matches!(catalog.drive_by_reference(&model)?, DriveSpec::Nvram(_)) {
            continue;
        }
        numbers[place] = Some(on_buses);
        on_buses += 1;
        match kinds.last_mut() {
            Some((last, count)) if *last == model => *count += 1,
            _ => kinds.push((model, 1)),
        }
    }
    let counts = kinds.iter().map(|(_, count)| *count).collect();
    let array = site.front_end.map(|front_end| front_end.parameters(catalog)).transpose()?;
    let back_end = match &array {
        Some(array) => BackEnd::new(world, array, counts),
        None => BackEnd::without_limits(world, counts),
    };
    let front_end = match &array {
        Some(array) => {
            let link = &catalog.link(&array.front_end_link.value)?.parameters;
            FrontEnd::new(world, FrontEndCosts::of(array, link))
        }
        None => FrontEnd::new(world, FrontEndCosts::NONE),
    };
    let front_end = Rc::new(front_end);
    let attach = |number: usize, drive| match numbers[number] {
        Some(number) => back_end.attach(number, drive),
        None => drive,
    };
    let options = SimulatedOptions { born: Born::Full, read_cache: site.read_cache, lanes: Lanes::PerGroup };
    let built = runtime.run(build(world, system, &shelf, options, attach)).map_err(refused)?;
    let mut volumes = Vec::new();
    for (number, described) in system.volumes.iter().enumerate() {
        let volume = built.volumes.iter().find(|volume| *volume.name() == *described.name);
        let volume = volume.expect("every volume of the description is built").clone();
        let member = Member {
            front_end: front_end.clone(),
            back_end: back_end.clone(),
            reads_cached: volume.reads_cached(),
            volumes: Rc::from([volume]),
            first_volume: number,
        };
        volumes.push(Rc::new(Group::new(vec![member])));
    }
    let kinds = kinds.into_iter().map(|(model, _)| model).collect();
    Ok(Assembled { volumes, kinds, back_end, engine: built.engine })
}
