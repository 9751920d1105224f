//! The requests of one connection that are in flight, each with its buffer and who waits for it.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_world::{BufMut, Completion, IoError, Payload};

use crate::errors::io_error_of;
use crate::protocol::transmission::{Extent, InFlight, PendingReply, ReplyEvent, Request};

/// Extents as they arrive, shared with who asked for them.
pub(super) type Extents = Rc<RefCell<Vec<Extent>>>;

/// Where a reply's contents go.
pub(super) enum Sink {
    Nothing,
    Data(BufMut),
    Extents(Extents),
}

impl Sink {
    pub(super) fn into_payload(self) -> Payload {
        match self {
            Sink::Data(buf) => Payload::Read(buf),
            Sink::Nothing | Sink::Extents(_) => Payload::None,
        }
    }
}

struct Entry {
    reply: PendingReply,
    sink: Sink,
    completion: Completion,
}

#[derive(Default)]
struct Place {
    generation: u32,
    entry: Option<Entry>,
}

/// A slab: the cookie's low half is the place, its high half says which use of the place it is, so that a reply to an
/// old request is not taken for one to a new request.
#[derive(Default)]
pub(super) struct Table {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Table {
    /// Enters a request; `request` makes it from its cookie. `completion` is completed when its reply is.
    pub(super) fn insert(
        &mut self,
        request: impl FnOnce(u64) -> Request,
        sink: Sink,
        completion: Completion,
    ) -> Request {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place::default());
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 requests are in flight")
        });
        let place = &mut self.places[index as usize];
        let request = request(u64::from(place.generation) << 32 | u64::from(index));
        place.entry = Some(Entry { reply: PendingReply::new(&request), sink, completion });
        request
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    fn get(&mut self, cookie: u64) -> Option<&mut Entry> {
        let place = self.places.get_mut((cookie as u32) as usize)?;
        if u64::from(place.generation) == cookie >> 32 { place.entry.as_mut() } else { None }
    }

    fn remove(&mut self, index: u32) -> Option<Entry> {
        let place = &mut self.places[index as usize];
        let entry = place.entry.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        Some(entry)
    }

    /// Enters what a server sent; the stream has checked that it suits the request.
    pub(super) fn apply(&mut self, event: ReplyEvent<'_>) {
        match event {
            ReplyEvent::Data { cookie, at, bytes } => {
                if let Some(buf) = self.data(cookie) {
                    buf.as_mut_slice()[at as usize..][..bytes.len()].copy_from_slice(bytes);
                }
            }
            ReplyEvent::Zeroes { cookie, at, length } => {
                if let Some(buf) = self.data(cookie) {
                    buf.as_mut_slice()[at as usize..][..length as usize].fill(0);
                }
            }
            ReplyEvent::Extent { cookie, extent } => {
                if let Some(Entry { sink: Sink::Extents(extents), .. }) = self.get(cookie) {
                    extents.borrow_mut().push(extent);
                }
            }
            ReplyEvent::Done { cookie, error } => {
                let entry = self.remove(cookie as u32).expect("the stream knows what is in flight");
                entry.completion.complete(
                    error.map_or(Ok(()), |errno| Err(io_error_of(errno))),
                    entry.sink.into_payload(),
                );
            }
        }
    }

    fn data(&mut self, cookie: u64) -> Option<&mut BufMut> {
        match self.get(cookie) {
            Some(Entry { sink: Sink::Data(buf), .. }) => Some(buf),
            _ => None,
        }
    }

    /// Takes a read's buffer out, to be received into and put back, if the bytes from `at` on for `length` are its
    /// last ones: a receive fills a buffer to its end.
    pub(super) fn take_buffer(&mut self, cookie: u64, at: u32, length: u32) -> Option<BufMut> {
        let entry = self.get(cookie)?;
        match std::mem::replace(&mut entry.sink, Sink::Nothing) {
            Sink::Data(buf) if buf.as_slice().len() == at as usize + length as usize => Some(buf),
            sink => {
                entry.sink = sink;
                None
            }
        }
    }

    /// Puts a buffer back.
    pub(super) fn return_buffer(&mut self, cookie: u64, buf: BufMut) {
        self.get(cookie).expect("a request stays in flight while its data arrives").sink = Sink::Data(buf);
    }

    /// Ends everything that is in flight with `error`.
    pub(super) fn fail_all(&mut self, error: IoError) {
        for index in 0..self.places.len() as u32 {
            if let Some(entry) = self.remove(index) {
                entry.completion.complete(Err(error), entry.sink.into_payload());
            }
        }
    }
}

impl InFlight for Table {
    fn pending(&mut self, cookie: u64) -> Option<&mut PendingReply> {
        self.get(cookie).map(|entry| &mut entry.reply)
    }
}
