//! The server as its owner sees it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_drive::BlockTarget;
use tier0_units::{Nanos, counted};
use tier0_world::net::{Listener, PeerAddress, Socket};
use tier0_world::sync::Notify;
use tier0_world::{IoError, World};

use super::connection;
use super::error::ServerError;
use super::export::{Export, ExportOptions};
use super::options::ServerOptions;
use super::throttle::Throttle;
use crate::stop::Stop;

/// Pause after a failed accept: the usual reason, no free descriptors, does not go away at once.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);
/// Connections that were dropped within 10 s of which each has its line in the log.
const DROPPED_SAID: u32 = 5;

/// What helps where connections cannot be accepted.
fn remedy(error: IoError) -> &'static str {
    match error {
        IoError::Os(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n)",
        _ => "",
    }
}

/// A server in a world; clones share it.
pub struct Server<T>(Rc<Shared<T>>);

struct Shared<T> {
    world: World,
    options: ServerOptions,
    exports: RefCell<Rc<[Rc<Export<T>>]>>,
    connections: RefCell<BTreeMap<u64, Rc<Live>>>,
    connections_ever: Cell<u64>,
    listeners: Cell<usize>,
    stop_listening: Stop,
    /// For connections that end otherwise than in good order, and for those that cannot be had.
    dropped: Throttle,
    refused: Throttle,
    /// A connection or a listener ended.
    ended: Notify,
}

/// A connection that is open.
#[derive(Default)]
struct Live {
    stop: Stop,
    export: RefCell<Option<String>>,
}

impl<T> Clone for Server<T> {
    fn clone(&self) -> Server<T> {
        Server(self.0.clone())
    }
}

impl<T: BlockTarget + 'static> Server<T> {
    /// A server without exports that listens nowhere yet.
    ///
    /// # Panics
    /// Where the options contradict each other: no requests in flight, or bytes in flight below one payload.
    pub fn new(world: &World, options: ServerOptions) -> Server<T> {
        assert!(options.in_flight_requests_max > 0, "a connection needs room for one request");
        assert!(
            options.in_flight_bytes_max >= u64::from(options.payload_bytes_max),
            "a connection needs room for one payload"
        );
        Server(Rc::new(Shared {
            world: world.clone(),
            options,
            exports: RefCell::new(Rc::new([])),
            connections: RefCell::default(),
            connections_ever: Cell::new(0),
            listeners: Cell::new(0),
            stop_listening: Stop::default(),
            dropped: Throttle::new(world, DROPPED_SAID),
            refused: Throttle::new(world, 1),
            ended: Notify::new(),
        }))
    }

    /// Offers `target` under a name, from now on.
    pub fn add_export(&self, options: ExportOptions, target: T) -> Result<(), ServerError> {
        if self.export_names().contains(&options.name) {
            return Err(ServerError::NameTaken { name: options.name });
        }
        let export = Rc::new(Export::new(options, target, self.0.options.payload_bytes_max)?);
        let mut exports = self.0.exports.borrow_mut();
        *exports = exports.iter().cloned().chain([export]).collect();
        Ok(())
    }

    /// Offers `target` under a name, in the place of what is offered under it, if anything is. Clients that are connected
    /// keep what they have been told.
    pub fn replace_export(&self, options: ExportOptions, target: T) -> Result<(), ServerError> {
        let name = options.name.clone();
        let export = Rc::new(Export::new(options, target, self.0.options.payload_bytes_max)?);
        let mut exports = self.0.exports.borrow_mut();
        let mut all: Vec<Rc<Export<T>>> = exports.to_vec();
        match all.iter_mut().find(|known| known.info.name == name) {
            Some(known) => *known = export,
            None => all.push(export),
        }
        *exports = all.into();
        Ok(())
    }

    /// Connections that use an export.
    pub fn users_of(&self, name: &str) -> usize {
        let connections = self.0.connections.borrow();
        connections.values().filter(|live| live.export.borrow().as_deref() == Some(name)).count()
    }

    /// Withdraws an export and waits until no connection uses it.
    pub async fn withdraw(&self, name: &str) {
        self.remove_export(name);
        while self.users_of(name) > 0 {
            self.0.ended.wait().await;
        }
    }

    /// Withdraws an export: its connections answer what is in flight and close. False if there is none.
    pub fn remove_export(&self, name: &str) -> bool {
        let before = self.0.exports.borrow().len();
        let left =
            self.0.exports.borrow().iter().filter(|export| export.info.name != name).cloned().collect();
        *self.0.exports.borrow_mut() = left;
        let connections = self.0.connections.borrow();
        let users = connections.values().filter(|live| live.export.borrow().as_deref() == Some(name));
        users.for_each(|live| live.stop.request());
        self.0.exports.borrow().len() < before
    }

    /// The exports' names.
    pub fn export_names(&self) -> Vec<String> {
        self.0.exports.borrow().iter().map(|export| export.info.name.clone()).collect()
    }

    /// Connections that are open.
    pub fn connection_count(&self) -> usize {
        self.0.connections.borrow().len()
    }

    /// Listens on `address` and serves who connects. Returns where it listens, with the port that the system chose
    /// where port 0 was asked for.
    pub fn listen(&self, address: &PeerAddress) -> Result<PeerAddress, ServerError> {
        let server = self.clone();
        self.listen_for(address, move |socket| server.serve(socket))
    }

    /// Listens on `address` and hands who connects to `take`, which may serve it here or give it to a server in
    /// another thread. Returns where it listens.
    pub fn listen_for(
        &self,
        address: &PeerAddress,
        take: impl Fn(Socket) + 'static,
    ) -> Result<PeerAddress, ServerError> {
        let listener = Listener::bind(&self.0.world, address)
            .map_err(|source| ServerError::Listen { address: address.clone(), source })?;
        if let PeerAddress::Tcp(address) = address
            && !address.ip().is_loopback()
        {
            tracing::warn!(%address, "anyone who reaches this address may read and write the exports");
        }
        let bound = listener.address().clone();
        let server = self.clone();
        self.0.listeners.set(self.0.listeners.get() + 1);
        let accepting = async move {
            server.accept(&listener, take).await;
            drop(listener);
            server.0.listeners.set(server.0.listeners.get() - 1);
            server.0.ended.notify_all();
        };
        self.0.world.spawn(accepting).detach();
        Ok(bound)
    }

    async fn accept(&self, listener: &Listener, take: impl Fn(Socket)) {
        let mut stop = pin!(self.0.stop_listening.requested());
        loop {
            match select(pin!(listener.accept()), stop.as_mut()).await {
                Either::Left((Ok(socket), _)) => take(socket),
                Either::Left((Err(error), _)) => {
                    let address = listener.address().clone();
                    let again = format!("{address} still takes no connections ({error})");
                    self.0.refused.happened(
                        || tracing::warn!(%address, %error, "cannot accept a connection{}", remedy(error)),
                        move |count| tracing::warn!("{again}; tried {count} more times within 10 s"),
                    );
                    self.0.world.sleep(ACCEPT_PAUSE).await;
                }
                Either::Right(_) => return,
            }
        }
    }

    /// Serves a connected socket in a task of its own.
    pub fn serve(&self, socket: Socket) {
        let shared = self.0.clone();
        if shared.stop_listening.is_requested() {
            return socket.shutdown();
        }
        if shared.connections.borrow().len() >= shared.options.connections_max {
            let limit = shared.options.connections_max;
            shared.refused.happened(
                || tracing::warn!(limit, "too many connections: closed a new one"),
                move |count| tracing::warn!(limit, "too many connections: closed {count} more within 10 s"),
            );
            return socket.shutdown();
        }
        let number = shared.connections_ever.get();
        shared.connections_ever.set(number + 1);
        let live = Rc::new(Live::default());
        shared.connections.borrow_mut().insert(number, live.clone());
        let serving = async move {
            let exports = || shared.exports.borrow().clone();
            let chosen = |export: &Rc<Export<T>>| {
                let name = &export.info.name;
                *live.export.borrow_mut() = Some(name.clone());
                // Withdrawn while the client was told that it may have it.
                if shared.exports.borrow().iter().all(|offered| offered.info.name != *name) {
                    live.stop.request();
                }
            };
            let ended =
                connection::run(&shared.world, socket, &shared.options, exports, &live.stop, chosen).await;
            if let Err(reason) = ended {
                let export = live.export.borrow();
                let last = reason.to_string();
                shared.dropped.happened(
                    || tracing::warn!(connection = number, ?export, %reason, "closed a connection"),
                    move |count| {
                        tracing::warn!(
                            "closed {} more within 10 s, as: {last}",
                            counted(count, "connection")
                        );
                    },
                );
            }
            shared.connections.borrow_mut().remove(&number);
            shared.ended.notify_all();
        };
        self.0.world.spawn(serving).detach();
    }

    /// Stops listening, lets every connection answer what is in flight, and closes it.
    pub async fn shut_down(&self) {
        self.0.stop_listening.request();
        self.0.connections.borrow().values().for_each(|live| live.stop.request());
        while self.connection_count() > 0 || self.0.listeners.get() > 0 {
            self.0.ended.wait().await;
        }
    }
}
