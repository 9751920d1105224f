//! One request: its data, its verification, its answer.

use tier0_block::BlockTarget;
use tier0_units::{Nanos, SectorCount};
use tier0_world::{BufMut, IoError};

use super::shared::Shared;
use crate::draw::{IoKind, Request};
use crate::stats::EndedBy;
use crate::verify::{Mismatch, ReadTicket, WriteTicket};

/// What a buffer holds before a verified read: no sector that a load writes.
const POISON: u8 = 0xa5;

/// What a task keeps from request to request.
#[derive(Default)]
pub(super) struct Scratch {
    buf: Option<BufMut>,
    read: ReadTicket,
    write: WriteTicket,
}

impl<T: BlockTarget> Shared<T> {
    /// Issues a request and counts its answer, from `intended` on.
    pub(super) async fn issue(
        &self,
        stream: usize,
        request: Request,
        intended: Nanos,
        scratch: &mut Scratch,
    ) {
        self.enter();
        let result = match request.kind {
            IoKind::Read => self.read(stream, &request, intended, scratch).await,
            IoKind::Write => self.write(stream, &request, intended, scratch).await,
        };
        if let Err(error) = result {
            let name = if request.kind == IoKind::Read { "read" } else { "write" };
            self.failed(request.kind, || {
                format!("{name} of {} sectors at sector {}: {error}", request.sectors, request.lba)
            });
        }
        self.leave();
    }

    async fn read(
        &self,
        stream: usize,
        request: &Request,
        intended: Nanos,
        scratch: &mut Scratch,
    ) -> Result<(), IoError> {
        let sectors = request.sectors.0 as u32;
        let buf = scratch.buf.take().filter(|buf| buf.sectors() == sectors);
        let mut buf = buf.unwrap_or_else(|| self.world.buffer(sectors));
        if let Some(verifier) = &self.verifier {
            poison(&mut buf);
            verifier.borrow().begin_read(request.lba, request.sectors, &mut scratch.read);
        }
        let (result, buf) = self.target.read(request.lba, buf).await;
        if result.is_ok() {
            self.answered(stream, request, intended, self.world.now());
            if !self.check(&scratch.read, &buf) {
                self.end(EndedBy::Mismatch);
            }
        }
        scratch.buf = Some(buf);
        result
    }

    async fn write(
        &self,
        stream: usize,
        request: &Request,
        intended: Nanos,
        scratch: &mut Scratch,
    ) -> Result<(), IoError> {
        let sectors = request.sectors.0 as u32;
        let durable = self.streams[stream].durable;
        let data = match &self.verifier {
            None => self.pattern(sectors),
            Some(verifier) => {
                let mut buf = self.world.buffer(sectors);
                verifier.borrow_mut().begin_write(request.lba, buf.as_mut_slice(), &mut scratch.write);
                buf.freeze()
            }
        };
        let result = self.target.write(request.lba, data, durable).await;
        if result.is_ok() {
            self.answered(stream, request, intended, self.world.now());
        }
        if let Some(verifier) = &self.verifier {
            verifier.borrow_mut().end_write(&scratch.write, result.is_ok());
        }
        result
    }

    /// A buffer for a verified read.
    pub(super) fn checked_buffer(&self, sectors: u32) -> BufMut {
        let mut buf = self.world.buffer(sectors);
        poison(&mut buf);
        buf
    }

    /// Judges what a read brought, and counts it; true where there is nothing to verify.
    pub(super) fn check(&self, ticket: &ReadTicket, buf: &BufMut) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        let verdict = verifier.borrow_mut().end_read(ticket, buf.as_slice());
        let mut meter = self.meter.borrow_mut();
        meter.verify.sectors_checked += u64::from(buf.sectors());
        let Err((mismatch, sectors)) = verdict else { return true };
        meter.verify.sectors_wrong += sectors;
        meter.verify.first.get_or_insert_with(|| describe(&mismatch, SectorCount(sectors)));
        false
    }
}

/// A target that answers without reading must not find the right data already there.
fn poison(buf: &mut BufMut) {
    buf.as_mut_slice().fill(POISON);
}

fn describe(mismatch: &Mismatch, sectors: SectorCount) -> String {
    if sectors.0 == 1 {
        return mismatch.to_string();
    }
    format!("{mismatch} (and {} more sectors of the same read)", sectors.0 - 1)
}
