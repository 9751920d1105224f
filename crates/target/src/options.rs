//! What a target allows its clients.

use tier0_units::Nanos;

/// Limits of a target. All connections together can make it hold `pool_bytes`, and each of them `reserve_bytes` and what
/// its protocol receives into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetOptions {
    /// Connections at a time; further ones are closed at once, unless one that is silent or idle can give way.
    pub connections_max: usize,
    /// The same of one address; clients of unix sockets have none.
    pub connections_per_address_max: usize,
    /// Requests of one connection that are admitted and not yet answered; a long one counts for each of its pieces.
    pub in_flight_requests_max: u32,
    /// Bytes of payload of those requests, once the peer has taken as much. A lone request may be longer, as far as the pool
    /// allows.
    pub in_flight_bytes_max: u64,
    /// The same while other connections work too: what each of them may have in front of the others at the drives.
    pub contended_bytes_max: u64,
    /// Bytes of replies that wait for a connection to take them; with more, nothing new is begun for it.
    pub unsent_bytes_max: u64,
    /// What each connection can always have in flight, whatever the others do.
    pub reserve_bytes: u64,
    /// What all connections together can have in flight beyond their reserves.
    pub pool_bytes: u64,
    /// Bytes that one connection may begin to move before others have their turn.
    pub turn_bytes: u64,
    /// A peer that takes nothing of what is owed to it for so long, or sends nothing more of a message that it has begun, is
    /// cut off.
    pub stall_timeout: Nanos,
    /// A peer that has never asked for anything, for so long, gives way where a new one would find no place.
    pub unused_timeout: Nanos,
    /// A peer that has said nothing for so long, and is owed nothing, gives way where a new one would find no place.
    pub idle_timeout: Nanos,
    /// A peer that has not taken the replies owed to it this long after the connection's end was decided is cut off.
    pub drain_timeout: Nanos,
}

impl Default for TargetOptions {
    /// The reserve has room for 32 requests of 8 KiB; a turn is as long, so that they are one. What is unsent keeps a socket
    /// busy while the next pieces are read: 4 MiB are 1.3 ms of 25 Gbit/s. What is in flight keeps a hundred disks busy with
    /// pieces of 128 KiB; beside others, 1 MiB is 0.3 ms of 25 Gbit/s. The pool has room for the longest payload of NBD four times.
    fn default() -> TargetOptions {
        TargetOptions {
            connections_max: 1024,
            connections_per_address_max: 512,
            in_flight_requests_max: 1024,
            in_flight_bytes_max: 16 << 20,
            contended_bytes_max: 1 << 20,
            unsent_bytes_max: 4 << 20,
            reserve_bytes: 256 << 10,
            pool_bytes: 128 << 20,
            turn_bytes: 256 << 10,
            stall_timeout: Nanos::from_secs(30),
            unused_timeout: Nanos::from_secs(30),
            idle_timeout: Nanos::from_secs(600),
            drain_timeout: Nanos::from_secs(10),
        }
    }
}

impl TargetOptions {
    /// Panics where they contradict each other.
    pub(crate) fn assert_sensible(&self) {
        assert!(self.connections_per_address_max > 0, "an address needs room for one connection");
        assert!(self.in_flight_requests_max > 0, "a connection needs room for one request");
        assert!(self.turn_bytes > 0 && self.unsent_bytes_max > 0, "a connection must get on");
    }
}
