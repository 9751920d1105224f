//! A zstd stream: frames that follow each other, some of which are to be skipped.

use std::error::Error;
use std::io::{self, BufRead, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Reads the content of all frames.
pub(crate) struct ZstdReader<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdReader<R> {
    /// Frames whose window is larger than so many bytes are refused before memory is taken for them.
    pub(crate) fn new(input: R, window_max: u64) -> ZstdReader<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(window_max);
        ZstdReader { input, decoder, in_frame: false }
    }

    /// Begins the next frame; false where there is none.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped =
                        io::copy(&mut self.input.by_ref().take(u64::from(length)), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(told(error)),
            }
        }
        Ok(false)
    }

    /// The frame has been decoded: its checksum, if it has one, must be that of its content.
    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(ErrorKind::InvalidData, "a frame's checksum does not match"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                self.in_frame = self.begin_frame()?;
                if !self.in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let strategy = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, strategy).map_err(told)?;
            }
            let count = self.decoder.read(buf)?;
            if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
                self.end_frame()?;
            }
            if count > 0 || buf.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// A decoder's error, of the kind that the input's had if it comes from there.
fn told(error: FrameDecoderError) -> io::Error {
    if let FrameDecoderError::WindowSizeTooBig { .. } = error {
        return io::Error::new(ErrorKind::OutOfMemory, error);
    }
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(next) = cause {
        if let Some(input) = next.downcast_ref::<io::Error>() {
            return match input.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(input.kind(), error),
            };
        }
        cause = next.source();
    }
    io::Error::new(ErrorKind::InvalidData, error)
}
