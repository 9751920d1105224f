//! Marks of time on the drives: while hosts write, the superblocks of all drives get a new generation now and then. A drive
//! that is put back to an image of two marks ago is known by it at the next start, like one of an earlier run, and is not
//! believed (`pool::metadata`). Without marks a generation lasts as long as a run, and half a mirror that was put back would
//! serve old data once the other half had died.
//!
//! What it does not do: an image that is younger than two marks is not known by its superblock. Reads and scrubs find what it
//! lacks by the tables' generations as long as the other drives are there.

use std::rc::Rc;

use tier0_units::Nanos;

use super::Membership;
use crate::message::command::ShardCommand;

/// How often, where something was written.
const PAUSE: Nanos = Nanos::from_secs(60);

impl Membership {
    /// Marks the drives of a pool as long as the array runs.
    pub(crate) async fn keep_heartbeat(self: Rc<Self>, number: usize) {
        let mut marked_at = 0;
        loop {
            self.world.sleep(PAUSE).await;
            if self.core(number).pauses.since().is_some() {
                continue;
            }
            let reports = self.ask_all(|reply| ShardCommand::Report { pool: number, reply }).await;
            let written: u64 = reports
                .iter()
                .flatten()
                .flat_map(|report| &report.lanes)
                .map(|lane| lane.written_pages)
                .sum();
            if written == marked_at {
                continue;
            }
            match self.core(number).metadata.mark().await {
                Ok(()) => marked_at = written,
                Err(error) => tracing::error!(
                    "the drives of pool {:?} are not marked: {error}",
                    self.pools[number].name
                ),
            }
        }
    }
}
