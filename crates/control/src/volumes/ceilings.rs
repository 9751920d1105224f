//! Ceilings of volumes, changed while the array serves: first the metadata, then every shard.

use std::sync::Arc;

use tier0_pool::{Ceilings, CeilingsChange, MetaRecord};
use tier0_units::{Nanos, counted};
use tier0_volume::{Budget, Rates};

use super::Volumes;
use super::lifecycle::Meant;
use crate::admin::{AdminError, ceilings_told};
use crate::context::Done;
use crate::message::volumes::VolumesCommand;

/// The budget of a volume with these ceilings, with nothing saved at `now`; none without.
pub fn budget_of(ceilings: Ceilings, now: Nanos) -> Option<Arc<Budget>> {
    let rates = Rates {
        requests: u64::from(ceilings.iops_max),
        bytes: u64::from(ceilings.mbps_max) * 1_000_000,
        burst: Nanos::from_secs(u64::from(ceilings.burst_seconds)),
    };
    (!ceilings.are_none()).then(|| Arc::new(Budget::new(rates, now)))
}

impl Volumes {
    /// Changes the ceilings of a volume, as far as something is said.
    pub(crate) async fn set_ceilings(&self, name: &str, change: CeilingsChange) -> Done {
        if change == CeilingsChange::default() {
            return Err(AdminError::new("no property given; set iops.max, mbps.max or burst"));
        }
        check(change)?;
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        let core = self.core(pool);
        let known = core.metadata.state().ceilings(record.number);
        let wanted = change.of(known);
        if wanted.are_none() && change.burst_seconds.is_some_and(|seconds| seconds > 0) {
            return Err(AdminError::new(format!(
                "volume {name} has no ceiling that a burst could exceed; set iops.max or mbps.max with it"
            )));
        }
        let Some(limited) = MetaRecord::limit(record.number, known, change) else {
            return Err(AdminError::unchanged(format!(
                "volume {name}: {} already; nothing changed",
                ceilings_told(known)
            )));
        };
        core.metadata.commit(vec![limited]).await.map_err(AdminError::from)?;
        let budget = budget_of(wanted, self.world.common_time());
        self.command(|reply| VolumesCommand::SetBudget { number, budget: budget.clone(), reply }).await?;
        Ok(format!("volume {name}: {} from now on", ceilings_told(wanted)))
    }
}

/// Whether each ceiling can be one.
fn check(change: CeilingsChange) -> Result<(), AdminError> {
    let CeilingsChange { iops_max, mbps_max, burst_seconds } = change;
    let most = Ceilings::MOST;
    let all = [
        ("iops.max", iops_max, most.iops_max, "request"),
        ("mbps.max", mbps_max, most.mbps_max, "megabyte"),
        ("burst", burst_seconds, most.burst_seconds, "second"),
    ];
    match all.into_iter().find(|(_, value, most, _)| value.is_some_and(|value| value > *most)) {
        Some((key, _, most, unit)) => Err(AdminError::new(format!(
            "{key} is at most {}; set less, or 0 for none",
            counted(u64::from(most), unit)
        ))),
        None => Ok(()),
    }
}
