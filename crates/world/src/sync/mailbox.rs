//! A lock-free queue of messages from any thread to the world of one: how shards hand requests to each other.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::sync::shared::{AtomicBool, AtomicUsize, AtomicWaker, Flaw, Ordering, SegQueue, fence, flawed};

struct Shared<T> {
    queue: SegQueue<T>,
    waker: AtomicWaker,
    senders: AtomicUsize,
    /// The receiver is gone.
    closed: AtomicBool,
}

impl<T> Shared<T> {
    /// Drops what will not be received, and with it the replies that its senders wait for.
    fn drain(&self) {
        while self.queue.pop().is_some() {}
    }
}

/// The sending end; clones share it.
pub struct MailSender<T>(Arc<Shared<T>>);

/// The receiving end. Once it is gone, messages are dropped: those that wait, and those that are sent later.
pub struct MailReceiver<T>(Arc<Shared<T>>);

/// A mailbox. Messages of one sender arrive in their order.
pub fn mailbox<T: Send>() -> (MailSender<T>, MailReceiver<T>) {
    let shared = Arc::new(Shared {
        queue: SegQueue::new(),
        waker: AtomicWaker::new(),
        senders: AtomicUsize::new(1),
        closed: AtomicBool::new(false),
    });
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
        // Either the receiver's last look finds the message, or this look finds the receiver gone.
        fence(Ordering::SeqCst);
        if !flawed(Flaw::SendWithoutLook) && self.0.closed.load(Ordering::Relaxed) {
            self.0.drain();
        }
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

impl<T> Drop for MailReceiver<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.0.drain();
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
    use std::mem::ManuallyDrop;

    use loom::thread;

    use super::*;
    use crate::sync::shared::{block_on, explore};

    /// Two senders send and go; the receiver gets everything and then the end. A wake-up that is lost is a deadlock.
    fn messages_arrive(flaw: Option<Flaw>) {
        explore(flaw, || {
            let (sender, receiver) = mailbox();
            // Loom does not outlive a destructor that it sees while a deadlock unwinds.
            let mut receiver = ManuallyDrop::new(receiver);
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
    #[should_panic(expected = "a message waits for nobody")]
    fn missing_fences_are_found() {
        nothing_waits_for_nobody(Some(Flaw::NoFences));
    }

    /// A receiver goes while a sender sends; the message is dropped by one of the two, although senders stay.
    fn nothing_waits_for_nobody(flaw: Option<Flaw>) {
        explore(flaw, || {
            let (sender, receiver) = mailbox();
            let kept = sender.clone();
            let message = std::sync::Arc::new(());
            let sent = message.clone();
            let sending = thread::spawn(move || sender.send(sent));
            drop(receiver);
            sending.join().unwrap();
            assert_eq!(std::sync::Arc::strong_count(&message), 1, "a message waits for nobody");
            drop(kept);
        });
    }

    #[test]
    fn messages_to_nobody_are_dropped() {
        nothing_waits_for_nobody(None);
    }

    #[test]
    #[should_panic(expected = "a message waits for nobody")]
    fn sending_without_a_second_look_is_found() {
        nothing_waits_for_nobody(Some(Flaw::SendWithoutLook));
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
