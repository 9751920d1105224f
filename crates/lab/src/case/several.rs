//! Entries that stand for several: `count = 7` and `{n}` in their texts, as an array file's drives have it.
//!
//! Volumes of the array and what runs beside the database may be given so. Drives are expanded by the array file itself.

use toml::{Table, Value};

/// The most that one entry stands for.
const MOST: i64 = 256;

/// Replaces each counted entry of `[[beside]]` and `[[system.volume]]`. The error is the field, the fact and the remedy.
pub(super) fn expand(case: &mut Table) -> Result<(), String> {
    expand_list("beside", case.get_mut("beside"))?;
    let system = case.get_mut("system").and_then(Value::as_table_mut);
    expand_list("system.volume", system.and_then(|system| system.get_mut("volume")))
}

fn expand_list(field: &str, list: Option<&mut Value>) -> Result<(), String> {
    let Some(Value::Array(list)) = list else { return Ok(()) };
    let mut expanded = Vec::with_capacity(list.len());
    for mut entry in list.drain(..) {
        let count = entry.as_table_mut().and_then(|entry| entry.remove("count"));
        let Some(count) = count else {
            expanded.push(entry);
            continue;
        };
        let count = count
            .as_integer()
            .filter(|count| (1..=MOST).contains(count))
            .ok_or_else(|| format!("{field}.count is out of range; use 1 to {MOST}"))?;
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.contains("{n}") {
            return Err(format!(
                "{field} {name:?}: count needs \"{{n}}\" in name, which stands for 0, 1, 2 …"
            ));
        }
        expanded.extend((0..count).map(|n| numbered(&entry, n)));
    }
    *list = expanded;
    Ok(())
}

/// The value with `{n}` replaced in all its texts.
fn numbered(value: &Value, n: i64) -> Value {
    match value {
        Value::String(text) => text.replace("{n}", &n.to_string()).into(),
        Value::Array(list) => list.iter().map(|value| numbered(value, n)).collect::<Vec<_>>().into(),
        Value::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), numbered(value, n))).collect::<Table>().into()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_entry_becomes_numbered_ones_in_its_place() {
        let mut case: Table = r#"
            beside = [
              { name = "vm{n}", count = 2, database = { place = { "*" = ["data{n}"], log = "log{n}" } } },
              { name = "copy", load = { users = 4 } },
            ]
            system.volume = [{ name = "data{n}", count = 2, size = "1GiB" }]
        "#
        .parse()
        .expect("it is TOML");
        expand(&mut case).expect("it can be expanded");
        let expected: Table = r#"
            beside = [
              { name = "vm0", database = { place = { "*" = ["data0"], log = "log0" } } },
              { name = "vm1", database = { place = { "*" = ["data1"], log = "log1" } } },
              { name = "copy", load = { users = 4 } },
            ]
            system.volume = [{ name = "data0", size = "1GiB" }, { name = "data1", size = "1GiB" }]
        "#
        .parse()
        .expect("it is TOML");
        assert_eq!(case, expected);
    }

    #[test]
    fn a_count_without_a_number_in_the_name_or_out_of_range_is_refused() {
        for (text, expected) in [
            ("beside = [{ name = \"vm\", count = 2 }]", "needs \"{n}\" in name"),
            ("beside = [{ name = \"vm{n}\", count = 0 }]", "use 1 to 256"),
            ("system.volume = [{ name = \"v{n}\", count = \"2\" }]", "use 1 to 256"),
        ] {
            let mut case: Table = text.parse().expect("it is TOML");
            let refusal = expand(&mut case).expect_err("it is refused");
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
