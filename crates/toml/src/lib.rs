//! Files that people write: read as TOML, and when one is wrong, where.
//!
//! Every file of tier0 (array, study, load, catalogue) goes through [`read`], so that every error can name line and field,
//! whichever file it is in. What to do about it is for those to say who know what the file is for.

mod locate;
mod words;

use serde::de::DeserializeOwned;

pub use locate::{line_at, line_of};

/// What is wrong with a text that is no TOML or does not have the form that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The line, from 1.
    pub line: usize,
    /// The dotted path of the field, or "top of the file".
    pub field: String,
    /// What is wrong there, in one line.
    pub fact: String,
}

/// Reads a text.
///
/// # Errors
/// [`Misread`] where it is no TOML, or something in it is unknown, missing or of another type.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Misread> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let at = span.start;
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let field = match words::is_duplicate(&message) {
            true => locate::second_at(text, span),
            false => locate::field_at(text, at),
        };
        Misread {
            line: line_at(text, at),
            field,
            fact: words::plain(&message, text.get(at..).unwrap_or_default()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(rename = "drive")]
        _drives: Vec<Drive>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Drive {
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "count")]
        _count: Option<u32>,
    }

    fn misread(text: &str) -> (usize, String, String) {
        let Misread { line, field, fact } = read::<File>(text).expect_err("it is wrong");
        (line, field, fact)
    }

    #[test]
    fn errors_name_line_and_field() {
        let first = "[[drive]]\nname = \"a\"\n";
        let (line, field, fact) = misread(&format!("{first}count = \"two\"\n"));
        assert_eq!((line, field.as_str()), (3, "drive.count"), "{fact}");
        let told = "found the string \"two\", expected a non-negative integer; correct it";
        assert_eq!(fact, told);
        let (line, field, fact) = misread(&format!("{first}colour = 1\n"));
        assert_eq!((line, field.as_str()), (3, "drive.colour"), "{fact}");
        assert!(fact.contains("`name` or `count`"), "{fact}");
        let (line, field, fact) = misread(&format!("{first}[[drive]]\ncount = 1\n"));
        assert_eq!((line, field.as_str()), (3, "drive"), "{fact}");
        assert_eq!(fact, "\"name\" is missing; add it");
        let (line, field, fact) = misread(&format!("{first}count =\n"));
        assert_eq!((line, field.as_str()), (3, "drive.count"), "{fact}");
        assert!(!fact.contains('\n'), "{fact}");
        assert_eq!(misread("").1, "top of the file");
    }

    /// The error named the field before the one that was there twice.
    #[test]
    fn what_is_there_twice_is_named() {
        for (text, line, field) in [
            ("[[drive]]\nname = \"a\"\ncount = 1\nname = \"b\"\n", 4, "drive.name"),
            ("[[drive]]\n\"name\" = \"a\"\ncount = 1\n\"name\" = \"b\"\n", 4, "drive.name"),
            ("[a]\nx = { y = 1, z = 2, y = 3 }\n", 2, "a.x.y"),
            ("x = 1\n[a]\ny = 1\n[b]\ny = 2\n[a]\n", 6, "a"),
            ("[a.b]\nx = 1\n[c]\ny = 1\n[a.b]\n", 5, "a.b"),
        ] {
            let told = misread(text);
            assert_eq!(told, (line, field.to_owned(), "it is given twice; keep one".to_owned()), "{text}");
        }
    }
}
