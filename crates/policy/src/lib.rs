//! Which pages a cache keeps: replacement policies over frames. [`tier`] says which extents lie on flash.
//!
//! A cache has a fixed number of [`Frame`]s, places for one page each. A [`Policy`] says which page has which frame, and
//! which page gives its frame up when another comes in. It knows keys and nothing of what they stand for.
//!
//! | folder | policy |
//! |---|---|
//! | [`lru`] | the page that was asked for longest ago gives way |
//! | [`adaptive`] | recency and frequency, each with a share of the frames that follows the load; the default |
//!
//! Invariants:
//! - A page has at most one frame, a frame at most one page; no more frames than the limit have one.
//! - All memory is taken at creation, at most [`BOOKKEEPING_BYTES_MAX`] for a frame.
//! - The same requests in the same order give the same answers.
//!
//! What it does not do: it holds no data, does no I/O, and asks for no time.

pub mod adaptive;
mod frames;
mod hash;
mod index;
mod kind;
pub mod lru;
pub mod tier;

pub use frames::{Frame, PageKey};
pub use kind::{PolicyKind, UnknownPolicy};

/// What a policy may take of memory for each frame, in bytes, beside a constant.
pub const BOOKKEEPING_BYTES_MAX: usize = 32;

/// A page that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Where it lies from now on.
    pub frame: Frame,
    /// The page that lay there and gave way.
    pub evicted: Option<PageKey>,
}

/// Which page of a request one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The first, or the only one.
    First,
    /// Another one, asked for right after the page that was asked for or taken in last. A block of a database is some pages, and
    /// what is left of it is of no use without the rest: a policy may keep them as a whole.
    Next,
}

/// Decides which pages a cache keeps.
pub trait Policy {
    /// How many frames there are.
    fn capacity(&self) -> usize;

    /// How many of them may have a page.
    fn limit(&self) -> usize;

    /// Changes how many frames may have a page, at least 1 and at most all. What is beyond gives way, each page with the frame
    /// that it had told to `gone`.
    fn set_limit(&mut self, frames: usize, gone: &mut dyn FnMut(PageKey, Frame));

    /// How many of them have a page.
    fn len(&self) -> usize;

    /// Whether no frame has a page.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where a page lies. It counts as asked for, whether it is there or not.
    fn get(&mut self, page: PageKey, part: Part) -> Option<Frame>;

    /// Where a page lies, without counting that as a request.
    fn peek(&self, page: PageKey) -> Option<Frame>;

    /// Takes in a page that is not there.
    ///
    /// # Panics
    /// Where the page is there.
    fn insert(&mut self, page: PageKey, part: Part) -> Inserted;

    /// Forgets a page: its frame is free.
    fn remove(&mut self, page: PageKey) -> Option<Frame>;

    /// The memory that it takes, in bytes.
    fn memory_bytes(&self) -> usize;
}
