//! A lock-free queue of messages from any thread to the world of one: how shards hand requests to each other.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use atomic_waker::AtomicWaker;
use crossbeam_queue::SegQueue;

struct Shared<T> {
    queue: SegQueue<T>,
    waker: AtomicWaker,
    senders: AtomicUsize,
}

/// The sending end; clones share it.
pub struct MailSender<T>(Arc<Shared<T>>);

/// The receiving end.
pub struct MailReceiver<T>(Arc<Shared<T>>);

/// A mailbox. Messages of one sender arrive in their order.
pub fn mailbox<T: Send>() -> (MailSender<T>, MailReceiver<T>) {
    let shared =
        Arc::new(Shared { queue: SegQueue::new(), waker: AtomicWaker::new(), senders: AtomicUsize::new(1) });
    (MailSender(shared.clone()), MailReceiver(shared))
}

impl<T> Clone for MailSender<T> {
    fn clone(&self) -> MailSender<T> {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        MailSender(self.0.clone())
    }
}

impl<T: Send> MailSender<T> {
    /// Puts a message in and wakes the receiver's thread if it sleeps.
    pub fn send(&self, message: T) {
        self.0.queue.push(message);
        self.0.waker.wake();
    }
}

impl<T: Send> MailReceiver<T> {
    /// The next message, or none once every sender is gone.
    pub async fn receive(&mut self) -> Option<T> {
        poll_fn(|context| {
            if let Some(message) = self.0.queue.pop() {
                return Poll::Ready(Some(message));
            }
            self.0.waker.register(context.waker());
            // Senders count down after their last message, so look at the count first.
            let closed = self.0.senders.load(Ordering::Acquire) == 0;
            match self.0.queue.pop() {
                Some(message) => Poll::Ready(Some(message)),
                None if closed => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The next message, if one is there.
    pub fn try_receive(&mut self) -> Option<T> {
        self.0.queue.pop()
    }
}

impl<T> Drop for MailSender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.waker.wake();
        }
    }
}
