//! A modelled connection and its two ends.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;

use tier0_units::Nanos;

use super::pipe::Pipe;
use super::{Death, Network, NetworkOptions};
use crate::{BufMut, Gather, IoError, World};

/// What both ends share.
struct Wire {
    network: Network,
    options: NetworkOptions,
    /// Bytes that are still carried before it dies, and how it does.
    fate: Cell<Option<(u64, Death)>>,
}

/// One end of a connection. Dropping it closes it.
pub(super) struct End {
    world: World,
    wire: Rc<Wire>,
    inbound: Rc<Pipe>,
    outbound: Rc<Pipe>,
    is_shut: Cell<bool>,
    /// Where the other end is; none where it came through a unix socket.
    peer_ip: Cell<Option<IpAddr>>,
}

impl End {
    /// A new connection.
    pub(super) fn pair(world: &World, network: &Network) -> (Rc<End>, Rc<End>) {
        let fate = Cell::new(network.draw_fate());
        let wire = Rc::new(Wire { network: network.clone(), options: network.options(), fate });
        let (there, back) = (Rc::new(Pipe::default()), Rc::new(Pipe::default()));
        let end = |inbound: &Rc<Pipe>, outbound: &Rc<Pipe>| {
            Rc::new(End {
                world: world.clone(),
                wire: wire.clone(),
                inbound: inbound.clone(),
                outbound: outbound.clone(),
                is_shut: Cell::new(false),
                peer_ip: Cell::new(None),
            })
        };
        (end(&back, &there), end(&there, &back))
    }

    pub(super) fn peer_ip(&self) -> Option<IpAddr> {
        self.peer_ip.get()
    }

    pub(super) fn set_peer_ip(&self, host: Option<IpAddr>) {
        self.peer_ip.set(host);
    }

    pub(super) async fn receive(&self, mut bytes: Vec<u8>) -> (Result<usize, IoError>, Vec<u8>) {
        let room = bytes.capacity() - bytes.len();
        loop {
            if let Some(result) = self.inbound.receive(room, |piece| bytes.extend_from_slice(piece)) {
                return (result, bytes);
            }
            self.inbound.readable.wait().await;
        }
    }

    pub(super) async fn receive_into(
        &self,
        mut buf: BufMut,
        filled: usize,
    ) -> (Result<usize, IoError>, BufMut) {
        loop {
            let memory = &mut buf.as_mut_slice()[filled..];
            let (most, mut at) = (memory.len(), 0);
            let take = |piece: &[u8]| {
                memory[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            };
            if let Some(result) = self.inbound.receive(most, take) {
                return (result, buf);
            }
            self.inbound.readable.wait().await;
        }
    }

    /// Sends some of the list, at least one byte; how many.
    pub(super) async fn send_some(&self, gather: &mut Gather) -> Result<usize, IoError> {
        loop {
            match self.outbound.room(&self.wire.options)? {
                0 => self.outbound.writable.wait().await,
                room => {
                    let count = room.min(self.segment_bytes()).min(gather.remaining_bytes());
                    self.transmit(gather.copy_front(count));
                    gather.advance(count);
                    return Ok(count);
                }
            }
        }
    }

    /// Ends both directions.
    pub(super) fn shutdown(&self) {
        if !self.is_shut.replace(true) {
            self.outbound.end(&self.world, &self.wire.options);
            self.inbound.refuse();
        }
    }

    /// How many bytes travel together.
    fn segment_bytes(&self) -> usize {
        1 + self.wire.network.below(self.wire.options.segment_bytes_max as u64) as usize
    }

    fn transmit(&self, mut segment: Vec<u8>) {
        let died = match self.wire.fate.get() {
            Some((left, death)) if left < segment.len() as u64 => {
                segment.truncate(left as usize);
                Some(death)
            }
            Some((left, death)) => {
                self.wire.fate.set(Some((left - segment.len() as u64, death)));
                None
            }
            None => None,
        };
        if !segment.is_empty() {
            let jitter = Nanos(self.wire.network.below(self.wire.options.jitter.0 + 1));
            self.outbound.send(&self.world, &self.wire.options, jitter, segment);
        }
        if let Some(death) = died {
            self.wire.fate.set(None);
            self.outbound.lose_what_follows();
            self.die(death);
        }
    }

    /// The connection dies once the last of its bytes has had the time to arrive.
    fn die(&self, death: Death) {
        self.wire.network.note_death();
        let pipes = [self.inbound.clone(), self.outbound.clone()];
        let (world, options, last) = (self.world.clone(), self.wire.options, self.outbound.last_arrival());
        let dying = async move {
            world.sleep_until(last).await;
            if death == Death::Silence {
                pipes.iter().for_each(|pipe| pipe.fall_silent());
                world.sleep(options.keepalive).await;
            }
            let error = if death == Death::Silence { libc::ETIMEDOUT } else { libc::ECONNRESET };
            pipes.iter().for_each(|pipe| pipe.fail(IoError::Os(error)));
        };
        self.world.spawn(dying).detach();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.world.is_closing() {
            self.shutdown();
        }
    }
}
