//! A case in a world of its own: the database at work, and what was busy meanwhile.

use std::cell::Cell;

use tier0_catalog::Catalog;
use tier0_database::run::{DatabaseError, RunHooks, run};
use tier0_database::storage::VolumeIo;
use tier0_units::{ByteCount, Lba};
use tier0_world::{PayloadWidth, VirtualRuntime};

use super::assemble::assemble;
use super::{Case, CaseReport, drives_of};
use crate::LabError;
use crate::path::Usage;
use crate::settle::Modelled;
use crate::work::{Counters, Work};

impl Case {
    /// Runs the case in virtual time, with the seed that it names or else `seed`.
    ///
    /// # Errors
    /// The array or the database cannot run.
    pub fn measure(&self, catalog: &Catalog, seed: u64) -> Result<CaseReport, LabError> {
        let seed = self.seed.unwrap_or(seed);
        let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let array = assemble(&runtime, self, catalog)?;
        let (case, volumes) = (self.clone(), array.volumes.clone());
        let group = array.volumes[0].clone();
        let kinds = array.kinds.clone();
        let back_end = array.back_end.clone();
        let engine = array.engine.clone();
        let counters = move || {
            let (back_end, engine) = (back_end.clone(), engine.clone());
            async move {
                let mut counters = Counters::default();
                counters.add(&engine.io_report().await, &back_end.drive_stats());
                counters
            }
        };
        let warm = volumes.clone();
        let caches = self.caches();
        let measured = runtime.run(async move {
            let before = Cell::new(None);
            let hooks = RunHooks {
                caches,
                missed: &|volume: usize, lba: Lba, sectors: u64| warm[volume].bring_in(lba, sectors, true),
                begins: &mut || before.set(Some((Usage::of(&group, &kinds, world.now()), world.now()))),
            };
            let start = counters().await;
            let report =
                run(&world, case.database, volumes, &case.placement, case.length, seed, hooks).await?;
            let now = world.now();
            let after = Usage::of(&group, &kinds, now);
            let usage = match before.take() {
                Some((usage, then)) => after.since(now, &usage, then),
                None => after,
            };
            let usage = named(usage, &kinds);
            let work = Work::between(&start, &counters().await);
            Ok::<_, DatabaseError>((report, usage, work))
        });
        let (database, usage, work) =
            measured.map_err(|source| LabError::Database { case: self.name.clone(), source })?;
        let mut io = VolumeIo::default();
        for volume in &self.counted {
            io.reads.merge(&database.volumes[*volume].reads);
            io.writes.merge(&database.volumes[*volume].writes);
        }
        let counted_per_s = if self.tpm_is_headline { database.headline_per_s } else { database.per_s };
        Ok(CaseReport { database, io, counted_per_s, usage, work })
    }

    /// What the array's read caches hold, in memory and on flash.
    fn caches(&self) -> ByteCount {
        let flash: u64 =
            self.system.pools.iter().filter_map(|pool| pool.flash_cache.bytes).map(|size| size.0).sum();
        ByteCount(flash + self.system.memory.unwrap_or_default().0)
    }
}

/// Drives by their models' names.
fn named(mut usage: Usage, kinds: &[String]) -> Usage {
    let first = usage.rows.len() - kinds.len();
    for (row, kind) in usage.rows[first..].iter_mut().zip(kinds) {
        row.resource = drives_of(kind);
    }
    usage
}
