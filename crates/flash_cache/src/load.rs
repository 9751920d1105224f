//! A device part is opened: made empty, or taken with what it holds.
//!
//! Opening reads: the header, the map pages, and the log, whose records are applied over the pages in order. Nothing is
//! written before the epoch is renewed. What belongs to slots of others is dropped, and this becomes durable like a
//! strike: a slot may come back to this shard.

use std::rc::Rc;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tier0_journal::Ring;
use tier0_units::{Nanos, PAGE_SECTORS};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, World, planted};

use crate::budget::Budget;
use crate::cache::FlashIdentity;
use crate::device::{Device, Shared};
use crate::entry::Line;
use crate::error::FlashError;
use crate::header::{Header, HeaderPlace};
use crate::label::{format_log, read_places, ring_id, write_places};
use crate::map_page::{self, ENTRIES, MapHead};
use crate::patience::within;
use crate::place::{FlashPlace, Shape};
use crate::record;
use crate::state::State;

/// Map pages of a read, and how many reads are under way.
const PAGES_PER_READ: u64 = 256;
const READS_AT_ONCE: usize = 8;

/// What was found on a device part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Lines that are there.
    pub lines: u64,
    /// Lines that were dropped: of slots of others, or such as nobody writes.
    pub dropped: u64,
    /// Map pages that count.
    pub map_pages: u64,
    /// Map pages that do not: never written, of an earlier life, torn or unreadable. Their lines count as empty.
    pub void_map_pages: u64,
    /// Records of the log.
    pub records: u64,
    /// How long it took, nanoseconds.
    pub nanos: u64,
}

/// Awaits what the drive is asked, with patience.
pub(crate) async fn patiently<T, E: Into<FlashError>>(
    world: &World,
    patience: Nanos,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, FlashError> {
    within(world, patience, work).await.ok_or(FlashError::Slow(patience))?.map_err(E::into)
}

impl Device {
    /// Makes a device part empty.
    pub(crate) async fn format(
        shared: &Rc<Shared>,
        number: u32,
        place: FlashPlace,
        identity: FlashIdentity,
        epoch: u64,
    ) -> Result<Rc<Device>, FlashError> {
        let shape = Shape::new(&place)?;
        let (world, options) = (shared.world.clone(), shared.options);
        // A header that cannot be read is written over.
        let old = patiently(&world, options.patience, read_places(&place)).await;
        let generations = old.unwrap_or_default().into_iter().map(|found| match found {
            HeaderPlace::Valid(header) => header.generation,
            HeaderPlace::OtherVersion(_) | HeaderPlace::None => 0,
        });
        let header = Header {
            id: identity.id,
            shard: identity.shard,
            shards: identity.shards,
            pages_per_slot: options.pages_per_slot,
            current: epoch,
            next: None,
            format: epoch,
            generation: generations.max().unwrap_or(0).saturating_add(1),
            sets: shape.sets,
            ring_blocks: shape.ring_blocks,
            ways_at_format: shape.ways as u32,
            budget: 0.0,
            born: vec![0; shape.ways as usize],
        };
        let bytes = shape.lines() * crate::line::LINE_SECTORS * 512;
        let budget = Budget::full(bytes, options.writes_per_day, world.now());
        let mut state = State::new(place.clone(), shape, header, budget);
        state.admission.free_fills = shape.lines();
        let device = Device::new(shared, number, identity.id, state);
        let loss = device.log_loss.clone();
        let log = format_log(world, shape.ring(&place), ring_id(identity.id, epoch), loss);
        let ring = device.command(log).await.map_err(|fault| fault.of(number))?;
        device.log_loss.check().map_err(|fault| fault.of(number))?;
        // Last: whoever finds this header finds an empty log, and no map page of this format.
        let header = {
            let mut state = device.state.borrow_mut();
            state.header.budget = state.admission.budget.level(shared.world.now());
            state.header.clone()
        };
        let write = async move { write_places(&place, &header).await };
        device.command(write).await.map_err(|fault| fault.of(number))?;
        device.start(ring);
        Ok(device)
    }

    /// Takes a device part with what it holds.
    pub(crate) async fn load(
        shared: &Rc<Shared>,
        number: u32,
        place: FlashPlace,
        identity: FlashIdentity,
        epoch: u64,
        is_ours: impl Fn(u64) -> bool,
    ) -> Result<(Rc<Device>, LoadReport), FlashError> {
        place.check()?;
        if place.pieces.is_empty() {
            return Err(FlashError::TooSmall { pages: 0 });
        }
        let (world, patience) = (shared.world.clone(), shared.options.patience);
        let begun = world.now();
        let places = patiently(&world, patience, read_places(&place)).await?;
        let mut header = newest_that_counts(places, &identity, shared.options.pages_per_slot, epoch)?;
        let mut shape = Shape { sets: header.sets, ring_blocks: header.ring_blocks, ways: 0 };
        let stored_ways = header.born.len() as u64;
        if !shape.fits(&place) || shape.ways_in(&place) == 0 {
            return Err(not_ours("its pieces are not where its log and its ways were".to_owned()));
        }
        shape.ways = shape.ways_in(&place);
        let kept_ways = stored_ways.min(shape.ways);

        let mut report = LoadReport::default();
        let budget = Budget::full(0, 0.0, world.now());
        let mut state = State::new(place, shape, header.clone(), budget);
        read_map(&world, patience, &identity, &mut state, kept_ways, &mut report).await?;
        let ring = ring_id(identity.id, header.format);
        let regions = shape.ring(&state.place).into_iter().map(Some).collect();
        // The log may take as long as several records.
        let log = within(&world, Nanos(patience.0.saturating_mul(10)), Ring::inspect(&world, regions, ring));
        let log = log.await.ok_or(FlashError::Slow(patience))??;
        let mut level = header.budget;
        state.log_end = log.tail.0;
        for found in &log.entries {
            let Some(record) = record::decode(&found.header) else {
                return Err(not_ours("its log holds a record that nobody writes".to_owned()));
            };
            level = record.budget;
            report.records += 1;
            state.log_end = found.position.0 + 1;
            for (line, entry) in record.changes {
                let lives = |born: &u64| *born <= found.position.0;
                if u64::from(line.way) < kept_ways
                    && line.set < shape.sets
                    && header.born.get(usize::from(line.way)).is_some_and(lives)
                {
                    state.table.set(line, entry);
                    // Which of the pages on the drive are newer than the record nobody knows.
                    state.dirty.name(shape.map_of(line), found.position.0);
                }
            }
        }
        // Ways that are not there any more, or not yet: the next header says so.
        header.born.resize(shape.ways as usize, state.log_end);
        if kept_ways < stored_ways {
            state.changes += 1;
            state.struck = state.changes;
        }
        header.current = epoch;
        header.next = None;
        state.header = header;
        state.admission.budget =
            Budget::with(state.room_bytes(), shared.options.writes_per_day, level, world.now());
        drop_foreign_lines(shared, &mut state, is_ours, &mut report);
        report.nanos = world.now().saturating_sub(begun).0;
        shared.counters.borrow_mut().loaded_lines += report.lines;
        Ok((Device::new(shared, number, identity.id, state), report))
    }
}

fn not_ours(reason: String) -> FlashError {
    FlashError::NotOurs { reason }
}

/// The newest header, if it is this part's and counts.
pub(crate) fn newest_that_counts(
    places: Vec<HeaderPlace>,
    identity: &FlashIdentity,
    pages_per_slot: u32,
    epoch: u64,
) -> Result<Header, FlashError> {
    let mut newest: Option<Header> = None;
    for place in places {
        match place {
            HeaderPlace::OtherVersion(version) => {
                return Err(not_ours(format!("its format has version {version}")));
            }
            HeaderPlace::Valid(header) => {
                newest = newest.filter(|newest| newest.generation >= header.generation).or(Some(header));
            }
            HeaderPlace::None => {}
        }
    }
    let Some(header) = newest else { return Err(not_ours("it has no header".to_owned())) };
    if header.id != identity.id {
        return Err(not_ours(format!("it is part {}, not {}", header.id, identity.id)));
    }
    if (header.shard, header.shards) != (identity.shard, identity.shards) {
        return Err(not_ours(format!(
            "it was of shard {} of {}, and this is shard {} of {}",
            header.shard, header.shards, identity.shard, identity.shards
        )));
    }
    if header.pages_per_slot != pages_per_slot {
        return Err(not_ours(format!(
            "its slots have {} pages, and those here {pages_per_slot}",
            header.pages_per_slot
        )));
    }
    if !header.counts_under(epoch) {
        return Err(not_ours(format!(
            "it counts under epoch {}, and the pool is at {epoch}: it missed what has changed",
            header.current
        )));
    }
    Ok(header)
}

/// Reads all map pages into the table.
async fn read_map(
    world: &World,
    patience: Nanos,
    identity: &FlashIdentity,
    state: &mut State,
    ways: u64,
    report: &mut LoadReport,
) -> Result<(), FlashError> {
    let shape = state.shape;
    let mut reads = Vec::new();
    for way in 0..ways {
        for first in (0..shape.map_pages()).step_by(PAGES_PER_READ as usize) {
            reads.push((way as u8, first, PAGES_PER_READ.min(shape.map_pages() - first)));
        }
    }
    for window in reads.chunks(READS_AT_ONCE) {
        let place = state.place.clone();
        let read = |(way, first, count): &(u8, u64, u64)| {
            let at = shape.map_at(crate::place::MapPage { way: *way, index: *first as u32 });
            let (place, count) = (place.clone(), *count);
            async move { within(world, patience, read_pages(&place, at, count)).await }
        };
        let found = join_all(window.iter().map(read)).await;
        for ((way, first, count), pages) in window.iter().zip(found) {
            // A page that cannot be read now may be at the next start. What was struck out of it meanwhile, which nobody could
            // know, would come back.
            let pages = pages.ok_or(FlashError::Slow(patience))?;
            let pages = pages
                .map_err(|error| not_ours(format!("{count} pages of its map cannot be read ({error})")))?;
            let bytes = pages.iter().flat_map(|buf| buf.as_slice().chunks_exact(map_page::BYTES));
            for (index, page) in (*first as u32..).zip(bytes) {
                let counts = take_page(state, identity, *way, index, page);
                report.map_pages += u64::from(counts);
                report.void_map_pages += u64::from(!counts);
            }
        }
    }
    Ok(())
}

async fn read_pages(place: &FlashPlace, at: u64, count: u64) -> Result<Vec<BufMut>, IoError> {
    let mut bufs = Vec::new();
    for (lba, sectors) in place.runs(at, count) {
        let (result, buf) = place.drive.read(lba, BufMut::new(sectors, PayloadWidth::REAL)).await;
        result?;
        debug_assert!(u64::from(buf.sectors()).is_multiple_of(PAGE_SECTORS), "pieces are whole pages");
        bufs.push(buf);
    }
    Ok(bufs)
}

/// Takes a map page's entries, if it counts.
fn take_page(state: &mut State, identity: &FlashIdentity, way: u8, index: u32, page: &[u8]) -> bool {
    let Some((head, entries)) = map_page::decode(page) else { return false };
    let born = state.header.born[usize::from(way)];
    let expected = MapHead { id: identity.id, format: state.header.format, born, way, index };
    if head != expected && !planted(PlantedBug::FlashTrustsOldMap) {
        return false;
    }
    for (set, entry) in (index * ENTRIES as u32..state.shape.sets).zip(entries) {
        state.table.set(Line { way, set }, entry);
    }
    true
}

/// Drops lines of slots that are not ours, and those whose tag no line has.
fn drop_foreign_lines(
    shared: &Shared,
    state: &mut State,
    is_ours: impl Fn(u64) -> bool,
    report: &mut LoadReport,
) {
    let mut known: Option<(u64, bool)> = None;
    let mut foreign = Vec::new();
    for (line, entry) in state.table.lines() {
        let is_kept = state.spread.number(line.set, entry.tag).is_some_and(|x| {
            let slot = shared.lines.slot(x);
            match known {
                Some((last, is_ours)) if last == slot => is_ours,
                _ => known.insert((slot, is_ours(slot))).1,
            }
        });
        match is_kept {
            true => report.lines += 1,
            false => foreign.push(line),
        }
    }
    report.dropped = foreign.len() as u64;
    foreign.into_iter().for_each(|line| state.remove(line));
}
