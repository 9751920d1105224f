//! Which readers go through a volume in order, and what they will ask for next. No I/O, no waiting.
//!
//! A reader is known by where its next request begins, so several of one client are told apart, and clients that go through
//! the same data together are one. What is read ahead grows while a reader follows it, in requests as long as its own, and
//! ends with it.

/// Readers that are followed; of more, the one that has not come for longest is forgotten.
const STREAMS: usize = 16;
/// Requests in a row before anything is read ahead.
const RUN_MIN: u32 = 3;
/// Requests as long as this, sectors, may be pieces of longer ones that protocols have cut: 128 KiB.
const PIECE: u64 = 256;
/// So much in a row of these before anything is read ahead, sectors: 2 MiB.
const PIECES_RUN_MIN: u64 = 4096;
/// The first window, sectors: 64 KiB, and two requests at least.
const WINDOW_MIN: u64 = 128;
/// The largest window, sectors: 2 MiB, what a disk reads in some 15 ms.
const WINDOW_MAX: u64 = 4096;
/// Requests of one reader may overtake each other by so many sectors: 256 KiB.
const DISORDER: u64 = 512;

/// What is to be read ahead: from a sector on, in pieces that are no longer than the reader's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Where it begins, a sector of the volume.
    pub from: u64,
    /// How much, sectors.
    pub sectors: u64,
    /// The reader's last request, sectors.
    pub piece: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Where its next request is expected.
    next: u64,
    /// Requests in a row.
    run: u32,
    /// Up to where it was read ahead.
    ahead: u64,
    window: u64,
    /// The number of its last request among all.
    last: u64,
}

/// The readers of a volume.
#[derive(Debug, Default)]
pub struct ReadAhead {
    streams: [Stream; STREAMS],
    requests: u64,
}

impl ReadAhead {
    /// A read was asked for of a volume of `end` sectors; windows take at most `room` sectors. What should be read ahead now.
    pub fn asked(&mut self, sector: u64, sectors: u64, end: u64, room: u64) -> Option<Ahead> {
        self.requests += 1;
        let last = self.requests;
        let follows = |stream: &&mut Stream| {
            stream.run > 0
                && stream.next.abs_diff(sector) <= if stream.next > sector { DISORDER } else { DISORDER / 2 }
        };
        let Some(stream) =
            self.streams.iter_mut().filter(follows).min_by_key(|stream| stream.next.abs_diff(sector))
        else {
            let oldest = self.streams.iter_mut().min_by_key(|stream| stream.last).expect("there are some");
            *oldest = Stream { next: sector + sectors, run: 1, ahead: 0, window: 0, last };
            return None;
        };
        stream.last = last;
        if sector + sectors <= stream.next {
            // It was overtaken, or is asked for again.
            return None;
        }
        stream.next = sector + sectors;
        stream.run += 1;
        if stream.run < RUN_MIN || sectors >= PIECE && u64::from(stream.run) * sectors < PIECES_RUN_MIN {
            return None;
        }
        let most = WINDOW_MAX.min(room);
        let left = stream.ahead.saturating_sub(stream.next);
        if stream.window > 0 && left > stream.window / 2 {
            return None;
        }
        // The reader has used half of what was read for it.
        stream.window = (2 * stream.window).max(WINDOW_MIN).max(2 * sectors).min(most);
        let from = stream.ahead.max(stream.next);
        let to = (stream.next + stream.window).min(end);
        (from < to).then(|| {
            stream.ahead = to;
            Ahead { from, sectors: to - from, piece: sectors }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 1 << 20;

    /// What a reader of `count` requests of 16 sectors has read ahead for it.
    fn go(ahead: &mut ReadAhead, from: u64, count: u64) -> Vec<Ahead> {
        (0..count).filter_map(|number| ahead.asked(from + number * 16, 16, END, END)).collect()
    }

    #[test]
    fn the_third_request_in_a_row_begins_it() {
        let mut ahead = ReadAhead::default();
        assert_eq!(go(&mut ahead, 1000, 2), []);
        assert_eq!(ahead.asked(1032, 16, END, END), Some(Ahead { from: 1048, sectors: 128, piece: 16 }));
    }

    #[test]
    fn pieces_of_a_long_request_are_no_reader() {
        let mut ahead = ReadAhead::default();
        let asked = |number: u64| ahead.asked(number * PIECE, PIECE, END, END);
        let begun: Vec<bool> = (0..20).map(asked).map(|ahead| ahead.is_some()).collect();
        assert_eq!(begun.iter().position(|begins| *begins), Some(15), "2 MiB in a row");
    }

    #[test]
    fn it_grows_as_far_as_the_reader_follows_and_covers_all_once() {
        let mut ahead = ReadAhead::default();
        let all = go(&mut ahead, 0, 2000);
        let mut at = 48;
        for part in &all {
            assert_eq!(part.from, at, "nothing is left out, nothing is read twice");
            at += part.sectors;
        }
        assert!((2000 * 16..=2000 * 16 + WINDOW_MAX).contains(&at));
        let longest = all.iter().map(|part| part.sectors).max().expect("some");
        assert!((WINDOW_MAX / 2..=WINDOW_MAX).contains(&longest), "{longest}");
    }

    #[test]
    fn random_readers_have_nothing_read_ahead() {
        let mut ahead = ReadAhead::default();
        let mut at = 1u64;
        for _ in 0..10_000 {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sector = ((at >> 33) % (1 << 24)) * 16;
            let found = ahead.asked(sector, 16, 1 << 28, END);
            assert_eq!(found, None);
        }
    }

    #[test]
    fn readers_are_told_apart_and_stay_within_the_volume() {
        let mut ahead = ReadAhead::default();
        let mut parts = Vec::new();
        for number in 0..10 {
            for reader in 0..8 {
                parts.extend(ahead.asked(reader * 100_000 + number * 16, 16, END, END));
            }
        }
        assert!(parts.len() >= 8 && parts.iter().all(|part| part.from % 100_000 < 10_000));
        let last = go(&mut ahead, END - 10 * 16, 10);
        assert!(!last.is_empty() && last.iter().all(|part| part.from + part.sectors <= END));
    }

    #[test]
    fn requests_may_overtake_each_other() {
        let mut ahead = ReadAhead::default();
        let order = [0, 2, 1, 3, 5, 4, 6, 7, 9, 8];
        let parts: Vec<Ahead> =
            order.iter().filter_map(|number| ahead.asked(number * 16, 16, END, END)).collect();
        assert!(!parts.is_empty());
    }

    #[test]
    fn a_small_room_keeps_windows_small() {
        let mut ahead = ReadAhead::default();
        let all: Vec<Ahead> = (0..200).filter_map(|number| ahead.asked(number * 16, 16, END, 200)).collect();
        assert!(!all.is_empty() && all.iter().all(|part| part.sectors <= 200));
        assert_eq!(ahead.asked(200 * 16, 16, END, 0), None, "there is none");
    }
}
