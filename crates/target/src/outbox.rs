//! The sending side of a connection: messages gather here and go out together.
//!
//! The first message wakes the sender, which then stands at the end of the queue of ready tasks; so every message
//! that becomes ready in the same turn goes out with it. While a send is under way, messages gather for the next.

use std::cell::{Cell, RefCell};

use tier0_world::net::Socket;
use tier0_world::sync::Notify;
use tier0_world::{Buf, Gather};

/// Who is told how sending gets on.
pub trait Account {
    /// A send begins, or has ended.
    fn sending(&self, sending: bool) {
        let _ = sending;
    }

    /// The peer's side has taken a part.
    fn taken(&self) {}

    /// So many messages of this weight in sum are through, or dropped.
    fn sent(&self, messages: u32, weight: u64) {
        let _ = (messages, weight);
    }

    /// The socket failed: nothing is sent any more.
    fn lost(&self) {}
}

/// Keeps no accounts.
impl Account for () {}

/// Messages that wait to be sent: how many, and what they weigh in the sender's accounts.
#[derive(Default)]
struct Batch {
    gather: Box<Gather>,
    messages: u32,
    weight: u64,
}

/// Collects messages, and sends them.
pub struct Outbox {
    batch: RefCell<Batch>,
    /// Headers are put together here; kept for its memory.
    scratch: RefCell<Vec<u8>>,
    closed: Cell<bool>,
    filled: Notify,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox::new()
    }
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Outbox {
        let scratch = RefCell::new(Vec::with_capacity(256));
        Outbox { batch: RefCell::default(), scratch, closed: Cell::new(false), filled: Notify::new() }
    }

    /// Appends a message: a header, and data to follow it.
    pub fn push(&self, weight: u64, put_header: impl FnOnce(&mut Vec<u8>), data: Option<Buf>) {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        put_header(&mut scratch);
        let mut batch = self.batch.borrow_mut();
        batch.gather.push_header(&scratch);
        if let Some(data) = data {
            batch.gather.push_data(data);
        }
        batch.messages += 1;
        batch.weight += weight;
        if batch.messages == 1 {
            self.filled.notify_all();
        }
    }

    /// Ends [`Outbox::send_all`] once it is empty.
    pub fn close(&self) {
        self.closed.set(true);
        self.filled.notify_all();
    }

    /// Sends what gathers until the outbox is closed, and keeps `account` informed. When the socket fails, it is shut
    /// down, so that the task that receives from it ends too, and further messages are dropped.
    pub async fn send_all(&self, socket: &Socket, account: &impl Account) {
        let mut spare = Box::new(Gather::new());
        let mut broken = false;
        loop {
            while self.batch.borrow().messages == 0 {
                if self.closed.get() {
                    return;
                }
                self.filled.wait().await;
            }
            let batch = self.batch.replace(Batch { gather: spare, messages: 0, weight: 0 });
            spare = batch.gather;
            if !broken {
                account.sending(true);
                let result;
                (result, spare) = socket.send_noting(spare, |_| account.taken()).await;
                account.sending(false);
                if let Err(error) = result {
                    tracing::debug!(%error, "the socket does not take what is sent");
                    socket.shutdown();
                    account.lost();
                    broken = true;
                }
            }
            // Empty after a success; after a failure what is left is dropped.
            spare.advance(spare.remaining_bytes());
            account.sent(batch.messages, batch.weight);
        }
    }
}
