//! Whether a pool may start without drives that could have gone on without those that are there, which may be stale then
//! (decision 0008, "Consent"): the administrator names them, or a witness knows that they have not gone on. Where a
//! witness knows that the pool had come further than the drives that are there, those are older images, and the start
//! takes consent in any case.

use tier0_control::{SplitRecord, Witness};
use tier0_description::names::quoted;
use tier0_plan::{ConsentNeeded, PoolShape, could_go_on};
use tier0_pool::metadata::Inspected;
use tier0_pool::{Member, MemberState};
use tier0_raid::set::RaidSets;
use tier0_world::{PlantedBug, World, planted};

use crate::ArrayError;

/// By how many generations a witness may be behind the drives: what may come together within the seconds in which it is not
/// told, as one loss for each of some drives does. Hosts that write make a quarter of an hour of as many.
const LAG_MAX: u64 = 16;

/// Who decides that drives are done without.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consents {
    /// Drives that the administrator consents to start without, by name or by where they lie.
    pub(crate) without: Vec<String>,
    /// Who knows which drives a pool went on without.
    pub(crate) witness: Option<Witness>,
}

impl Consents {
    /// The administrator consents to start without these drives, and no witness is asked.
    pub(crate) fn to_do_without(drives: &[String]) -> Consents {
        Consents { without: drives.to_vec(), witness: None }
    }

    /// What is wrong with the witness, if there is one, and what to do.
    pub(super) async fn witness_fault(&self, world: &World) -> Option<String> {
        self.witness.as_ref()?.check(world).await.err()
    }

    /// Whether a pool may go on without what is missing. Nothing is written.
    pub(super) async fn check(
        &self,
        world: &World,
        inspected: &Inspected,
        sets: &RaidSets,
    ) -> Result<(), ArrayError> {
        let consent = check_consent(inspected, sets, |member| inspected.is_done_without(member));
        let Some(witness) = &self.witness else { return consent };
        let state = inspected.state();
        let others = unnamed_others(inspected);
        if others.is_empty() {
            return consent;
        }
        let hint = match witness.known(world, state.id()).await {
            Ok(Some(known)) => {
                let serve: Vec<_> = state.members().iter().filter(|member| member.is_active()).collect();
                let behind: Vec<_> =
                    serve.iter().filter(|member| known.without.contains(&member.id)).collect();
                // Where some of those that went on are here too, what was left behind has been taken back.
                let is_behind = behind.len() == serve.len() || (consent.is_err() && !behind.is_empty());
                let has = inspected.counting_generation();
                match (is_behind, has >= known.generation) {
                    // It may have been put back to before it heard that these were left behind.
                    (false, true) if consent.is_err() && is_outdated(known.generation, has) => format!(
                        "the witness has seen generation {} of the pool, but the connected drives have \
                         {has}: the witness file was restored to an older state, or was not writable for long",
                        known.generation
                    ),
                    (false, true) => return Ok(()),
                    (false, false) => {
                        return Err(ArrayError::Older {
                            pool: state.name().to_owned(),
                            has,
                            had: known.generation,
                            drives: quoted(others.iter().map(String::as_str)),
                            options: options(&others),
                        });
                    }
                    (true, _) => {
                        let behind = quoted(behind.into_iter().map(|member| &*member.name));
                        let hint =
                            format!("according to the witness, the other drives continued without {behind}");
                        let error = consent.err().unwrap_or_else(|| asks(inspected, &others));
                        return Err(ArrayError::Witnessed { error: Box::new(error), hint });
                    }
                }
            }
            Ok(None) => "the witness has no record of the pool".to_owned(),
            Err(fact) => fact,
        };
        consent.map_err(|error| ArrayError::Witnessed { error: Box::new(error), hint })
    }

    /// That the pool had come further than the drives that are there, although none is missing: nothing on them contradicts
    /// that they were put back together, which an administrator does on purpose with a backup.
    pub(super) async fn doubt(&self, world: &World, inspected: &Inspected) -> Option<String> {
        let state = inspected.state();
        let known = self.witness.as_ref()?.known(world, state.id()).await.ok()??;
        let has = inspected.counting_generation();
        (has < known.generation).then(|| {
            format!(
                "the drives of pool {:?} have generation {has}, but the witness has seen {}: all of them \
                 were restored to an older state, and lack later writes; if that was not intended, stop the \
                 server and connect the newer drives",
                state.name(),
                known.generation
            )
        })
    }

    /// Has the witness know what a pool goes on without, before that is recorded anywhere else.
    ///
    /// # Errors
    /// When the pool must not go on, because the others have, or because the witness cannot be told.
    pub(crate) async fn part(&self, world: &World, inspected: &Inspected) -> Result<(), ArrayError> {
        let Some(witness) = &self.witness else { return Ok(()) };
        let state = inspected.state();
        let sets = PoolShape::new(state)?.sets;
        let is_given = check_consent(inspected, &sets, |member| inspected.is_done_without(member)).is_ok();
        let split = SplitRecord::of(state, &[]).starting_from(inspected.counting_generation());
        let noted = witness.note(world, split, is_given).await;
        match noted {
            Err(fact) if check_consent(inspected, &sets, |_| false).is_err() => {
                Err(ArrayError::NotParted { pool: state.name().to_owned(), fact })
            }
            // The other drives cannot go on without those that are here, and the control task tells what is wrong with
            // the witness.
            Err(_) | Ok(()) => Ok(()),
        }
    }
}

/// Whether a witness has noted less of a pool than it must have by the time at which drives had generation `has`. Notes come
/// some seconds late, and nothing is known from a witness of a program that noted no generations.
fn is_outdated(noted: u64, has: u64) -> bool {
    noted > 0 && has.saturating_sub(noted) > LAG_MAX
}

/// Whether drives that are missing now could have gone on without those that are there: if so, consent must be given to do
/// without each of them.
pub(super) fn check_consent(
    inspected: &Inspected,
    sets: &RaidSets,
    is_given: impl Fn(&Member) -> bool,
) -> Result<(), ArrayError> {
    let state = inspected.state();
    let away = |member: u32| inspected.newly_lost().contains(&member) && !inspected.is_stale_member(member);
    let carriers = inspected.carriers_before();
    let could_go_on = could_go_on(sets, state, carriers, away);
    let unnamed = unnamed(inspected, is_given, away);
    if !could_go_on || unnamed.is_empty() || planted(PlantedBug::ServeWithoutConsent) {
        return Ok(());
    }
    Err(asks(inspected, &unnamed))
}

/// Consent to do without these is asked for.
fn asks(inspected: &Inspected, drives: &[String]) -> ArrayError {
    ArrayError::from(ConsentNeeded {
        pool: inspected.state().name().to_owned(),
        drives: quoted(drives.iter().map(String::as_str)),
        options: options(drives),
    })
}

/// The names of the members that would not serve, those included that were lost before, and that the administrator does
/// not consent to do without.
fn unnamed_others(inspected: &Inspected) -> Vec<String> {
    let lost = inspected.state().members().iter().filter(|member| member.state == MemberState::Lost);
    let unnamed = lost.filter(|member| !inspected.is_done_without(member));
    unnamed.map(|member| member.name.clone()).collect()
}

/// The names of the members of this kind that the pool would lose by this start, and for which no consent is given.
fn unnamed(
    inspected: &Inspected,
    is_given: impl Fn(&Member) -> bool,
    is_meant: impl Fn(u32) -> bool,
) -> Vec<String> {
    let lost = inspected.newly_lost().iter().filter(|place| is_meant(**place));
    let members = lost.filter_map(|place| inspected.state().member(*place));
    members.filter(|member| !is_given(member)).map(|member| member.name.clone()).collect()
}

/// What gives consent to do without these.
fn options(drives: &[String]) -> String {
    drives.iter().map(|name| format!("--without {name}")).collect::<Vec<_>>().join(" ")
}
