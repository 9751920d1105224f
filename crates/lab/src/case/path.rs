//! One field of a case by its path, such as `database.buffer` or `system.volume.data.size`: what a fit changes.

use toml::{Table, Value};

/// Sets the field at `path`; the error is the fact and the remedy.
///
/// A part of the path finds an entry of a list by the entry's `name`. A field with a number gets the number. A field with a text, such
/// as "16GiB", gets the number followed by `unit`.
pub(crate) fn put(table: &mut Table, path: &str, number: f64, unit: &str) -> Result<(), String> {
    let missing =
        || format!("{path:?} is no field that the case gives; give it in the base, or correct the path");
    let mut parts = path.split('.');
    let mut at = table.get_mut(parts.next().unwrap_or_default()).ok_or_else(missing)?;
    for part in parts {
        at = match at {
            Value::Table(table) => table.get_mut(part),
            Value::Array(entries) => entries
                .iter_mut()
                .find(|entry| entry.get("name").and_then(Value::as_str).is_some_and(|name| name == part)),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    *at = match at {
        Value::Integer(_) => Value::Integer(number.round() as i64),
        Value::Float(_) => Value::Float(number),
        Value::String(_) => Value::String(format!("{number}{unit}")),
        _ => return Err(format!("{path:?} is no number; name a field that is")),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sizes_are_set_by_path_and_others_are_refused() {
        let text = "[host]\ncores = 4\nms = 1.5\n[[system.volume]]\nname = \"a\"\nsize = \"1GiB\"";
        let mut table: Table = text.parse().expect("it is TOML");
        for (path, number) in [("host.cores", 7.6), ("host.ms", 2.5), ("system.volume.a.size", 2.5)] {
            put(&mut table, path, number, "GiB").expect("it is there");
        }
        let expected = "[host]\ncores = 8\nms = 2.5\n[[system.volume]]\nname = \"a\"\nsize = \"2.5GiB\"";
        assert_eq!(table, expected.parse().expect("it is TOML"));
        for path in ["host.core", "system.volume.b.size", "host.cores.x"] {
            let refused = put(&mut table, path, 1.0, "").expect_err("it is not there");
            assert!(refused.contains("is no field that the case gives"), "{refused}");
        }
        assert!(put(&mut table, "host", 1.0, "").expect_err("it is a table").contains("no number"));
    }
}
