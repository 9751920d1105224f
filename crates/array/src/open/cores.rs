//! On how many shards an array runs: as the description says, where the write log can be cut into so many parts.

use std::sync::Arc;

use tier0_description::{Description, Mismatch};
use tier0_drive::DriveHandle;
use tier0_pool::metadata::survey_without;
use tier0_units::{Nanos, counted};
use tier0_world::{RealOptions, RealRuntime, World};
use uuid::Uuid;

use super::consent::Consents;
use super::examine::examine;
use super::{Kind, Medium, OpenArray, ToOpen};
use crate::ArrayError;
use crate::engine::Repartition;
use crate::open::medium::guarded_drive;
use crate::repartition::repartition;

/// How long what the engine that emptied the log has given to the drives may take to end. A drive that takes longer for a
/// command was called lost, and its command goes on.
const SETTLE_LIMIT: Nanos = Nanos::from_secs(30);

/// Shards for an array: what the description says, else one per core; one where drives are modelled, because a
/// mechanism cannot be in two threads.
pub(super) fn cores_of<'a>(
    description: &Description,
    mut media: impl Iterator<Item = &'a Arc<Medium>>,
) -> Result<usize, ArrayError> {
    let machine = std::thread::available_parallelism().map_or(1, usize::from);
    let modelled = media.find(|medium| medium.is_modelled());
    match (modelled, description.cores) {
        (Some(medium), Some(cores)) if cores > 1 => Err(ArrayError::Unusable {
            drive: medium.name().to_owned(),
            fact: "is modelled, and the array must run on one core; set array.cores = 1".into(),
        }),
        (Some(_), _) => Ok(1),
        (None, cores) => Ok(cores.unwrap_or(machine)),
    }
}

/// What is told where an array runs on as many shards as before, and not on those that are `wanted`.
pub(super) fn kept_text(before: usize, wanted: usize, why: &str) -> String {
    format!("the array still runs on {before} shards instead of {wanted} (array.cores): {why}")
}

impl OpenArray {
    /// Splits the write log again if the description asks for another number of shards, or if a group has no lane of its own yet.
    /// Before that, everything in the log is destaged. If the log cannot be split, the array runs as before, and a warning says why.
    ///
    /// # Errors
    /// When the log cannot be emptied, or a drive does not end what it was given for that. The log is as it was, or void, and
    /// the array can be opened again, by another process.
    pub fn adopt_cores(&mut self) -> Result<(), ArrayError> {
        let Kind::Lasting { media, pools, consents } = &self.kind else { return Ok(()) };
        let wanted = self.cores_wanted;
        if self.pools.iter().all(|pool| pool.log_parts == wanted && !pool.lacks_lanes) {
            return Ok(());
        }
        tracing::info!(
            "emptying and re-creating the write log, for {wanted} shards (before: {}) and a lane for each group",
            self.cores
        );
        let (name, media, pools, consents) =
            (self.name.clone(), media.clone(), pools.clone(), consents.clone());
        let runtime = RealRuntime::new(&RealOptions::default()).map_err(|source| ArrayError::System {
            what: "the real world cannot be opened".into(),
            source,
        })?;
        let world = runtime.world().clone();
        let done = runtime.run(async move {
            let pools = examine_all(&world, &name, &media, &pools, &consents).await?;
            repartition(&world, pools, wanted, Uuid::new_v4).await
        });
        // The engine that is about to start writes the same places: an old write must not come after one of its own.
        match runtime.settle(SETTLE_LIMIT) {
            0 => {}
            left => return Err(ArrayError::Unsettled { left: counted(left as u64, "command") }),
        }
        match done? {
            Repartition::Done => self.cores = wanted,
            Repartition::Kept(why) => self.warnings.push(kept_text(self.cores, wanted, &why)),
        }
        Ok(())
    }
}

async fn examine_all(
    world: &World,
    array: &str,
    media: &[Arc<Medium>],
    pools: &[ToOpen],
    consents: &Consents,
) -> Result<Vec<tier0_pool::metadata::Inspected>, ArrayError> {
    let drives = media.iter().map(|medium| guarded_drive(medium, world));
    let drives: Vec<DriveHandle> = drives.collect::<Result<_, _>>()?;
    let mut found = survey_without(drives, &consents.without).await.pools;
    let mut examined = Vec::new();
    for ToOpen { id, .. } in pools {
        let place = found.iter().position(|pool| pool.label.pool == *id);
        let place = place.ok_or_else(|| Mismatch::NoPool { pool: array.to_owned() })?;
        examined.push(examine(world, found.remove(place), consents).await?);
    }
    Ok(examined)
}
