//! The modelled network of a virtual world: who listens where, how fast bytes travel, and how connections die.
//!
//! Every connection has two directions of the same rate and latency, each with room for so many bytes that are on their way
//! or unread, as the buffers of a kernel have. A connection may be given a number of bytes after which it dies, at any byte of
//! either direction.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use tier0_units::Nanos;

use super::PeerAddress;
use super::wire::End;
use crate::sync::Notify;
use crate::{Random, World};

/// The stream of a world's randomness that its network draws from.
const STREAM: u64 = 0x6e65_7477_6f72_6b21;
/// Connections that wait to be accepted.
const BACKLOG: usize = 1024;
/// Ports that are given where none is asked for begin here.
const PORT_FIRST: u16 = 49_152;

/// How a connection dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Both ends learn of it at once; what was on its way is lost.
    Reset,
    /// Nothing arrives any more, and each end learns of it when its patience with a silent peer ends.
    Silence,
}

/// How connections die by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mortality {
    /// The part of all connections that die.
    pub share: f64,
    /// Bytes that such a connection carries before, in both directions, on average.
    pub bytes_mean: f64,
    /// The part of deaths that are silent.
    pub silent: f64,
}

/// What the network is like. Changes concern connections that are made later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkOptions {
    /// The time a byte needs at least.
    pub latency: Nanos,
    /// It needs up to so much more, as it happens.
    pub jitter: Nanos,
    /// Bytes per second, in each direction of each connection.
    pub bytes_per_second: u64,
    /// Bytes on their way or unread in one direction; the sender of more waits.
    pub buffer_bytes: usize,
    /// Bytes that travel together at most; with less than messages have, halves of them arrive.
    pub segment_bytes_max: usize,
    /// How connections die by themselves, if they do.
    pub mortality: Option<Mortality>,
    /// The patience of either end with a peer that has fallen silent for good.
    pub keepalive: Nanos,
}

impl Default for NetworkOptions {
    /// A machine in the same room over 25 Gbit/s, that does not die.
    fn default() -> NetworkOptions {
        NetworkOptions {
            latency: Nanos::from_micros(20),
            jitter: Nanos::ZERO,
            bytes_per_second: 3_000_000_000,
            buffer_bytes: 256 << 10,
            segment_bytes_max: 64 << 10,
            mortality: None,
            keepalive: Nanos::from_secs(120),
        }
    }
}

/// A virtual world's network; clones share it.
#[derive(Clone)]
pub struct Network(Rc<Inner>);

struct Inner {
    options: Cell<NetworkOptions>,
    random: RefCell<Random>,
    listen_queues: RefCell<BTreeMap<PeerAddress, Rc<ListenQueue>>>,
    next_port: Cell<u16>,
    /// Connections that have died by themselves.
    deaths: Cell<u64>,
}

/// The connections that wait to be accepted at an address that is listened on.
#[derive(Default)]
pub(super) struct ListenQueue {
    pub(super) arrived: RefCell<VecDeque<Rc<End>>>,
    pub(super) arrival: Notify,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Network {
        Network(Rc::new(Inner {
            options: Cell::new(NetworkOptions::default()),
            random: RefCell::new(Random::new(seed, STREAM)),
            listen_queues: RefCell::default(),
            next_port: Cell::new(PORT_FIRST),
            deaths: Cell::new(0),
        }))
    }

    /// What it is like.
    pub fn options(&self) -> NetworkOptions {
        self.0.options.get()
    }

    /// Changes what it is like, for connections that are made from now on.
    pub fn set_options(&self, options: NetworkOptions) {
        assert!(options.bytes_per_second > 0 && options.buffer_bytes > 0 && options.segment_bytes_max > 0);
        self.0.options.set(options);
    }

    /// Connections that have died by themselves so far.
    pub fn deaths(&self) -> u64 {
        self.0.deaths.get()
    }

    pub(super) fn note_death(&self) {
        self.0.deaths.set(self.0.deaths.get() + 1);
    }

    /// A random number below `bound`.
    pub(super) fn below(&self, bound: u64) -> u64 {
        self.0.random.borrow_mut().below(bound)
    }

    /// After how many bytes a new connection dies, and how.
    pub(super) fn draw_fate(&self) -> Option<(u64, Death)> {
        let mortality = self.options().mortality?;
        let mut random = self.0.random.borrow_mut();
        if !random.chance(mortality.share) {
            return None;
        }
        let bytes = random.exponential(mortality.bytes_mean) as u64;
        let death = if random.chance(mortality.silent) { Death::Silence } else { Death::Reset };
        Some((bytes, death))
    }

    /// Listens on an address; the address comes back with the port that was chosen, where port 0 was asked for.
    pub(super) fn listen(&self, address: &PeerAddress) -> io::Result<(PeerAddress, Rc<ListenQueue>)> {
        let mut address = address.clone();
        if let PeerAddress::Tcp(address) = &mut address
            && address.port() == 0
        {
            address.set_port(self.0.next_port.get());
            self.0.next_port.set(self.0.next_port.get().checked_add(1).expect("few ports are asked for"));
        }
        let mut listen_queues = self.0.listen_queues.borrow_mut();
        if listen_queues.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let queue = Rc::new(ListenQueue::default());
        listen_queues.insert(address.clone(), queue.clone());
        Ok((address, queue))
    }

    pub(super) fn close(&self, address: &PeerAddress) {
        let queue = self.0.listen_queues.borrow_mut().remove(address);
        drop(queue);
    }

    pub(super) fn connect(&self, world: &World, address: &PeerAddress) -> io::Result<Rc<End>> {
        self.connect_from(world, None, address)
    }

    pub(super) fn connect_from(
        &self,
        world: &World,
        host: Option<IpAddr>,
        address: &PeerAddress,
    ) -> io::Result<Rc<End>> {
        let queue = self.0.listen_queues.borrow().get(address).cloned();
        let queue = queue.filter(|queue| queue.arrived.borrow().len() < BACKLOG);
        let queue = queue.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, far) = End::pair(world, self);
        far.set_peer_ip(host);
        queue.arrived.borrow_mut().push_back(far);
        queue.arrival.notify_all();
        Ok(near)
    }
}
