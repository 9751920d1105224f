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
    fn words_and_columns() {
        let mut line = &b"  8,0\t 3  "[..];
        assert_eq!([word(&mut line), word(&mut line), word(&mut line)], [&b"8,0"[..], b"3", b""]);
        let mut line = &b"a,,b"[..];
        let columns = [(); 4].map(|()| column(&mut line));
        assert_eq!(columns, [Some(&b"a"[..]), Some(b""), Some(b"b"), None]);
    }
}
