//! Names of drives in messages.

use tier0_units::named;

/// Names in a sentence: `"d0", "d1"`.
pub fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Drives in a sentence: `drive "d0"`, `drives "d0", "d1"`.
pub fn drives<'a>(names: impl Iterator<Item = &'a str>) -> String {
    named("drive", &names.map(|name| format!("{name:?}")).collect::<Vec<_>>())
}
