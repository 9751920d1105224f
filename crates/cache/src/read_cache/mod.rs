#![doc = include_str!("README.md")]

mod fills;
mod status;

use std::cell::RefCell;
use std::io;
use std::ops::Range;

use tier0_policy::{Frame, PageKey, Part, Policy, PolicyKind};
use tier0_units::{ByteCount, PAGE_SECTORS, SECTOR_BYTES};
use tier0_world::sync::Notify;
use tier0_world::{Buf, BufMut, PageStore, PayloadWidth};

pub(crate) use self::fills::Fill;
use self::fills::Fills;
pub use self::status::ReadCacheStatus;

/// Bytes of a page.
const PAGE_BYTES: u64 = PAGE_SECTORS * SECTOR_BYTES;
/// What a page takes beside its data, bytes.
const BOOKKEEPING_BYTES: u64 = tier0_policy::BOOKKEEPING_BYTES_MAX as u64;
/// Bits of a key for the page in its slot.
const PAGE_BITS: u32 = 16;
/// What larger reads bring does not come in: they are as fast from a disk as small ones are slow, and what is read so is
/// seldom read again soon. 64 KiB: a protocol may cut what hosts ask for into pieces of 128 KiB.
const FILL_SECTORS_MAX: u32 = 128;
/// Larger reads do not look for their pages either. Those of readers for whom is read ahead may be as long.
const SECTORS_MAX: u32 = 256;
/// Written pages of so large a part of a slot are taken for one block: 16 KiB, the largest that is common with databases.
const WRITTEN_TOGETHER: u32 = 4;
/// Nothing is read ahead while pages for more than this part of the room are under way.
const PREFETCH_PART: usize = 8;
/// What is read ahead of one reader takes at most this part of the room.
const WINDOW_PART: u64 = 32;
/// The room follows what others need in steps of this share of all.
const STEPS: u64 = 64;
/// Frames whose memory is given back in one go: the system takes some microseconds for each.
const RELEASED_AT_ONCE: usize = 64;

/// How clean pages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCacheOptions {
    /// What decides which pages give way.
    pub policy: PolicyKind,
    /// The most that they may take at any time; no more than what dirty pages and slot tables leave.
    pub memory_max: ByteCount,
}

/// Why a page is in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It was read.
    Read,
    /// It was written, and read before it was destaged.
    Write,
    /// A reader was expected to come to it, and none has yet.
    Prefetch,
}

/// What is known of a frame.
#[derive(Clone, Copy, Debug)]
struct Origin {
    /// Why its page is here.
    source: Source,
    standing: Standing,
}

/// What has become of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its page has come in, or it never had one.
    New,
    /// Its page was found since, other than by the reader that it was read ahead for.
    Found,
    /// It has no page any more, and still has memory.
    Idle,
}

impl Origin {
    fn of(source: Source) -> Origin {
        Origin { source, standing: Standing::New }
    }

    fn is_idle(self) -> bool {
        self.standing == Standing::Idle
    }
}

/// What a look for the pages of a read has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Not all of them.
    Missing,
    /// All of them, and they are in the buffer.
    All {
        /// One of them for the first time since it was read or written: it has been asked for more than once.
        again: bool,
    },
}

impl Found {
    pub(crate) fn is_all(self) -> bool {
        self != Found::Missing
    }
}

/// Clean pages of the slots of a pool's part in a shard.
pub struct ReadCache {
    state: RefCell<State>,
    /// Rung when a read whose pages come in has ended.
    filled: Notify,
}

struct State {
    policy: Box<dyn Policy>,
    store: PageStore,
    width: PayloadWidth,
    /// By frame.
    origins: Vec<Origin>,
    /// Frames without a page that still have memory, and maybe some that have a page again.
    idle: Vec<u32>,
    /// Frames without a page that still have memory.
    idle_count: usize,
    /// Slots that have had pages since they were allocated, one bit each.
    touched: Vec<u64>,
    fills: Fills,
    status: ReadCacheStatus,
}

impl ReadCache {
    /// A cache without pages.
    ///
    /// # Errors
    /// When there is no address space for it.
    pub fn new(options: ReadCacheOptions, width: PayloadWidth) -> io::Result<ReadCache> {
        let ReadCacheOptions { policy, memory_max: memory } = options;
        let frames = (memory.0 / (PAGE_BYTES + BOOKKEEPING_BYTES)).clamp(1, u64::from(u32::MAX) - 2) as usize;
        let state = State {
            policy: policy.of(frames),
            store: PageStore::map(frames, PAGE_SECTORS as usize, width)?,
            width,
            origins: vec![Origin::of(Source::Read); frames],
            idle: Vec::new(),
            idle_count: 0,
            touched: Vec::new(),
            fills: Fills::default(),
            status: ReadCacheStatus::default(),
        };
        Ok(ReadCache { state: RefCell::new(state), filled: Notify::new() })
    }

    /// How it stands.
    pub fn status(&self) -> ReadCacheStatus {
        let state = self.state.borrow();
        let bytes = |pages: usize| pages as u64 * PAGE_BYTES;
        ReadCacheStatus {
            bytes: bytes(state.policy.len()),
            room_bytes: bytes(state.policy.limit()),
            ..state.status
        }
    }

    /// So many bytes are left for it: pages give way where it has more.
    pub(crate) fn fit(&self, bytes: u64) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let (capacity, limit) = (state.policy.capacity(), state.policy.limit());
        let step = (capacity as u64 / STEPS).max(1);
        let steps = bytes / (PAGE_BYTES + BOOKKEEPING_BYTES) / step;
        let most = |steps: u64| ((steps * step).max(1) as usize).min(capacity);
        // It grows by a step less than it could: what others need to and fro does not cost a step of pages each time.
        let frames = if most(steps) < limit { most(steps) } else { most(steps.saturating_sub(1)).max(limit) };
        if frames != limit {
            let mut gone = Vec::new();
            state.policy.set_limit(frames, &mut |_, frame| gone.push(frame));
            state.status.evicted += gone.len() as u64;
            gone.into_iter().for_each(|frame| state.leave_idle(frame));
        }
        state.release_idle(frames);
    }

    /// A read of a slot from `first_sector` on. Where not all of it is here, what the buffer holds is arbitrary.
    pub(crate) fn read(&self, slot: u64, first_sector: u64, buf: &mut BufMut) -> Found {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        if buf.width() != state.width {
            return Found::Missing;
        }
        if buf.sectors() > SECTORS_MAX {
            state.status.bypassed += 1;
            return Found::Missing;
        }
        let pages = pages_of(first_sector, u64::from(buf.sectors()));
        let width = state.width.bytes();
        let end = first_sector + u64::from(buf.sectors());
        let bytes = buf.as_mut_slice();
        let (mut is_whole, mut was_written, mut was_prefetched, mut again) = (true, false, false, false);
        let mut part = Part::First;
        for page in pages {
            let found = state.policy.get(key(slot, page), part);
            part = Part::Next;
            let Some(frame) = found else {
                is_whole = false;
                continue;
            };
            let origin = &mut state.origins[frame.0 as usize];
            match origin.source {
                Source::Prefetch => {
                    was_prefetched = true;
                    origin.source = Source::Read;
                }
                Source::Read | Source::Write => {
                    was_written |= origin.source == Source::Write;
                    again |= std::mem::replace(&mut origin.standing, Standing::Found) == Standing::New;
                }
            }
            if is_whole {
                let start = u64::from(page) * PAGE_SECTORS;
                let (from, to) = (start.max(first_sector), (start + PAGE_SECTORS).min(end));
                let part = |from: u64, to: u64, base: u64| {
                    (from - base) as usize * width..(to - base) as usize * width
                };
                let page = &state.store.page(frame.0 as usize)[part(from, to, start)];
                bytes[part(from, to, first_sector)].copy_from_slice(page);
            }
        }
        if !is_whole {
            let is_large = buf.sectors() > FILL_SECTORS_MAX;
            *(if is_large { &mut state.status.bypassed } else { &mut state.status.misses }) += 1;
            return Found::Missing;
        }
        match (was_prefetched, was_written) {
            (true, _) => state.status.prefetch_hits += 1,
            (_, true) => state.status.write_hits += 1,
            _ => state.status.read_hits += 1,
        }
        Found::All { again }
    }

    /// Notes a read that was answered from a dirty page.
    pub(crate) fn count_dirty_hit(&self) {
        self.state.borrow_mut().status.write_hits += 1;
    }

    /// Begins to read a slot, so that what is read stays here; none where it is too much.
    pub(crate) fn begin_fill(
        &self,
        slot: u64,
        first_sector: u64,
        sectors: u32,
        source: Source,
    ) -> Option<Fill<'_>> {
        let pages = pages_of(first_sector, u64::from(sectors));
        let most = if source == Source::Prefetch { SECTORS_MAX } else { FILL_SECTORS_MAX };
        (sectors <= most).then(|| Fill::begin(self, slot, pages, source))
    }

    /// As [`ReadCache::begin_fill`], ahead of a reader; none where it is coming already, or as much is under way as there may be.
    pub(crate) fn begin_prefetch(&self, slot: u64, first_sector: u64, sectors: u32) -> Option<Fill<'_>> {
        let pages = pages_of(first_sector, u64::from(sectors));
        let may_begin = {
            let state = self.state.borrow();
            let most = state.policy.limit() / PREFETCH_PART;
            !state.fills.covers(slot, &pages, u64::MAX) && state.fills.pages() + pages.len() <= most
        };
        may_begin.then(|| self.begin_fill(slot, first_sector, sectors, Source::Prefetch)).flatten()
    }

    /// Sectors that may be read ahead of one reader.
    pub fn window_max(&self) -> u64 {
        self.state.borrow().policy.limit() as u64 / WINDOW_PART * PAGE_SECTORS
    }

    /// The reads that have begun so far, for [`ReadCache::is_coming`].
    pub(crate) fn begun(&self) -> u64 {
        self.state.borrow().fills.begun()
    }

    /// Whether one of the first `begun` reads is under way and brings all of these sectors.
    pub(crate) fn is_coming(&self, slot: u64, first_sector: u64, sectors: u32, begun: u64) -> bool {
        let pages = pages_of(first_sector, u64::from(sectors));
        self.state.borrow().fills.covers(slot, &pages, begun)
    }

    /// Waits until some read has ended that was under way.
    pub(crate) async fn until_filled(&self) {
        self.filled.wait().await;
    }

    /// Whether all of these sectors are here, without counting that as a request.
    pub(crate) fn has(&self, slot: u64, first_sector: u64, sectors: u32) -> bool {
        let state = self.state.borrow();
        pages_of(first_sector, u64::from(sectors)).all(|page| state.policy.peek(key(slot, page)).is_some())
    }

    /// Takes in the whole pages of what was read of a slot from `first_sector` on.
    fn keep(&self, slot: u64, first_sector: u64, buf: &BufMut, source: Source) {
        let whole = first_sector.next_multiple_of(PAGE_SECTORS);
        let end = first_sector + u64::from(buf.sectors());
        let mut state = self.state.borrow_mut();
        let width = state.width.bytes();
        if buf.as_slice().len() != buf.sectors() as usize * width {
            return;
        }
        let mut part = Part::First;
        for start in
            (whole..end).step_by(PAGE_SECTORS as usize).take_while(|start| start + PAGE_SECTORS <= end)
        {
            let at = (start - first_sector) as usize * width;
            let bytes = &buf.as_slice()[at..at + PAGE_SECTORS as usize * width];
            let came_in = state.insert(slot, (start / PAGE_SECTORS) as u32, bytes, source, part);
            part = if came_in { Part::Next } else { Part::First };
        }
    }

    /// Takes in pages that were written, in ascending order, which their slot holds by now.
    pub(crate) fn keep_written(&self, slot: u64, pages: &[(u32, Buf)]) {
        let mut state = self.state.borrow_mut();
        let mut last = None;
        for (page, content) in pages {
            let block = page / WRITTEN_TOGETHER;
            let part = if last == Some(block) { Part::Next } else { Part::First };
            let came_in = state.insert(slot, *page, content.as_slice(), Source::Write, part);
            last = came_in.then_some(block);
        }
    }

    /// What pages of a slot hold is about to change, or has changed.
    pub(crate) fn strike(&self, slot: u64, pages: impl Iterator<Item = u32> + Clone) {
        let mut state = self.state.borrow_mut();
        state.fills.strike(slot, pages.clone());
        if state.is_touched(slot) {
            pages.for_each(|page| state.remove(slot, page));
        }
    }

    /// A slot is free, or another extent's: nothing of it is kept.
    pub(crate) fn forget_slot(&self, slot: u64, pages: u32) {
        self.strike(slot, 0..pages);
        self.state.borrow_mut().touch(slot, false);
    }
}

impl State {
    /// Takes in a page; whether it was not there.
    fn insert(&mut self, slot: u64, page: u32, content: &[u8], source: Source, part: Part) -> bool {
        let key = key(slot, page);
        let is_whole = content.len() == PAGE_SECTORS as usize * self.width.bytes();
        if !is_whole || self.policy.peek(key).is_some() {
            return false;
        }
        let inserted = self.policy.insert(key, part);
        self.status.inserted += 1;
        self.status.prefetched += u64::from(source == Source::Prefetch);
        self.status.evicted += u64::from(inserted.evicted.is_some());
        let origin = &mut self.origins[inserted.frame.0 as usize];
        self.idle_count -= usize::from(origin.is_idle());
        *origin = Origin::of(source);
        self.store.page_mut(inserted.frame.0 as usize).copy_from_slice(content);
        self.touch(slot, true);
        true
    }

    fn remove(&mut self, slot: u64, page: u32) {
        if let Some(frame) = self.policy.remove(key(slot, page)) {
            self.leave_idle(frame);
        }
    }

    /// A frame has no page any more. Its memory waits for the next page, or until others need it.
    fn leave_idle(&mut self, frame: Frame) {
        let origin = &mut self.origins[frame.0 as usize];
        if std::mem::replace(&mut origin.standing, Standing::Idle) != Standing::Idle {
            self.idle.push(frame.0);
            self.idle_count += 1;
        }
    }

    /// Gives memory of frames without pages back as far as all have more than `frames` of them take, a little at a time.
    fn release_idle(&mut self, frames: usize) {
        let excess = (self.policy.len() + self.idle_count).saturating_sub(frames);
        for _ in 0..excess.min(RELEASED_AT_ONCE) {
            while let Some(frame) = self.idle.pop() {
                let origin = &mut self.origins[frame as usize];
                if origin.is_idle() {
                    origin.standing = Standing::New;
                    self.store.release(frame as usize);
                    self.idle_count -= 1;
                    break;
                }
            }
        }
        if self.idle.len() > 2 * self.idle_count + RELEASED_AT_ONCE {
            let origins = &self.origins;
            self.idle.retain(|frame| origins[*frame as usize].is_idle());
        }
    }

    fn is_touched(&self, slot: u64) -> bool {
        self.touched.get((slot / 64) as usize).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }

    fn touch(&mut self, slot: u64, is_touched: bool) {
        let word = (slot / 64) as usize;
        if word >= self.touched.len() {
            if !is_touched {
                return;
            }
            self.touched.resize(word + 1, 0);
        }
        match is_touched {
            true => self.touched[word] |= 1 << (slot % 64),
            false => self.touched[word] &= !(1 << (slot % 64)),
        }
    }
}

fn key(slot: u64, page: u32) -> PageKey {
    debug_assert!(page < 1 << PAGE_BITS && slot < 1 << (64 - PAGE_BITS), "slot {slot}, page {page}");
    PageKey(slot << PAGE_BITS | u64::from(page))
}

/// The pages that sectors of a slot lie on.
fn pages_of(first_sector: u64, sectors: u64) -> Range<u32> {
    (first_sector / PAGE_SECTORS) as u32..(first_sector + sectors).div_ceil(PAGE_SECTORS) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const PAGES: u32 = 16;

    fn cache(pages: u64, width: PayloadWidth) -> ReadCache {
        let memory_max = ByteCount(pages * (PAGE_BYTES + BOOKKEEPING_BYTES));
        ReadCache::new(ReadCacheOptions { policy: PolicyKind::Lru, memory_max }, width).expect("memory")
    }

    fn filled(sectors: u32, byte: u8) -> BufMut {
        let mut buf = BufMut::new(sectors, PayloadWidth::new(2));
        buf.as_mut_slice().fill(byte);
        buf
    }

    /// Its pages, and for how many there is room.
    fn stands(cache: &ReadCache) -> (u64, u64) {
        let status = cache.status();
        (status.bytes / PAGE_BYTES, status.room_bytes / PAGE_BYTES)
    }

    fn look(cache: &ReadCache, slot: u64, first_sector: u64, sectors: u32) -> Option<Vec<u8>> {
        let mut buf = BufMut::new(sectors, PayloadWidth::new(2));
        cache.read(slot, first_sector, &mut buf).is_all().then(|| buf.as_slice().to_vec())
    }

    fn fill(cache: &ReadCache, slot: u64, first_sector: u64, buf: &BufMut) {
        cache
            .begin_fill(slot, first_sector, buf.sectors(), Source::Read)
            .expect("it is short")
            .keep(first_sector, buf);
    }

    #[test]
    fn whole_pages_of_what_was_read_are_found_again() {
        let cache = cache(8, PayloadWidth::new(2));
        // Half of page 0, pages 1 and 2, half of page 3.
        fill(&cache, 5, 4, &filled(24, 7));
        assert_eq!(look(&cache, 5, 8, 16), Some(vec![7; 32]));
        assert_eq!(look(&cache, 5, 11, 3), Some(vec![7; 6]));
        assert_eq!(look(&cache, 5, 4, 8), None, "page 0 was not read as a whole");
        assert_eq!(look(&cache, 6, 8, 8), None);
        let status = cache.status();
        assert_eq!((status.read_hits, status.misses, status.bytes), (2, 2, 2 * PAGE_BYTES));
    }

    #[test]
    fn a_page_that_was_written_is_counted_apart() {
        let cache = cache(8, PayloadWidth::new(2));
        cache.keep_written(5, &[(1, filled(8, 3).freeze())]);
        assert_eq!(look(&cache, 5, 8, 8), Some(vec![3; 16]));
        cache.count_dirty_hit();
        assert_eq!((cache.status().write_hits, cache.status().read_hits), (2, 0));
    }

    #[test]
    fn a_page_that_was_read_ahead_counts_as_such_once() {
        let cache = cache(8, PayloadWidth::new(2));
        let ahead = cache.begin_fill(5, 8, 16, Source::Prefetch).expect("it is short");
        let is_coming = |slot, sectors| cache.is_coming(slot, 16, sectors, cache.begun());
        assert!(is_coming(5, 8) && !is_coming(5, 16) && !is_coming(4, 8));
        assert!(!cache.is_coming(5, 16, 8, 0), "it has begun since");
        ahead.keep(8, &filled(16, 2));
        assert!(!is_coming(5, 8) && cache.has(5, 8, 16) && !cache.has(5, 8, 17));
        assert_eq!(look(&cache, 5, 8, 8), Some(vec![2; 16]));
        assert_eq!(look(&cache, 5, 8, 8), Some(vec![2; 16]));
        let status = cache.status();
        assert_eq!((status.prefetch_hits, status.read_hits, status.prefetched), (1, 1, 2));
    }

    #[test]
    fn large_reads_go_past_it() {
        let cache = cache(8, PayloadWidth::new(2));
        assert!(cache.begin_fill(5, 0, FILL_SECTORS_MAX + 1, Source::Read).is_none());
        assert_eq!(look(&cache, 5, 0, FILL_SECTORS_MAX + 1), None);
        assert_eq!(look(&cache, 5, 0, SECTORS_MAX + 1), None);
        assert_eq!((cache.status().bypassed, cache.status().misses), (2, 0));
    }

    #[test]
    fn pages_give_way_to_what_others_need_and_come_back() {
        let cache = cache(640, PayloadWidth::new(2));
        for page in 0..640 {
            fill(&cache, page, 0, &filled(8, 1));
        }
        assert_eq!(stands(&cache), (640, 640));
        cache.fit(100 * (PAGE_BYTES + BOOKKEEPING_BYTES) + 5);
        assert_eq!(stands(&cache), (100, 100));
        fill(&cache, 1000, 0, &filled(8, 1));
        assert_eq!((stands(&cache).0, cache.status().evicted), (100, 541));
        let room_for = |pages: u64| {
            cache.fit(pages * (PAGE_BYTES + BOOKKEEPING_BYTES));
            stands(&cache).1
        };
        assert_eq!(
            [room_for(110), room_for(120), room_for(112)],
            [100, 110, 110],
            "to and fro costs nothing"
        );
        cache.fit(0);
        assert_eq!(stands(&cache).1, 1, "there is always room for one");
        cache.fit(u64::MAX);
        assert_eq!(stands(&cache).1, 640);
    }

    #[test]
    fn what_struck_pages_took_is_given_back_when_others_need_it() {
        let cache = cache(640, PayloadWidth::new(2));
        for page in 0..640 {
            fill(&cache, page, 0, &filled(8, 1));
        }
        (0..640).for_each(|slot| cache.forget_slot(slot, PAGES));
        let with_memory = || {
            let state = cache.state.borrow();
            state.policy.len() + state.idle_count
        };
        assert_eq!((stands(&cache).0, with_memory()), (0, 640), "the next pages get it");
        fill(&cache, 1, 0, &filled(8, 1));
        assert_eq!(with_memory(), 640);
        let need = |pages: u64| cache.fit(pages * (PAGE_BYTES + BOOKKEEPING_BYTES));
        (0..10).for_each(|_| need(100));
        assert_eq!((stands(&cache).0, with_memory()), (1, 100), "and the others the rest, little by little");
        let state = cache.state.borrow();
        assert_eq!(state.origins.iter().filter(|origin| origin.is_idle()).count(), state.idle_count);
        assert!(state.idle.len() <= 2 * state.idle_count + RELEASED_AT_ONCE);
    }

    #[test]
    fn a_world_without_content_has_hits_too() {
        let cache = cache(8, PayloadWidth::NONE);
        fill(&cache, 5, 0, &BufMut::new(16, PayloadWidth::NONE));
        let mut buf = BufMut::new(8, PayloadWidth::NONE);
        assert!(cache.read(5, 8, &mut buf).is_all() && !cache.read(5, 16, &mut buf).is_all());
    }

    #[test]
    fn bookkeeping_stays_within_its_bound() {
        for policy in PolicyKind::ALL {
            let options = ReadCacheOptions { policy, memory_max: ByteCount::mib(256) };
            let cache = ReadCache::new(options, PayloadWidth::NONE).expect("nothing");
            let state = cache.state.borrow();
            let frames = state.policy.capacity();
            let bytes = state.policy.memory_bytes() + frames * size_of::<Origin>();
            assert!(bytes <= frames * BOOKKEEPING_BYTES as usize, "{policy}: {bytes} bytes for {frames}");
        }
    }

    /// What is done to a cache whose slots change.
    #[derive(Clone, Debug)]
    enum Step {
        /// A read of pages begins; the last of those under way ends first.
        Begin(u64, u32, u32),
        End,
        /// A page of a slot gets another content, when no read is under way or not.
        Write(u64, u32),
        Free(u64),
        Room(u64),
        Look(u64, u32, u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..4_u64, 0..PAGES - 4, 1..4_u32).prop_map(|(slot, page, count)| Step::Begin(slot, page, count)),
            4 => Just(Step::End),
            2 => (0..4_u64, 0..PAGES).prop_map(|(slot, page)| Step::Write(slot, page)),
            1 => (0..4_u64).prop_map(Step::Free),
            1 => (1..30_u64).prop_map(Step::Room),
            4 => (0..4_u64, 0..PAGES - 4, 1..4_u32).prop_map(|(slot, page, count)| Step::Look(slot, page, count)),
        ];
        proptest::collection::vec(step, 1..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_found_is_what_the_slot_holds(steps in steps()) {
            let cache = cache(24, PayloadWidth::new(2));
            let mut content: BTreeMap<(u64, u32), u8> = BTreeMap::new();
            let now = |content: &BTreeMap<(u64, u32), u8>, slot, page| *content.get(&(slot, page)).unwrap_or(&0);
            let mut under_way = Vec::new();
            for step in steps {
                match step {
                    Step::Begin(slot, page, count) => {
                        let bytes = (page..page + count).flat_map(|page| [now(&content, slot, page); 16]);
                        let mut buf = BufMut::new(count * 8, PayloadWidth::new(2));
                        buf.as_mut_slice().copy_from_slice(&bytes.collect::<Vec<u8>>());
                        let fill = cache.begin_fill(slot, u64::from(page) * 8, count * 8, Source::Read);
                        let fill = fill.expect("it is short");
                        under_way.push((fill, u64::from(page) * 8, buf));
                    }
                    Step::End => {
                        if let Some((fill, first, buf)) = under_way.pop() {
                            fill.keep(first, &buf);
                        }
                    }
                    Step::Write(slot, page) => {
                        cache.strike(slot, std::iter::once(page));
                        *content.entry((slot, page)).or_default() += 1;
                    }
                    Step::Free(slot) => {
                        cache.forget_slot(slot, PAGES);
                        content.retain(|(other, _), _| *other != slot);
                    }
                    Step::Room(pages) => cache.fit(pages * (PAGE_BYTES + BOOKKEEPING_BYTES)),
                    Step::Look(slot, page, count) => {
                        if let Some(found) = look(&cache, slot, u64::from(page) * 8, count * 8) {
                            let right: Vec<u8> =
                                (page..page + count).flat_map(|page| [now(&content, slot, page); 16]).collect();
                            prop_assert_eq!(found, right);
                        }
                    }
                }
                let status = cache.status();
                prop_assert!(status.bytes <= status.room_bytes);
            }
        }
    }
}
