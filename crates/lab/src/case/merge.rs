//! One TOML table laid over another: what an alternative changes.
//!
//! Tables are merged field by field. Lists of tables (drives, pools, volumes) are merged by the `name` of their entries; an entry
//! with another name is added. Every other value is replaced.

use toml::{Table, Value};

/// Lays `over` over `under`.
pub(crate) fn lay_over(under: &mut Table, over: &Table) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (Some(Value::Array(below)), Value::Array(above)) if are_named(below) && are_named(above) => {
                above.iter().for_each(|entry| lay_entry_over(below, entry));
            }
            _ => _ = under.insert(key.clone(), value.clone()),
        }
    }
}

fn are_named(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|entry| name(entry).is_some())
}

fn name(entry: &Value) -> Option<&str> {
    entry.as_table()?.get("name")?.as_str()
}

fn lay_entry_over(list: &mut Vec<Value>, entry: &Value) {
    let same = list.iter_mut().find(|known| name(known) == name(entry));
    match (same, entry) {
        (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
        _ => list.push(entry.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_a_name_are_changed_and_others_are_added() {
        let mut under: Table =
            "a = 1\n[[drive]]\nname = \"x\"\ncount = 4\nmodel = \"m\"".parse().expect("it is TOML");
        let over: Table =
            "b = 2\n[[drive]]\nname = \"x\"\ncount = 8\n[[drive]]\nname = \"y\"".parse().expect("it is TOML");
        lay_over(&mut under, &over);
        let expected: Table =
            "a = 1\nb = 2\n[[drive]]\nname = \"x\"\ncount = 8\nmodel = \"m\"\n[[drive]]\nname = \"y\""
                .parse()
                .expect("it is TOML");
        assert_eq!(under, expected);
    }

    #[test]
    fn other_lists_are_replaced() {
        let mut under: Table = "drives = [\"a\", \"b\"]".parse().expect("it is TOML");
        lay_over(&mut under, &"drives = [\"c\"]".parse().expect("it is TOML"));
        assert_eq!(under, "drives = [\"c\"]".parse::<Table>().expect("it is TOML"));
    }
}
