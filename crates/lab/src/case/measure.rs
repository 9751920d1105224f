//! A case in a world of its own: the database at work, and what was busy meanwhile.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::{join, join_all};
use tier0_array::Volume;
use tier0_catalog::Catalog;
use tier0_database::run::{DatabaseError, DatabaseReport, DatabaseSpec, RunHooks, run};
use tier0_database::storage::{Placement, VolumeIo};
use tier0_units::{ByteCount, Lba};
use tier0_workload::run::{LoadRun, RunError, StopHandle};
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, Task, VirtualRuntime, World};

use super::assemble::{Site, assemble};
use super::{Beside, BesideWork, Case, CaseReport};
use crate::LabError;
use crate::path::Group;
use crate::settle::Modelled;
use crate::work::Work;

impl Case {
    /// Runs the case in virtual time, with the seed that it names or else `seed`.
    ///
    /// # Errors
    /// The array or the database cannot run.
    pub fn measure(&self, catalog: &Catalog, seed: u64) -> Result<CaseReport, LabError> {
        let seed = self.seed.unwrap_or(seed);
        let catalog = &self
            .shrunk
            .catalog(catalog)
            .map_err(|source| LabError::Shrink { case: self.name.clone(), source })?;
        let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
        let world = runtime.world().clone();
        let site = Site {
            name: &self.name,
            system: &self.system,
            front_end: self.front_end.as_ref(),
            read_cache: self.system.memory,
        };
        let array = assemble(&runtime, &site, catalog)?;
        let (case, volumes) = (self.clone(), array.volumes.clone());
        let warm = volumes.clone();
        let caches = self.caches();
        let measured = runtime.run(async move {
            let before = Cell::new(None);
            let hooks = RunHooks {
                caches,
                missed: &|volume: usize, lba: Lba, sectors: u64| warm[volume].bring_in(lba, sectors, true),
                begins: &mut || before.set(Some((array.usage(world.now()), world.now()))),
            };
            let start = array.counters().await;
            let loads = start_loads(&world, &case, &volumes, seed).map_err(Failed::Load)?;
            let others = case.beside.iter().enumerate().filter_map(|(number, beside)| match &beside.work {
                BesideWork::Database(spec, placement) => {
                    let (spec, seed) = ((**spec).clone(), seed_of(seed, number));
                    Some(run_beside(&world, &case, spec, placement, &volumes, seed))
                }
                BesideWork::Load(..) => None,
            });
            let (world, database) = (&world, case.database.clone());
            let main = run(world, database, volumes.clone(), &case.placement, case.length, seed, hooks);
            let (report, others) = join(main, join_all(others)).await;
            loads.iter().for_each(|(stop, _)| stop.stop());
            for (_, load) in loads {
                if let Some(fact) = load.await.errors.first {
                    return Err(Failed::Ended(fact));
                }
            }
            let report = report.map_err(Failed::Database)?;
            let others = others.into_iter().collect::<Result<Vec<_>, _>>().map_err(Failed::Database)?;
            let now = world.now();
            let after = array.usage(now);
            let usage = match before.take() {
                Some((usage, then)) => after.since(now, &usage, then),
                None => after,
            };
            let work = Work::between(&start, &array.counters().await);
            Ok((report, others, usage, work))
        });
        let configuration = self.name.clone();
        let (database, others, usage, work) = measured.map_err(|failed| match failed {
            Failed::Database(source) => LabError::Database { case: configuration, source },
            Failed::Load(source) => LabError::Load { configuration, source: Box::new(source) },
            Failed::Ended(fact) => LabError::Ended { configuration, fact },
        })?;
        let mut io = VolumeIo::default();
        for report in std::iter::once(&database).chain(&others) {
            for volume in &self.counted {
                io.reads.merge(&report.volumes[*volume].reads);
                io.writes.merge(&report.volumes[*volume].writes);
            }
        }
        let is_database = |beside: &&Beside| matches!(beside.work, BesideWork::Database(..));
        let names = self.beside.iter().filter(is_database).map(|beside| beside.name.clone());
        let beside: Vec<_> = names.zip(others).collect();
        let summed = beside.iter().filter(|_| self.is_sum).map(|(_, report)| report);
        let of_all = |rate: fn(&DatabaseReport) -> f64| {
            std::iter::once(&database).chain(summed.clone()).map(rate).sum::<f64>()
        };
        let hardware = self.hardware(catalog, &usage)?;
        let (per_s, headline_per_s) = (of_all(|report| report.per_s), of_all(|report| report.headline_per_s));
        let counted_per_s = if self.tpm_is_headline { headline_per_s } else { per_s };
        Ok(CaseReport { database, beside, io, per_s, counted_per_s, usage, work, hardware })
    }

    /// What the array's read caches hold, in memory and on flash.
    fn caches(&self) -> ByteCount {
        let flash: u64 =
            self.system.pools.iter().filter_map(|pool| pool.flash_cache.bytes).map(|size| size.0).sum();
        ByteCount(flash + self.system.memory.unwrap_or_default().0)
    }
}

/// Why a case has no report.
enum Failed {
    Database(DatabaseError),
    Load(RunError),
    Ended(String),
}

/// The seed of what runs beside the database, by its place.
fn seed_of(seed: u64, number: usize) -> u64 {
    seed ^ (number as u64 + 1) << 40
}

/// Starts the loads beside the database of a case; each runs until its handle stops it.
fn start_loads(
    world: &World,
    case: &Case,
    volumes: &[Rc<Group<Volume>>],
    seed: u64,
) -> Result<Vec<(StopHandle, Task<LoadReport>)>, RunError> {
    let loads = case.beside.iter().enumerate().filter_map(|(number, beside)| match &beside.work {
        BesideWork::Load(load, volume) => {
            let load = LoadSpec { seed: seed_of(seed, number), ..(**load).clone() };
            Some(LoadRun::new(world, volumes[*volume].clone(), load))
        }
        BesideWork::Database(..) => None,
    });
    loads.map(|load| load.map(|load| (load.stop_handle(), world.spawn(load.run())))).collect()
}

/// Runs a database beside that of a case, as long as it.
async fn run_beside(
    world: &World,
    case: &Case,
    spec: DatabaseSpec,
    placement: &Placement,
    volumes: &[Rc<Group<Volume>>],
    seed: u64,
) -> Result<DatabaseReport, DatabaseError> {
    let hooks = RunHooks {
        caches: case.caches(),
        missed: &|volume: usize, lba: Lba, sectors: u64| volumes[volume].bring_in(lba, sectors, true),
        begins: &mut || {},
    };
    run(world, spec, volumes.to_vec(), placement, case.length, seed, hooks).await
}
