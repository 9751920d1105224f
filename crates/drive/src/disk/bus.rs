//! When sectors that arrive from the medium are in the host.
//!
//! The drive connects once enough sectors are in the buffer (the water mark), sends what is there, and where the
//! medium is slower than the bus, either stays connected or leaves and comes back, each time at a price.

/// Sectors that come into the buffer one after the other, evenly; or all at once where `period` is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    pub(crate) sectors: u64,
    /// When the first begins to come in; it is there a sector's time later.
    pub(crate) from: u64,
    /// `period / per_period` is the time of one sector.
    pub(crate) period: u64,
    pub(crate) per_period: u64,
}

impl Arrivals {
    /// All there at `time`.
    pub(crate) fn at_once(sectors: u64, time: u64) -> Arrivals {
        Arrivals { sectors, from: time, period: 0, per_period: 1 }
    }

    fn time_of(&self, sectors: u64) -> u64 {
        self.from + sectors * self.period / self.per_period
    }

    fn there_at(&self, time: u64) -> u64 {
        match time.checked_sub(self.from) {
            None => 0,
            Some(_) if self.period == 0 => self.sectors,
            Some(elapsed) => {
                // `time_of` rounds down, so that one more may be there than the quotient says.
                let whole = elapsed.saturating_mul(self.per_period) / self.period;
                (whole + u64::from(self.time_of(whole + 1) <= time)).min(self.sectors)
            }
        }
    }
}

/// The way to the host, for one command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// Whether the drive is connected from `from` on; else it connects when there is enough to send.
    pub(crate) connected: bool,
    /// Not before this.
    pub(crate) from: u64,
    pub(crate) per_sector: u64,
    /// Sectors to wait for before connecting, at least 1.
    pub(crate) water_mark: u64,
    /// Stay connected when the buffer runs empty.
    pub(crate) hold: bool,
    /// Price of connecting (once there is enough) and of leaving.
    pub(crate) connect: u64,
    pub(crate) disconnect: u64,
}

impl Link {
    /// When the last of the sectors, in order of their arrival, is in the host.
    pub(crate) fn end_of_transfer(&self, arrivals: &[Arrivals]) -> u64 {
        let total = arrivals.iter().map(|part| part.sectors).sum();
        let mut time = self.from;
        if !self.connected {
            time = time.max(time_of(arrivals, self.water_mark.min(total))) + self.connect;
        }
        if self.hold || (self.connect == 0 && self.disconnect == 0 && self.water_mark == 1) {
            self.send_gapless(arrivals, time)
        } else {
            self.send_in_stretches(arrivals, total, time)
        }
    }

    /// Each sector leaves once it is there and the one before has left. Within a part both the arrivals and the
    /// departures are evenly spaced, so that either the first or the last sector decides.
    fn send_gapless(&self, arrivals: &[Arrivals], start: u64) -> u64 {
        arrivals.iter().filter(|part| part.sectors > 0).fold(start, |time, part| {
            let all = part.sectors * self.per_sector;
            (time + all).max(part.time_of(1) + all).max(part.time_of(part.sectors) + self.per_sector)
        })
    }

    fn send_in_stretches(&self, arrivals: &[Arrivals], total: u64, start: u64) -> u64 {
        let (mut time, mut sent) = (start, 0);
        loop {
            let there = there_at(arrivals, time);
            time += there.saturating_sub(sent) * self.per_sector;
            if there >= total {
                return time;
            }
            if there > sent {
                sent = there;
                continue;
            }
            let wanted = (sent + self.water_mark).min(total);
            time = (time + self.disconnect).max(time_of(arrivals, wanted)) + self.connect;
        }
    }
}

/// When the first `sectors` are there.
fn time_of(arrivals: &[Arrivals], mut sectors: u64) -> u64 {
    let mut time = 0;
    for part in arrivals {
        if sectors == 0 {
            break;
        }
        time = time.max(part.time_of(sectors.min(part.sectors)));
        sectors -= sectors.min(part.sectors);
    }
    time
}

/// How many sectors are there, up to the first one that is not.
fn there_at(arrivals: &[Arrivals], time: u64) -> u64 {
    let mut count = 0;
    for part in arrivals {
        let there = part.there_at(time);
        count += there;
        if there < part.sectors {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Link = Link {
        connected: false,
        from: 0,
        per_sector: 100,
        water_mark: 1,
        hold: false,
        connect: 0,
        disconnect: 0,
    };

    /// 4 sectors, one each 25, the first complete at 1,025.
    const FAST: [Arrivals; 1] = [Arrivals { sectors: 4, from: 1_000, period: 100, per_period: 4 }];

    #[test]
    fn a_slow_bus_starts_with_the_first_sector() {
        assert_eq!(PLAIN.end_of_transfer(&FAST), 1_025 + 4 * 100);
        assert_eq!(Link { from: 2_000, ..PLAIN }.end_of_transfer(&FAST), 2_400);
    }

    #[test]
    fn a_fast_bus_ends_with_the_last_sector() {
        assert_eq!(Link { per_sector: 10, ..PLAIN }.end_of_transfer(&FAST), 1_100 + 10);
        let parts = [FAST[0], Arrivals { from: 5_000, ..FAST[0] }];
        assert_eq!(Link { per_sector: 10, ..PLAIN }.end_of_transfer(&parts), 5_100 + 10);
    }

    #[test]
    fn the_water_mark_delays_the_start() {
        assert_eq!(Link { water_mark: 4, ..PLAIN }.end_of_transfer(&FAST), 1_100 + 400);
        assert_eq!(Link { water_mark: 9, ..PLAIN }.end_of_transfer(&FAST), 1_100 + 400);
    }

    #[test]
    fn every_reconnection_costs() {
        // Connects at 1,025 + 5, sends one (1,030 to 1,040), leaves (1,042), connects at 1,050 + 5, and so on.
        let link = Link { per_sector: 10, connect: 5, disconnect: 2, ..PLAIN };
        assert_eq!(link.end_of_transfer(&FAST), 1_100 + 5 + 10);
        assert_eq!(Link { hold: true, ..link }.end_of_transfer(&FAST), 1_100 + 10);
    }

    #[test]
    fn rounding_never_stalls() {
        // 7 sectors in 100: sector n is there at 100 n / 7, rounded down, at which time n must be counted.
        let parts = [Arrivals { sectors: 7, from: 0, period: 100, per_period: 7 }];
        assert!((1..=7).all(|n| there_at(&parts, time_of(&parts, n)) == n));
        let link = Link { per_sector: 0, water_mark: 3, ..PLAIN };
        assert_eq!(link.end_of_transfer(&parts), 100);
    }

    #[test]
    fn what_is_there_goes_at_once() {
        let parts = [Arrivals::at_once(2, 0), FAST[0]];
        let link = Link { connected: true, from: 500, ..PLAIN };
        assert_eq!(link.end_of_transfer(&parts), 1_025 + 400);
        let link = Link { connected: true, from: 950, ..PLAIN };
        assert_eq!(link.end_of_transfer(&parts), 950 + 600);
    }
}
