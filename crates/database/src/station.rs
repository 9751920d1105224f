//! A resource that serves one request at a time on each of its servers, first come first served: a link's direction,
//! a storage processor's cores, a back-end bus.
//!
//! Invariants: no server does two things at once; requests start in the order in which they come. It draws nothing at
//! random and sets no timer: the caller sleeps until the time it is told.

use std::cell::{Cell, RefCell};

use tier0_units::Nanos;

/// Servers with the times at which they are free again.
#[derive(Debug)]
pub struct Resource {
    free_at: RefCell<Vec<Nanos>>,
    busy: Cell<Nanos>,
}

impl Resource {
    /// A resource of `servers` idle servers, at least one.
    pub fn new(servers: usize) -> Resource {
        assert!(servers > 0, "a resource serves");
        Resource { free_at: RefCell::new(vec![Nanos::ZERO; servers]), busy: Cell::new(Nanos::ZERO) }
    }

    /// Takes the server that is free first for `service`, from `now` on or from when it is free. Returns the time at
    /// which the service ends.
    pub fn reserve(&self, now: Nanos, service: Nanos) -> Nanos {
        let mut free_at = self.free_at.borrow_mut();
        let server = free_at.iter_mut().min().expect("a resource has servers");
        let end = (*server).max(now).saturating_add(service);
        *server = end;
        self.busy.set(self.busy.get().saturating_add(service));
        end
    }

    /// Takes a server for a transfer that arrives piece by piece and is complete at `now` at the earliest: the
    /// resource works while the data arrive. Returns the time at which the transfer ends.
    pub fn reserve_behind(&self, now: Nanos, service: Nanos) -> Nanos {
        self.reserve(now.saturating_sub(service), service)
    }

    /// The time that all servers together have been or will be at work for what they were given.
    pub fn busy(&self) -> Nanos {
        self.busy.get()
    }

    /// The same, without what is still to be done at `now`.
    pub fn busy_until(&self, now: Nanos) -> Nanos {
        let ahead = self.free_at.borrow().iter().map(|end| end.saturating_sub(now).0).sum();
        self.busy.get().saturating_sub(Nanos(ahead))
    }

    /// How many servers it has.
    pub fn servers(&self) -> usize {
        self.free_at.borrow().len()
    }
}

/// The time to move `bytes` at `megabytes_per_s`.
pub fn transfer_time(bytes: u64, megabytes_per_s: f64) -> Nanos {
    // 1 MB/s is a byte per microsecond.
    Nanos((bytes as f64 / megabytes_per_s * 1e3).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_taken_in_turn_and_queue() {
        let two = Resource::new(2);
        let ends: Vec<u64> = (0..4).map(|_| two.reserve(Nanos(100), Nanos(10)).0).collect();
        assert_eq!(ends, [110, 110, 120, 120]);
        assert_eq!(two.reserve(Nanos(500), Nanos(1)), Nanos(501));
        assert_eq!(two.busy(), Nanos(41));
        assert_eq!(two.busy_until(Nanos(500)), Nanos(40));
    }

    #[test]
    fn a_transfer_that_arrives_piece_by_piece_costs_nothing_on_an_idle_bus() {
        let bus = Resource::new(1);
        assert_eq!(bus.reserve_behind(Nanos(1000), Nanos(20)), Nanos(1000));
        assert_eq!(bus.reserve_behind(Nanos(1005), Nanos(20)), Nanos(1020));
        assert_eq!(bus.reserve_behind(Nanos(2000), Nanos(20)), Nanos(2000));
    }

    #[test]
    fn a_gigabit_port_moves_eight_kib_in_seventy_microseconds() {
        assert_eq!(transfer_time(8192, 117.0), Nanos(70_017));
    }
}
