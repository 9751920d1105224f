//! A list that grows at its end while others read it: no lock, and what was read stays where it is.
//!
//! What is there at first lies in one piece, so a list that never grew costs one comparison more than a slice. What
//! comes later lies in pieces of 64, 128, 256 … items. One thread appends at a time; an item is there for a thread that
//! has seen the count, or has learned of it in another way from the one that appended.

use tier0_world::sync::shared::{AtomicU32, Flaw, OnceLock, Ordering, flawed};

/// Items of the first piece that is added. The model checker sees two pieces in three items.
const PIECE_ITEMS: u32 = if cfg!(tier0_loom) { 1 } else { 64 };
/// Pieces that can be added: together they have 2^32 - 64 items.
const PIECES: usize = if cfg!(tier0_loom) { 2 } else { 26 };

/// A list that grows.
#[derive(Debug)]
pub(super) struct GrowList<T> {
    first: Box<[T]>,
    added: [OnceLock<Box<[T]>>; PIECES],
    count: AtomicU32,
}

impl<T> GrowList<T> {
    /// A list of these items.
    pub(super) fn new(items: impl IntoIterator<Item = T>) -> GrowList<T> {
        let first: Box<[T]> = items.into_iter().collect();
        let count = u32::try_from(first.len()).expect("a pool has fewer than 2^32 columns");
        GrowList { first, added: std::array::from_fn(|_| OnceLock::new()), count: AtomicU32::new(count) }
    }

    /// How many items there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }

    /// An item that is there.
    ///
    /// # Panics
    /// When it is not.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &T {
        match self.first.get(index) {
            Some(item) => item,
            None => self.get_added(index - self.first.len()),
        }
    }

    fn get_added(&self, index: usize) -> &T {
        let (piece, place) = place_of(index as u32);
        &self.added[piece].get().expect("the item was appended")[place]
    }

    /// All items.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl<T: Default> GrowList<T> {
    /// Appends an item, which `set` brings from its default to what it should be. Called by one thread at a time.
    pub(super) fn append(&self, set: impl FnOnce(&T)) {
        let count = self.count.load(Ordering::Acquire);
        let (piece, place) = place_of(count - self.first.len() as u32);
        let items =
            self.added[piece].get_or_init(|| (0..PIECE_ITEMS << piece).map(|_| T::default()).collect());
        if flawed(Flaw::CountBeforeItem) {
            self.count.store(count + 1, Ordering::Release);
        }
        set(&items[place]);
        self.count.store(count + 1, Ordering::Release);
    }
}

/// The piece of an added item, and its place there.
fn place_of(index: u32) -> (usize, usize) {
    // Piece p begins at 64 * (2^p - 1).
    let number = index + PIECE_ITEMS;
    let piece = number.ilog2() - PIECE_ITEMS.ilog2();
    (piece as usize, (number - (PIECE_ITEMS << piece)) as usize)
}

#[cfg(all(test, not(tier0_loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn items_stay_where_they_are() {
        for first in [0, 1, 70] {
            let list = GrowList::new((0..first).map(AtomicU64::new));
            let early = (first > 0).then(|| std::ptr::from_ref(list.get(0)));
            for value in first..1000 {
                assert_eq!(list.len() as u64, value);
                list.append(|item| item.store(value, Ordering::Relaxed));
            }
            let values: Vec<u64> = list.iter().map(|item| item.load(Ordering::Relaxed)).collect();
            assert_eq!(values, (0..1000).collect::<Vec<_>>());
            assert!(early.is_none_or(|early| std::ptr::eq(early, list.get(0))));
        }
    }

    /// Readers that follow the count see every item as it was set, while the list grows through its pieces.
    #[test]
    fn readers_see_what_is_counted() {
        const ITEMS: u64 = 50_000;
        let list = GrowList::new([AtomicU64::new(1)]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut count = 0;
                    while count < ITEMS {
                        let seen = list.len() as u64;
                        for index in count..seen {
                            assert_eq!(list.get(index as usize).load(Ordering::Relaxed), index + 1);
                        }
                        count = seen;
                    }
                });
            }
            for value in 2..=ITEMS {
                list.append(|item| item.store(value, Ordering::Relaxed));
            }
        });
    }

    #[test]
    fn pieces_have_no_gaps() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(place_of(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == 64 << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(place_of(u32::MAX - 64), (25, (64 << 25) - 1));
    }
}

#[cfg(all(test, tier0_loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;
    use tier0_world::sync::shared::{AtomicU64, explore};

    use super::*;

    /// One thread appends three items, through the end of a piece, another follows the count.
    fn items_are_set_when_counted(flaw: Option<Flaw>) {
        explore(flaw, || {
            let list = Arc::new(GrowList::new([AtomicU64::new(1)]));
            let followed = list.clone();
            // Loom misses orders in which the thread that stores has loaded last, so the reader is the one that comes
            // later.
            thread::spawn(move || {
                for (index, item) in followed.iter().enumerate() {
                    assert_eq!(item.load(Ordering::Relaxed), index as u64 + 1, "an item is not set");
                }
            });
            for value in 2..5 {
                list.append(|item| item.store(value, Ordering::Relaxed));
            }
        });
    }

    #[test]
    fn what_is_counted_is_set() {
        items_are_set_when_counted(None);
    }

    #[test]
    #[should_panic(expected = "an item is not set")]
    fn counting_before_setting_is_found() {
        items_are_set_when_counted(Some(Flaw::CountBeforeItem));
    }

    #[test]
    #[should_panic(expected = "the item was appended")]
    fn relaxed_orderings_are_found() {
        items_are_set_when_counted(Some(Flaw::RelaxedOrderings));
    }
}
