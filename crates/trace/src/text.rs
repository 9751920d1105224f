//! Lines of text: fields and numbers.

/// A whole decimal number that fits into 64 bits.
#[inline]
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    // Nineteen digits always fit.
    if digits.is_empty() || digits.len() > 19 {
        return long_number(digits);
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

#[cold]
fn long_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Takes the next word off a line of words that blanks and tabs separate; empty at the end of the line.
#[inline]
pub(crate) fn word<'l>(line: &mut &'l [u8]) -> &'l [u8] {
    let start = line.iter().position(|&byte| !is_blank(byte)).unwrap_or(line.len());
    let rest = &line[start..];
    let end = rest.iter().position(|&byte| is_blank(byte)).unwrap_or(rest.len());
    let (word, rest) = rest.split_at(end);
    *line = rest;
    word
}

/// Takes what stands before the next comma, or the rest of the line.
#[inline]
pub(crate) fn column<'l>(line: &mut &'l [u8]) -> Option<&'l [u8]> {
    if line.is_empty() {
        return None;
    }
    let end = line.iter().position(|&byte| byte == b',');
    let (column, rest) = match end {
        Some(end) => (&line[..end], &line[end + 1..]),
        None => (*line, &line[line.len()..]),
    };
    *line = rest;
    Some(column)
}

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// This byte, once.
    Byte(u8),
    /// Blanks and tabs, one or more.
    Blanks,
}

impl Separator {
    /// The one that a line has: a comma, a semicolon, or else blanks.
    pub(crate) fn of(line: &[u8]) -> Separator {
        let known = [b',', b';'].into_iter().find(|byte| line.contains(byte));
        known.map_or(Separator::Blanks, Separator::Byte)
    }

    /// A byte that no field has.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Separator::Byte(byte) => byte,
            Separator::Blanks => b' ',
        }
    }
}

/// The fields of a line, without the blanks around them.
pub(crate) struct Fields<'l> {
    /// None behind the last.
    rest: Option<&'l [u8]>,
    separator: Separator,
}

impl<'l> Fields<'l> {
    pub(crate) fn new(line: &'l [u8], separator: Separator) -> Fields<'l> {
        Fields { rest: Some(line), separator }
    }
}

impl<'l> Iterator for Fields<'l> {
    type Item = &'l [u8];

    #[inline]
    fn next(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest.as_mut()?;
        match self.separator {
            Separator::Blanks => Some(word(rest)).filter(|word| !word.is_empty()),
            Separator::Byte(byte) => {
                let (field, behind) = match rest.iter().position(|&other| other == byte) {
                    Some(end) => (&rest[..end], Some(&rest[end + 1..])),
                    None => (*rest, None),
                };
                self.rest = behind;
                Some(field.trim_ascii())
            }
        }
    }
}

/// A decimal number of some unit of time, whole or with decimals behind a point, in nanoseconds; what is less is dropped.
#[inline]
pub(crate) fn decimal(field: &[u8], unit_ns: u64) -> Option<u128> {
    let point = field.iter().position(|&byte| byte == b'.');
    let (whole, decimals) = match point {
        Some(point) => (&field[..point], &field[point + 1..]),
        None => (field, &b""[..]),
    };
    let (mut parts, mut of) = (0u128, 1u128);
    for digit in decimals {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Twelve are less than a nanosecond of any unit.
        if of < 1_000_000_000_000 {
            parts = parts * 10 + u128::from(digit);
            of *= 10;
        }
    }
    let unit_ns = u128::from(unit_ns);
    Some(u128::from(number(whole)?) * unit_ns + parts * unit_ns / of)
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number(b"0"), Some(0));
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"000000000000000000000000000000000000007"), Some(7));
        for wrong in
            ["", "18446744073709551616", "-1", "+1", " 1", "1 ", "1.5", "0x10", "99999999999999999999999"]
        {
            assert_eq!(number(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_are_nanoseconds() {
        for (text, unit_ns, ns) in [
            ("7", 1_000_000_000, Some(7_000_000_000)),
            ("1455592208.007456001", 1_000_000_000, Some(1_455_592_208_007_456_001)),
            ("0.5", 1000, Some(500)),
            ("3.", 1000, Some(3000)),
            ("18446744073709551615.9999999999999999999999", 1, Some(u128::from(u64::MAX))),
            (".5", 1000, None),
            ("1.5.", 1000, None),
            ("1,5", 1000, None),
            ("-1", 1000, None),
            ("1e9", 1000, None),
            ("", 1000, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), unit_ns), ns, "{text}");
        }
    }

    #[test]
    fn fields_are_what_separators_leave() {
        let fields = |line: &str| {
            let line = line.as_bytes();
            Fields::new(line, Separator::of(line))
                .map(|field| String::from_utf8_lossy(field).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(fields("a, b,,c,"), ["a", "b", "", "c", ""]);
        assert_eq!(fields("a ;b"), ["a", "b"]);
        assert_eq!(fields("  a \t b  "), ["a", "b"]);
    }

    #[test]
    fn words_and_columns() {
        let mut line = &b"  8,0\t 3  "[..];
        assert_eq!([word(&mut line), word(&mut line), word(&mut line)], [&b"8,0"[..], b"3", b""]);
        let mut line = &b"a,,b"[..];
        let columns = [(); 4].map(|()| column(&mut line));
        assert_eq!(columns, [Some(&b"a"[..]), Some(b""), Some(b"b"), None]);
    }
}
