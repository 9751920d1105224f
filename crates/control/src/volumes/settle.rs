//! Before a volume is held: what the log has of it comes into its place, so that its hosts wait for little.

use tier0_units::Nanos;
use tier0_world::IoError;

use super::Volumes;
use crate::admin::AdminError;
use crate::message::volumes::VolumesCommand;

/// So little is left that hosts can wait for it, if the log took no longer than this to come into place.
const SETTLED: Nanos = Nanos::from_secs(2);
/// How often that is tried.
const SETTLINGS_MAX: usize = 3;

/// What volumes are held for, in words.
#[derive(Clone, Copy)]
pub(super) struct Purpose {
    /// "clone".
    pub(super) verb: &'static str,
    /// "cloned".
    pub(super) done: &'static str,
}

impl Volumes {
    /// Brings into place what the log has of volumes, until little is left, while hosts and administrators go on. `meant` checks
    /// before each pass what is to be done with a volume of this name: its pool, and the volumes with their numbers in the array.
    pub(super) async fn settle(
        &self,
        name: &str,
        purpose: Purpose,
        meant: impl Fn() -> Result<(usize, Vec<(String, u32)>), AdminError>,
    ) -> Result<(), AdminError> {
        for _ in 0..SETTLINGS_MAX {
            let (pool, volumes) = meant()?;
            if self.core(pool).pauses.since().is_some() {
                return Err(AdminError::new(format!(
                    "cannot {} volume {name:?} while its pool {:?} is paused; reconnect the drives it waits for, and try again",
                    purpose.verb, self.pools[pool].name
                )));
            }
            let begun = self.world.now();
            for (volume, number) in volumes {
                let settled = self.command(|reply| VolumesCommand::Settle { number, reply }).await?;
                all(settled).map_err(|error| purpose.not_in_place(&volume, error))?;
            }
            if self.world.now().saturating_sub(begun) < SETTLED {
                break;
            }
        }
        Ok(())
    }
}

impl Purpose {
    /// What hosts have written to a volume is not in its place.
    pub(super) fn not_in_place(self, name: &str, error: IoError) -> AdminError {
        let why = match error {
            IoError::Timeout => "it took too long for connected hosts".to_owned(),
            error => error.to_string(),
        };
        AdminError::failed(format!(
            "volume {name:?} was not {}; its hosts are not affected: the write log could not be destaged: {why}; check \"tier0 \
             status\", and try again under less load",
            self.done
        ))
    }
}

/// What all shards answer.
pub(super) fn all(results: Vec<Result<(), IoError>>) -> Result<(), IoError> {
    results.into_iter().collect()
}
