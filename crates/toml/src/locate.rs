//! From a place in a TOML text to the line and field that an admin looks for, and back.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The line of a byte offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// The line on which the field `path` is defined, or its closest defined ancestor.
pub(crate) fn line_of(text: &str, path: &[&str]) -> usize {
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

/// The dotted path of the field at `span`: the last key that begins at or before it.
pub(crate) fn field_at(text: &str, span: &Range<usize>) -> String {
    let (document, _) = DeTable::parse_recoverable(text);
    let mut best = (0, String::new());
    visit(document.get_ref(), "", span.start, &mut best);
    if best.1.is_empty() { "top of the file".into() } else { best.1 }
}

fn visit(table: &DeTable<'_>, prefix: &str, limit: usize, best: &mut (usize, String)) {
    for (key, value) in table.iter() {
        let path =
            if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        let start = key.span().start;
        if start <= limit && start >= best.0 {
            *best = (start, path.clone());
        }
        if let DeValue::Table(inner) = value.get_ref() {
            visit(inner, &path, limit, best);
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
        assert_eq!(field_at(TEXT, &(offset..offset + 1)), "disk.a.parameters.zones.value");
        assert_eq!(line_at(TEXT, offset), 6);
    }
}
