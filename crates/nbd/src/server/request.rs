//! Runs requests against the export's target, each in a task of its own.

use tier0_drive::{BlockStatus, BlockTarget};
use tier0_units::{Lba, SECTOR_BYTES, SectorCount};
use tier0_world::{Buf, IoError};

use super::owed::Owed;
use crate::protocol::transmission::{
    BASE_ALLOCATION_ID, Command, Extent, put_block_status, put_data_header, put_done, put_simple,
};

/// Most extents in one answer; the client asks on from where they end.
const EXTENTS_MAX: usize = 4096;

/// Starts a request that carries no payload.
pub(super) fn spawn<T: BlockTarget + 'static>(owed: Owed<T>, command: Command) {
    let world = owed.connection.world.clone();
    match command {
        Command::Read { offset, length, .. } => {
            world.spawn(async move { read(owed, offset, length).await }).detach()
        }
        Command::BlockStatus { offset, length, one_extent } => {
            let runs_max = if one_extent { 1 } else { EXTENTS_MAX };
            world.spawn(async move { block_status(owed, offset, length, runs_max).await }).detach();
        }
        command => {
            let changing = async move {
                let result = change(&owed.connection.export.target, command).await;
                owed.answer_io(result);
            };
            world.spawn(changing).detach();
        }
    }
}

/// Starts a write.
pub(super) fn spawn_write<T: BlockTarget + 'static>(owed: Owed<T>, offset: u64, buf: Buf, fua: bool) {
    if buf.sectors() == 0 {
        return owed.answer(Ok(()));
    }
    let world = owed.connection.world.clone();
    let writing = async move {
        let result = owed.connection.export.target.write(lba(offset), buf, fua).await;
        owed.answer_io(result);
    };
    world.spawn(writing).detach();
}

async fn read<T: BlockTarget>(owed: Owed<T>, offset: u64, length: u32) {
    let structured = owed.structured_replies();
    if length == 0 {
        let put =
            if structured { put_done } else { |out: &mut Vec<u8>, cookie| put_simple(out, cookie, None) };
        return owed.answer_with(put, None);
    }
    let buf = owed.connection.world.buffer(sectors(length) as u32);
    let (result, buf) = owed.connection.export.target.read(lba(offset), buf).await;
    if let Err(error) = result {
        return owed.answer_io(Err(error));
    }
    // The data is in memory: nothing can fail any more, so its chunk may be the last.
    let put = |out: &mut Vec<u8>, cookie| {
        if structured {
            put_data_header(out, cookie, offset, length, true)
        } else {
            put_simple(out, cookie, None)
        }
    };
    owed.answer_with(put, Some(buf.freeze()));
}

async fn block_status<T: BlockTarget>(owed: Owed<T>, offset: u64, length: u32, runs_max: usize) {
    match owed.connection.export.target.block_status(lba(offset), sectors(length), runs_max).await {
        Ok(runs) => {
            let extents = extents(&runs, length, runs_max);
            owed.answer_with(|out, cookie| put_block_status(out, cookie, BASE_ALLOCATION_ID, &extents), None);
        }
        Err(error) => owed.answer_io(Err(error)),
    }
}

/// Runs as extents: neighbours that are alike become one, nothing goes past `length` bytes, and there is at least
/// one and at most `extents_max`.
fn extents(runs: &[BlockStatus], length: u32, extents_max: usize) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    let mut left = length;
    for run in runs {
        let run_bytes = SectorCount(run.sectors).saturating_bytes().0.min(u64::from(left)) as u32;
        if run_bytes == 0 {
            continue;
        }
        let extent = Extent { length: run_bytes, hole: !run.allocated, zero: run.zero };
        let full = extents.len() == extents_max;
        match extents.last_mut() {
            Some(last) if (last.hole, last.zero) == (extent.hole, extent.zero) => last.length += run_bytes,
            _ if full => break,
            _ => extents.push(extent),
        }
        left -= run_bytes;
    }
    if extents.is_empty() {
        extents.push(Extent::allocated(length));
    }
    extents
}

/// Everything that changes the target or orders its writes, and carries no payload.
async fn change<T: BlockTarget>(target: &T, command: Command) -> Result<(), IoError> {
    match command {
        Command::Flush => target.flush().await,
        Command::Trim { length: 0, .. } | Command::WriteZeroes { length: 0, .. } | Command::Cache { .. } => {
            Ok(())
        }
        Command::Trim { offset, length, fua } => {
            match target.discard(lba(offset), sectors(length)).await {
                // Trimming is a hint; a target that cannot take it has taken it ("Request types", TRIM).
                Ok(()) | Err(IoError::Unsupported) => {}
                Err(error) => return Err(error),
            }
            if fua { target.flush().await } else { Ok(()) }
        }
        Command::WriteZeroes { offset, length, fua, may_unmap, .. } => {
            target.write_zeroes(lba(offset), sectors(length), may_unmap, fua).await
        }
        Command::Read { .. } | Command::Write { .. } | Command::BlockStatus { .. } => {
            unreachable!("have functions of their own")
        }
    }
}

fn lba(offset: u64) -> Lba {
    Lba(offset / SECTOR_BYTES)
}

fn sectors(length: u32) -> u64 {
    u64::from(length) / SECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_extents_within_the_request() {
        let run = |sectors, allocated| BlockStatus { sectors, allocated, zero: !allocated };
        let runs = [run(2, true), run(0, false), run(1, true), run(4, false), run(u64::MAX, true)];
        let expected = [Extent::allocated(1536), Extent::unallocated(2048), Extent::allocated(512)];
        assert_eq!(extents(&runs, 4096, 9), expected);
        assert_eq!(extents(&runs, 4096, 2), expected[..2]);
        assert_eq!(extents(&runs, 1024, 9), [Extent::allocated(1024)]);
        assert_eq!(extents(&[], 1024, 9), [Extent::allocated(1024)], "at least one is owed");
    }
}
