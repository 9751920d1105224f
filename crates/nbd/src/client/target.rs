//! The client as its owner sees it: a block target.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_block::{BlockStatus, BlockTarget, TargetInfo};
use tier0_units::{Lba, SECTOR_BYTES, SectorCount};
use tier0_world::{Buf, BufMut, IoError, World};

use super::connect::enter;
use super::error::ClientError;
use super::link::Link;
use super::options::ClientOptions;
use super::table::Sink;
use crate::protocol::transmission::{Extent, Request, RequestKind};
use crate::protocol::{ExportInfo, NbdUri};

/// Longest range of a request without payload, in sectors: 1 GiB, which is a multiple of every block size.
const RANGE_SECTORS_MAX: u64 = (1 << 30) / SECTOR_BYTES;

/// Zeroes are written in pieces of at most this many sectors (1 MiB) where the server cannot do it itself.
const ZERO_PIECE_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// An export on a server; clones share its connections. When the last one is dropped, they end.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

struct Inner {
    world: World,
    export: ExportInfo,
    block_status: bool,
    links: Vec<Rc<Link>>,
    next: Cell<usize>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.links.iter().for_each(|link| link.abort());
    }
}

impl Client {
    /// Connects to the export that `uri` names.
    ///
    /// # Errors
    /// Where the server cannot be reached, refuses, does not speak NBD, or does not allow as many connections.
    ///
    /// # Panics
    /// Where no connection is asked for.
    pub async fn connect(
        world: &World,
        uri: &NbdUri,
        options: &ClientOptions,
    ) -> Result<Client, ClientError> {
        assert!(options.connections > 0, "a client needs a connection");
        let (socket, first, received) = enter(world, uri, options).await?;
        if options.connections > 1 && !first.export.features.multi_conn {
            return Err(ClientError::NoMultiConn { export: first.export.name });
        }
        // Dropped where a later connection fails, it ends the earlier ones.
        let mut inner = Inner {
            world: world.clone(),
            block_status: first.base_allocation.is_some(),
            links: vec![Link::start(world, socket, &first, received)],
            export: first.export,
            next: Cell::new(0),
        };
        while inner.links.len() < options.connections {
            let (socket, negotiated, received) = enter(world, uri, options).await?;
            inner.links.push(Link::start(world, socket, &negotiated, received));
        }
        Ok(Client(Rc::new(inner)))
    }

    /// What the server says of the export.
    pub fn export(&self) -> &ExportInfo {
        &self.0.export
    }

    /// Lets requests in flight be answered and leaves in good order; later requests fail.
    pub async fn close(&self) {
        for link in &self.0.links {
            link.close().await;
        }
    }

    /// Connections take turns.
    fn link(&self) -> &Link {
        let turn = self.0.next.get();
        self.0.next.set(turn.wrapping_add(1));
        &self.0.links[turn % self.0.links.len()]
    }

    async fn call(
        &self,
        kind: RequestKind,
        lba: Lba,
        sectors: u64,
        flags: impl FnOnce(Request) -> Request,
        data: Option<Buf>,
    ) -> Result<(), IoError> {
        let length = u32::try_from(sectors * SECTOR_BYTES).expect("pieces are short");
        let request = |cookie| flags(Request::new(kind, cookie, lba.byte_offset(), length));
        self.link().call(request, Sink::Nothing, data).await.0
    }

    fn check(&self, lba: Lba, sectors: u64, changes: bool) -> Result<(), IoError> {
        let info = self.info();
        let block = u64::from(info.block_sectors);
        if !lba.0.is_multiple_of(block) || !sectors.is_multiple_of(block) {
            return Err(IoError::Misaligned);
        }
        if lba.0.checked_add(sectors).is_none_or(|end| end > info.sectors.0) {
            return Err(IoError::OutOfRange);
        }
        if changes && self.0.export.features.read_only { Err(IoError::ReadOnly) } else { Ok(()) }
    }

    /// Longest payload, in sectors: the export's limit, cut to whole blocks.
    fn payload_sectors_max(&self) -> u32 {
        let block = self.info().block_sectors;
        (self.0.export.block_sizes.maximum / SECTOR_BYTES as u32 / block * block).max(block)
    }

    async fn read_piece(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let length = u32::try_from(buf.as_slice().len()).expect("pieces are short");
        let request = |cookie| Request::new(RequestKind::Read, cookie, lba.byte_offset(), length);
        let (result, payload) = self.link().call(request, Sink::Data(buf), None).await;
        (result, payload.into_read())
    }

    async fn write_plain_zeroes(&self, lba: Lba, sectors: u64, durable: bool) -> Result<(), IoError> {
        let zeroes = BufMut::zeroed(sectors.min(ZERO_PIECE_SECTORS) as u32, self.0.world.width()).freeze();
        for (at, count) in pieces(lba, sectors, u64::from(zeroes.sectors())) {
            self.write(at, zeroes.slice(0, count as u32), durable).await?;
        }
        Ok(())
    }
}

/// A range in pieces of at most `most` sectors.
fn pieces(lba: Lba, sectors: u64, most: u64) -> impl Iterator<Item = (Lba, u64)> {
    let starts = (0..sectors).step_by(usize::try_from(most).expect("pieces fit into memory"));
    starts.map(move |start| (lba + SectorCount(start), most.min(sectors - start)))
}

impl BlockTarget for Client {
    fn info(&self) -> TargetInfo {
        let export = &self.0.export;
        TargetInfo {
            sectors: SectorCount(export.size_bytes / SECTOR_BYTES),
            block_sectors: (export.block_sizes.minimum / SECTOR_BYTES as u32).max(1),
            volatile_cache: export.features.flush,
        }
    }

    async fn read(&self, lba: Lba, mut buf: BufMut) -> (Result<(), IoError>, BufMut) {
        if let Err(error) = self.check(lba, u64::from(buf.sectors()), false) {
            return (Err(error), buf);
        }
        let most = self.payload_sectors_max();
        if buf.sectors() <= most {
            return self.read_piece(lba, buf).await;
        }
        let mut done = buf.split_to(0);
        while buf.sectors() > 0 {
            let piece = buf.split_to(most.min(buf.sectors()));
            let at = lba + SectorCount(u64::from(done.sectors()));
            let (result, piece) = self.read_piece(at, piece).await;
            done.join(piece);
            if result.is_err() {
                done.join(buf);
                return (result, done);
            }
        }
        (Ok(()), done)
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        self.check(lba, u64::from(buf.sectors()), true)?;
        let fua = durable && self.0.export.features.fua;
        let mut first = 0;
        while first < buf.sectors() {
            let count = self.payload_sectors_max().min(buf.sectors() - first);
            let at = lba + SectorCount(u64::from(first));
            let data = Some(buf.slice(first, count));
            self.call(RequestKind::Write, at, u64::from(count), |r| r.fua(fua), data).await?;
            first += count;
        }
        if durable && !fua { self.flush().await } else { Ok(()) }
    }

    async fn flush(&self) -> Result<(), IoError> {
        if !self.0.export.features.flush {
            return Ok(());
        }
        // One connection's flush covers all of them where several are allowed ("Ordering of messages and writes").
        self.call(RequestKind::Flush, Lba(0), 0, |r| r, None).await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        self.check(lba, sectors, true)?;
        if !self.0.export.features.trim {
            return Err(IoError::Unsupported);
        }
        for (at, count) in pieces(lba, sectors, RANGE_SECTORS_MAX) {
            self.call(RequestKind::Trim, at, count, |r| r, None).await?;
        }
        Ok(())
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        self.check(lba, sectors, true)?;
        if !self.0.export.features.write_zeroes {
            return self.write_plain_zeroes(lba, sectors, durable).await;
        }
        let fua = durable && self.0.export.features.fua;
        for (at, count) in pieces(lba, sectors, RANGE_SECTORS_MAX) {
            let flags = |request: Request| request.fua(fua).no_hole(!may_discard);
            self.call(RequestKind::WriteZeroes, at, count, flags, None).await?;
        }
        if durable && !fua { self.flush().await } else { Ok(()) }
    }

    async fn block_status(
        &self,
        lba: Lba,
        sectors: u64,
        runs_max: usize,
    ) -> Result<Vec<BlockStatus>, IoError> {
        self.check(lba, sectors, false)?;
        if !self.0.block_status || sectors == 0 {
            return Ok(vec![BlockStatus { sectors, allocated: true, zero: false }]);
        }
        let length = (sectors.min(RANGE_SECTORS_MAX) * SECTOR_BYTES) as u32;
        let request = |cookie| {
            let request = Request::new(RequestKind::BlockStatus, cookie, lba.byte_offset(), length);
            request.one_extent(runs_max == 1)
        };
        let extents = Rc::new(RefCell::new(Vec::new()));
        self.link().call(request, Sink::Extents(extents.clone()), None).await.0?;
        Ok(runs(&extents.borrow(), runs_max))
    }
}

/// Extents as runs of sectors. What does not end on a sector is told as allocated up to there.
fn runs(extents: &[Extent], runs_max: usize) -> Vec<BlockStatus> {
    let sector = SECTOR_BYTES as u32;
    let mut runs = Vec::new();
    for extent in extents.iter().take(runs_max) {
        let status =
            |bytes: u32, allocated, zero| BlockStatus { sectors: u64::from(bytes / sector), allocated, zero };
        if !extent.length.is_multiple_of(sector) {
            runs.push(status(extent.length.next_multiple_of(sector), true, false));
            break;
        }
        runs.push(status(extent.length, !extent.hole, extent.zero));
    }
    runs
}
