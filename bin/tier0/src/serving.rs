//! Serves an array's volumes over NBD until somebody asks for its end, then ends in order.
//!
//! Every shard has its own NBD server with all volumes; the addresses to listen on are dealt out to the shards in
//! turn, so that with several addresses several cores speak NBD. Whichever shard a connection is in, its requests go
//! to the owners of their extents.
//!
//! Invariants: nothing is told as listening before all addresses are bound; no shard ends while another one still
//! answers what was in flight.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select;
use tier0_array::Volume;
use tier0_array::description::ListenAddress;
use tier0_array::open::OpenArray;
use tier0_array::real::{ShardContext, Stopper, run};
use tier0_nbd::server::{ExportOptions, Server, ServerError, ServerOptions};
use tier0_units::Nanos;
use tier0_world::real::{Backend, PeerAddress};

use crate::failure::Failure;
use crate::signals::Signals;

/// How often a shard that is done looks whether the others are too; only while an array ends.
const ENDING_LOOK: Nanos = Nanos::from_millis(1);

/// Who is told the addresses, with the ports that the system chose, in the order in which they were asked for.
type Listening = Box<dyn Fn(&[PeerAddress]) + Send + Sync>;

/// An array being served, as all its shards and its owner see it.
pub(crate) struct Service {
    listen: Vec<PeerAddress>,
    listening: Listening,
    signals: Signals,
    shards: usize,
    stop: AtomicBool,
    /// Shards that have not bound their addresses yet.
    unbound: AtomicUsize,
    /// Shards that still answer.
    answering: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopper: Option<Stopper>,
    failure: Option<Failure>,
    bound: Vec<(usize, PeerAddress)>,
}

impl Service {
    /// Will serve `array` on the addresses of `listen`; `listening` is called once all of them are bound.
    pub(crate) fn new(
        array: &OpenArray,
        listen: &[ListenAddress],
        signals: Signals,
        listening: impl Fn(&[PeerAddress]) + Send + Sync + 'static,
    ) -> Arc<Service> {
        let shards = array.cores().max(1);
        Arc::new(Service {
            listen: listen.iter().map(|address| address.0.clone()).collect(),
            listening: Box::new(listening),
            signals,
            shards,
            stop: AtomicBool::new(false),
            unbound: AtomicUsize::new(shards),
            answering: AtomicUsize::new(shards),
            state: Mutex::default(),
        })
    }

    /// Serves until a signal comes or [`Service::stop`] is called.
    pub(crate) fn run(self: &Arc<Self>, array: &OpenArray) -> Result<(), Failure> {
        let started = |stopper| {
            self.lock().stopper = Some(stopper);
            if self.is_stopping() {
                self.stop();
            }
        };
        let ran = run(array, Backend::Auto, started, |context| serve_shard(context, self.clone()));
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

    /// Takes a shard's addresses; the last shard's call tells all of them.
    fn bound(&self, own: Vec<(usize, PeerAddress)>) {
        let mut state = self.lock();
        state.bound.extend(own);
        if self.unbound.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        state.bound.sort_by_key(|(place, _)| *place);
        let all: Vec<_> = state.bound.iter().map(|(_, address)| address.clone()).collect();
        drop(state);
        (self.listening)(&all);
    }
}

async fn serve_shard(context: ShardContext, service: Arc<Service>) {
    if let Some(error) = context.fallback.as_ref().filter(|_| context.index == 0) {
        tracing::warn!(%error, "the kernel refuses io_uring; using epoll and threads, which costs speed");
    }
    let server = Server::new(&context.world, ServerOptions::default());
    match start(&context, &service, &server) {
        Ok(own) => service.bound(own),
        Err(error) => service.fail(Failure::run(error)),
    }
    let asked = async {
        while !service.is_stopping() {
            context.stopping().await;
        }
    };
    // Every shard hears the signal by itself, so that none depends on another one to end.
    let signalled = service.signals.wait(&context.world);
    select(std::pin::pin!(asked), std::pin::pin!(signalled)).await;
    service.stop();
    server.shut_down().await;
    service.answering.fetch_sub(1, Ordering::SeqCst);
    while service.answering.load(Ordering::SeqCst) > 0 {
        context.world.sleep(ENDING_LOOK).await;
    }
}

/// Offers the volumes and listens on this shard's share of the addresses.
fn start(
    context: &ShardContext,
    service: &Service,
    server: &Server<Volume>,
) -> Result<Vec<(usize, PeerAddress)>, ServerError> {
    for volume in &context.volumes {
        server.add_export(ExportOptions::named(volume.name()), volume.clone())?;
    }
    let addresses = service.listen.iter().enumerate();
    let own = addresses.filter(|(place, _)| place % service.shards == context.index);
    own.map(|(place, address)| Ok((place, server.listen(address)?))).collect()
}
