//! The writer's side of a connection: replies gather here and go out together.
//!
//! The first reply wakes the writer, which then stands at the end of the queue of ready tasks; so every reply that
//! becomes ready in the same turn goes out with it. While a send is under way, replies gather for the next.

use std::cell::{Cell, RefCell};

use tier0_world::real::Socket;
use tier0_world::sync::Notify;
use tier0_world::{Buf, Gather};

use super::flow::Flow;

/// Replies that wait to be sent, and what they give back to the flow once they are.
#[derive(Default)]
struct Batch {
    gather: Box<Gather>,
    requests: u32,
    bytes: u64,
}

/// Collects replies.
pub(super) struct Outbox {
    batch: RefCell<Batch>,
    /// Headers are put together here; kept for its memory.
    scratch: RefCell<Vec<u8>>,
    closed: Cell<bool>,
    filled: Notify,
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        let scratch = RefCell::new(Vec::with_capacity(256));
        Outbox { batch: RefCell::default(), scratch, closed: Cell::new(false), filled: Notify::new() }
    }

    /// Appends the reply that ends a request admitted with `bytes`: its header, and data to follow it.
    pub(super) fn push(&self, bytes: u64, put_header: impl FnOnce(&mut Vec<u8>), data: Option<Buf>) {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        put_header(&mut scratch);
        let mut batch = self.batch.borrow_mut();
        batch.gather.push_header(&scratch);
        if let Some(data) = data {
            batch.gather.push_data(data);
        }
        batch.requests += 1;
        batch.bytes += bytes;
        if batch.requests == 1 {
            self.filled.notify_all();
        }
    }

    /// Ends [`Outbox::send_all`] once it is empty.
    pub(super) fn close(&self) {
        self.closed.set(true);
        self.filled.notify_all();
    }

    /// Sends what gathers until the outbox is closed. When the socket fails, it is shut down, so that the reader
    /// ends too, and further replies are dropped.
    pub(super) async fn send_all(&self, socket: &Socket, flow: &Flow) {
        let mut spare = Box::new(Gather::new());
        let mut broken = false;
        loop {
            while self.batch.borrow().requests == 0 {
                if self.closed.get() {
                    return;
                }
                self.filled.wait().await;
            }
            let Batch { gather, requests, bytes } =
                self.batch.replace(Batch { gather: std::mem::take(&mut spare), requests: 0, bytes: 0 });
            if broken {
                spare = Box::new(Gather::new());
            } else {
                let (result, gather) = socket.send(gather).await;
                spare = gather;
                if let Err(error) = result {
                    tracing::debug!(%error, "replies cannot be sent");
                    socket.shutdown();
                    (broken, spare) = (true, Box::new(Gather::new()));
                }
            }
            flow.release(requests, bytes);
        }
    }
}
