//! What the wings share: the pools' metadata and shapes, the shards, the events, the world.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_units::Nanos;
use tier0_world::World;
use tier0_world::sync::{MailSender, Semaphore, oneshot};
use uuid::Uuid;

use crate::admin::AdminError;
use crate::events::Events;
use crate::message::command::{ShardCommand, ShardReport};
use crate::message::control::ControlMessage;
use crate::message::request::ShardRequest;
use crate::pool::Pool;

/// How long a task that goes through many extents lets others have their turn.
pub(crate) const TURN: Nanos = Nanos::from_micros(1);

/// What an administrator is told of a request that was carried out, or was not.
pub(crate) type Done = Result<String, AdminError>;

/// What an array is beside its shards, as all wings know it. A wing is a context and a state of its own, so it derefs to this.
pub(crate) struct Context {
    pub(crate) world: World,
    /// The array's name.
    pub(crate) array: String,
    pub(crate) pools: Vec<Rc<Pool>>,
    /// To every shard.
    pub(crate) shards: Vec<MailSender<ShardRequest>>,
    /// To the control task itself, for those that ask it.
    pub(crate) post: MailSender<ControlMessage>,
    pub(crate) events: Events,
    /// Slow turns of this world that events have told.
    pub(crate) slow_turns_told: Cell<u64>,
    /// Volumes and pools change their shape one after the other.
    pub(crate) turn: Semaphore,
    /// Identities made so far.
    identities: Cell<u64>,
    /// Whether every shard is there for orders.
    pub(crate) upkeep: Cell<bool>,
    /// How long hosts wait for drives of a paused pool before they get errors.
    pub(crate) pause_timeout: Nanos,
}

impl Context {
    /// The context of these pools, before any shard is there for orders.
    pub(crate) fn new(
        world: &World,
        array: String,
        pools: Vec<Rc<Pool>>,
        shards: Vec<MailSender<ShardRequest>>,
        post: MailSender<ControlMessage>,
        pause_timeout: Nanos,
    ) -> Rc<Context> {
        Rc::new(Context {
            world: world.clone(),
            array,
            pools,
            shards,
            post,
            events: Events::default(),
            slow_turns_told: Cell::new(0),
            turn: Semaphore::new(1),
            identities: Cell::new(0),
            upkeep: Cell::new(false),
            pause_timeout,
        })
    }

    /// A pool by its number.
    pub(crate) fn pool(&self, number: usize) -> &Pool {
        &self.pools[number]
    }

    /// Orders something of every shard; `None` from a shard that has ended.
    pub(crate) async fn ask_all<T>(
        &self,
        command: impl Fn(oneshot::Sender<T>) -> ShardCommand,
    ) -> Vec<Option<T>> {
        self.ask_every(|reply| ShardRequest::Command(command(reply))).await
    }

    /// Asks something of every shard; `None` from a shard that has ended.
    pub(crate) async fn ask_every<T>(
        &self,
        request: impl Fn(oneshot::Sender<T>) -> ShardRequest,
    ) -> Vec<Option<T>> {
        let ask = |shard: &MailSender<ShardRequest>| {
            let (reply, answer) = oneshot::channel();
            shard.send(request(reply));
            async move { answer.await.ok() }
        };
        join_all(self.shards.iter().map(ask).collect::<Vec<_>>()).await
    }

    /// How a pool does in every shard that answers.
    pub(crate) async fn reports(&self, number: usize) -> Vec<ShardReport> {
        let reports = self.ask_all(|reply| ShardCommand::Report { pool: number, reply }).await;
        reports.into_iter().flatten().collect()
    }

    /// The pools that an administrator means: the named one, or all.
    pub(crate) fn pools_meant(&self, name: Option<&str>) -> Result<Vec<usize>, AdminError> {
        let is_meant = |number: &usize| name.is_none_or(|name| self.pools[*number].name == name);
        let meant: Vec<usize> = (0..self.pools.len()).filter(is_meant).collect();
        match name {
            _ if !meant.is_empty() => Ok(meant),
            Some(name) if !self.pools.is_empty() => {
                Err(AdminError::new(format!("no pool {name:?}; \"tier0 status\" lists the pools")))
            }
            _ => Err(AdminError::new(
                "the array is in memory only and cannot be administered; edit the array file and restart it",
            )),
        }
    }

    /// The one pool that an administrator means.
    pub(crate) fn pool_meant(&self, name: Option<&str>) -> Result<usize, AdminError> {
        match self.pools_meant(name)?[..] {
            [only] => Ok(only),
            _ => Err(AdminError::new("the array has several pools; choose one with --pool")),
        }
    }

    /// A fresh identity: of the world's randomness in virtual time, so that a seed reproduces it.
    pub(crate) fn new_id(&self) -> Uuid {
        let count = self.identities.get() + 1;
        self.identities.set(count);
        if self.world.is_virtual() {
            let mut random = self.world.random(0x1de0_0000 ^ count ^ self.world.now().0 << 20);
            return Uuid::from_u64_pair(random.bits(), random.bits());
        }
        Uuid::new_v4()
    }
}
