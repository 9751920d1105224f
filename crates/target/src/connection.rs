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

    /// Says that the client uses `export` from now on, and is given it. It stops at once where that was withdrawn, renamed or
    /// replaced meanwhile: its name may be that of another export by now.
    pub fn choose(&self, export: &Rc<Export<T>>) -> InUse<T> {
        let name = &export.options.name;
        if self.live.export.replace(Some(name.clone())).is_none() {
            self.target.counts().negotiated();
        }
        if !self.exports().iter().any(|offered| Rc::ptr_eq(offered, export)) {
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use tier0_units::Nanos;
    use tier0_world::net::{PeerAddress, Socket};
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;
    use crate::{ExportOptions, Protocol, TargetOptions};

    /// Chooses the first export a millisecond after it was found, and serves until the owner wants the end.
    struct Slow(World);

    impl Protocol<u32> for Slow {
        fn serve(&self, connection: Connection<u32>) -> Pin<Box<dyn Future<Output = Ended>>> {
            let world = self.0.clone();
            Box::pin(async move {
                let export = connection.exports()[0].clone();
                world.sleep(Nanos::from_millis(1)).await;
                let _in_use = connection.choose(&export);
                connection.stopped().await;
                Ok(())
            })
        }
    }

    /// How many connections use the export "a" for which `change` is made between its finding and its choice.
    fn users_after(change: impl FnOnce(&Target<u32>) + 'static) -> usize {
        let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
        let world = runtime.world().clone();
        runtime.run(async move {
            let target = Target::new(&world, TargetOptions::default());
            target.add_export(ExportOptions::named("a"), 1).expect("a free name");
            let address = PeerAddress::Tcp(([127, 0, 0, 1], 10_809).into());
            target.listen(&address, &Rc::new(Slow(world.clone()))).expect("a free address");
            let _client = Socket::connect(&world, &address).expect("connects");
            world.sleep(Nanos::from_micros(500)).await;
            assert_eq!((target.connection_count(), target.users_of("a")), (1, 0), "it is in its handshake");
            change(&target);
            world.sleep(Nanos::from_millis(2)).await;
            target.users_of("a")
        })
    }

    /// A client used the volume that was called so when it connected, and counted as a user of another one.
    #[test]
    fn an_export_whose_name_another_has_by_now_is_not_used() {
        assert_eq!(users_after(|_| {}), 1);
        assert_eq!(users_after(|target| target.rename_export("a", ExportOptions::named("b"), 1)), 0);
        let renamed = |target: &Target<u32>| {
            target.rename_export("a", ExportOptions::named("b"), 1);
            target.add_export(ExportOptions::named("a"), 2).expect("a free name");
        };
        assert_eq!(users_after(renamed), 0);
    }
}
