//! A connection as its protocol speaks on it: bytes in, replies out, and the flow of what is between.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use futures_util::future::{Either, select};
use thiserror::Error;
use tier0_stats::IoRecorder;
use tier0_units::Nanos;
use tier0_world::net::Socket;
use tier0_world::{Buf, BufMut, Gather, IoError, World};

use super::TargetOptions;
use super::error::CutOff;
use super::flow::Flow;
use super::outbox::{Account, Outbox};
use super::owed::Owed;
use super::pool::Pool;
use super::watch::Activity;

/// The connection is broken: there is no client to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("client disconnected before all replies were sent")]
pub struct Broken;

/// A connection's socket, its flow and its outbox. One task at a time receives and admits.
pub struct Channel {
    world: World,
    socket: Socket,
    flow: Flow,
    outbox: Outbox,
    /// What its client has asked of the export that it uses.
    pub(crate) stats: IoRecorder,
    turn_bytes: u64,
    /// Bytes that were admitted since others last had their turn.
    in_turn: Cell<u64>,
    /// Whether its client has ever asked for anything.
    has_asked: Cell<bool>,
    pub(crate) activity: Activity,
    /// Whether its client has gone without a word.
    has_left: Cell<bool>,
    cut_off: Cell<Option<CutOff>>,
}

impl Channel {
    pub(crate) fn new(world: &World, socket: Socket, options: &TargetOptions, pool: &Rc<Pool>) -> Channel {
        Channel {
            world: world.clone(),
            socket,
            flow: Flow::new(world, options, pool),
            outbox: Outbox::new(),
            stats: IoRecorder::default(),
            turn_bytes: options.turn_bytes,
            in_turn: Cell::new(0),
            has_asked: Cell::new(false),
            activity: Activity::new(world),
            has_left: Cell::new(false),
            cut_off: Cell::new(None),
        }
    }

    /// Who is at its other end.
    pub(crate) fn peer(&self) -> String {
        self.socket.peer()
    }

    /// The world it belongs to.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Appends what has arrived to `bytes`. `begun` says that a message has begun and is awaited to its end: a client
    /// that stops there is cut off after a while.
    pub async fn receive(&self, bytes: Vec<u8>, begun: bool) -> (Result<usize, IoError>, Vec<u8>) {
        self.in_turn.set(0);
        self.activity.expect(begun);
        let received = self.socket.receive(bytes).await;
        self.activity.received(&received.0);
        received
    }

    /// Fills `buf` from byte `filled` on with what arrives of a message that has begun.
    pub async fn receive_into(&self, buf: BufMut, filled: usize) -> (Result<usize, IoError>, BufMut) {
        self.activity.expect(true);
        let received = self.socket.receive_into(buf, filled).await;
        self.activity.received(&received.0);
        received
    }

    /// Sends what is no reply to anything admitted, such as a handshake's messages. Not once [`Owed`]s are answered: those
    /// have their own order.
    pub async fn send(&self, gather: Box<Gather>) -> (Result<(), IoError>, Box<Gather>) {
        self.socket.send(gather).await
    }

    /// Waits until a request of `bytes` may be in flight, and until others have had their turn.
    ///
    /// # Errors
    /// Where the connection broke meanwhile.
    pub async fn admit(self: &Rc<Self>, bytes: u64) -> Result<Owed, Broken> {
        self.has_asked.set(true);
        let in_turn = self.in_turn.get() + bytes;
        if in_turn > self.turn_bytes {
            self.give_way().await;
            self.in_turn.set(bytes);
        } else {
            self.in_turn.set(in_turn);
        }
        self.flow.admit(bytes).await?;
        Ok(Owed::new(self, bytes))
    }

    /// Lets all tasks run that are ready: for who has much to do at a time.
    pub async fn give_way(&self) {
        let mut has_waited = false;
        poll_fn(|context| {
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn push(&self, bytes: u64, put: impl FnOnce(&mut Vec<u8>), data: Option<Buf>) {
        self.flow.answered(bytes);
        self.outbox.push(bytes, put, data);
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.flow.release(1, bytes);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.flow.is_broken()
    }

    /// The client has gone without asking for the end: what waits for its turn does not begin any more.
    pub fn client_left(&self) {
        self.has_left.set(true);
    }

    /// Whether there is no client that waits for anything.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.has_left.get() || self.is_broken()
    }

    /// Whether replies wait for the peer to take them.
    pub(crate) fn is_sending(&self) -> bool {
        self.activity.is_sending()
    }

    /// Whether its client has ever asked for anything.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.get()
    }

    /// Whether nothing is owed and no message has begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.flow.is_empty() && !self.activity.has_begun()
    }

    /// The client takes no replies any more: what is under way goes on without an answer, and nothing else begins.
    pub(crate) fn break_off(&self) {
        self.flow.break_off();
        self.socket.shutdown();
    }

    /// Breaks the connection off for what its peer did.
    pub(crate) fn cut_off(&self, reason: CutOff) {
        self.cut_off.set(Some(reason));
        self.break_off();
    }

    /// Why it was cut off, if it was.
    pub(crate) fn cut_off_for(&self) -> Option<CutOff> {
        self.cut_off.get()
    }

    /// Sends replies until [`Channel::finish`].
    pub(crate) async fn send_replies(&self) {
        self.outbox.send_all(&self.socket, self).await;
    }

    /// Waits until what was admitted is answered and taken, for at most `patience`; then cuts the peer off, and waits until
    /// nothing is under way.
    pub(crate) async fn drain(&self, patience: Nanos) {
        let late = self.world.sleep(patience);
        if let Either::Right(_) = select(pin!(self.flow.drained()), late).await {
            // What still runs is the target's business; replies that lie there are the peer's.
            if self.is_sending() {
                self.cut_off(CutOff::RepliesNotTaken);
            } else {
                self.break_off();
            }
            self.flow.drained().await;
        }
    }

    /// Ends [`Channel::send_replies`] once all is sent.
    pub(crate) fn finish(&self) {
        self.outbox.close();
    }

    /// Ends both directions.
    pub(crate) fn shut(&self) {
        self.socket.shutdown();
    }
}

impl Account for Channel {
    fn sending(&self, sending: bool) {
        self.activity.sending(sending);
    }

    fn taken(&self) {
        self.activity.taken();
    }

    fn sent(&self, requests: u32, bytes: u64) {
        self.flow.taken(requests, bytes);
    }

    fn lost(&self) {
        self.flow.break_off();
    }
}
