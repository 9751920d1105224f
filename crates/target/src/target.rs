//! The target as its owner sees it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tier0_stats::IoStats;
use tier0_units::{Nanos, counted};
use tier0_world::net::{Listener, PeerAddress, Socket};
use tier0_world::sync::Notify;
use tier0_world::{IoError, World};

use super::admission::{Admission, Host, Limit, Seat, admit};
use super::channel::Channel;
use super::connection::{Connection, Live};
use super::counts::ConnectionCounts;
use super::error::TargetError;
use super::export::{Export, ExportOptions};
use super::options::TargetOptions;
use super::pool::Pool;
use super::protocol::{Ended, Protocol};
use super::stop::Stop;
use super::throttle::Throttle;
use super::watch::watch;

/// Pause after a failed accept: the usual reason, no free descriptors, does not go away at once.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);
/// Connections that were dropped within 10 s of which each has its line in the log.
const DROPPED_SAID: u32 = 5;

/// What helps where connections cannot be accepted.
fn remedy(error: IoError) -> &'static str {
    match error {
        IoError::Os(libc::EMFILE | libc::ENFILE) => "; raise the open file limit (ulimit -n)",
        _ => "",
    }
}

/// A connection that uses an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its number; those of one target are never given twice.
    pub connection: u64,
    /// Who is at its other end: an address, or a process.
    pub peer: String,
    /// The export.
    pub export: String,
    /// What it has asked of it.
    pub io: IoStats,
}

/// Is told a sentence.
type Told = Rc<dyn Fn(String)>;

/// The exports of a world and their users; clones share it.
pub struct Target<T>(Rc<Shared<T>>);

struct Shared<T> {
    world: World,
    options: TargetOptions,
    pool: Rc<Pool>,
    exports: RefCell<Rc<[Rc<Export<T>>]>>,
    connections: RefCell<BTreeMap<u64, Rc<Live>>>,
    /// By export: what connections asked of it that have ended.
    ended_users: RefCell<BTreeMap<String, IoStats>>,
    connections_ever: Cell<u64>,
    listeners: Cell<usize>,
    stop_listening: Stop,
    /// For connections that end otherwise than in good order, and for those that cannot be had.
    dropped: Throttle,
    refused: Throttle,
    /// For connections for which there is no place.
    crowded: Throttle,
    counts: Arc<ConnectionCounts>,
    /// Who is told that connections are closed for want of places.
    listener: RefCell<Option<Told>>,
    /// A connection or a listener ended.
    ended: Notify,
}

impl<T> Clone for Target<T> {
    fn clone(&self) -> Target<T> {
        Target(self.0.clone())
    }
}

impl<T: 'static> Target<T> {
    /// A target without exports that listens nowhere yet.
    ///
    /// # Panics
    /// Where the options let no connection get on.
    pub fn new(world: &World, options: TargetOptions) -> Target<T> {
        options.assert_sensible();
        Target(Rc::new(Shared {
            world: world.clone(),
            pool: Rc::new(Pool::new(options.pool_bytes, options.reserve_bytes)),
            options,
            exports: RefCell::new(Rc::new([])),
            connections: RefCell::default(),
            ended_users: RefCell::default(),
            connections_ever: Cell::new(0),
            listeners: Cell::new(0),
            stop_listening: Stop::default(),
            dropped: Throttle::new(world, DROPPED_SAID),
            refused: Throttle::new(world, 1),
            crowded: Throttle::new(world, 1),
            counts: Arc::default(),
            listener: RefCell::default(),
            ended: Notify::new(),
        }))
    }

    /// What it allows.
    pub fn options(&self) -> &TargetOptions {
        &self.0.options
    }

    /// The exports as they are now. The same as before if nothing has come or gone.
    pub fn exports(&self) -> Rc<[Rc<Export<T>>]> {
        self.0.exports.borrow().clone()
    }

    /// Offers `target` under a name, from now on.
    ///
    /// # Errors
    /// Where something else is offered under it.
    pub fn add_export(&self, options: ExportOptions, target: T) -> Result<(), TargetError> {
        if self.export_names().contains(&options.name) {
            return Err(TargetError::NameTaken { name: options.name });
        }
        self.replace_export(options, target);
        Ok(())
    }

    /// Offers `target` under a name, in the place of what is offered under it, if anything is. Clients that are connected
    /// keep what they have been told.
    pub fn replace_export(&self, options: ExportOptions, target: T) {
        let name = options.name.clone();
        self.put_export(&name, Export { options, target });
    }

    /// Offers `export` in the place of what is offered under a name, or beside the others.
    fn put_export(&self, name: &str, export: Export<T>) {
        let export = Rc::new(export);
        let mut all: Vec<Rc<Export<T>>> = self.exports().to_vec();
        match all.iter_mut().find(|known| known.options.name == name) {
            Some(known) => *known = export,
            None => all.push(export),
        }
        *self.0.exports.borrow_mut() = all.into();
    }

    /// Offers `target` under the name of `options`, and no more under the name `from`. Connections that use that export go
    /// on, and count as users of the new name, with what they and those before them have asked.
    pub fn rename_export(&self, from: &str, options: ExportOptions, target: T) {
        let name = options.name.clone();
        for live in self.0.connections.borrow().values() {
            if let Some(export) = live.export.borrow_mut().as_mut().filter(|export| *export == from) {
                export.clone_from(&name);
            }
        }
        let mut ended = self.0.ended_users.borrow_mut();
        if let Some(before) = ended.remove(from) {
            ended.insert(name, before);
        }
        drop(ended);
        self.put_export(from, Export { options, target });
    }

    /// Connections that use an export.
    pub fn users_of(&self, name: &str) -> usize {
        let connections = self.0.connections.borrow();
        connections.values().filter(|live| live.export.borrow().as_deref() == Some(name)).count()
    }

    /// Connections that use an export, by their numbers.
    pub fn users(&self) -> Vec<User> {
        let connections = self.0.connections.borrow();
        let users = connections.iter().filter_map(|(number, live)| {
            let export = live.export.borrow().clone()?;
            let channel = &live.channel;
            Some(User { connection: *number, peer: channel.peer(), export, io: channel.stats.snapshot() })
        });
        users.collect()
    }

    /// By export: what connections asked of it that have ended.
    pub fn ended_users(&self) -> Vec<(String, IoStats)> {
        self.0.ended_users.borrow().iter().map(|(name, io)| (name.clone(), io.clone())).collect()
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
            self.0.exports.borrow().iter().filter(|export| export.options.name != name).cloned().collect();
        *self.0.exports.borrow_mut() = left;
        self.0.ended_users.borrow_mut().remove(name);
        let connections = self.0.connections.borrow();
        let users = connections.values().filter(|live| live.export.borrow().as_deref() == Some(name));
        users.for_each(|live| live.stop.request());
        self.0.exports.borrow().len() < before
    }

    /// The exports' names.
    pub fn export_names(&self) -> Vec<String> {
        self.0.exports.borrow().iter().map(|export| export.options.name.clone()).collect()
    }

    /// How many connections there are and have been, for any thread.
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        &self.0.counts
    }

    /// Has it told there when connections are closed for want of places, a sentence at most twice in ten seconds.
    pub fn tell_of_crowding(&self, listener: impl Fn(String) + 'static) {
        *self.0.listener.borrow_mut() = Some(Rc::new(listener));
    }

    /// Connections that are open.
    pub fn connection_count(&self) -> usize {
        self.0.connections.borrow().len()
    }

    /// Listens on `address` and serves who connects with `protocol`. Returns where it listens, with the port that the
    /// system chose where port 0 was asked for.
    ///
    /// # Errors
    /// Where it cannot be listened on.
    pub fn listen(
        &self,
        address: &PeerAddress,
        protocol: &Rc<impl Protocol<T>>,
    ) -> Result<PeerAddress, TargetError> {
        let (target, protocol) = (self.clone(), protocol.clone());
        self.listen_for(address, move |socket| target.serve(socket, &protocol))
    }

    /// Listens on `address` and hands who connects to `take`, which may serve it here or give it to a server in
    /// another thread. Returns where it listens.
    pub fn listen_for(
        &self,
        address: &PeerAddress,
        take: impl Fn(Socket) + 'static,
    ) -> Result<PeerAddress, TargetError> {
        let listener = Listener::bind(&self.0.world, address)
            .map_err(|source| TargetError::Listen { address: address.clone(), source })?;
        if let PeerAddress::Tcp(address) = address
            && !address.ip().is_loopback()
        {
            tracing::warn!(%address, "any host that can reach this address can read and write the exports");
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
                    let again = format!("{address} still cannot accept connections ({error})");
                    self.0.refused.happened(
                        || tracing::warn!(%address, %error, "cannot accept a connection{}", remedy(error)),
                        move |count| tracing::warn!("{again}; {count} more attempts failed within 10 s"),
                    );
                    self.0.world.sleep(ACCEPT_PAUSE).await;
                }
                Either::Right(_) => return,
            }
        }
    }

    /// Serves a connected socket with `protocol`, in a task of its own.
    pub fn serve(&self, socket: Socket, protocol: &Rc<impl Protocol<T>>) {
        let host = Host::of(socket.peer_ip());
        if self.0.stop_listening.is_requested() || !self.has_place(host) {
            return socket.shutdown();
        }
        let shared = &self.0;
        shared.counts.opened();
        let number = shared.connections_ever.get();
        shared.connections_ever.set(number + 1);
        let channel = Rc::new(Channel::new(&shared.world, socket, &shared.options, &shared.pool));
        let live = Rc::new(Live { channel, stop: Stop::default(), host, export: RefCell::default() });
        shared.connections.borrow_mut().insert(number, live.clone());
        let watching = shared.world.spawn(watch(live.channel.clone(), shared.options.stall_timeout));
        let (target, protocol) = (self.clone(), protocol.clone());
        let serving = async move {
            let connection = Connection { target: target.clone(), live: live.clone() };
            let ended = protocol.serve(connection).await;
            live.channel.shut();
            drop(watching);
            target.note_end(number, &live, ended);
            target.0.connections.borrow_mut().remove(&number);
            target.0.counts.closed(live.negotiates());
            target.keep_stats(&live);
            target.0.ended.notify_all();
        };
        self.0.world.spawn(serving).detach();
    }

    /// Whether one more connection of `host` may be served; another one may be asked to leave for it.
    fn has_place(&self, host: Host) -> bool {
        let shared = &self.0;
        let connections = shared.connections.borrow();
        let staying = connections.iter().filter(|(_, live)| !live.stop.is_requested());
        let seats: Vec<Seat> = staying.map(|(number, live)| live.seat(*number)).collect();
        match admit(&seats, host, shared.world.turned(), &shared.options) {
            Admission::Free => true,
            Admission::Instead(seat, limit) => {
                connections[&seat.connection].stop.request();
                shared.counts.gave_way(seat.negotiates);
                let what = match seat.negotiates {
                    true => "the oldest that had not finished its handshake",
                    false => "the one that was idle for longest",
                };
                self.say(&format!("{limit}: closed {what}, from {}", seat.host));
                true
            }
            Admission::Refused(limit) => {
                self.refuse(limit);
                false
            }
        }
    }

    fn refuse(&self, limit: Limit) {
        self.0.counts.refused(matches!(limit, Limit::OfHost(..)));
        self.say(&format!("{limit}: closed a new one"));
    }

    /// Tells the log and who listens that connections are closed for want of places; of many at a time the first one, and how
    /// many they were.
    fn say(&self, what: &str) {
        let tell = {
            let target = self.clone();
            move |text: String| {
                tracing::warn!("{text}");
                if let Some(listener) = &*target.0.listener.borrow() {
                    listener(text);
                }
            }
        };
        let (now, later) = (what.to_owned(), format!("as {what}"));
        let tell_later = tell.clone();
        self.0.crowded.happened(
            move || tell(now),
            move |count| {
                tell_later(format!("{} more were closed within 10 s, {later}", counted(count, "connection")))
            },
        );
    }

    /// What a connection asked outlives it, with that of others.
    fn keep_stats(&self, live: &Live) {
        let export = live.export.borrow();
        let offered = export.as_ref().filter(|name| self.export_names().contains(name));
        if let Some(name) = offered {
            let mut ended = self.0.ended_users.borrow_mut();
            ended.entry(name.clone()).or_default().merge(&live.channel.stats.snapshot());
        }
    }

    /// Says how a connection ended, if not in good order.
    fn note_end(&self, number: u64, live: &Live, ended: Ended) {
        let reason = match (live.channel.cut_off_for(), ended) {
            (Some(cut_off), _) => cut_off.to_string(),
            (None, Err(reason)) => reason.to_string(),
            (None, Ok(())) => return,
        };
        let (export, last) = (live.export.borrow(), reason.clone());
        self.0.dropped.happened(
            || tracing::warn!(connection = number, ?export, %reason, "closed a connection"),
            move |count| {
                tracing::warn!("closed {} more within 10 s, as: {last}", counted(count, "connection"));
            },
        );
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
