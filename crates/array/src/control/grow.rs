//! Growing a pool while it serves: free chunklets become sets behind those that are there.
//!
//! The metadata journal is told first; at the moment at which it accepts sets, the table of sets and the map of slots
//! that all shards share grow by them ([`crate::plan::PoolShape::follow`]), and only then can their slots be borrowed.
//! Neither a set nor a slot ever changes its number, so nothing that is under way notices. A mapping to a new slot lies
//! behind its set in the journal, so no crash leaves one without the other.

use std::rc::Rc;

use tier0_units::{ByteCount, SECTOR_BYTES, counted};

use super::Control;
use super::admin::Done;
use crate::ArrayError;
use crate::admin::AdminError;
use crate::plan::plan_growth;

impl Control {
    /// Makes sets of all free chunklets but the spares, and begins to spread what is stored over all of them.
    pub(super) async fn grow(self: &Rc<Self>, pool: Option<&str>) -> Done {
        let number = self.pool_meant(pool)?;
        let _turn = self.turn.acquire(1).await;
        let guarded = self.guarded(number);
        let name = &self.pools[number].name;
        let slots_before = guarded.metadata.state().slot_count();
        let planned = {
            let state = guarded.metadata.state();
            plan_growth(&state, guarded.metadata.change_bytes_max())
        };
        let growth =
            planned.map_err(|fact| AdminError::new(format!("pool {name:?} does not grow: {fact}")))?;
        for record in growth.records {
            guarded
                .metadata
                .commit(vec![record])
                .await
                .map_err(|error| AdminError::from(ArrayError::from(error)))?;
        }
        let more = {
            let state = guarded.metadata.state();
            (state.slot_count() - slots_before) * state.geometry().extent_sectors * SECTOR_BYTES
        };
        self.start_restripe(number, None);
        let (sets, more) = (counted(growth.sets, "set"), ByteCount(more));
        Ok(format!(
            "pool {name} has grown by {sets} and {more}; \"tier0 status\" shows how what it holds spreads over them"
        ))
    }
}
