//! A write whose payload is arriving: it is cut into pieces, each of which is admitted before its bytes are taken, and begun
//! when they are there.

use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_target::{Broken, Owed};
use tier0_units::SECTOR_BYTES;
use tier0_world::{BufMut, IoError, PlantedBug, planted};

use super::answer::Answer;
use super::connection::Client;
use super::pieces::Pieces;
use super::request;
use crate::protocol::Errno;

/// What a request without payload counts for in the flow, in bytes.
pub(super) const SMALL_REQUEST_BYTES: u64 = 512;

/// A write that has begun to arrive.
pub(super) struct Incoming<T> {
    client: Rc<Client<T>>,
    cookie: u64,
    outcome: Outcome,
}

/// What becomes of a write once its payload is there.
enum Outcome {
    Write(Write),
    Refused(Owed, Errno),
}

struct Write {
    /// Where the next piece begins.
    offset: u64,
    /// Bytes that belong to no piece yet.
    left: u32,
    piece_bytes: u32,
    fua: bool,
    /// Of a write of more than one piece.
    pieces: Option<Pieces>,
    piece: Option<Piece>,
}

/// The piece that is being filled.
struct Piece {
    owed: Owed,
    buf: BufMut,
    filled: usize,
}

impl<T: BlockTarget + 'static> Incoming<T> {
    /// A write of `length` bytes, not 0.
    pub(super) fn write(
        client: &Rc<Client<T>>,
        cookie: u64,
        (offset, length): (u64, u32),
        fua: bool,
        piece_bytes: u32,
    ) -> Incoming<T> {
        let pieces = (length > piece_bytes).then(|| Pieces::new(length, piece_bytes));
        let write = Write { offset, left: length, piece_bytes, fua, pieces, piece: None };
        Incoming { client: client.clone(), cookie, outcome: Outcome::Write(write) }
    }

    /// A write that is answered with `errno` when its payload is over.
    pub(super) fn refused(client: &Rc<Client<T>>, cookie: u64, owed: Owed, errno: Errno) -> Incoming<T> {
        Incoming { client: client.clone(), cookie, outcome: Outcome::Refused(owed, errno) }
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Refused(..))
    }

    /// Takes the next bytes of the payload.
    pub(super) async fn take(&mut self, mut payload: &[u8]) -> Result<(), Broken> {
        while let Outcome::Write(write) = &mut self.outcome
            && !payload.is_empty()
        {
            let mut piece = write.next_piece(&self.client).await?;
            let room = &mut piece.buf.as_mut_slice()[piece.filled..];
            let count = room.len().min(payload.len());
            room[..count].copy_from_slice(&payload[..count]);
            payload = &payload[count..];
            piece.filled += count;
            self.keep_or_begin(piece);
        }
        Ok(())
    }

    /// Receives the next bytes of the payload straight to where they belong; how many, none at the end of the stream.
    pub(super) async fn receive(&mut self) -> Result<Result<usize, IoError>, Broken> {
        let Outcome::Write(write) = &mut self.outcome else {
            unreachable!("a refused write has no place for its payload")
        };
        let Piece { owed, buf, filled } = write.next_piece(&self.client).await?;
        let (result, buf) = self.client.channel.receive_into(buf, filled).await;
        let filled = filled + result.unwrap_or(0);
        self.keep_or_begin(Piece { owed, buf, filled });
        Ok(result)
    }

    fn keep_or_begin(&mut self, piece: Piece) {
        let Outcome::Write(write) = &mut self.outcome else { unreachable!("a piece is of a write") };
        if piece.filled < piece.buf.as_slice().len() {
            write.piece = Some(piece);
            return;
        }
        self.begin(piece);
    }

    fn begin(&mut self, piece: Piece) {
        let Outcome::Write(write) = &mut self.outcome else { unreachable!("a piece is of a write") };
        let offset = write.offset;
        write.offset += piece.buf.as_slice().len() as u64;
        let answer = Answer {
            owed: piece.owed,
            cookie: self.cookie,
            structured: self.client.session.structured_replies,
        };
        let pieces = write.pieces.clone();
        request::spawn_write(&self.client, answer, offset, piece.buf.freeze(), write.fua, pieces);
    }

    /// The payload is over.
    pub(super) fn finish(self) {
        if let Outcome::Refused(owed, errno) = self.outcome {
            let structured = self.client.session.structured_replies;
            request::refuse(&self.client, Answer { owed, cookie: self.cookie, structured }, errno);
        }
    }

    /// The rest of the payload will not come.
    pub(super) fn truncated(mut self) {
        if planted(PlantedBug::WriteHalfReceived)
            && let Outcome::Write(write) = &mut self.outcome
            && let Some(piece) = write.piece.take()
        {
            self.begin(piece);
        }
    }
}

impl Write {
    /// The piece that has room for more: the one that has some already, or a new one.
    async fn next_piece<T>(&mut self, client: &Client<T>) -> Result<Piece, Broken> {
        if let Some(piece) = self.piece.take() {
            return Ok(piece);
        }
        let bytes = self.left.min(self.piece_bytes);
        self.left -= bytes;
        let owed = client.channel.admit(u64::from(bytes)).await?;
        let buf = client.channel.world().buffer((u64::from(bytes) / SECTOR_BYTES) as u32);
        Ok(Piece { owed, buf, filled: 0 })
    }
}
