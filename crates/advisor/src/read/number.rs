//! Numbers as reports write them: thousands separators, decimal commas, suffixes, and words for "none".

/// Reads a number; `None` where the text is none. Where `comma_is_decimal`, `1,5` is one and a half, and else a comma is a decimal
/// one only if it cannot separate thousands.
pub(super) fn number(text: &str, comma_is_decimal: bool) -> Option<f64> {
    let text = text.trim().trim_matches('\u{a0}').trim();
    let (text, factor) = match text.char_indices().last()? {
        (at, 'K') => (&text[..at], 1e3),
        (at, 'M') => (&text[..at], 1e6),
        (at, 'G') => (&text[..at], 1e9),
        (at, 'T') => (&text[..at], 1e12),
        (at, '%') => (&text[..at], 1.0),
        _ => (text, 1.0),
    };
    // "inf" and "nan" are floats to the standard library.
    if text.len() > 64 || !text.starts_with(|c: char| c.is_ascii_digit() || ['-', '+', '.', ','].contains(&c))
    {
        return None;
    }
    let plain = match (text.contains(','), text.contains('.')) {
        (false, _) => text.to_owned(),
        (true, true) if text.rfind(',') > text.rfind('.') => text.replace('.', "").replace(',', "."),
        (true, true) => text.replace(',', ""),
        (true, false) if comma_is_decimal || !separates_thousands(text, ',') => text.replacen(',', ".", 1),
        (true, false) => text.replace(',', ""),
    };
    plain.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| value * factor)
}

/// Reads a whole number of a table with decimal commas: `720.000` has thousands. `None` where the text is none, has a fraction, or
/// may have thousands that a comma separates.
pub(super) fn count(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('\u{a0}').trim();
    let is_grouped = |by: char| text.contains(by) && separates_thousands(text, by);
    if is_grouped('.') {
        return number(&text.replace('.', ""), true);
    }
    let value = number(text, true).filter(|value| value.fract() == 0.0)?;
    (!is_grouped(',')).then_some(value)
}

/// Whether a character separates groups of three digits.
fn separates_thousands(text: &str, by: char) -> bool {
    let mut groups = text.trim_start_matches(['-', '+']).split(by);
    let first = groups.next().unwrap_or_default();
    let is_group = |group: &str| group.len() == 3 && group.bytes().all(|byte| byte.is_ascii_digit());
    // "0,005" has no thousands.
    (1..=3).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_digit())
        && !first.starts_with('0')
        && groups.all(is_group)
}

/// Whether a cell says that there is no figure.
pub(super) fn is_none(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || text.starts_with("##")
        || ["null", "n/a", "na", "nan", "-", "-nan"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_points_between_thousands_and_no_fraction() {
        for (text, value) in [
            ("720", 720.0),
            ("720.000", 720_000.0),
            ("1.234.567", 1_234_567.0),
            ("1200,00", 1200.0),
            ("1.234,0", 1234.0),
            ("0", 0.0),
            ("0,000", 0.0),
            ("1234.00", 1234.0),
        ] {
            assert_eq!(count(text), Some(value), "{text}");
        }
        for text in
            ["720.5", "7200.125", "0.500", "1.23.456", "12,5", "1.234,5", "720,000", "1,234,567", "x", ""]
        {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_every_country_are_read() {
        for (text, value) in [
            ("1234", 1234.0),
            ("1,234", 1234.0),
            ("1,234,567", 1_234_567.0),
            ("12,5", 12.5),
            ("1.234,5", 1234.5),
            ("1,234.5", 1234.5),
            (".5", 0.5),
            ("2.1M", 2_100_000.0),
            ("45.00%", 45.0),
            ("-3", -3.0),
        ] {
            assert_eq!(number(text, false), Some(value), "{text}");
        }
        assert_eq!((number("1,234", true), number("0,005", false)), (Some(1.234), Some(0.005)));
        for text in ["", "x", "inf", "NaN", "1,2,3", "12a", "#####", "é", "%", "K"] {
            assert_eq!(number(text, false), None, "{text}");
        }
        assert!(is_none("NULL") && is_none("########") && !is_none("0"));
    }
}
