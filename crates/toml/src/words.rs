//! What a parser says of a wrong file, in the words of its author: what is there, what is expected, and the correct
//! form.

/// The fact and the remedy, of a parser's `message` about what stands at `at` of a file. What is not known is left as it is.
pub(crate) fn plain(message: &str, at: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{} is missing; add it", field.replace('`', "\""));
    }
    if is_duplicate(message) {
        return "it is given twice; keep one".to_owned();
    }
    if message.contains("string values must be quoted") {
        let word = value(at);
        return match word {
            "yes" | "on" | "True" | "TRUE" => format!("{word} is not a value; write true"),
            "no" | "off" | "False" | "FALSE" => format!("{word} is not a value; write false"),
            "" => "the value is missing; add it".to_owned(),
            _ => format!("{word} is not a number, true or false; put strings in quotes, as in \"{word}\""),
        };
    }
    if message.contains("unexpected leading zero") {
        let word = value(at);
        return format!("a number must not start with 0; put strings in quotes, as in \"{word}\"");
    }
    let typed = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match typed.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((found, wanted)) => mistyped(found, wanted, at),
        None => message.replace(", expected one of", "; use one of"),
    }
}

/// Whether a parser says that something is there twice.
pub(crate) fn is_duplicate(message: &str) -> bool {
    message.starts_with("duplicate key")
}

fn mistyped(found: &str, wanted: &str, at: &str) -> String {
    let header =
        at.split_once(']').map(|(name, _)| name.trim_start_matches('[')).filter(|_| at.starts_with('['));
    if let ("map", Some(name)) = (found, header) {
        return match (wanted, at.starts_with("[[")) {
            ("a sequence", false) => {
                format!("this section may repeat; write [[{name}]]")
            }
            (_, true) => format!("this section must not repeat; write [{name}]"),
            _ => format!("found a table, expected {}; correct it", wanted_in_words(wanted)),
        };
    }
    let fact = format!("found {}, expected {}", found_in_words(found), wanted_in_words(wanted));
    let text = found.strip_prefix("string \"").and_then(|rest| rest.strip_suffix('"'));
    let plain = found.split('`').nth(1).or(text);
    let (is_list, is_text) = (wanted == "a sequence", wanted == "a string");
    match (text, plain) {
        (Some(text), _) if is_list => format!("{fact}; write [\"{text}\"]"),
        (None, Some(word)) if is_list => format!("{fact}; write [{word}]"),
        (None, Some(word)) if is_text => format!("{fact}; write \"{word}\""),
        (Some("true" | "yes" | "on"), _) if wanted == "a boolean" => {
            format!("{fact}; write true, without quotes")
        }
        (Some("false" | "no" | "off"), _) if wanted == "a boolean" => {
            format!("{fact}; write false, without quotes")
        }
        (Some(text), _) if is_whole(wanted) && text.parse::<u64>().is_ok() => {
            format!("{fact}; write {text}, without quotes")
        }
        _ => format!("{fact}; correct it"),
    }
}

/// The value at the beginning of a text.
fn value(at: &str) -> &str {
    let word = at.lines().next().unwrap_or_default();
    word.split([',', '#', ']', '}']).next().unwrap_or_default().trim()
}

fn is_whole(wanted: &str) -> bool {
    ["u8", "u16", "u32", "u64", "usize"].contains(&wanted)
}

fn found_in_words(found: &str) -> String {
    let value = found.split('`').nth(1);
    match found.split(' ').next().unwrap_or_default() {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "string" => format!("the string{}", found.trim_start_matches("string")),
        "integer" | "floating" => format!("the number {}", value.unwrap_or_default()),
        "boolean" => value.unwrap_or_default().to_owned(),
        _ => found.to_owned(),
    }
}

fn wanted_in_words(wanted: &str) -> String {
    match wanted {
        "a sequence" => "a list".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a table".to_owned(),
        "u8" => "an integer from 0 to 255".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer".to_owned(),
        wanted if is_whole(wanted) => "a non-negative integer".to_owned(),
        wanted if wanted.starts_with("struct ") => "a table".to_owned(),
        wanted => wanted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_is_told_the_correct_form() {
        for (message, at, told) in [
            (
                "invalid type: map, expected a sequence",
                "[pool]\nname",
                "this section may repeat; write [[pool]]",
            ),
            (
                "invalid type: map, expected a string",
                "[[array]]\n",
                "this section must not repeat; write [array]",
            ),
            (
                "invalid type: string \"3\", expected usize",
                "\"3\"\n",
                "found the string \"3\", expected a non-negative integer; write 3, without quotes",
            ),
            (
                "invalid value: integer `-3`, expected u32",
                "-3\n",
                "found the number -3, expected a non-negative integer; correct it",
            ),
            (
                "invalid type: string \"d*\", expected a sequence",
                "\"d*\"\n",
                "found the string \"d*\", expected a list; write [\"d*\"]",
            ),
            (
                "invalid type: integer `80`, expected a sequence",
                "80\n",
                "found the number 80, expected a list; write [80]",
            ),
            (
                "invalid type: integer `5`, expected a string",
                "5\n",
                "found the number 5, expected a string; write \"5\"",
            ),
            (
                "invalid type: string \"yes\", expected a boolean",
                "\"yes\"\n",
                "found the string \"yes\", expected true or false; write true, without quotes",
            ),
            (
                "invalid type: floating point `2.5`, expected a size such as \"8KiB\"",
                "2.5\n",
                "found the number 2.5, expected a size such as \"8KiB\"; correct it",
            ),
            (
                "string values must be quoted, expected literal string",
                "yes  # no\nx",
                "yes is not a value; write true",
            ),
            (
                "string values must be quoted, expected literal string",
                "24MiB\n",
                "24MiB is not a number, true or false; put strings in quotes, as in \"24MiB\"",
            ),
            (
                "unexpected leading zero, expected nothing",
                "0600\n",
                "a number must not start with 0; put strings in quotes, as in \"0600\"",
            ),
            ("missing field `name`", "[[pool]]\n", "\"name\" is missing; add it"),
            ("duplicate key", "path", "it is given twice; keep one"),
            ("unknown field `x`, expected one of `a`, `b`", "x", "unknown field `x`; use one of `a`, `b`"),
            ("something new", "x", "something new"),
        ] {
            assert_eq!(plain(message, at), told);
        }
    }
}
