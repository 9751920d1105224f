//! A database's objects on the volumes of an array.

use std::collections::BTreeMap;

use tier0_database::layout::Layout;
use tier0_database::storage::Placement;
use tier0_database::workload::Workload;
use tier0_description::Description;
use tier0_units::ByteCount;

use super::file::OneOrMany;

/// The name of a volume that holds the log where a case does not say.
const LOG_VOLUME: &str = "log";

/// On which volumes everything lies; the error is the fact and the remedy.
pub(super) fn placement(
    workload: &Workload,
    system: &Description,
    place: &BTreeMap<String, OneOrMany>,
    log_bytes: ByteCount,
) -> Result<Placement, String> {
    let names: Vec<&str> = system.volumes.iter().map(|volume| volume.name.as_str()).collect();
    let volumes = |field: &str, on: &OneOrMany| places_of(&format!("database.place.{field}"), on, system);
    let known = |name: &String| name == "*" || name == LOG_VOLUME || workload.object(name).is_some();
    if let Some(unknown) = place.keys().find(|name| !known(name)) {
        let objects: Vec<&str> = workload.objects.iter().map(|object| object.name.as_str()).collect();
        return Err(format!(
            "database.place: {unknown:?} is no object of the workload; use *, log, {}",
            objects.join(", ")
        ));
    }
    let own_log = names.iter().position(|name| *name == LOG_VOLUME);
    let others = match place.get("*") {
        Some(on) => volumes("*", on)?,
        // A volume named "log" holds only the log, unless it is the only volume.
        None => (0..names.len()).filter(|volume| names.len() == 1 || Some(*volume) != own_log).collect(),
    };
    let log = match place.get(LOG_VOLUME) {
        Some(on) => volumes(LOG_VOLUME, on)?[0],
        None => own_log.unwrap_or(others[0]),
    };
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for object in &workload.objects {
        let on = match (place.get(&object.name), object.index_of) {
            (Some(on), _) => volumes(&object.name, on)?,
            (None, Some(table)) => objects[table].clone(),
            (None, None) => others.clone(),
        };
        objects.push(on);
    }
    Ok(Placement { objects, log, log_bytes, spread: 1.0 })
}

/// The places of named volumes; the error is the fact and the remedy.
pub(super) fn places_of(field: &str, on: &OneOrMany, system: &Description) -> Result<Vec<usize>, String> {
    let found = on.names().iter().map(|name| place_of(field, name, system));
    let found = found.collect::<Result<Vec<usize>, String>>()?;
    match found.is_empty() {
        true => Err(format!("{field}: names no volume; name at least one")),
        false => Ok(found),
    }
}

/// The place of a named volume; the error is the fact and the remedy.
pub(super) fn place_of(field: &str, name: &str, system: &Description) -> Result<usize, String> {
    system.volumes.iter().position(|known| known.name == name).ok_or_else(|| {
        let known: Vec<&str> = system.volumes.iter().map(|volume| volume.name.as_str()).collect();
        format!("{field}: there is no volume {name:?}; use some of {}", known.join(", "))
    })
}

/// Whether the volumes hold what lies on them; the error is the fact and the remedy.
pub(super) fn check_room(layout: &Layout, system: &Description, placement: &Placement) -> Result<(), String> {
    let needed = placement.needed(layout, system.volumes.len());
    for (volume, needs) in system.volumes.iter().zip(needed) {
        let size = volume.sectors.bytes();
        if needs > size {
            return Err(format!(
                "volume {:?} has {:#}, and what lies on it needs {:#}; make it larger, or lower database.scale, or place \
                 fewer objects there",
                volume.name, size, needs
            ));
        }
    }
    Ok(())
}
