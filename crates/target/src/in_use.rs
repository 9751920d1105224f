//! An export as one connection uses it: what it asks is counted for the connection.

use std::rc::Rc;

use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_stats::{IoRecorder, Op};
use tier0_units::{Lba, SECTOR_BYTES};
use tier0_world::{Buf, BufMut, IoError};

use super::channel::Channel;
use super::export::Export;

/// An export's target, of which a connection's protocol asks what its client wants. A request that the protocol cuts into
/// pieces counts for each of them.
pub struct InUse<T> {
    export: Rc<Export<T>>,
    channel: Rc<Channel>,
}

impl<T> InUse<T> {
    pub(crate) fn new(export: &Rc<Export<T>>, channel: &Rc<Channel>) -> InUse<T> {
        InUse { export: export.clone(), channel: channel.clone() }
    }

    async fn counted<A>(
        &self,
        (op, sectors): (Op, u64),
        request: impl Future<Output = A>,
        is_ok: impl FnOnce(&A) -> bool,
    ) -> A {
        let world = self.channel.world();
        let began = IoRecorder::began(|| world.now());
        let outcome = request.await;
        let latency = || world.now().saturating_sub(began);
        self.channel.stats.ended(op, sectors * SECTOR_BYTES, latency, is_ok(&outcome));
        outcome
    }
}

impl<T: BlockTarget> InUse<T> {
    /// Waits until a request that moves so many sectors may begin. One whose client has gone meanwhile does not: the client that
    /// comes next must not find its own writes overwritten.
    async fn admitted(&self, sectors: u64) -> Result<(), IoError> {
        let is_gone = || self.channel.is_abandoned();
        match self.export.target.admit(sectors, &is_gone).await {
            true => Ok(()),
            false => Err(IoError::Gone),
        }
    }
}

impl<T: BlockTarget> BlockTarget for InUse<T> {
    fn info(&self) -> TargetInfo {
        self.export.target.info()
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let what = (Op::Read, u64::from(buf.sectors()));
        let read = async {
            match self.admitted(what.1).await {
                Ok(()) => self.export.target.read(lba, buf).await,
                Err(error) => (Err(error), buf),
            }
        };
        self.counted(what, read, |(result, _)| result.is_ok()).await
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let what = (Op::Write, u64::from(buf.sectors()));
        let write = async {
            self.admitted(what.1).await?;
            self.export.target.write(lba, buf, durable).await
        };
        self.counted(what, write, Result::is_ok).await
    }

    async fn flush(&self) -> Result<(), IoError> {
        self.counted((Op::Flush, 0), self.export.target.flush(), Result::is_ok).await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        let discard = async {
            self.admitted(0).await?;
            self.export.target.discard(lba, sectors).await
        };
        self.counted((Op::Discard, sectors), discard, Result::is_ok).await
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        let zeroing = async {
            self.admitted(0).await?;
            self.export.target.write_zeroes(lba, sectors, may_discard, durable).await
        };
        self.counted((Op::Discard, sectors), zeroing, Result::is_ok).await
    }

    async fn block_status(
        &self,
        lba: Lba,
        sectors: u64,
        runs_max: usize,
    ) -> Result<Vec<BlockStatus>, IoError> {
        self.export.target.block_status(lba, sectors, runs_max).await
    }
}
