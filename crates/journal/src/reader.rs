//! Reading one copy of a ring block by block, with large reads underneath, and verifying frames.
//!
//! What cannot be read is told apart from what is not valid: the one may hold acknowledged records, the other does not.

use tier0_world::{Buf, BufMut, IoError};

use crate::Region;
use crate::frame::{self, Extent, Frame, Link};
use crate::region::{BLOCK_BYTES, BLOCK_SECTORS};

/// Blocks read at once, 256 KiB.
const WINDOW_BLOCKS: u64 = 64;

/// What one copy holds in some place.
pub(crate) enum Found<T> {
    /// What was looked for.
    Valid(T),
    /// Something else.
    Invalid,
    /// The drive cannot tell.
    Unreadable(IoError),
}

impl<T> Found<T> {
    pub(crate) fn as_valid(&self) -> Option<&T> {
        match self {
            Found::Valid(value) => Some(value),
            Found::Invalid | Found::Unreadable(_) => None,
        }
    }

    pub(crate) fn into_valid(self) -> Option<T> {
        match self {
            Found::Valid(value) => Some(value),
            Found::Invalid | Found::Unreadable(_) => None,
        }
    }

    pub(crate) fn error(&self) -> Option<IoError> {
        match self {
            Found::Unreadable(error) => Some(*error),
            Found::Valid(_) | Found::Invalid => None,
        }
    }
}

/// A frame's header section as it was read, with padding, and what it says.
#[derive(Clone)]
pub(crate) struct Section {
    pub(crate) bytes: Vec<u8>,
    pub(crate) frame: Frame,
}

/// Reads one copy.
pub(crate) struct Reader {
    pub(crate) copy: usize,
    region: Region,
    blocks: u64,
    window: Option<(u64, Buf)>,
}

impl Reader {
    pub(crate) fn new(copy: usize, region: Region, blocks: u64) -> Reader {
        Reader { copy, region, blocks, window: None }
    }

    /// The block `at`, counted without end.
    async fn block(&mut self, at: u64) -> Result<Buf, IoError> {
        if let Some((first, buf)) = &self.window
            && let Some(skip) = at.checked_sub(*first)
            && skip < u64::from(buf.sectors() / BLOCK_SECTORS)
        {
            return Ok(buf.slice(skip as u32 * BLOCK_SECTORS, BLOCK_SECTORS));
        }
        let count = WINDOW_BLOCKS.min(self.blocks - at % self.blocks);
        if let Ok(buf) = self.region.read(self.blocks, at, count).await {
            let block = buf.slice(0, BLOCK_SECTORS);
            self.window = Some((at, buf));
            return Ok(block);
        }
        // One bad sector must not hide its neighbours.
        self.region.read(self.blocks, at, 1).await
    }

    /// What was read before may have changed since.
    pub(crate) fn forget(&mut self) {
        self.window = None;
    }

    /// Looks for the header section of a frame at block `at` that takes at most `room` blocks and that `fits`. Reads no
    /// further than the first block if that one does not fit.
    pub(crate) async fn section(
        &mut self,
        at: u64,
        room: u64,
        fits: impl Fn(&Link) -> bool,
    ) -> Found<Section> {
        let first = match self.block(at).await {
            Ok(first) => first,
            Err(error) => return Found::Unreadable(error),
        };
        let extent = match frame::peek(first.as_slice()) {
            Some((link, extent)) if fits(&link) && extent.blocks() <= room => extent,
            _ => return Found::Invalid,
        };
        let mut bytes = first.as_slice().to_vec();
        for i in 1..extent.header_blocks() {
            match self.block(at + i).await {
                Ok(block) => bytes.extend_from_slice(block.as_slice()),
                Err(error) => return Found::Unreadable(error),
            }
        }
        match frame::parse(&bytes) {
            Some(frame) => Found::Valid(Section { bytes, frame }),
            None => Found::Invalid,
        }
    }

    /// The pages of a frame whose header section is known from here or from another copy.
    pub(crate) async fn pages(&mut self, frame: &Frame) -> Vec<Found<Buf>> {
        let first = frame.link.block + frame.extent().header_blocks();
        let mut pages = Vec::with_capacity(frame.page_checksums.len());
        for (at, checksum) in (first..).zip(&frame.page_checksums) {
            pages.push(match self.block(at).await {
                // A copy, because a slice would keep its whole window in memory as long as one page is needed.
                Ok(block) if frame::is_page(&block, *checksum) => {
                    let width = self.region.drive.world().width();
                    Found::Valid(BufMut::keep_of(block.as_slice(), width).freeze())
                }
                Ok(_) => Found::Invalid,
                Err(error) => Found::Unreadable(error),
            });
        }
        pages
    }
}

impl Section {
    /// The whole frame as it is written.
    pub(crate) fn image(&self, pages: &[Buf]) -> Buf {
        let extent: Extent = self.frame.extent();
        let kept = pages.iter().map(|page| page.as_slice().len() / BLOCK_BYTES).sum::<usize>();
        let mut image = frame::buffer(extent, kept as u64);
        let (section, data) = image.as_mut_slice().split_at_mut(self.bytes.len());
        section.copy_from_slice(&self.bytes);
        for (place, page) in data.chunks_exact_mut(BLOCK_BYTES).zip(pages) {
            place.copy_from_slice(page.as_slice());
        }
        image.freeze()
    }
}
