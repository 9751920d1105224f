//! The ports and storage processors of one array, with the costs that the catalogue gives.
//!
//! A read pays its command's overhead, then processor time, then (after the drives) the port's outward direction; a
//! write pays the port's inward direction before the processor. Hosts use every port in turn (multipath); each volume
//! belongs to one active controller and uses that one's cores.
//!
//! The overhead of a command is a latency and occupies nothing. Cost per I/O and per KiB are paid in one piece.

use std::cell::Cell;

use tier0_catalog::{ArrayParameters, LinkParameters};
use tier0_units::Nanos;
use tier0_world::World;

use super::{Resource, transfer_time};

/// What an I/O costs on its way, from the catalogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontEndCosts {
    /// Ports.
    pub ports: usize,
    /// Rate of one port in one direction.
    pub port_mb_s: f64,
    /// Least time between two commands of one port.
    pub port_command: Nanos,
    /// Latency of a command and its answer besides the data.
    pub command_overhead: Nanos,
    /// Controllers that serve.
    pub controllers: usize,
    /// Cores of one controller.
    pub cores: usize,
    /// Core time of a read.
    pub read: Nanos,
    /// Core time of a write.
    pub write: Nanos,
    /// Core time per KiB, nanoseconds.
    pub per_kib_ns: f64,
    /// What a read of a volume pays whose read cache is on.
    pub lookup: LookupCost,
}

/// Core time that it takes to look for a request's pages in the read cache, whether they are there or not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookupCost {
    /// For the request.
    pub request: Nanos,
    /// For each of its pages.
    pub page: Nanos,
    /// Bytes of a page.
    pub page_bytes: f64,
}

impl LookupCost {
    /// Of a request of so many bytes. Where it begins in a page is not asked: one that begins within a page may touch one more.
    fn of(&self, bytes: u64) -> Nanos {
        let pages = (bytes as f64 / self.page_bytes).ceil() as u64;
        self.request.saturating_add(Nanos(self.page.0.saturating_mul(pages)))
    }
}

impl FrontEndCosts {
    /// A path that costs nothing.
    pub const NONE: FrontEndCosts = FrontEndCosts {
        ports: 1,
        port_mb_s: 1e9,
        port_command: Nanos::ZERO,
        command_overhead: Nanos::ZERO,
        controllers: 1,
        cores: 1,
        read: Nanos::ZERO,
        write: Nanos::ZERO,
        per_kib_ns: 0.0,
        lookup: LookupCost { request: Nanos::ZERO, page: Nanos::ZERO, page_bytes: 4096.0 },
    };

    /// The costs of an array.
    pub fn of(array: &ArrayParameters, link: &LinkParameters) -> FrontEndCosts {
        let us = |us: f64| Nanos((us * 1e3).round() as u64);
        let port_command =
            array.front_end_port_iops.as_ref().map_or(Nanos::ZERO, |iops| us(1e6 / iops.value));
        FrontEndCosts {
            ports: array.front_end_ports.value as usize,
            port_mb_s: link.payload_mb_s.value,
            port_command,
            command_overhead: us(link.command_overhead_us.value),
            controllers: array.active_controllers.value as usize,
            cores: array.cores_per_controller.value as usize,
            read: us(array.read_cost_us.value),
            write: us(array.write_cost_us.value),
            per_kib_ns: array.transfer_cost_us_per_kib.value * 1e3,
            lookup: LookupCost {
                request: us(array.cache_lookup_cost_us.value),
                page: array.cache_lookup_page_cost_us.as_ref().map_or(Nanos::ZERO, |cost| us(cost.value)),
                page_bytes: array.cache_page_kib.value * 1024.0,
            },
        }
    }
}

/// The ports and processors at work.
pub struct FrontEnd {
    world: World,
    costs: FrontEndCosts,
    inward: Vec<Resource>,
    outward: Vec<Resource>,
    processors: Vec<Resource>,
    next_port: Cell<usize>,
}

impl FrontEnd {
    /// An idle front end.
    pub fn new(world: &World, costs: FrontEndCosts) -> FrontEnd {
        let ports = || (0..costs.ports).map(|_| Resource::new(1)).collect();
        let processors = (0..costs.controllers).map(|_| Resource::new(costs.cores)).collect();
        FrontEnd {
            world: world.clone(),
            costs,
            inward: ports(),
            outward: ports(),
            processors,
            next_port: Cell::new(0),
        }
    }

    /// The port of the next command.
    pub fn take_port(&self) -> usize {
        let port = self.next_port.get();
        self.next_port.set((port + 1) % self.costs.ports);
        port
    }

    /// Carries a read's command to the processor of `volume` and through it; `is_cached` says whether it looks into the read
    /// cache.
    pub async fn admit_read(&self, volume: usize, bytes: u64, is_cached: bool) {
        self.world.sleep(self.costs.command_overhead).await;
        let lookup = if is_cached { self.costs.lookup.of(bytes) } else { Nanos::ZERO };
        self.process(volume, self.costs.read.saturating_add(lookup), bytes).await;
    }

    /// Carries a read's data to the host.
    pub async fn send(&self, port: usize, bytes: u64) {
        self.transfer(&self.outward[port], bytes).await;
    }

    /// Carries a write's command and data to the processor of `volume` and through it.
    pub async fn admit_write(&self, port: usize, volume: usize, bytes: u64) {
        self.world.sleep(self.costs.command_overhead).await;
        self.transfer(&self.inward[port], bytes).await;
        self.process(volume, self.costs.write, bytes).await;
    }

    async fn transfer(&self, direction: &Resource, bytes: u64) {
        let time = transfer_time(bytes, self.costs.port_mb_s).max(self.costs.port_command);
        self.world.sleep_until(direction.reserve(self.world.now(), time)).await;
    }

    async fn process(&self, volume: usize, cost: Nanos, bytes: u64) {
        let data = Nanos((bytes as f64 / 1024.0 * self.costs.per_kib_ns).round() as u64);
        let processor = &self.processors[volume % self.processors.len()];
        self.world.sleep_until(processor.reserve(self.world.now(), cost.saturating_add(data))).await;
    }

    /// Busy time and servers of the ports in one direction each, and of the processors.
    pub(super) fn loads(&self) -> [(&'static str, Vec<&Resource>); 3] {
        [
            ("ports, to the host", self.outward.iter().collect()),
            ("ports, from the host", self.inward.iter().collect()),
            ("storage processors", self.processors.iter().collect()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_costs_by_request_and_by_page() {
        let cost = LookupCost { request: Nanos(8000), page: Nanos(1000), page_bytes: 8192.0 };
        assert_eq!(cost.of(8192), Nanos(9000));
        assert_eq!(cost.of(4096), Nanos(9000), "a part of a page is looked for as a page");
        assert_eq!(cost.of(65_536), Nanos(16_000));
    }
}
