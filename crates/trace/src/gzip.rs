//! A gzip file: members that follow each other, and zeros behind them, with which tapes and block devices fill their last block.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Reads the content of all members.
pub(crate) struct GzipReader<R> {
    /// None behind the last.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipReader<R> {
    /// Begins with the first member.
    pub(crate) fn new(input: R) -> GzipReader<R> {
        GzipReader { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buf)?;
            if count > 0 || buf.is_empty() {
                return Ok(count);
            }
            self.member = match self.member.take().map(GzDecoder::into_inner) {
                Some(mut input) => has_more(&mut input)?.then(|| GzDecoder::new(input)),
                None => None,
            };
        }
        Ok(0)
    }
}

/// Passes over zeros; whether anything else follows.
fn has_more(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let some = input.fill_buf()?;
        let zeros = some.iter().take_while(|byte| **byte == 0).count();
        let (is_end, is_more) = (some.is_empty(), zeros < some.len());
        input.consume(zeros);
        if is_end || is_more {
            return Ok(is_more);
        }
    }
}
