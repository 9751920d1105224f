//! The vocabulary of whatever can be read and written: a volume, a drive, a connection to one.
//!
//! [`BlockTarget`] is what a layer offers to the one above it, a protocol to the load generator, an array to a protocol.
//!
//! What it does not do: it knows nothing of drives, pools or protocols.

use std::future::Future;

use tier0_units::{Lba, SectorCount};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth};

/// What a target says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetInfo {
    /// Its size.
    pub sectors: SectorCount,
    /// Sectors that requests must be aligned to.
    pub block_sectors: u32,
    /// Whether a flush is needed to make completed writes stable.
    pub volatile_cache: bool,
}

/// A run of sectors that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockStatus {
    /// How many.
    pub sectors: u64,
    /// Whether space is allocated for them.
    pub allocated: bool,
    /// Whether they read as zeros.
    pub zero: bool,
}

/// Something with sectors: a volume, a drive, a connection to one.
///
/// Requests that are out of range or misaligned end with an error and change nothing. The buffer of a read comes
/// back in any case.
pub trait BlockTarget {
    /// Size, alignment and cache.
    fn info(&self) -> TargetInfo;

    /// Waits until a request that moves so many sectors may begin, where the target limits what hosts ask in a second. False where
    /// `is_gone` says meanwhile that the host is gone: its request must not begin any more.
    fn admit(&self, sectors: u64, is_gone: &dyn Fn() -> bool) -> impl Future<Output = bool> {
        let _ = (sectors, is_gone);
        async { true }
    }

    /// Reads as many sectors as `buf` holds.
    fn read(&self, lba: Lba, buf: BufMut) -> impl Future<Output = (Result<(), IoError>, BufMut)>;

    /// Writes `buf`; `durable` makes it stable before it ends.
    fn write(&self, lba: Lba, buf: Buf, durable: bool) -> impl Future<Output = Result<(), IoError>>;

    /// Makes every completed write stable.
    fn flush(&self) -> impl Future<Output = Result<(), IoError>>;

    /// The content is no longer needed; afterwards it may be anything the target once held there, or zeros.
    fn discard(&self, lba: Lba, sectors: u64) -> impl Future<Output = Result<(), IoError>>;

    /// Makes the range read as zeros; `may_discard` allows giving its space back.
    fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        may_discard: bool,
        durable: bool,
    ) -> impl Future<Output = Result<(), IoError>>;

    /// What is allocated in the range, as runs that cover it from its start, at least one and at most `runs_max`.
    fn block_status(
        &self,
        lba: Lba,
        sectors: u64,
        runs_max: usize,
    ) -> impl Future<Output = Result<Vec<BlockStatus>, IoError>> {
        let _ = (lba, runs_max);
        async move { Ok(vec![BlockStatus { sectors, allocated: true, zero: false }]) }
    }
}

/// Zeros are written in pieces of at most this many sectors (1 MiB), so that a large range needs little memory.
const ZERO_PIECE_SECTORS: u64 = 2048;

/// Makes a range read as zeros by writing them: what [`BlockTarget::write_zeroes`] does where nothing better is known.
pub async fn write_zeros(
    target: &impl BlockTarget,
    width: PayloadWidth,
    lba: Lba,
    sectors: u64,
    durable: bool,
) -> Result<(), IoError> {
    let zeros = BufMut::zeroed(sectors.min(ZERO_PIECE_SECTORS) as u32, width).freeze();
    let mut done = 0;
    while done < sectors {
        let step = ZERO_PIECE_SECTORS.min(sectors - done);
        target.write(Lba(lba.0 + done), zeros.slice(0, step as u32), durable).await?;
        done += step;
    }
    Ok(())
}
