//! Recovery: from the tail along the chain to its end, making the copies equal on the way.
//!
//! Order of events, so that a crash at any point of recovery changes nothing that a later recovery would find:
//!
//! 1. The newest header of all copies says where the log begins.
//! 2. Frame by frame: it counts if its header section is valid on one copy and each page on one. Where a copy lacks any
//!    of it, the frame is written there, over what was not valid; stable before recovery ends.
//! 3. The log ends at the first frame that does not count. If a frame behind it, or the header, says that this frame was
//!    stable, it did not get lost by a power cut, and recovery refuses to go on without it.
//! 4. All copies are flushed: a frame that was read may lie in a drive's cache, if its writer was killed before it was stable.
//! 5. A header with a new incarnation and a fence at the end is written to all copies. Only then may anything be
//!    appended: what was left behind the end can never count again.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_world::{Buf, IoError, PlantedBug, World, planted};
use uuid::Uuid;

use crate::copies::{COPIES_MAX, LossReport, Place};
use crate::frame::{Frame, Link};
use crate::header::{self, Header, HeaderPlace, VERSION};
use crate::reader::{Found, Reader, Section};
use crate::region::{HEADER_PLACES, region_sectors};
use crate::ring::{Core, bad_region, headroom_blocks};
use crate::state::{Live, State};
use crate::{Position, Region, Ring, RingError, Settings};

/// How far behind the end recovery looks for frames that prove it wrong, blocks: 16 MiB. It must exceed what is in
/// flight at once, because only a frame that was cut after the lost one became stable can prove anything.
const LOOKAHEAD_BLOCKS: u64 = 4096;

/// Larger frames prove nothing: looking at each block would take too long if what lies there only looks like them.
const PROOF_BLOCKS_MAX: u64 = 1024;

/// A record that was recovered.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub position: Position,
    /// Bytes that the owner understands.
    pub header: Vec<u8>,
    /// Its pages, one in each buffer.
    pub pages: Vec<Buf>,
}

/// What recovery had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Frames read.
    pub frames: u64,
    /// Blocks of 4096 bytes they take.
    pub blocks: u64,
    /// Frames written to a copy that lacked them, or a part of them.
    pub frames_repaired: u64,
    /// The incarnation of the ring from now on.
    pub incarnation: u64,
}

/// A ring after recovery.
pub struct Recovered {
    /// The ring, ready for appends.
    pub ring: Ring,
    /// The records that were not released, in order.
    pub entries: Vec<Entry>,
    /// What recovery had to do.
    pub report: RecoveryReport,
}

impl Ring {
    /// Opens a ring after whatever happened, and returns the records that were not released.
    ///
    /// `regions[i]` is copy i, or none if it is lost. A copy that was reported lost must not be passed. A copy that
    /// lacks something, even all, is made equal to the others.
    pub async fn recover(
        world: &World,
        regions: Vec<Option<Region>>,
        id: Uuid,
        settings: Settings,
        losses: Rc<dyn LossReport>,
    ) -> Result<Recovered, RingError> {
        let scan = scan(world, regions, id, settings, losses, Repair::Yes).await?;
        let Scan { core, header, entries, mut report, incarnation, .. } = scan;
        report.incarnation = incarnation.max(header.incarnation) + 1;
        core.on_every_copy(|region| async move { region.drive.flush().await }).await;
        core.begin_incarnation(report.incarnation, header.generation).await?;
        Ok(Recovered { ring: Ring(core), entries: entries.into(), report })
    }

    /// Reads what [`Ring::recover`] would find, and writes nothing. A caller that acts on it must make it durable
    /// elsewhere before anything else is: what only one copy has may not be found the next time.
    ///
    /// # Errors
    /// As recovery's.
    pub async fn inspect(
        world: &World,
        regions: Vec<Option<Region>>,
        id: Uuid,
    ) -> Result<Inspected, RingError> {
        let scan = scan(world, regions, id, Settings::default(), Rc::new(Nobody), Repair::No).await?;
        let tail = Position(scan.core.state.borrow().released);
        Ok(Inspected { entries: scan.entries.into(), tail })
    }
}

/// What a ring holds.
pub struct Inspected {
    /// The records that were not released, in order.
    pub entries: Vec<Entry>,
    /// The first record that is not released.
    pub tail: Position,
}

/// Nothing is written, so nothing is lost by it.
struct Nobody;

impl LossReport for Nobody {
    fn report(&self, _: usize, _: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async {})
    }
}

/// Whether copies that lack something are made equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Yes,
    No,
}

async fn scan(
    world: &World,
    regions: Vec<Option<Region>>,
    id: Uuid,
    settings: Settings,
    losses: Rc<dyn LossReport>,
    repair: Repair,
) -> Result<Scan, RingError> {
    if regions.len() > COPIES_MAX || regions.iter().all(Option::is_none) {
        return Err(RingError::BadCopy { copy: regions.len() });
    }
    let header = newest_header(&regions, id).await?;
    check_size(&regions, &header)?;
    let state = State::new(header.blocks, headroom_blocks(&settings), header.tail);
    let places = regions.into_iter().map(Place::new).collect();
    let core = Core::new(world, id, places, settings, losses, state);
    let mut scan = Scan::new(core, header, repair);
    while scan.step().await? {}
    scan.check_end().await?;
    Ok(scan)
}

impl Core {
    /// Shuts out whatever lies behind the end.
    async fn begin_incarnation(self: &Rc<Self>, incarnation: u64, generation: u64) -> Result<(), RingError> {
        {
            let mut state = self.state.borrow_mut();
            state.incarnation = incarnation;
            state.fence = state.sequence;
            state.generation = generation;
            state.trim();
        }
        self.persist_now().await
    }
}

/// The valid header with the highest generation.
async fn newest_header(regions: &[Option<Region>], id: Uuid) -> Result<Header, RingError> {
    let mut newest: Option<Header> = None;
    let (mut foreign, mut unreadable) = (None, None);
    for (copy, region) in regions.iter().enumerate() {
        let Some(region) = region else { continue };
        if region.blocks().is_none() {
            return Err(bad_region(copy, region, Region::SECTORS_MIN));
        }
        for place in 0..HEADER_PLACES {
            let buf = match region.read_header(place).await {
                Ok(buf) => buf,
                Err(source) => {
                    let gone = unreadable.take_if(|known| matches!(known, RingError::Drive { .. }));
                    unreadable = gone.or(Some(unread(copy, source)));
                    continue;
                }
            };
            match header::decode(buf.as_slice()) {
                HeaderPlace::TooNew(found) => return Err(RingError::TooNew { found, known: VERSION }),
                HeaderPlace::Valid(header) if header.ring != id => {
                    foreign = Some(RingError::WrongRing { copy })
                }
                HeaderPlace::Valid(header) => {
                    newest = newest.filter(|newest| newest.generation >= header.generation).or(Some(header));
                }
                HeaderPlace::None => {}
            }
        }
    }
    match (foreign, newest) {
        (Some(error), _) => Err(error),
        (None, Some(header)) => Ok(header),
        (None, None) => Err(unreadable.unwrap_or(RingError::NoRing)),
    }
}

fn check_size(regions: &[Option<Region>], header: &Header) -> Result<(), RingError> {
    for (copy, region) in regions.iter().enumerate() {
        let Some(region) = region else { continue };
        if region.blocks().is_none_or(|blocks| blocks < header.blocks) {
            return Err(bad_region(copy, region, region_sectors(header.blocks)));
        }
    }
    Ok(())
}

/// A walk along the chain.
struct Scan {
    core: Rc<Core>,
    header: Header,
    readers: Vec<Reader>,
    entries: VecDeque<Entry>,
    report: RecoveryReport,
    /// The incarnation of the last frame; those behind it have no lower one.
    incarnation: u64,
    /// The first frame that no header or later frame calls stable.
    stable: u64,
    repair: Repair,
}

impl Scan {
    fn new(core: Rc<Core>, header: Header, repair: Repair) -> Scan {
        let regions: Vec<_> = core.copies.borrow().iter().map(|place| place.region.clone()).collect();
        let readers = regions
            .into_iter()
            .enumerate()
            .filter_map(|(copy, region)| Some(Reader::new(copy, region?, header.blocks)))
            .collect();
        Scan {
            core,
            header,
            readers,
            entries: VecDeque::new(),
            report: RecoveryReport::default(),
            incarnation: 0,
            stable: header.stable,
            repair,
        }
    }

    /// Takes the next frame in; false at the end of the log.
    async fn step(&mut self) -> Result<bool, RingError> {
        let (at, room) = {
            let state = self.core.state.borrow();
            (state.block, state.free())
        };
        let expected = self.expected();
        let fits = |link: &Link| expected.is_followed_by(link);
        let found = join_all(self.readers.iter_mut().map(|reader| reader.section(at, room, fits))).await;
        let Some(section) = self.newest(&found)? else { return Ok(false) };
        let mut complete: Vec<bool> = found.iter().map(|found| is_section(found, &section)).collect();
        let pages = join_all(self.readers.iter_mut().map(|reader| reader.pages(&section.frame))).await;
        for (complete, pages) in complete.iter_mut().zip(&pages) {
            *complete &= pages.iter().all(|page| matches!(page, Found::Valid(_)));
        }
        let Some(pages) = self.merge(pages)? else { return Ok(false) };
        if self.repair == Repair::Yes {
            self.repair(&section, &pages, &complete).await?;
        }
        self.take(section.frame, pages);
        Ok(true)
    }

    fn expected(&self) -> Expected {
        let state = self.core.state.borrow();
        Expected {
            ring: self.core.id,
            incarnation: self.incarnation,
            sequence: state.sequence,
            block: state.block,
            position: state.position,
            previous: state.checksum,
            is_tail: self.report.frames == 0,
            header: self.header,
        }
    }

    /// The header section with the highest incarnation; an error if no copy can tell whether there is one.
    fn newest(&self, found: &[Found<Section>]) -> Result<Option<Section>, RingError> {
        self.refuse_unreadable(found)?;
        let believed = if planted(PlantedBug::BelieveFirstLogCopy) { 1 } else { found.len() };
        let sections = found.iter().take(believed).filter_map(Found::as_valid);
        Ok(sections.max_by_key(|section| section.frame.link.incarnation).cloned())
    }

    /// Each page from the first copy that has it; none if one is nowhere.
    fn merge(&self, copies: Vec<Vec<Found<Buf>>>) -> Result<Option<Vec<Buf>>, RingError> {
        let count = copies.first().map_or(0, Vec::len);
        let mut copies: Vec<_> = copies.into_iter().map(Vec::into_iter).collect();
        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let mut found: Vec<_> = copies.iter_mut().filter_map(Iterator::next).collect();
            self.refuse_unreadable(&found)?;
            if planted(PlantedBug::BelieveFirstLogCopy) {
                found.truncate(1);
            }
            let Some(page) = found.into_iter().find_map(Found::into_valid) else { return Ok(None) };
            pages.push(page);
        }
        Ok(Some(pages))
    }

    /// What no copy can read may have been acknowledged. If one copy can, and has something else there, it was not:
    /// every copy that counts has all that was.
    fn refuse_unreadable<T>(&self, found: &[Found<T>]) -> Result<(), RingError> {
        let errors: Option<Vec<IoError>> = found.iter().map(Found::error).collect();
        let Some(errors) = errors else { return Ok(()) };
        let mut errors = self.readers.iter().zip(errors).map(|(reader, error)| unread(reader.copy, error));
        let first = errors.next();
        let gone = errors.find(|error| matches!(error, RingError::Drive { .. }));
        gone.or(first).map_or(Ok(()), Err)
    }

    /// Writes a frame to the copies that lack any of it.
    async fn repair(&mut self, section: &Section, pages: &[Buf], complete: &[bool]) -> Result<(), RingError> {
        if complete.iter().all(|complete| *complete) {
            return Ok(());
        }
        let image = section.image(pages);
        for (reader, _) in self.readers.iter_mut().zip(complete).filter(|(_, complete)| !**complete) {
            reader.forget();
            let Some(target) = self.core.target(reader.copy) else { continue };
            let block = section.frame.link.block;
            let written = target.region.write(self.header.blocks, block, image.clone(), true).await;
            self.report.frames_repaired += 1;
            if let Err(error) = written {
                self.core.lose(&target, error).await;
            }
        }
        self.readers.retain(|reader| self.core.target(reader.copy).is_some());
        self.core.failure().map_or(Ok(()), Err)
    }

    fn take(&mut self, frame: Frame, pages: Vec<Buf>) {
        let (link, blocks, end) = (frame.link, frame.extent().blocks(), frame.end());
        self.report.frames += 1;
        self.report.blocks += blocks;
        self.incarnation = link.incarnation;
        self.stable = self.stable.max(link.stable);
        let mut pages = pages.into_iter();
        for (position, (header, count)) in (link.first..).zip(frame.records) {
            let pages = pages.by_ref().take(count as usize).collect();
            self.entries.push_back(Entry { position: Position(position), header, pages });
        }
        let mut state = self.core.state.borrow_mut();
        let live = Live {
            sequence: link.sequence,
            block: link.block,
            blocks,
            previous: link.previous,
            checksum: frame.checksum,
            end,
        };
        state.adopt(live);
        state.release(Position(link.tail));
        while self.entries.pop_front_if(|entry| entry.position.0 < state.released).is_some() {}
    }

    /// Makes sure that the log does not end before what was acknowledged.
    async fn check_end(&mut self) -> Result<(), RingError> {
        let (sequence, block, position, free) = {
            let state = self.core.state.borrow();
            (state.sequence, state.block, state.position, state.free())
        };
        let proof = |link: &Link, at: u64| {
            link.ring == self.core.id
                && link.block == at
                && link.sequence > sequence
                && link.stable > sequence
                && link.incarnation >= self.incarnation
                && is_admitted(&self.header, link)
        };
        let mut damaged = self.stable > sequence;
        for reader in &mut self.readers {
            for at in block + 1..block + free.min(LOOKAHEAD_BLOCKS) {
                let room = PROOF_BLOCKS_MAX.min(block + free - at);
                damaged |= reader.section(at, room, |link| proof(link, at)).await.as_valid().is_some();
            }
        }
        if damaged { Err(RingError::Damaged { from: Position(position) }) } else { Ok(()) }
    }
}

/// A read that failed: only a drive that is gone is one that its owner may do without.
fn unread(copy: usize, source: IoError) -> RingError {
    match source {
        IoError::Gone => RingError::Drive { copy, source },
        _ => RingError::Unreadable { copy, source },
    }
}

fn is_section(found: &Found<Section>, section: &Section) -> bool {
    found.as_valid().is_some_and(|found| found.frame.checksum == section.frame.checksum)
}

/// Whether a frame is no remainder of what was behind the end when the ring was opened or formatted.
fn is_admitted(header: &Header, link: &Link) -> bool {
    link.sequence < header.fence || link.incarnation >= header.incarnation
}

/// What the next frame must say of itself.
struct Expected {
    ring: Uuid,
    incarnation: u64,
    sequence: u64,
    block: u64,
    position: u64,
    previous: u64,
    /// The first frame may begin with records that are released.
    is_tail: bool,
    header: Header,
}

impl Expected {
    fn is_followed_by(&self, link: &Link) -> bool {
        link.ring == self.ring
            && link.sequence == self.sequence
            && link.block == self.block
            && link.previous == self.previous
            && (link.first == self.position || self.is_tail && link.first < self.position)
            && link.incarnation >= self.incarnation
            && is_admitted(&self.header, link)
    }
}
