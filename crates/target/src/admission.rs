//! Who may connect: limits for all connections and for those of one address, and which connection gives way to a new one.
//!
//! Where there is no place, the first of these gives way, the one of them that has waited longest:
//! 1. a connection that has not finished its handshake, of the address that has most of those;
//! 2. one that has never asked for anything, for [`unused_timeout`](super::TargetOptions::unused_timeout);
//! 3. one that is idle, for [`idle_timeout`](super::TargetOptions::idle_timeout).
//!
//! An address that has as many connections as one may have gets a new one only in the place of one of its own. Clients of unix
//! sockets have no address: the socket's permissions say who may connect, and only the limit for all counts for them.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv6Addr};

use tier0_units::Nanos;

use super::options::TargetOptions;

/// Whose a connection is, as far as limits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Host {
    /// It came through a unix socket.
    Local,
    /// It came from this address; of IPv6 its first 64 bits count, which are one subscriber's.
    Address(IpAddr),
}

/// An open connection, as far as its place is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// Its number: earlier ones have lower numbers.
    pub(crate) connection: u64,
    pub(crate) host: Host,
    /// It has not chosen an export yet.
    pub(crate) negotiates: bool,
    /// It has never asked for anything.
    pub(crate) is_unused: bool,
    /// Since when nothing happens on it, if nothing is owed or begun.
    pub(crate) idle_since: Option<Nanos>,
}

/// Which limit a new connection has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Of all connections.
    All(usize),
    /// Of those of one address.
    OfHost(Host, usize),
}

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There is a place.
    Free,
    /// It gets the place of this one.
    Instead(Seat, Limit),
    /// It is closed.
    Refused(Limit),
}

impl Host {
    pub(crate) fn of(address: Option<IpAddr>) -> Host {
        match address.map(|address| address.to_canonical()) {
            None => Host::Local,
            Some(IpAddr::V6(address)) => {
                let subscriber = u128::from(address) >> 64 << 64;
                Host::Address(IpAddr::V6(Ipv6Addr::from(subscriber)))
            }
            Some(address) => Host::Address(address),
        }
    }
}

impl Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Host::Local => f.write_str("a unix socket"),
            Host::Address(IpAddr::V6(address)) => write!(f, "{address}/64"),
            Host::Address(address) => write!(f, "{address}"),
        }
    }
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Limit::All(limit) => write!(f, "all {limit} places for connections are taken"),
            Limit::OfHost(host, limit) => {
                write!(f, "{host} has {limit} connections, as many as one address may have")
            }
        }
    }
}

/// What becomes of a new connection of `host` beside those that are open.
pub(crate) fn admit(seats: &[Seat], host: Host, now: Nanos, options: &TargetOptions) -> Admission {
    let own = || seats.iter().filter(|seat| seat.host == host);
    let most = options.connections_per_address_max;
    if host != Host::Local && own().count() >= most {
        let limit = Limit::OfHost(host, most);
        let own: Vec<Seat> = own().copied().collect();
        return who_gives_way(&own, now, options)
            .map_or(Admission::Refused(limit), |seat| Admission::Instead(seat, limit));
    }
    if seats.len() < options.connections_max {
        return Admission::Free;
    }
    let limit = Limit::All(options.connections_max);
    who_gives_way(seats, now, options)
        .map_or(Admission::Refused(limit), |seat| Admission::Instead(seat, limit))
}

fn who_gives_way(seats: &[Seat], now: Nanos, options: &TargetOptions) -> Option<Seat> {
    let negotiating = || seats.iter().filter(|seat| seat.negotiates);
    let mut hosts: BTreeMap<Host, usize> = BTreeMap::new();
    negotiating().for_each(|seat| *hosts.entry(seat.host).or_default() += 1);
    let most = hosts.values().max();
    let silent =
        negotiating().filter(|seat| hosts.get(&seat.host) == most).min_by_key(|seat| seat.connection);
    let idle_for = |least: Nanos, is_meant: fn(&Seat) -> bool| {
        let idle = seats.iter().filter(|seat| is_meant(seat) && !seat.negotiates);
        let idle = idle.filter_map(|seat| Some((seat.idle_since?, seat)));
        let longest = idle.min_by_key(|(since, seat)| (*since, seat.connection));
        longest.filter(|(since, _)| now.saturating_sub(*since) > least).map(|(_, seat)| seat)
    };
    let unused = || idle_for(options.unused_timeout, |seat| seat.is_unused);
    let idle = || idle_for(options.idle_timeout, |_| true);
    silent.or_else(unused).or_else(idle).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Nanos = Nanos::from_secs(10_000);

    fn options() -> TargetOptions {
        TargetOptions { connections_max: 8, connections_per_address_max: 4, ..TargetOptions::default() }
    }

    fn host(last: u8) -> Host {
        Host::of(Some(IpAddr::from([10, 0, 0, last])))
    }

    fn silent(connection: u64, host: Host) -> Seat {
        Seat { connection, host, negotiates: true, is_unused: true, idle_since: Some(NOW) }
    }

    fn idle(connection: u64, host: Host, seconds: u64, is_unused: bool) -> Seat {
        let since = NOW.saturating_sub(Nanos::from_secs(seconds));
        Seat { connection, host, negotiates: false, is_unused, idle_since: Some(since) }
    }

    fn gone(admission: Admission) -> Option<u64> {
        match admission {
            Admission::Instead(seat, _) => Some(seat.connection),
            _ => None,
        }
    }

    #[test]
    fn one_address_has_a_share_and_unix_sockets_have_none() {
        let options = options();
        let busy = |number| Seat { idle_since: None, ..idle(number, host(1), 0, false) };
        let seats: Vec<Seat> = (0..4).map(busy).collect();
        assert_eq!(admit(&seats, host(1), NOW, &options), Admission::Refused(Limit::OfHost(host(1), 4)));
        assert_eq!(admit(&seats, host(2), NOW, &options), Admission::Free);
        let local: Vec<Seat> = seats.iter().map(|seat| Seat { host: Host::Local, ..*seat }).collect();
        assert_eq!(admit(&local, Host::Local, NOW, &options), Admission::Free);
    }

    /// Silent connections kept a client out for ten seconds.
    #[test]
    fn the_oldest_silent_connection_of_who_has_most_gives_way_first() {
        let options = options();
        let mut seats = vec![idle(0, host(1), 9000, false), silent(1, host(2))];
        seats.extend((2..5).map(|number| silent(number, host(3))));
        seats.extend((5..8).map(|number| idle(number, host(4), 0, false)));
        assert_eq!(gone(admit(&seats, host(5), NOW, &options)), Some(2));
        // At its share, an address has to give way itself.
        seats.push(silent(8, host(3)));
        assert_eq!(gone(admit(&seats, host(3), NOW, &options)), Some(2));
        let other: Vec<Seat> =
            (0..4).map(|number| idle(number, host(4), 0, false)).chain([silent(9, host(5))]).collect();
        assert_eq!(admit(&other, host(4), NOW, &options), Admission::Refused(Limit::OfHost(host(4), 4)));
    }

    #[test]
    fn who_never_asked_gives_way_before_who_did() {
        let options = options();
        let unused = options.unused_timeout.0 / 1_000_000_000 + 1;
        let mut seats: Vec<Seat> =
            (0..7).map(|number| idle(number, host(number as u8 % 2), 500, false)).collect();
        seats.push(idle(7, host(2), unused, true));
        assert_eq!(gone(admit(&seats, host(5), NOW, &options)), Some(7));
        seats[7] = idle(7, host(2), unused - 2, true);
        assert_eq!(admit(&seats, host(5), NOW, &options), Admission::Refused(Limit::All(8)));
        seats[3] = idle(3, host(1), 601, false);
        assert_eq!(gone(admit(&seats, host(5), NOW, &options)), Some(3));
    }

    #[test]
    fn an_address_is_counted_as_its_subscriber() {
        let of = |text: &str| Host::of(Some(text.parse().expect("an address")));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_eq!(of("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
    }
}
