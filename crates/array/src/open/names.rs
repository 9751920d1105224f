//! Names of drives in messages.

/// Names in a sentence.
pub(crate) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
