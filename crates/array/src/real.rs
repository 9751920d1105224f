//! An array on the wall clock: one thread and one world per shard.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;

use tier0_raid::io::Members;
use tier0_world::real::Backend;
use tier0_world::sync::{MailReceiver, MailSender, mailbox};
use tier0_world::{RealOptions, RealRuntime, Remote, World};

use crate::control::{Loss, LossReporter, remember_losses};
use crate::open::OpenArray;
use crate::plan::PoolPlan;
use crate::shard::{Ask, Shard};
use crate::{ArrayError, Volume};

/// What a shard offers to whoever serves its volumes.
#[derive(Clone)]
pub struct ShardContext {
    /// The shard's world.
    pub world: World,
    /// The shard's number, from 0.
    pub index: usize,
    /// All volumes of the array, in the order of pools and records.
    pub volumes: Vec<Volume>,
    /// Why this world runs without io_uring although it would have taken it.
    pub fallback: Option<Arc<str>>,
    shard: Rc<Shard>,
}

impl ShardContext {
    /// Ends when the array is to stop.
    pub async fn stopping(&self) {
        self.shard.stopping.wait().await;
    }
}

/// Runs an array: `serve` runs in every shard's world, in a thread each, and the array stops when `stop` is called
/// through the [`Stopper`] that `started` is given, or when every shard's `serve` has ended.
///
/// `serve` should end when [`ShardContext::stopping`] does.
pub fn run<F>(
    array: &OpenArray,
    backend: Backend,
    started: impl FnOnce(Stopper),
    serve: impl Fn(ShardContext) -> F + Send + Sync,
) -> Result<(), ArrayError>
where
    F: Future<Output = ()> + 'static,
{
    let shards = array.cores.max(1);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..shards).map(|_| mailbox::<Ask>()).unzip();
    let (control, losses) = mailbox::<Loss>();
    let mut losses = Some(losses);
    let (ready, readiness) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, inbox) in receivers.into_iter().enumerate() {
            let seat =
                Seat { array, index, backend, peers: senders.clone(), inbox, control: control.clone() };
            let (losses, ready, serve) = (losses.take_if(|_| index == 0), ready.clone(), &serve);
            let thread = std::thread::Builder::new().name(format!("tier0-shard{index}"));
            let thread =
                thread.spawn_scoped(scope, move || seat.run(losses, &ready, serve)).map_err(|source| {
                    ArrayError::System { what: "a shard's thread cannot be started".into(), source }
                })?;
            threads.push(thread);
        }
        drop((senders, control, ready));
        let mut remotes = Vec::new();
        while let Ok((index, remote)) = readiness.recv() {
            remotes.push((index, remote));
            if remotes.len() == shards {
                started(Stopper(remotes.into()));
                break;
            }
        }
        let results = threads.into_iter().map(|thread| thread.join().expect("a shard does not panic"));
        results.collect::<Vec<_>>().into_iter().collect()
    })
}

/// Stops an array from any thread.
#[derive(Clone)]
pub struct Stopper(Arc<[(usize, ShardHandle)]>);

struct ShardHandle {
    remote: Remote,
    stop: MailSender<()>,
}

impl Stopper {
    /// Asks every shard to stop.
    pub fn stop(&self) {
        self.0.iter().for_each(|(_, shard)| shard.stop.send(()));
    }

    /// The shards' worlds, in order, for tasks that come from outside.
    pub fn remote(&self, shard: usize) -> &Remote {
        let found = self.0.iter().find(|(index, _)| *index == shard);
        &found.expect("a shard of the array").1.remote
    }
}

/// What a shard's thread starts with.
struct Seat<'a> {
    array: &'a OpenArray,
    index: usize,
    backend: Backend,
    peers: Vec<MailSender<Ask>>,
    inbox: MailReceiver<Ask>,
    control: MailSender<Loss>,
}

impl Seat<'_> {
    fn run<F>(
        self,
        losses: Option<MailReceiver<Loss>>,
        ready: &mpsc::Sender<(usize, ShardHandle)>,
        serve: impl Fn(ShardContext) -> F,
    ) -> Result<(), ArrayError>
    where
        F: Future<Output = ()> + 'static,
    {
        let options = RealOptions { backend: self.backend, seed: self.index as u64 };
        let runtime = RealRuntime::new(&options).map_err(|source| ArrayError::System {
            what: "the real world cannot be opened".into(),
            source,
        })?;
        let world = runtime.world().clone();
        let (mut members, mut memories) = (Vec::new(), Vec::new());
        for (number, pool) in self.array.pools.iter().enumerate() {
            let drives = pool.open_drives(&world)?;
            memories.push(pool.memory(&drives));
            let reporter = LossReporter { pool: number, control: self.control.clone() };
            members.push(Members::new(drives, pool.lost.clone(), Rc::new(reporter)));
        }
        if let Some(losses) = losses {
            world.spawn(remember_losses(memories, losses)).detach();
        }
        let plans: Vec<PoolPlan> = self.array.pools.iter().map(|pool| pool.plan.clone()).collect();
        let shard = Shard::new(&world, self.index, &plans, members, self.peers);
        world.spawn(shard.clone().answer(self.inbox)).detach();
        let (stop, mut stopped) = mailbox();
        let stopping = shard.clone();
        world
            .spawn(async move {
                while stopped.receive().await.is_some() {
                    stopping.stopping.notify_all();
                }
            })
            .detach();
        let volumes = volumes_of(&plans, &shard);
        let fallback = runtime.fallback().map(|error| error.to_string().into());
        let context = ShardContext { world: world.clone(), index: self.index, volumes, fallback, shard };
        // The starter may have failed and gone; then the scope is ending anyway.
        let _ = ready.send((self.index, ShardHandle { remote: world.remote(), stop }));
        runtime.run(serve(context));
        Ok(())
    }
}

pub(crate) fn volumes_of(plans: &[PoolPlan], shard: &Rc<Shard>) -> Vec<Volume> {
    let names = plans.iter().flat_map(|plan| plan.record.volumes.iter().map(|volume| volume.name.as_str()));
    names.enumerate().map(|(number, name)| Volume::new(shard, number as u32, name)).collect()
}
