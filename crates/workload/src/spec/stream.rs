//! One stream of requests: what it asks for, where, and when.

use serde::{Deserialize, Serialize};
use tier0_units::{ByteCount, SECTOR_BYTES};

use super::{Arrival, BlockMix, Pattern, Portion, SpecError, ThinkTime, ZIPF_THETA_MAX};

/// The most users of a stream, and the most requests that one keeps outstanding.
const POPULATION_MAX: u32 = 1 << 20;

/// The largest request, 64 MiB: more than any host sends in one command.
const BLOCK_SIZE_MAX: ByteCount = ByteCount::mib(64);

/// A stream of requests of one access profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StreamSpec {
    /// The name by which reports call it.
    pub name: String,
    /// Sizes of the requests; multiples of a sector (512 bytes).
    pub block: BlockMix,
    /// Reads in percent of the requests, 0 to 100.
    pub read_percent: f64,
    /// Where the requests go.
    pub pattern: Pattern,
    /// Where the range begins; a share of the target is rounded down to whole MiB.
    pub start: Portion,
    /// How long the range is; up to the end of the target where absent. `40%` is a fill of 40 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<Portion>,
    /// Addresses, counted from the range's start, are multiples of this; each request's own size where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<ByteCount>,
    /// The pieces in which a skewed pattern is scattered over the range. Where absent, zipf scatters single
    /// blocks and hot-cold nothing: its hot space is the start of the range. Larger pieces keep neighbours in
    /// rank neighbours in address, as tables and indexes do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scatter: Option<ByteCount>,
    /// Writes are answered once they are stable (forced unit access), as a database's log demands.
    pub durable: bool,
    /// When the requests come.
    pub arrival: Arrival,
}

impl Default for StreamSpec {
    /// 8 KiB random, 70 % reads, over the whole target, one user: the proportions that stand for most OLTP.
    fn default() -> StreamSpec {
        StreamSpec {
            name: "load".to_owned(),
            block: BlockMix::default(),
            read_percent: 70.0,
            pattern: Pattern::default(),
            start: Portion::NONE,
            length: None,
            alignment: None,
            scatter: None,
            durable: false,
            arrival: Arrival::default(),
        }
    }
}

impl StreamSpec {
    /// Checks every field by itself; what depends on a target is checked when the load meets it.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        self.validate_sizes()?;
        self.require(
            (0.0..=100.0).contains(&self.read_percent),
            "read_percent",
            self.read_percent,
            "0 to 100",
        )?;
        self.validate_pattern()?;
        self.validate_arrival()
    }

    fn require(
        &self,
        holds: bool,
        field: &'static str,
        value: impl ToString,
        allowed: &'static str,
    ) -> Result<(), SpecError> {
        if holds {
            return Ok(());
        }
        Err(SpecError::StreamField { stream: self.name.clone(), field, value: value.to_string(), allowed })
    }

    fn validate_sizes(&self) -> Result<(), SpecError> {
        let whole_sectors = |bytes: ByteCount| bytes.0 > 0 && bytes.0.is_multiple_of(SECTOR_BYTES);
        for block in self.block.blocks() {
            let allowed = "a multiple of 512B, at most 64MiB";
            let holds = whole_sectors(block.size) && block.size <= BLOCK_SIZE_MAX;
            self.require(holds, "a size in block", format!("{:#}", block.size), allowed)?;
        }
        let any_weight = self.block.blocks().iter().any(|block| block.weight > 0);
        self.require(any_weight, "the sum of weights in block", 0, "more than 0")?;
        for (field, value) in [("alignment", self.alignment), ("scatter", self.scatter)] {
            let value = value.unwrap_or(ByteCount(SECTOR_BYTES));
            self.require(whole_sectors(value), field, format!("{value:#}"), "a multiple of 512B")?;
        }
        Ok(())
    }

    fn validate_pattern(&self) -> Result<(), SpecError> {
        match self.pattern {
            Pattern::Random | Pattern::Sequential => Ok(()),
            Pattern::Zipf { theta } => {
                let holds = theta > 0.0 && theta <= ZIPF_THETA_MAX;
                self.require(holds, "the exponent of zipf", theta, "more than 0, at most 10")
            }
            Pattern::HotCold { access_percent, space_percent } => {
                let holds = (0.0..=100.0).contains(&access_percent);
                self.require(holds, "the accesses of hot-cold", access_percent, "0 to 100")?;
                let holds = space_percent > 0.0 && space_percent < 100.0;
                self.require(holds, "the space of hot-cold", space_percent, "more than 0, less than 100")
            }
        }
    }

    fn validate_arrival(&self) -> Result<(), SpecError> {
        let population = 1..=POPULATION_MAX;
        match self.arrival {
            Arrival::ClosedLoop(closed) => {
                let allowed = "1 to 1048576";
                self.require(population.contains(&closed.users), "users", closed.users, allowed)?;
                self.require(
                    population.contains(&closed.queue_depth),
                    "queue_depth",
                    closed.queue_depth,
                    allowed,
                )?;
                let slots = u64::from(closed.users) * u64::from(closed.queue_depth);
                let holds = slots <= u64::from(POPULATION_MAX);
                self.require(holds, "users times queue_depth", slots, "at most 1048576")?;
                let zero = ThinkTime::Exponential(tier0_units::Nanos::ZERO);
                self.require(
                    closed.think_time != zero,
                    "think_time",
                    closed.think_time,
                    "none, or a mean above 0",
                )
            }
            Arrival::OpenLoop(open) => {
                let holds = open.rate_iops > 0.0 && open.rate_iops <= 1e9;
                self.require(holds, "rate_iops", open.rate_iops, "more than 0, at most 1e9")?;
                let holds = population.contains(&open.outstanding_max);
                self.require(holds, "outstanding_max", open.outstanding_max, "1 to 1048576")
            }
        }
    }
}
