//! The book against a store that does at random whatever it may, and against stores that do a little more.

use tier0_world::Random;

use super::*;
use crate::verify::Holds;

/// The only unit.
const UNIT: u64 = 0;

/// What a store does that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    None,
    /// It acknowledges a write that it has not done.
    LostWrite,
    /// It acknowledges a flush that it has not done.
    LostFlush,
    /// It takes a durable write for one like others.
    NotDurable,
    /// It forgets at once what is in its cache, without a crash.
    Forgetful,
}

/// A version's number, and whether it is zeros.
type Content = (u32, bool);

struct Flight {
    number: u32,
    effect: Effect,
    durable: bool,
    has_landed: bool,
}

/// A store of one unit: a cache, volatile or not, and what is behind it.
struct Store {
    is_volatile: bool,
    lie: Lie,
    cache: Content,
    medium: Content,
    book: Book,
    numbers: u32,
    writes: Vec<Flight>,
    /// Reads under way, with what they have found.
    reads: Vec<(ReadTicket, Option<Content>)>,
    /// Flushes under way, and whether they are done.
    flushes: Vec<(Moment, bool)>,
}

impl Store {
    fn new(is_volatile: bool, lie: Lie) -> Store {
        Store {
            is_volatile,
            lie,
            cache: (0, true),
            medium: (0, true),
            book: Book::new(1, !is_volatile),
            numbers: 0,
            writes: Vec::new(),
            reads: Vec::new(),
            flushes: Vec::new(),
        }
    }

    /// One step; false where the book objects to what a read has found.
    fn step(&mut self, random: &mut Random) -> bool {
        match random.below(20) {
            0..4 if self.writes.len() < 3 => self.begin_write(random),
            4..8 if !self.writes.is_empty() => self.go_on_writing(random),
            8..10 if self.reads.len() < 3 => {
                let mut ticket = ReadTicket::default();
                self.book.begin_read(UNIT..UNIT + 1, 0, &mut ticket);
                self.reads.push((ticket, None));
            }
            10..16 if !self.reads.is_empty() => return self.go_on_reading(random),
            16 if self.flushes.len() < 2 => self.flushes.push((self.book.begin_flush(), false)),
            17 if !self.flushes.is_empty() => self.go_on_flushing(random),
            18 if self.is_volatile && random.chance(0.1) => self.medium = self.cache,
            19 if self.lie == Lie::Forgetful && random.chance(0.2) => self.cache = self.medium,
            19 if random.chance(0.4) => return self.crash(random),
            _ => {}
        }
        true
    }

    fn begin_write(&mut self, random: &mut Random) {
        self.numbers += 1;
        let effect = match random.below(4) {
            0 => Effect::Zeros,
            1 => Effect::PerhapsZeros,
            _ => Effect::Stamp,
        };
        self.book.begin_write(UNIT, self.numbers, effect);
        let durable = random.chance(0.2);
        self.writes.push(Flight { number: self.numbers, effect, durable, has_landed: false });
    }

    fn go_on_writing(&mut self, random: &mut Random) {
        let at = random.below(self.writes.len() as u64) as usize;
        let Flight { number, effect, durable, has_landed } = self.writes[at];
        if !has_landed && !random.chance(0.2) {
            self.writes[at].has_landed = true;
            let skips = effect == Effect::PerhapsZeros && random.chance(0.5);
            if !skips {
                self.land((number, effect != Effect::Stamp));
            }
            return;
        }
        self.writes.swap_remove(at);
        let is_acknowledged = has_landed || self.lie == Lie::LostWrite;
        if durable && is_acknowledged && self.lie != Lie::NotDurable {
            self.medium = self.cache;
        }
        self.book.end_write(UNIT, number, is_acknowledged, durable);
    }

    fn land(&mut self, content: Content) {
        self.cache = content;
        if !self.is_volatile {
            self.medium = content;
        }
    }

    fn go_on_flushing(&mut self, random: &mut Random) {
        let at = random.below(self.flushes.len() as u64) as usize;
        let (began, is_done) = self.flushes[at];
        if is_done {
            self.flushes.swap_remove(at);
            return self.book.end_flush(began);
        }
        self.flushes[at].1 = true;
        if self.lie != Lie::LostFlush {
            self.medium = self.cache;
        }
    }

    fn go_on_reading(&mut self, random: &mut Random) -> bool {
        let at = random.below(self.reads.len() as u64) as usize;
        let Some(found) = self.reads[at].1 else {
            self.reads[at].1 = Some(self.cache);
            return true;
        };
        let (ticket, _) = self.reads.swap_remove(at);
        self.judge(&ticket, found)
            .map(|(allowed, number)| self.book.observe(UNIT, &allowed, number))
            .is_some()
    }

    /// The version for which the book takes what was found, if it may be there.
    fn judge<'a>(&self, ticket: &'a ReadTicket, (version, zero): Content) -> Option<(Allowed<'a>, u32)> {
        let allowed = self.book.allowed(ticket, UNIT);
        let holds = if zero { Holds::Zeros } else { Holds::Stamp { address: UNIT, version } };
        let number = allowed.version_of(&holds, UNIT)?;
        Some((allowed, number))
    }

    /// After some of the crashes everything is read before anything is written.
    fn crash(&mut self, random: &mut Random) -> bool {
        self.cache = self.medium;
        self.writes.clear();
        self.reads.clear();
        self.flushes.clear();
        self.book.crash();
        if random.chance(0.5) {
            return true;
        }
        let mut ticket = ReadTicket::default();
        self.book.begin_read(UNIT..UNIT + 1, 0, &mut ticket);
        let judged = self.judge(&ticket, self.cache).map(|(_, number)| number);
        judged.into_iter().for_each(|number| self.book.recovered(UNIT, number));
        judged.is_some()
    }
}

/// The share of walks in which the book objects.
fn objections(is_volatile: bool, lie: Lie) -> f64 {
    const WALKS: u64 = 200;
    let objects = |seed: &u64| {
        let mut random = Random::new(*seed, 0);
        let mut store = Store::new(is_volatile, lie);
        !(0..3000).all(|_| store.step(&mut random))
    };
    (0..WALKS).filter(objects).count() as f64 / WALKS as f64
}

#[test]
fn a_store_that_does_what_it_may_is_never_blamed() {
    for is_volatile in [false, true] {
        assert_eq!(objections(is_volatile, Lie::None), 0.0, "volatile: {is_volatile}");
    }
}

#[test]
fn a_store_that_does_more_is_found_out() {
    let lies = [
        (false, Lie::LostWrite),
        (true, Lie::LostWrite),
        (true, Lie::LostFlush),
        (true, Lie::NotDurable),
        (true, Lie::Forgetful),
    ];
    for (is_volatile, lie) in lies {
        let found = objections(is_volatile, lie);
        assert!(
            found > 0.5,
            "{lie:?} of a cache that is volatile ({is_volatile}) is found in {found} of the walks"
        );
    }
}
