//! A request, or a piece of one, that was admitted and owes its client a reply.

use std::rc::Rc;

use tier0_world::Buf;

use super::Channel;

/// The token of what was admitted. Answering it puts the reply into the outbox; dropping it unanswered, as is right for all
/// pieces but the one that answers for them, gives its share of the flow back.
pub struct Owed {
    channel: Rc<Channel>,
    bytes: u64,
    answered: bool,
}

impl Owed {
    pub(crate) fn new(channel: &Rc<Channel>, bytes: u64) -> Owed {
        Owed { channel: channel.clone(), bytes, answered: false }
    }

    /// The connection's channel.
    pub fn channel(&self) -> &Rc<Channel> {
        &self.channel
    }

    /// Whether a receiver of the reply is left: without, there is no sense in beginning anything.
    pub fn has_receiver(&self) -> bool {
        !self.channel.is_broken()
    }

    /// Answers with what `put` writes, and data to follow it.
    pub fn answer(mut self, put: impl FnOnce(&mut Vec<u8>), data: Option<Buf>) {
        if self.has_receiver() {
            self.answered = true;
            self.channel.push(self.bytes, put, data);
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if !self.answered {
            self.channel.release(self.bytes);
        }
    }
}
