//! A lock-free queue of messages from any thread to the world of one: how shards hand requests to each other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::sync::shared::{AtomicUsize, AtomicWaker, Flaw, Ordering, SegQueue, flawed};

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
            if flawed(Flaw::WaitWithoutLook) {
                return Poll::Pending;
            }
            // Senders count down after their last message, so look at the count first.
            let closed = || self.0.senders.load(Ordering::Acquire) == 0;
            let closed_before = !flawed(Flaw::CountSendersLast) && closed();
            match self.0.queue.pop() {
                Some(message) => Poll::Ready(Some(message)),
                None if closed_before || (flawed(Flaw::CountSendersLast) && closed()) => Poll::Ready(None),
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

#[cfg(all(test, tier0_loom))]
mod models {
    use loom::thread;

    use super::*;
    use crate::sync::shared::{block_on, explore};

    /// Two senders send and go; the receiver gets everything and then the end. A wake-up that is lost is a deadlock.
    fn messages_arrive(flaw: Option<Flaw>) {
        explore(flaw, || {
            let (sender, mut receiver) = mailbox();
            let second = sender.clone();
            thread::spawn(move || {
                sender.send(1);
                sender.send(2);
            });
            thread::spawn(move || second.send(10));
            let mut sum = 0;
            let mut last = 0;
            while let Some(message) = block_on(receiver.receive()) {
                assert!(message == 10 || message > last, "messages of one sender keep their order");
                last = if message == 10 { last } else { message };
                sum += message;
            }
            assert_eq!(sum, 13, "messages are lost");
        });
    }

    #[test]
    fn every_message_arrives_before_the_end() {
        messages_arrive(None);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn waiting_without_a_second_look_is_found() {
        messages_arrive(Some(Flaw::WaitWithoutLook));
    }

    #[test]
    #[should_panic(expected = "messages are lost")]
    fn counting_senders_last_is_found() {
        messages_arrive(Some(Flaw::CountSendersLast));
    }
}
