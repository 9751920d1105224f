//! Serves an array's volumes over NBD until a signal or the caller asks for its end, then ends in order.
//!
//! Every shard has its own NBD server with all volumes. The first one listens and deals connections out to all in
//! turn, so that every core speaks NBD. Whichever shard a connection is in, its requests go to the owners of their
//! extents.
//!
//! Invariants: nothing is told as listening before all addresses are bound; no shard ends while another one still
//! answers what was in flight.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};
use tier0_api::{AdminReply, AdminRequest, ConnectionsStatus, EventKind, PoolStatus};
use tier0_array::open::OpenArray;
use tier0_array::real::{ShardContext, Stopper, run};
use tier0_array::{ExportRegistry, HostConnection, Volume};
use tier0_description::ListenAddress;
use tier0_nbd::server::{ConnectionCounts, ConnectionsNow, ExportOptions, Server, ServerOptions, User};
use tier0_stats::IoStats;
use tier0_units::{Nanos, named};
use tier0_world::net::{PeerAddress, Socket};
use tier0_world::real::Backend;
use tier0_world::sync::{MailReceiver, MailSender, mailbox};

use crate::control::{self, Unserved};
use crate::failure::Failure;
use crate::kept::{KeptSocket, keep};
use crate::signals::Signals;
use crate::sockets::Accesses;
use crate::troubles::Troubles;

/// How often a shard that is done looks whether the others are too; only while an array ends.
const ENDING_LOOK: Nanos = Nanos::from_millis(1);

/// After this time an end is told to take long. What is under way is answered in less, where drives answer. A second signal
/// counts by then ([`crate::signals`]).
const DELAY_TOLD: Nanos = Nanos::from_millis(2100);

/// Who is told the addresses, with the ports that the system chose, in the order in which they were asked for.
type Listening = Box<dyn Fn(&[PeerAddress]) + Send + Sync>;

/// An array being served, as all its shards and its owner see it.
pub(crate) struct Service {
    array: String,
    listen: Vec<PeerAddress>,
    /// The socket for administration.
    control: Option<PathBuf>,
    /// Who may connect to unix sockets.
    accesses: Accesses,
    listening: Listening,
    signals: Signals,
    troubles: Troubles,
    stop: AtomicBool,
    /// To each shard, for connections.
    connection_channels: Vec<MailSender<OwnedFd>>,
    /// Shards that still answer.
    answering: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopper: Option<Stopper>,
    failure: Option<Failure>,
    /// Where it listens, as an array file has it.
    bound: Vec<String>,
    /// The other ends of the connection channels, until the shards take theirs.
    arrivals: Vec<Option<MailReceiver<OwnedFd>>>,
    /// Of the connections of each shard.
    counts: Vec<Arc<ConnectionCounts>>,
}

impl Service {
    /// Will serve `array` on the addresses of `listen`; `listening` is called once all of them are bound.
    pub(crate) fn new(
        array: &OpenArray,
        listen: &[ListenAddress],
        control: Option<PathBuf>,
        accesses: Accesses,
        signals: Signals,
        troubles: Troubles,
        listening: impl Fn(&[PeerAddress]) + Send + Sync + 'static,
    ) -> Arc<Service> {
        let shards = array.cores().max(1);
        let (connection_channels, arrivals) =
            (0..shards).map(|_| mailbox()).map(|(channel, inbox)| (channel, Some(inbox))).unzip();
        Arc::new(Service {
            array: array.name().to_owned(),
            listen: listen.iter().map(|address| address.0.clone()).collect(),
            control,
            accesses,
            listening: Box::new(listening),
            signals,
            troubles,
            stop: AtomicBool::new(false),
            connection_channels,
            answering: AtomicUsize::new(shards),
            state: Mutex::new(State { arrivals, ..State::default() }),
        })
    }

    /// Serves until a signal comes or [`Service::stop`] is called.
    pub(crate) fn run(self: &Arc<Self>, array: &OpenArray, backend: Backend) -> Result<(), Failure> {
        let started = |stopper| {
            self.lock().stopper = Some(stopper);
            if self.is_stopping() {
                self.stop();
            }
        };
        let ran = run(array, backend, started, |context| serve_shard(context, self.clone()));
        match self.lock().failure.take() {
            Some(failure) => Err(failure),
            None => ran.map_err(Failure::from),
        }
    }

    /// Asks for the end, from any thread.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(stopper) = &self.lock().stopper {
            stopper.stop();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first failure counts; what follows is its consequence.
    fn fail(&self, failure: Failure) {
        self.lock().failure.get_or_insert(failure);
        self.stop();
    }

    /// The reply of the array, whose status has what the server knows.
    fn added_to(&self, reply: AdminReply) -> AdminReply {
        let mut reply = self.troubles.added_to(reply);
        if let AdminReply::Status(status) = &mut reply {
            status.listen.clone_from(&self.lock().bound);
            status.connections = Some(self.connections());
        }
        reply
    }

    /// The connections of all shards.
    fn connections(&self) -> ConnectionsStatus {
        let options = ServerOptions::default().target;
        let state = self.lock();
        let shards = state.counts.len() as u64;
        let all = state
            .counts
            .iter()
            .map(|counts| counts.now())
            .fold(ConnectionsNow::default(), |all, one| all + one);
        ConnectionsStatus {
            open: all.open,
            negotiating: all.negotiating,
            limit: options.connections_max as u64 * shards,
            limit_per_address: options.connections_per_address_max as u64 * shards,
            refused: all.refused,
            refused_of_address: all.refused_of_address,
            gave_way_negotiating: all.gave_way_negotiating,
            gave_way_idle: all.gave_way_idle,
        }
    }

    fn take_arrivals(&self, shard: usize) -> MailReceiver<OwnedFd> {
        self.lock().arrivals[shard].take().expect("a shard takes its connections once")
    }
}

async fn serve_shard(context: ShardContext, service: Arc<Service>) {
    if let Some(error) = context.fallback.as_ref().filter(|_| context.index == 0) {
        tracing::warn!(%error, "the kernel refuses io_uring; falling back to epoll and threads, which is slower");
    }
    service.signals.serving();
    let server = Server::new(&context.world, ServerOptions::default());
    service.lock().counts.push(server.counts().clone());
    let troubles = service.troubles.clone();
    server.tell_of_crowding(move |text| troubles.tell(&EventKind::ConnectionsCrowded { text }));
    match start(&context, &service, &server) {
        Ok(Some(bound)) => (service.listening)(&bound),
        Ok(None) => {}
        Err(failure) => service.fail(failure),
    }
    let (world, takes) = (context.world.clone(), server.clone());
    let mut arrivals = service.take_arrivals(context.index);
    let arriving = async move {
        while let Some(fd) = arrivals.receive().await {
            takes.serve(Socket::from_fd(&world, fd));
        }
    };
    context.world.spawn(arriving).detach();
    let asked = async {
        while !service.is_stopping() {
            context.stopping().await;
        }
    };
    // Every shard hears the signal by itself, so that none depends on another one to end.
    let signalled = service.signals.wait(&context.world);
    select(pin!(asked), pin!(signalled)).await;
    service.stop();
    let ending = async {
        server.shut_down().await;
        service.answering.fetch_sub(1, Ordering::SeqCst);
        while service.answering.load(Ordering::SeqCst) > 0 {
            context.world.sleep(ENDING_LOOK).await;
        }
    };
    // The administrator who asked for the end sees a server that goes on, and wants to know why.
    if let Either::Right(((), ending)) = select(pin!(ending), pin!(tell_of_delay(&context))).await {
        ending.await;
    }
}

/// Tells once, where the end takes long, what it waits for. The first shard does so for all.
async fn tell_of_delay(context: &ShardContext) {
    context.world.sleep(DELAY_TOLD).await;
    if context.index == 0 {
        let status = context.administer(AdminRequest::Status).await;
        tracing::warn!("{}", ending_waits(&status));
    }
}

/// What an end waits for that takes long, and how to do without.
fn ending_waits(status: &AdminReply) -> String {
    let paused = |pool: &PoolStatus| {
        let pause = pool.paused.as_ref()?;
        Some(format!(
            "pool {:?} is paused and waits for {}: {}",
            pool.name,
            named("drive", &pause.drives),
            pause.next
        ))
    };
    let pauses: Vec<String> = match status {
        AdminReply::Status(status) => status.pools.iter().filter_map(paused).collect(),
        _ => Vec::new(),
    };
    let waits = match pauses.is_empty() {
        true => "requests in flight are completed first".to_owned(),
        false => pauses.join("; "),
    };
    format!(
        "still shutting down: {waits}; send SIGTERM or press Ctrl-C again to stop at once: acknowledged \
         writes are in the write log"
    )
}

/// Offers the volumes; the first shard also listens, and says where.
fn start(
    context: &ShardContext,
    service: &Arc<Service>,
    server: &Server<Volume>,
) -> Result<Option<Vec<PeerAddress>>, Failure> {
    context.offer_volumes(Rc::new(NbdExports(server.clone()))).map_err(Failure::Run)?;
    if context.index > 0 {
        return Ok(None);
    }
    let mut sockets = Vec::new();
    if let Some(path) = &service.control {
        sockets.push(listen_for_verbs(context, service, path)?);
    }
    let mut bound = Vec::new();
    for address in &service.listen {
        let make = listening(service, server);
        let made = make(address)?;
        if let PeerAddress::Unix(path) = &made {
            let (path, address) = (path.clone(), address.clone());
            let make =
                Box::new(move || make(&address).map(drop).map_err(|error| error.text().unwrap_or_default()));
            sockets.push(KeptSocket { field: "nbd.listen", path, is_made: true, make });
        }
        bound.push(made);
    }
    check_descriptors()?;
    service.lock().bound = bound.iter().map(in_file).collect();
    let ending = service.clone();
    keep(&context.world, sockets, service.troubles.clone(), move || ending.is_stopping());
    Ok(Some(bound))
}

/// An address as an array file has it, wherever that lies.
fn in_file(address: &PeerAddress) -> String {
    match address {
        PeerAddress::Unix(path) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            format!("unix:{}", path.display())
        }
        PeerAddress::Tcp(address) => address.to_string(),
    }
}

/// Listens on an address for clients.
fn listening(
    service: &Arc<Service>,
    server: &Server<Volume>,
) -> impl Fn(&PeerAddress) -> Result<PeerAddress, Failure> + 'static {
    let (service, server) = (service.clone(), server.clone());
    move |address| {
        let bound =
            server.listen_for(address, deal(service.clone(), server.clone())).map_err(Failure::run)?;
        if let PeerAddress::Unix(path) = &bound {
            service.accesses.nbd.apply(path)?;
        }
        Ok(bound)
    }
}

/// Answers the administration's verbs at the control socket. A server does without one that cannot be made.
fn listen_for_verbs(
    context: &ShardContext,
    service: &Arc<Service>,
    path: &Path,
) -> Result<KeptSocket, Failure> {
    let (asked, access, array) = (context.clone(), service.accesses.control, service.array.clone());
    let (place, server) = (path.to_owned(), service.clone());
    let make = move || {
        let answering = (asked.clone(), server.clone());
        let answer = move |request| {
            let (asked, server) = answering.clone();
            async move { server.added_to(asked.administer(request).await) }
        };
        control::serve(&asked.world, &place, access, &array, answer)
    };
    let is_made = match make() {
        Ok(()) => true,
        Err(Unserved::NotMade(error)) => {
            let fault = Unserved::NotMade(error).text(path);
            tracing::error!("{fault}");
            service.troubles.tell(&EventKind::SocketLost { text: fault });
            false
        }
        Err(Unserved::NotGiven(failure)) => return Err(failure),
        // It was free before the drives were written.
        Err(taken @ Unserved::Taken) => return Err(Failure::Run(taken.text(path))),
    };
    let told = path.to_owned();
    let make = Box::new(move || make().map_err(|unserved| unserved.text(&told)));
    Ok(KeptSocket { field: "array.control", path: path.to_owned(), is_made, make })
}

/// Descriptors that must be left when everything is open: for a few clients, the control socket, a drive that is opened
/// anew.
const DESCRIPTORS_LEFT_MIN: usize = 8;

/// A server that listens and cannot accept connections serves no host, and no verb reaches it.
fn check_descriptors() -> Result<(), Failure> {
    let some = (0..DESCRIPTORS_LEFT_MIN).map(|_| std::fs::File::open("/dev/null"));
    match some.collect::<std::io::Result<Vec<_>>>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Run(format!(
            "too few file descriptors left for connections ({error}); raise the open file limit (ulimit -n)"
        ))),
    }
}

/// The array's volumes as exports of a shard's server.
struct NbdExports(Server<Volume>);

impl ExportRegistry for NbdExports {
    fn offer(&self, volume: Volume) -> Result<(), String> {
        let options = ExportOptions::named(&*volume.name());
        self.0.replace_export(options, volume).map_err(|error| error.to_string())
    }

    fn rename(&self, from: &str, volume: Volume) -> Result<(), String> {
        let options = ExportOptions::named(&*volume.name());
        self.0.rename_export(from, options, volume).map_err(|error| error.to_string())
    }

    fn users(&self, name: &str) -> usize {
        self.0.users_of(name)
    }

    fn connections(&self) -> Vec<HostConnection> {
        let host = |user: User| HostConnection {
            number: user.connection,
            peer: user.peer,
            volume: user.export,
            io: user.io,
        };
        self.0.users().into_iter().map(host).collect()
    }

    fn ended_connections(&self) -> Vec<(String, IoStats)> {
        self.0.ended_users()
    }

    fn withdraw(&self, name: &str) -> Pin<Box<dyn Future<Output = ()>>> {
        let (server, name) = (self.0.clone(), name.to_owned());
        Box::pin(async move { server.withdraw(&name).await })
    }
}

/// Gives connections to the shards in turn, the listening one first.
fn deal(service: Arc<Service>, server: Server<Volume>) -> impl Fn(Socket) {
    let turn = Cell::new(0);
    move |socket| {
        let shard = turn.get() % service.connection_channels.len();
        turn.set(turn.get().wrapping_add(1));
        match shard {
            0 => server.serve(socket),
            // Nothing has used the socket yet, so it can be given up.
            _ => socket.into_fd().into_iter().for_each(|fd| service.connection_channels[shard].send(fd)),
        }
    }
}
