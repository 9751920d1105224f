//! An array of a description in virtual time, under a load: its drives are the catalogue's models.
//!
//! Nothing real is opened or written.

use serde::Serialize;
use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, SimulatedOptions, build};
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_lab::profile::{ProfileError, ProfilePlan, ProfileProgress, ProfileReport, profile_array};
use tier0_lab::settle::{Course, Settled, measure, settle};
use tier0_units::ByteCount;
use tier0_workload::spec::LoadSpec;
use tier0_workload::stats::LoadReport;
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::driving::Shown;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::unwritten;

/// What a load on a simulated array gave.
pub(crate) struct Simulated {
    /// The figures.
    pub(crate) report: LoadReport,
    /// Whether they are of a steady state.
    pub(crate) state: ArrayState,
}

/// Whether an array is brought into the steady state of a load before that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settling {
    /// It is not.
    Not,
    /// Until it is steady, or for the longest time that helps.
    Whole,
    /// The same, but for so many requests at most in each step.
    UpTo(u64),
}

/// Whether a measurement was of a steady state.
#[derive(Serialize)]
pub(crate) struct ArrayState {
    /// Nothing where it was too short to tell.
    is_steady: Option<bool>,
    /// Requests waited longer and longer: they came faster than the array answered them.
    is_behind: bool,
    /// How the array was settled before; nothing where it was not.
    settled: Option<Settled>,
    #[serde(flatten)]
    course: Course,
}

impl ArrayState {
    /// All of it in a sentence of a line.
    pub(crate) fn sentence(&self) -> String {
        let settled = self.settled.as_ref();
        let rates = self.course.hit_rates().map_or(String::new(), |rates| format!("; {rates}"));
        let how = settled.map_or_else(|| "the array was not settled before".to_owned(), Settled::words);
        if self.is_behind {
            return format!("not a steady state: requests queued up; lower the rate{rates}");
        }
        match (self.is_steady, settled) {
            (Some(true), _) => format!("steady state: {how}{rates}"),
            (Some(false), settled) => {
                let remedy = match settled {
                    Some(_) => "measure for longer (--time)",
                    None => "leave --warm-up out to have the array settled, or raise it",
                };
                format!("not a steady state: {}; {how}; {remedy}{rates}", self.course.moved.join("; "))
            }
            (None, Some(_)) => format!("too short to see whether the state stayed steady: {how}{rates}"),
            (None, None) => format!("too short to see whether the state is steady: {how}{rates}"),
        }
    }
}

/// An array ready to be simulated any number of times.
pub(crate) struct Twin {
    description: Description,
    shelf: ModelShelf,
    read_cache: Option<ByteCount>,
}

impl Twin {
    /// Prepares the models that the array's drives need. With a size for its read cache, what was read stays in memory.
    pub(crate) fn new(
        catalog: &Catalog,
        description: Description,
        read_cache: Option<ByteCount>,
    ) -> Result<Twin, Failure> {
        let mut shelf = ModelShelf::default();
        shelf.prepare(catalog, &description)?;
        Ok(Twin { description, shelf, read_cache })
    }

    /// Runs `load` on the volume called `volume`, or on the first, of a fresh array, which is settled first as `settling` says.
    pub(crate) fn load(
        &self,
        volume: Option<&str>,
        load: LoadSpec,
        settling: Settling,
        signals: &Signals,
        shown: Shown,
    ) -> Result<Simulated, Failure> {
        let width = if load.verify.is_some() { PayloadWidth::REAL } else { PayloadWidth::NONE };
        let (runtime, volume) = self.build(volume, load.seed, width)?;
        let world = runtime.world().clone();
        let look = shown.look(signals);
        runtime.run(async move {
            unwritten::tell(
                &volume,
                &load,
                "remove thin from the array file: thick volumes are fully mapped",
            )
            .await;
            let settle = async |ios_max| {
                let settled = settle(&world, &volume, &load, true, ios_max, Box::new(look.clone())).await;
                settled.map(Some).map_err(Failure::input)
            };
            let settled = match settling {
                Settling::Whole => settle(None).await?,
                Settling::UpTo(ios_max) => settle(Some(ios_max)).await?,
                Settling::Not => None,
            };
            let go_on = move |_: &_| look("");
            let measured = measure(&world, &volume, load, go_on, shown.listener()).await;
            let (mut report, course) = measured.map_err(Failure::input)?;
            if settled.is_some() {
                // The course tells whether its measurement was steady.
                report.transient_s = None;
            }
            let is_behind = report.rate.as_ref().is_some_and(|rate| rate.is_behind);
            let is_steady = if is_behind { Some(false) } else { course.is_steady() };
            Ok(Simulated { report, state: ArrayState { is_steady, is_behind, settled, course } })
        })
    }

    /// Searches how many I/Os per second the volume called `volume`, or the first, gives within a latency limit.
    pub(crate) fn profile(
        &self,
        volume: Option<&str>,
        plan: ProfilePlan,
        signals: &Signals,
        shown: Shown,
        progress: impl FnMut(&ProfileProgress) + 'static,
    ) -> Result<Result<ProfileReport, ProfileError>, Failure> {
        let (runtime, volume) = self.build(volume, plan.seed, PayloadWidth::NONE)?;
        let world = runtime.world().clone();
        let look = shown.look(signals);
        Ok(runtime.run(async move { profile_array(&world, &volume, &plan, progress, look).await }))
    }

    /// A fresh array in a world of its own, its volumes full, and the volume called `volume` or its first.
    pub(crate) fn build(
        &self,
        volume: Option<&str>,
        seed: u64,
        width: PayloadWidth,
    ) -> Result<(VirtualRuntime, Volume), Failure> {
        let runtime = VirtualRuntime::new(seed, width);
        let options = SimulatedOptions { read_cache: self.read_cache, ..Born::Full.into() };
        let building = build(runtime.world(), &self.description, &self.shelf, options, |_, drive| drive);
        let array = runtime.run(building)?;
        let volume = self.choose(array.volumes, volume)?;
        Ok((runtime, volume))
    }

    fn choose(&self, volumes: Vec<Volume>, name: Option<&str>) -> Result<Volume, Failure> {
        let array = &self.description.name;
        let names: Vec<String> = volumes.iter().map(|volume| volume.name().to_string()).collect();
        let chosen = volumes.into_iter().find(|volume| name.is_none_or(|name| *volume.name() == *name));
        chosen.ok_or_else(|| {
            Failure::Input(match name {
                Some(name) => {
                    format!("array {array} has no volume {name:?}; its volumes are {}", names.join(", "))
                }
                None => format!("array {array} has no volume; add a [[volume]] to its file"),
            })
        })
    }
}
