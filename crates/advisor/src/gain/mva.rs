//! A closed network by approximate mean value analysis (Bard and Schweitzer): how fast do so many customers go round processors,
//! storage and everything else?
//!
//! The number of customers need not be whole: it is a mean number of sessions at work, found by Little's law.

/// Rounds until the fixed point is reached; it takes some dozens.
const ROUNDS: usize = 2000;
/// When it is reached.
const CLOSE: f64 = 1e-10;

/// What a customer needs on one way round, in seconds or any other unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Queues: demand, and how many servers share it. Several servers are one of as much less demand, and a delay for the rest
    /// (Seidmann).
    pub queues: Vec<(f64, f64)>,
    /// Time without queueing.
    pub delay: f64,
}

/// What comes out.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Customers per unit of time.
    pub throughput: f64,
    /// Time at each queue, service included.
    pub residence: Vec<f64>,
}

impl Network {
    /// The flow of `customers`.
    pub fn flow(&self, customers: f64) -> Flow {
        let customers = customers.max(1e-9);
        let servers = |servers: f64| servers.max(1.0);
        let fixed: f64 = self.delay
            + self
                .queues
                .iter()
                .map(|(demand, of)| demand * (servers(*of) - 1.0) / servers(*of))
                .sum::<f64>();
        // Fewer than one customer never meet.
        let others = ((customers - 1.0) / customers).max(0.0);
        let mut lengths: Vec<f64> = vec![customers / (self.queues.len() + 1) as f64; self.queues.len()];
        let mut throughput = 0.0;
        for _ in 0..ROUNDS {
            let waits: Vec<f64> = self
                .queues
                .iter()
                .zip(&lengths)
                .map(|((demand, of), length)| demand / servers(*of) * (1.0 + others * length))
                .collect();
            let round = (fixed + waits.iter().sum::<f64>()).max(1e-12);
            throughput = customers / round;
            let next: Vec<f64> = waits.iter().map(|wait| throughput * wait).collect();
            let moved =
                next.iter().zip(&lengths).map(|(next, before)| (next - before).abs()).fold(0.0, f64::max);
            lengths = next;
            if moved < CLOSE {
                break;
            }
        }
        let residence =
            self.queues.iter().zip(&lengths).map(|((demand, of), length)| {
                length / throughput + demand * (servers(*of) - 1.0) / servers(*of)
            });
        Flow { throughput, residence: residence.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact mean value analysis of single servers and a delay.
    fn exact(demands: &[f64], delay: f64, customers: usize) -> f64 {
        let mut lengths = vec![0.0; demands.len()];
        let mut throughput = 0.0;
        for n in 1..=customers {
            let waits: Vec<f64> =
                demands.iter().zip(&lengths).map(|(demand, length)| demand * (1.0 + length)).collect();
            throughput = n as f64 / (delay + waits.iter().sum::<f64>());
            lengths = waits.iter().map(|wait| throughput * wait).collect();
        }
        throughput
    }

    #[test]
    fn it_is_near_the_exact_analysis() {
        for (demands, delay) in [(vec![1.0, 0.3], 2.0), (vec![0.5, 0.5, 0.5], 0.0), (vec![1.0], 10.0)] {
            for customers in [1, 2, 5, 20, 80] {
                let exact = exact(&demands, delay, customers);
                let queues = demands.iter().map(|demand| (*demand, 1.0)).collect();
                let found = Network { queues, delay }.flow(customers as f64).throughput;
                let off = (found / exact - 1.0).abs();
                assert!(off < 0.08, "{demands:?}, {customers}: {found} and not {exact}");
            }
        }
    }

    #[test]
    fn it_keeps_the_bounds() {
        let network = Network { queues: vec![(1.0, 4.0), (0.2, 1.0)], delay: 3.0 };
        for customers in [0.3, 1.0, 7.5, 1000.0] {
            let flow = network.flow(customers);
            assert!(flow.throughput <= 4.0 + 1e-6 && flow.throughput <= customers / 4.2 + 1e-9);
            let round = 3.0 + flow.residence.iter().sum::<f64>();
            assert!((flow.throughput * round / customers - 1.0).abs() < 1e-6, "Little's law");
        }
    }
}
