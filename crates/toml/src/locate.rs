//! From a place in a TOML text to the line and field that an admin looks for, and back.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// A key that no file has.
const STAND_IN: &str = "there-a-second-time";

/// The line of a byte offset, from 1.
pub fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// The line on which the field `path` is defined, or its closest defined ancestor.
pub fn line_of(text: &str, path: &[&str]) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 1 };
    let mut table = document.get_ref();
    let mut offset = 0;
    for part in path {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == *part) else { break };
        offset = key.span().start;
        let DeValue::Table(next) = value.get_ref() else { break };
        table = next;
    }
    line_at(text, offset)
}

/// The dotted path of the field at a byte offset: the table whose header begins there, or the last key that begins at or
/// before it.
pub(crate) fn field_at(text: &str, offset: usize) -> String {
    if let Some(table) = header_at(text, offset) {
        return table.to_owned();
    }
    let (document, _) = DeTable::parse_recoverable(text);
    let mut nearest = Nearest { limit: offset, start: 0, path: None };
    nearest.visit(document.get_ref(), "");
    nearest.path.unwrap_or_else(|| "top of the file".into())
}

/// The dotted path of the key at these bytes, which its table has already: no parser keeps it, so it is looked for under
/// another name.
pub(crate) fn second_at(text: &str, span: Range<usize>) -> String {
    let (Some(before), Some(key), Some(behind)) =
        (text.get(..span.start), text.get(span.clone()), text.get(span.end..))
    else {
        return field_at(text, span.start);
    };
    let renamed = format!("{before}{STAND_IN}{behind}");
    field_at(&renamed, span.start).replace(STAND_IN, key.trim_matches(['"', '\'']))
}

/// The table of the header that begins at a byte offset, if one does: `drive` of `[[drive]]`.
fn header_at(text: &str, offset: usize) -> Option<&str> {
    let (before, header) = text.split_at_checked(offset)?;
    let begins_a_line = before.rsplit('\n').next().is_none_or(|start| start.trim().is_empty());
    let (table, _) = header.trim_start_matches('[').split_once(']')?;
    (begins_a_line && header.starts_with('[')).then(|| table.trim())
}

/// The last key seen that begins at or before `limit`.
struct Nearest {
    limit: usize,
    start: usize,
    path: Option<String>,
}

impl Nearest {
    fn visit(&mut self, table: &DeTable<'_>, prefix: &str) {
        for (key, value) in table.iter() {
            let name = key.get_ref();
            let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            let start = key.span().start;
            if start <= self.limit && start >= self.start {
                (self.start, self.path) = (start, Some(path.clone()));
            }
            self.visit_value(value.get_ref(), &path);
        }
    }

    fn visit_value(&mut self, value: &DeValue<'_>, path: &str) {
        match value {
            DeValue::Table(inner) => self.visit(inner, path),
            DeValue::Array(values) => {
                for value in values.iter() {
                    self.visit_value(value.get_ref(), path);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "[disk.a]\nname = \"x\"\n\n[disk.a.parameters]\nrpm = { value = 1 }\nzones = { value = 2 }\n";

    #[test]
    fn finds_the_line_of_a_field_or_of_its_ancestor() {
        assert_eq!(line_of(TEXT, &["disk", "a", "parameters", "zones"]), 6);
        assert_eq!(line_of(TEXT, &["disk", "a", "parameters", "absent"]), 4);
    }

    #[test]
    fn names_the_field_around_an_offset() {
        let offset = TEXT.find("2 }").expect("the text has it");
        assert_eq!(field_at(TEXT, offset), "disk.a.parameters.zones.value");
        assert_eq!(line_at(TEXT, offset), 6);
    }

    #[test]
    fn names_fields_of_tables_in_arrays() {
        let text = "[[drive]]\nname = \"a\"\ncount = 1\n[[drive]]\ncount = \"two\"\nsizes = [1, 2]\n";
        let at = |what: &str| field_at(text, text.find(what).expect("the text has it"));
        assert_eq!(at("\"two\""), "drive.count");
        assert_eq!(at("2]"), "drive.sizes");
        assert_eq!(field_at(text, text.rfind("[[drive]]").expect("it is there")), "drive");
        assert_eq!(field_at("[disk.a]\n", 0), "disk.a");
        assert_eq!(field_at("", 0), "top of the file");
    }
}
