//! Lines of a text, of bounded length.

use std::io::{BufRead, Read};

use super::error::ReadError;

/// The longest line of a text. Reports are tables for people; a longer line is no line of theirs.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// A file that is read line by line.
pub(super) struct Lines<'a> {
    /// Its name in messages.
    pub(super) file: &'a str,
    input: &'a mut dyn BufRead,
    buffer: Vec<u8>,
    /// The number of the line that was read last.
    pub(super) number: u64,
    /// Whether the line that was read last has no end.
    pub(super) is_cut: bool,
}

impl<'a> Lines<'a> {
    /// The lines of `input`.
    pub(super) fn new(file: &'a str, input: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { file, input, buffer: Vec::new(), number: 0, is_cut: false }
    }

    /// The next line without its end; bytes that are no UTF-8 are replaced.
    pub(super) fn next(&mut self) -> Result<Option<String>, ReadError> {
        self.buffer.clear();
        let mut limited = (&mut *self.input).take(LINE_BYTES_MAX + 1);
        let read = limited.read_until(b'\n', &mut self.buffer);
        let read = read.map_err(|source| ReadError::System { file: self.file.to_owned(), source })?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.is_cut = self.buffer.last() != Some(&b'\n');
        if read as u64 > LINE_BYTES_MAX {
            return Err(self.wrong(format!(
                "the line has more than {LINE_BYTES_MAX} bytes; give the report as it was written, with its line ends"
            )));
        }
        let text = String::from_utf8_lossy(&self.buffer);
        let text = text.trim_end_matches(['\n', '\r']);
        Ok(Some(if text.contains('\u{1b}') { without_colours(text) } else { text.to_owned() }))
    }

    /// An error in the line that was read last.
    pub(super) fn wrong(&self, fact: impl Into<String>) -> ReadError {
        ReadError::Wrong {
            file: self.file.to_owned(),
            line: self.number.max(1),
            column: None,
            fact: fact.into(),
        }
    }
}

/// A line without the colours that sysstat gives to a terminal: `ESC [ 32;22 m`.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |plain, piece| {
        plain + piece.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or("")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(
            without_colours("10:00:01 \u{1b}[32;22m  all\u{1b}[0m\u{1b}[34;1m 1.50\u{1b}[0m"),
            "10:00:01   all 1.50"
        );
        assert_eq!(without_colours("\u{1b}[\u{1b}["), "");
    }
}
