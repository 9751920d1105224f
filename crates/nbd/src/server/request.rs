//! Runs requests, and pieces of them, against the export's target, each in a task of its own. A request whose client is
//! gone when its turn comes is dropped.

use std::rc::Rc;

use tier0_block::{BlockStatus, BlockTarget};
use tier0_units::{Lba, SECTOR_BYTES, SectorCount};
use tier0_world::{Buf, BufMut, IoError, PlantedBug, planted};

use super::answer::Answer;
use super::connection::Client;
use super::pieces::Pieces;
use crate::protocol::Errno;
use crate::protocol::transmission::{
    BASE_ALLOCATION_ID, Command, Extent, put_block_status, put_data_header, put_done, put_simple,
};

/// Most extents in one answer; the client asks on from where they end.
const EXTENTS_MAX: usize = 4096;
/// What such an answer counts for in the flow, in bytes.
pub(super) const BLOCK_STATUS_BYTES: u64 = 8 * EXTENTS_MAX as u64;

/// Starts a request that carries no payload and is no read.
pub(super) fn spawn<T: BlockTarget + 'static>(client: &Rc<Client<T>>, answer: Answer, command: Command) {
    spawn_task(client, answer, move |client, answer| async move {
        match command {
            Command::BlockStatus { offset, length, one_extent } => {
                let runs_max = if one_extent { 1 } else { EXTENTS_MAX };
                block_status(&client, answer, offset, length, runs_max).await;
            }
            command => {
                let result = change(&client.target, command).await;
                answer.io(result);
            }
        }
    });
}

/// Starts a read that is answered as a whole.
pub(super) fn spawn_read<T: BlockTarget + 'static>(
    client: &Rc<Client<T>>,
    answer: Answer,
    offset: u64,
    length: u32,
    piece_bytes: u32,
) {
    spawn_task(client, answer, move |client, answer| async move {
        if length > piece_bytes {
            read_long(&client, answer, offset, length, piece_bytes).await;
        } else {
            read(&client, answer, offset, length).await;
        }
    });
}

/// Starts a piece of a read that is answered in chunks.
pub(super) fn spawn_read_piece<T: BlockTarget + 'static>(
    client: &Rc<Client<T>>,
    answer: Answer,
    offset: u64,
    length: u32,
    pieces: Pieces,
) {
    spawn_task(client, answer, move |client, answer| async move {
        let buf = client.channel.world().buffer(sectors(length) as u32);
        let (result, buf) = match pieces.have_failed() {
            true => (Ok(()), buf),
            false => client.target.read(lba(offset), buf).await,
        };
        let ended = pieces.ended(result);
        match (ended, result) {
            (Some(Err(error)), _) => answer.io(Err(error)),
            // After the error of another, or an error of its own that is told at the end.
            (None, _) if pieces.have_failed() => {}
            (ended, _) => {
                let done = ended.is_some();
                answer.with(
                    |out, cookie| put_data_header(out, cookie, offset, length, done),
                    Some(buf.freeze()),
                );
            }
        }
    });
}

/// Starts a write, or a piece of one.
pub(super) fn spawn_write<T: BlockTarget + 'static>(
    client: &Rc<Client<T>>,
    answer: Answer,
    offset: u64,
    buf: Buf,
    fua: bool,
    pieces: Option<Pieces>,
) {
    spawn_task(client, answer, move |client, answer| async move {
        let target = &client.target;
        if planted(PlantedBug::AnswerBeforeWrite) && pieces.is_none() {
            answer.io(Ok(()));
            // The client is not told.
            let _ = target.write(lba(offset), buf, fua).await;
            return;
        }
        let result = target.write(lba(offset), buf, fua).await;
        match pieces {
            None => answer.io(result),
            Some(pieces) => {
                // The share of any but the last is given back without an answer.
                if let Some(whole) = pieces.ended(result) {
                    answer.io(whole);
                }
            }
        }
    });
}

/// Answers a request that may not run.
pub(super) fn refuse<T>(client: &Client<T>, answer: Answer, errno: Errno) {
    tracing::debug!(export = client.info.name, %errno, "refused a request");
    answer.result(Err((errno, "the request is invalid for the export")));
}

fn spawn_task<T, F>(
    client: &Rc<Client<T>>,
    answer: Answer,
    run: impl FnOnce(Rc<Client<T>>, Answer) -> F + 'static,
) where
    T: BlockTarget + 'static,
    F: Future<Output = ()> + 'static,
{
    let (world, client) = (client.channel.world().clone(), client.clone());
    let running = async move {
        if answer.owed.has_receiver() {
            run(client, answer).await;
        }
    };
    world.spawn(running).detach();
}

async fn read<T: BlockTarget>(client: &Client<T>, answer: Answer, offset: u64, length: u32) {
    if length == 0 {
        let put = if answer.structured {
            put_done
        } else {
            |out: &mut Vec<u8>, cookie| put_simple(out, cookie, None)
        };
        return answer.with(put, None);
    }
    let buf = client.channel.world().buffer(sectors(length) as u32);
    let (result, buf) = client.target.read(lba(offset), buf).await;
    answer_read(answer, offset, length, result, buf);
}

/// A long read that is answered in one chunk: a piece after the other, so that others have their turn.
async fn read_long<T: BlockTarget>(
    client: &Client<T>,
    answer: Answer,
    offset: u64,
    length: u32,
    piece_bytes: u32,
) {
    let mut rest = client.channel.world().buffer(sectors(length) as u32);
    let mut whole: Option<BufMut> = None;
    let (mut at, mut result) = (offset, Ok(()));
    while rest.sectors() > 0 && result.is_ok() && answer.owed.has_receiver() {
        let piece = rest.split_to(rest.sectors().min(sectors(piece_bytes) as u32));
        let bytes = u64::from(piece.sectors()) * SECTOR_BYTES;
        let piece_after;
        (result, piece_after) = client.target.read(lba(at), piece).await;
        at += bytes;
        match &mut whole {
            Some(whole) => whole.append(piece_after),
            None => whole = Some(piece_after),
        }
        client.channel.give_way().await;
    }
    let buf = whole.expect("a long read has a piece");
    answer_read(answer, offset, length, result, buf);
}

fn answer_read(answer: Answer, offset: u64, length: u32, result: Result<(), IoError>, buf: BufMut) {
    if let Err(error) = result {
        return answer.io(Err(error));
    }
    // The data is in memory: nothing can fail any more, so its chunk may be the last.
    let structured = answer.structured;
    let put = |out: &mut Vec<u8>, cookie| {
        if structured {
            put_data_header(out, cookie, offset, length, true)
        } else {
            put_simple(out, cookie, None)
        }
    };
    answer.with(put, Some(buf.freeze()));
}

async fn block_status<T: BlockTarget>(
    client: &Client<T>,
    answer: Answer,
    offset: u64,
    length: u32,
    runs_max: usize,
) {
    match client.target.block_status(lba(offset), sectors(length), runs_max).await {
        Ok(runs) => {
            let extents = extents(&runs, length, runs_max);
            answer.with(|out, cookie| put_block_status(out, cookie, BASE_ALLOCATION_ID, &extents), None);
        }
        Err(error) => answer.io(Err(error)),
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
        Command::Trim { length: 0, .. }
        | Command::WriteZeroes { length: 0, .. }
        | Command::Write { length: 0, .. }
        | Command::Cache { .. } => Ok(()),
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
