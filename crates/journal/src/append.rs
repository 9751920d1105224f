//! What is appended, and the future that waits for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tier0_world::Buf;
use tier0_world::sync::oneshot;

use crate::frame::Extent;
use crate::region::{BLOCK_BYTES, BLOCK_SECTORS};
use crate::{Position, RingError};

/// A record to be appended.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Bytes that the owner understands.
    pub header: Vec<u8>,
    /// Data, in buffers of one or more whole pages (8 sectors each). Pages are numbered through all buffers.
    pub pages: Vec<Buf>,
}

impl Record {
    /// Pages in all buffers.
    pub fn page_count(&self) -> u64 {
        self.pages.iter().map(|buf| u64::from(buf.sectors() / BLOCK_SECTORS)).sum()
    }

    /// Blocks of content in its pages, which are fewer where the world keeps no data.
    pub(crate) fn kept_blocks(&self) -> u64 {
        self.pages.iter().map(|buf| (buf.as_slice().len() / BLOCK_BYTES) as u64).sum()
    }

    pub(crate) fn check(&self) {
        for buf in &self.pages {
            assert!(buf.sectors().is_multiple_of(BLOCK_SECTORS), "a record has whole pages of 8 sectors");
        }
        assert!(u32::try_from(self.header.len()).is_ok(), "a record's header is shorter than 4 GiB");
    }

    /// `extent` with this record in it.
    pub(crate) fn extend(&self, extent: Extent) -> Extent {
        extent.with(self.header.len(), self.page_count())
    }
}

/// What an append ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The record's name.
    pub position: Position,
}

pub(crate) type AppendResult = Result<Appended, RingError>;

/// The future of [`crate::Ring::append`]. The record is under way whether or not this is polled or dropped.
#[must_use = "whether the record is stable is known only to this future"]
pub struct Append(pub(crate) State);

pub(crate) enum State {
    Refused(RingError),
    Waiting(oneshot::Receiver<AppendResult>),
}

impl Future for Append {
    type Output = AppendResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AppendResult> {
        match &mut self.0 {
            State::Refused(error) => Poll::Ready(Err(error.clone())),
            State::Waiting(receiver) => {
                Pin::new(receiver).poll(context).map(|result| result.unwrap_or(Err(RingError::Closed)))
            }
        }
    }
}
