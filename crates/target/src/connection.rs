//! One connection, as its protocol is given it, and the tasks around it.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_world::World;

use super::admission::{Host, Seat};
use super::channel::Channel;
use super::export::Export;
use super::in_use::InUse;
use super::protocol::Ended;
use super::stop::Stop;
use super::target::Target;

/// A connection that is open.
pub(crate) struct Live {
    pub(crate) channel: Rc<Channel>,
    pub(crate) stop: Stop,
    pub(crate) host: Host,
    pub(crate) export: RefCell<Option<String>>,
}

/// What a protocol is given: a channel, the exports, and the owner's wish to stop.
pub struct Connection<T> {
    pub(crate) target: Target<T>,
    pub(crate) live: Rc<Live>,
}

impl Live {
    /// Whether it has not chosen an export yet.
    pub(crate) fn negotiates(&self) -> bool {
        self.export.borrow().is_none()
    }

    /// What it is to one that wants its place.
    pub(crate) fn seat(&self, connection: u64) -> Seat {
        Seat {
            connection,
            host: self.host,
            negotiates: self.negotiates(),
            is_unused: !self.channel.has_asked(),
            idle_since: self.channel.is_idle().then(|| self.channel.activity.last()),
        }
    }
}

impl<T: 'static> Connection<T> {
    /// The world it belongs to.
    pub fn world(&self) -> &World {
        self.live.channel.world()
    }

    /// What it is spoken on.
    pub fn channel(&self) -> &Rc<Channel> {
        &self.live.channel
    }

    /// The exports as they are now. The same as before if nothing has come or gone.
    pub fn exports(&self) -> Rc<[Rc<Export<T>>]> {
        self.target.exports()
    }

    /// Says that the client uses `export` from now on, and is given it. It stops at once where that was withdrawn meanwhile.
    pub fn choose(&self, export: &Rc<Export<T>>) -> InUse<T> {
        let name = &export.options.name;
        if self.live.export.replace(Some(name.clone())).is_none() {
            self.target.counts().negotiated();
        }
        if self.exports().iter().all(|offered| offered.options.name != *name) {
            self.live.stop.request();
        }
        InUse::new(export, &self.live.channel)
    }

    /// Ends once the owner wants the connection to end.
    pub async fn stopped(&self) {
        self.live.stop.requested().await;
    }

    /// Has `reading` admit and start requests until it ends or the owner wants the end, while replies go out; then waits
    /// until what was admitted is answered and taken.
    pub async fn transmit(&self, reading: impl Future<Output = Ended>) -> Ended {
        let channel = self.channel().clone();
        let sending = self.world().spawn({
            let channel = channel.clone();
            async move { channel.send_replies().await }
        });
        let ended = match select(pin!(reading), pin!(self.stopped())).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(()),
        };
        channel.drain(self.target.options().drain_timeout).await;
        channel.finish();
        sending.await;
        ended
    }
}
