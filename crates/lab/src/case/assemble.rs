//! The array of a case in a world: the engine's own, with ports, processors and buses around it.

use std::rc::Rc;

use tier0_array::Volume;
use tier0_array::engine::{Born, Engine};
use tier0_array::simulated::{Lanes, ModelShelf, SimulatedOptions, build};
use tier0_catalog::{Catalog, DriveSpec};
use tier0_world::VirtualRuntime;

use super::Case;
use crate::LabError;
use crate::path::{BackEnd, FrontEnd, FrontEndCosts, Group, Member};

/// An array that runs.
pub(super) struct Assembled {
    /// By volume, in the order of the description.
    pub(super) volumes: Vec<Rc<Group<Volume>>>,
    /// The names of its kinds of drives.
    pub(super) kinds: Vec<String>,
    pub(super) back_end: BackEnd,
    pub(super) engine: Engine,
}

/// Puts an array together.
pub(super) fn assemble(
    runtime: &VirtualRuntime,
    case: &Case,
    catalog: &Catalog,
) -> Result<Assembled, LabError> {
    let world = runtime.world();
    let refused = |source| LabError::Array { configuration: case.name.clone(), source: Box::new(source) };
    let mut shelf = ModelShelf::default();
    shelf.prepare(catalog, &case.system).map_err(refused)?;
    // Drives on buses, by runs of one model; a write cache lies on none.
    let mut numbers = vec![None; case.system.drives.len()];
    let mut kinds: Vec<(String, usize)> = Vec::new();
    let mut on_buses = 0;
    for (place, drive) in case.system.drives.iter().enumerate() {
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
    let array = case.front_end.as_ref().map(|front_end| front_end.parameters(catalog)).transpose()?;
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
    let options =
        SimulatedOptions { born: Born::Full, read_cache: case.system.memory, lanes: Lanes::PerGroup };
    let built = runtime.run(build(world, &case.system, &shelf, options, attach)).map_err(refused)?;
    let mut volumes = Vec::new();
    for (number, described) in case.system.volumes.iter().enumerate() {
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
