//! Block numbers in text: one decimal number a line. Blank lines and lines that begin with `#` are passed over.

use crate::access::{Access, Op, Place};
use crate::error::Misread;
use crate::text::number;

/// The access of a line; none where it is blank or a comment.
#[inline]
pub(crate) fn parse(line: &[u8]) -> Result<Option<Access>, Misread> {
    match number(line) {
        Some(id) => Ok(Some(access(id))),
        None => unusual(line),
    }
}

fn access(id: u64) -> Access {
    Access { at: None, volume: 0, op: Op::Read, place: Place::Object { id, bytes: None } }
}

#[cold]
fn unusual(line: &[u8]) -> Result<Option<Access>, Misread> {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() || trimmed.starts_with(b"#") {
        return Ok(None);
    }
    if let Some(id) = number(trimmed) {
        return Ok(Some(access(id)));
    }
    let remedy = match trimmed {
        b"*" => "some collections mark the end of a trace so; delete the line",
        _ => "correct or delete the line, or name the format of the file",
    };
    Err(Misread::new("the decimal number of a block, below 2^64", line, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_blank_lines_and_comments() {
        assert_eq!(parse(b"1008"), Ok(Some(access(1008))));
        assert_eq!(parse(b" 7\t"), Ok(Some(access(7))));
        assert_eq!(parse(b"18446744073709551615"), Ok(Some(access(u64::MAX))));
        for passed_over in ["", "  ", "# warm-up", "  #"] {
            assert_eq!(parse(passed_over.as_bytes()), Ok(None), "{passed_over}");
        }
    }

    #[test]
    fn junk_is_an_error() {
        for junk in ["*", "-1", "1 2", "0x1f", "18446744073709551616", "1,2", "1\0", "7#"] {
            let misread = parse(junk.as_bytes()).expect_err(junk);
            assert_eq!(misread.remedy.contains("mark the end"), junk == "*", "{misread:?}");
        }
    }
}
