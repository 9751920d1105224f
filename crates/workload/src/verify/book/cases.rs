//! What a unit may hold, case by case.

use super::*;
use crate::verify::Holds;

use Effect::{PerhapsZeros, Stamp, Zeros};

/// The only unit, which is its own address.
const UNIT: u64 = 0;

/// A book of one unit, with the numbers of its writes.
struct Unit {
    book: Book,
    numbers: u32,
}

/// Stamps by their numbers, and as which version zeros would count.
type May = (Vec<u32>, Option<u32>);

impl Unit {
    fn durable() -> Unit {
        Unit { book: Book::new(1, true), numbers: 0 }
    }

    fn volatile() -> Unit {
        Unit { book: Book::new(1, false), numbers: 0 }
    }

    fn begin(&mut self, effect: Effect) -> u32 {
        self.numbers += 1;
        self.book.begin_write(UNIT, self.numbers, effect);
        self.numbers
    }

    fn end(&mut self, number: u32) {
        self.book.end_write(UNIT, number, true, false);
    }

    fn fail(&mut self, number: u32) {
        self.book.end_write(UNIT, number, false, false);
    }

    /// A write that is acknowledged.
    fn write(&mut self, effect: Effect) -> u32 {
        let number = self.begin(effect);
        self.end(number);
        number
    }

    fn flush(&mut self) {
        let began = self.book.begin_flush();
        self.book.end_flush(began);
    }

    fn begin_read(&self) -> ReadTicket {
        let mut ticket = ReadTicket::default();
        self.book.begin_read(UNIT..UNIT + 1, 0, &mut ticket);
        ticket
    }

    /// What a read may find that began then and ends now.
    fn may(&self, ticket: &ReadTicket) -> May {
        let allowed = self.book.allowed(ticket, UNIT);
        let stamp = |version| allowed.version_of(&Holds::Stamp { address: UNIT, version }, UNIT);
        let stamps = (0..=self.numbers + 1).filter(|number| stamp(*number) == Some(*number)).collect();
        (stamps, allowed.version_of(&Holds::Zeros, UNIT))
    }

    /// What a read of this moment may find.
    fn may_now(&self) -> May {
        self.may(&self.begin_read())
    }

    fn observe(&mut self, ticket: &ReadTicket, number: u32) {
        let allowed = self.book.allowed(ticket, UNIT);
        self.book.observe(UNIT, &allowed, number);
    }

    /// A read that finds this version.
    fn see(&mut self, number: u32) {
        let ticket = self.begin_read();
        self.observe(&ticket, number);
    }

    fn is_at_rest(&self) -> bool {
        self.book.busy.is_empty()
    }
}

fn stamps(numbers: &[u32]) -> May {
    (numbers.to_vec(), None)
}

#[test]
fn one_write_after_the_other_leaves_one_version() {
    let mut unit = Unit::durable();
    assert_eq!(unit.may_now(), (vec![], Some(0)));
    assert!(!unit.book.is_written(UNIT));
    for (number, before) in [(1, (vec![], Some(0))), (2, stamps(&[1])), (3, stamps(&[2]))] {
        assert_eq!(unit.begin(Stamp), number);
        let (mut both, zeros) = before;
        both.push(number);
        assert_eq!(unit.may_now(), (both, zeros));
        unit.end(number);
        assert_eq!(unit.may_now(), stamps(&[number]));
        assert!(unit.is_at_rest() && unit.book.is_written(UNIT), "nothing is kept for a unit at rest");
    }
    unit.write(Zeros);
    assert_eq!(unit.may_now(), (vec![], Some(4)));
    assert!(unit.is_at_rest(), "zeros are a version like others");
    unit.write(Stamp);
    assert_eq!(unit.may_now(), stamps(&[5]));
}

#[test]
fn a_stamp_counts_at_its_address_and_under_its_seed() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    let ticket = unit.begin_read();
    unit.begin(Stamp);
    let allowed = unit.book.allowed(&ticket, UNIT);
    for version in [1, 2] {
        assert_eq!(allowed.version_of(&Holds::Stamp { address: 7, version }, 7), Some(version));
        assert_eq!(allowed.version_of(&Holds::Stamp { address: 8, version }, 7), None);
        assert_eq!(allowed.version_of(&Holds::OtherSeed { address: 7, version, seed: 1 }, 7), None);
    }
    assert_eq!(allowed.version_of(&Holds::Noise, 7), None);
}

#[test]
fn overlapping_writes_may_have_landed_in_any_order() {
    let mut unit = Unit::durable();
    assert_eq!((unit.begin(Stamp), unit.begin(Stamp)), (1, 2));
    unit.end(2);
    assert_eq!(unit.may_now(), stamps(&[1, 2]), "the first is under way and may land last");
    assert_eq!(unit.begin(Stamp), 3);
    unit.end(3);
    assert_eq!(unit.may_now(), stamps(&[1, 3]), "the second had been answered before the third began");
    unit.end(1);
    assert_eq!(unit.may_now(), stamps(&[1, 3]));
    unit.write(Stamp);
    assert_eq!(unit.may_now(), stamps(&[4]));
    assert!(unit.is_at_rest());
}

#[test]
fn a_failed_write_may_have_landed_or_not_until_it_is_overwritten() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    assert_eq!(unit.may_now(), stamps(&[1, 2]));
    let third = unit.begin(Stamp);
    assert_eq!(unit.may_now(), stamps(&[1, 2, 3]));
    unit.end(third);
    assert_eq!(unit.may_now(), stamps(&[3]));
}

#[test]
fn what_a_read_finds_at_rest_stays() {
    for seen in [1, 2] {
        let mut unit = Unit::durable();
        unit.write(Stamp);
        let failed = unit.begin(Stamp);
        unit.see(1);
        assert_eq!(unit.may_now(), stamps(&[1, 2]), "a write under way may land after the read");
        unit.fail(failed);
        unit.see(seen);
        assert_eq!(unit.may_now(), stamps(&[seen]));
        assert_eq!(unit.book.issued(UNIT), 2, "version 2 is not given twice");
        unit.book.crash();
        assert_eq!(unit.may_now(), stamps(&[seen]), "also in a crash");
        unit.write(Stamp);
        assert_eq!(unit.may_now(), stamps(&[3]));
    }
}

#[test]
fn a_read_says_nothing_of_what_began_meanwhile() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    let ticket = unit.begin_read();
    let third = unit.begin(Stamp);
    unit.observe(&ticket, 1);
    unit.fail(third);
    unit.observe(&ticket, 1);
    assert_eq!(unit.may_now(), stamps(&[1, 2, 3]));
    let fourth = unit.begin(Stamp);
    let ticket = unit.begin_read();
    unit.fail(fourth);
    unit.observe(&ticket, 1);
    assert_eq!(unit.may_now(), stamps(&[1, 2, 3, 4]), "it was under way when the read began");
}

#[test]
fn two_reads_at_rest_find_the_same() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    let (first, second) = (unit.begin_read(), unit.begin_read());
    unit.observe(&first, 2);
    assert_eq!(unit.may(&second), stamps(&[2]));
}

#[test]
fn a_read_may_find_what_came_and_went_while_it_was_under_way() {
    let mut unit = Unit::durable();
    unit.write(Zeros);
    unit.write(Stamp);
    let ticket = unit.begin_read();
    unit.write(Stamp);
    assert_eq!(unit.may(&ticket), stamps(&[2, 3]));
    unit.write(Zeros);
    unit.write(Stamp);
    assert_eq!(unit.may(&ticket).1, Some(4));
    assert!(unit.may(&ticket).0.starts_with(&[2, 3]) && unit.may(&ticket).0.ends_with(&[5]));
    assert_eq!(unit.may_now(), stamps(&[5]), "but none that begins afterwards");
}

#[test]
fn numbers_given_elsewhere_before_a_read_are_not_new() {
    let mut book = Book::new(1, true);
    book.begin_write(UNIT, 3, Stamp);
    book.end_write(UNIT, 3, true, false);
    let mut ticket = ReadTicket::default();
    book.begin_read(UNIT..UNIT + 1, 5, &mut ticket);
    book.begin_write(UNIT, 7, Stamp);
    let allowed = book.allowed(&ticket, UNIT);
    let is_allowed = |version| allowed.version_of(&Holds::Stamp { address: UNIT, version }, UNIT).is_some();
    assert_eq!([3, 4, 5, 7, 8].map(is_allowed), [true, false, false, true, false]);
}

#[test]
fn units_of_one_read_are_apart() {
    let mut book = Book::new(4, true);
    for unit in 1..4 {
        book.begin_write(unit, unit as u32, Stamp);
    }
    book.end_write(2, 2, true, false);
    let mut ticket = ReadTicket::default();
    book.begin_read(1..4, 3, &mut ticket);
    assert_eq!(ticket.units(), 1..4);
    let may = |unit| {
        let allowed = book.allowed(&ticket, unit);
        let stamp = |version| allowed.version_of(&Holds::Stamp { address: unit, version }, unit);
        ([1, 2, 3].map(stamp), allowed.version_of(&Holds::Zeros, unit))
    };
    assert_eq!(may(1), ([Some(1), None, None], Some(0)));
    assert_eq!(may(2), ([None, Some(2), None], None));
    assert_eq!(may(3), ([None, None, Some(3)], Some(0)));
}

#[test]
fn a_discard_of_part_of_a_granule_may_do_nothing() {
    for mut unit in [Unit::durable(), Unit::volatile()] {
        unit.write(Stamp);
        unit.flush();
        unit.write(PerhapsZeros);
        unit.flush();
        assert_eq!(unit.may_now(), (vec![1], Some(2)));
        unit.book.crash();
        assert_eq!(unit.may_now(), (vec![1], Some(2)));
        unit.see(1);
        assert_eq!(unit.may_now(), stamps(&[1]), "a read tells");
        unit.write(Stamp);
        assert_eq!(unit.may_now(), stamps(&[3]));
    }
}

#[test]
fn a_crash_takes_back_what_was_not_acknowledged_and_no_more() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    unit.begin(Stamp);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[1, 2]));
    unit.see(1);
    assert_eq!(unit.may_now(), stamps(&[1]), "nothing is under way after a crash");
}

#[test]
fn a_volatile_cache_may_lose_what_was_not_flushed() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    unit.write(Stamp);
    unit.write(Stamp);
    assert_eq!(unit.may_now(), stamps(&[3]), "but not before a crash");
    let mut flushed = unit.book.clone();
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[1, 2, 3]));
    let began = flushed.begin_flush();
    flushed.end_flush(began);
    flushed.crash();
    assert!(flushed.busy.is_empty(), "the last one for certain");
}

#[test]
fn a_flush_covers_what_was_acknowledged_before_it_began() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    let early = unit.begin(Stamp);
    let began = unit.book.begin_flush();
    unit.end(early);
    unit.book.end_flush(began);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[1, 2]));
}

#[test]
fn a_durable_write_is_stable_by_itself() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    let durable = unit.begin(Stamp);
    unit.book.end_write(UNIT, durable, true, true);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[2]));
    let failed = unit.begin(Stamp);
    unit.book.end_write(UNIT, failed, false, true);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[2, 3]), "unless it fails");
}

#[test]
fn a_flush_makes_nothing_stable_that_a_crash_has_taken() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    unit.write(Stamp);
    unit.book.crash();
    unit.flush();
    assert_eq!(unit.may_now(), stamps(&[1, 2]));
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[1, 2]));
}

#[test]
fn a_volatile_cache_may_forget_what_was_seen_but_not_what_was_flushed_then() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    let early = unit.book.begin_flush();
    unit.see(2);
    unit.book.end_flush(early);
    let mut flushed = unit.book.clone();
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[1, 2]), "the flush began before it was seen");
    let began = flushed.begin_flush();
    flushed.end_flush(began);
    flushed.crash();
    unit.book = flushed;
    assert_eq!(unit.may_now(), stamps(&[2]));
}

#[test]
fn a_look_at_what_is_certain_takes_nothing_back() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    unit.write(Stamp);
    let began = unit.book.begin_flush();
    unit.see(2);
    unit.book.end_flush(began);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[2]));
}

#[test]
fn a_flush_counts_for_what_was_seen_after_it_began() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    unit.write(Stamp);
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    let began = unit.book.begin_flush();
    unit.see(2);
    unit.book.end_flush(began);
    unit.book.crash();
    assert_eq!(
        unit.may_now(),
        stamps(&[2, 3]),
        "the failed write may have reached what is stable, the first is gone"
    );
    assert_eq!(unit.book.allowed(&unit.begin_read(), UNIT).numbers(), [2, 3]);
}

#[test]
fn a_second_look_takes_nothing_back_that_was_flushed() {
    let mut unit = Unit::volatile();
    unit.write(Stamp);
    unit.flush();
    let failed = unit.begin(Stamp);
    unit.fail(failed);
    let (first, second) = (unit.begin_read(), unit.begin_read());
    unit.observe(&first, 2);
    unit.flush();
    unit.observe(&second, 2);
    unit.book.crash();
    assert_eq!(unit.may_now(), stamps(&[2]));
}

#[test]
fn what_a_restart_has_found_stays() {
    for recovered in [1, 2, 3] {
        let mut unit = Unit::volatile();
        unit.write(Stamp);
        unit.flush();
        unit.write(Stamp);
        unit.write(Stamp);
        unit.book.crash();
        unit.book.recovered(UNIT, recovered);
        assert_eq!(unit.may_now(), stamps(&[recovered]));
        unit.book.crash();
        assert_eq!(unit.may_now(), stamps(&[recovered]), "also in the next crash");
        assert_eq!(unit.book.issued(UNIT), 3);
    }
}

#[test]
#[should_panic(expected = "version 2 of unit 0 comes after 2")]
fn a_number_is_not_given_twice() {
    let mut unit = Unit::durable();
    unit.write(Stamp);
    unit.write(Stamp);
    unit.book.begin_write(UNIT, 2, Stamp);
}

#[test]
fn a_report_says_what_was_allowed() {
    let mut unit = Unit::volatile();
    unit.begin(Stamp);
    unit.begin(Zeros);
    let ticket = unit.begin_read();
    let text = |unit: &Unit| unit.book.allowed(&ticket, UNIT).into_owned().to_string();
    assert_eq!(text(&unit), "zeros, never written or version 1 or zeros of version 2");
    unit.begin(Stamp);
    let meanwhile = " or what was written meanwhile (versions above 2 up to 3)";
    assert!(text(&unit).ends_with(meanwhile), "{}", text(&unit));
    assert_eq!(unit.book.allowed(&ticket, UNIT).numbers(), [0, 1, 2, 3]);
}
