//! Rows in COPY's text form, with random letters and digits in them.

use std::io::Write;

use tier0_world::Random;

/// What one item or stock row in ten has in its data.
const ORIGINAL: &[u8] = b"ORIGINAL";
/// Random characters from which strings are cut at random places.
const POOL_BYTES: usize = 1 << 16;
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A number from `low` to `high`.
pub(crate) fn between(random: &mut Random, low: i64, high: i64) -> i64 {
    low + random.below((high - low + 1) as u64) as i64
}

/// Rows in COPY's text form, with random strings in them.
pub(crate) struct Lines {
    pool: Vec<u8>,
    bytes: Vec<u8>,
}

impl Lines {
    /// None yet.
    pub(crate) fn new(random: &mut Random) -> Lines {
        let letter = |_| LETTERS[random.below(LETTERS.len() as u64) as usize];
        Lines { pool: (0..POOL_BYTES).map(letter).collect(), bytes: Vec::new() }
    }

    /// Takes what has been written.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// A field that needs no escapes.
    pub(crate) fn field(&mut self, value: impl std::fmt::Display) -> &mut Lines {
        write!(self.bytes, "{value}\t").expect("memory takes it");
        self
    }

    /// The value that is none.
    pub(crate) fn null(&mut self) -> &mut Lines {
        self.field("\\N")
    }

    /// An amount of so many cents.
    pub(crate) fn cents(&mut self, cents: i64) -> &mut Lines {
        let sign = if cents < 0 { "-" } else { "" };
        self.field(format_args!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100))
    }

    /// A rate of so many ten-thousandths.
    pub(crate) fn rate(&mut self, parts: i64) -> &mut Lines {
        self.field(format_args!("0.{parts:04}"))
    }

    /// A string of `low` to `high` random letters and digits.
    pub(crate) fn letters(&mut self, random: &mut Random, low: usize, high: usize) -> &mut Lines {
        self.cut(random, low, high);
        self.bytes.push(b'\t');
        self
    }

    /// So many random letters and digits, also more than there are random ones: they repeat.
    pub(crate) fn text(&mut self, random: &mut Random, length: usize) -> &mut Lines {
        let mut left = length;
        while left > 0 {
            let some = left.min(POOL_BYTES / 2);
            self.cut(random, some, some);
            left -= some;
        }
        self.bytes.push(b'\t');
        self
    }

    /// The same as [`Lines::letters`], which in one case of ten has [`ORIGINAL`] somewhere (clause 4.3.3.1).
    pub(crate) fn data(&mut self, random: &mut Random, low: usize, high: usize) -> &mut Lines {
        let length = self.cut(random, low, high);
        if random.below(10) == 0 {
            let at = self.bytes.len() - length + random.below((length - ORIGINAL.len() + 1) as u64) as usize;
            self.bytes[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
        self.bytes.push(b'\t');
        self
    }

    /// Two streets, a city, a state and a zip code (clause 4.3.2.7).
    pub(crate) fn address(&mut self, random: &mut Random) -> &mut Lines {
        self.letters(random, 10, 20).letters(random, 10, 20).letters(random, 10, 20).letters(random, 2, 2);
        let zip = random.below(10_000);
        self.field(format_args!("{zip:04}11111"))
    }

    /// The row is complete.
    pub(crate) fn end(&mut self) {
        let last = self.bytes.last_mut().expect("a row has fields");
        *last = b'\n';
    }

    fn cut(&mut self, random: &mut Random, low: usize, high: usize) -> usize {
        let length = between(random, low as i64, high as i64) as usize;
        let from = random.below((POOL_BYTES - length) as u64) as usize;
        self.bytes.extend_from_slice(&self.pool[from..from + length]);
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_fields() {
        let mut random = Random::new(1, 1);
        let mut lines = Lines::new(&mut random);
        lines.field(7).null().cents(-1000).cents(5).rate(42).end();
        lines.letters(&mut random, 3, 3).data(&mut random, 26, 50).end();
        let text = String::from_utf8(lines.take()).expect("text");
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "7\t\\N\t-10.00\t0.05\t0.0042");
        let fields: Vec<&str> = rows[1].split('\t').collect();
        assert_eq!((fields.len(), fields[0].len()), (2, 3));
        assert!((26..=50).contains(&fields[1].len()));
    }
}
