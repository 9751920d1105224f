//! Growing a pool while it serves: free chunklets become sets behind those that are there.
//!
//! The metadata journal is told first; at the moment at which it accepts sets, the table of sets and the map of slots
//! that all shards share grow by them ([`tier0_plan::PoolShape::follow`]), and only then can their slots be allocated.
//! Neither a set nor a slot ever changes its number, so nothing that is under way notices. A mapping to a new slot lies
//! behind its set in the journal, so no crash leaves one without the other.
//!
//! Where the free chunklets lie on too few drives (one drive was added to those that were full), columns move to it
//! first ([`crate::balance::column_moves`]). That the administrator asked for sets is not remembered: after a restart what has begun
//! to move goes on, and growing has to be asked for again.

use std::rc::Rc;

use tier0_api::EventKind;
use tier0_plan::{Growth, plan_growth};
use tier0_pool::{ChunkletAddress, MetaRecord};
use tier0_units::{ByteCount, SECTOR_BYTES, counted};

use super::Balance;
use crate::admin::AdminError;
use crate::context::Done;
use crate::repair::placement::{PendingPlacement, Placement};

/// What a pool has grown by.
struct Grown {
    /// Sets and usable bytes.
    what: Option<(u64, ByteCount)>,
    /// More sets that there can be when columns have moved, and how many columns.
    later: Option<(u64, usize)>,
}

impl Balance {
    /// Makes sets of all free chunklets but the spares, and begins to spread what is stored over all of them.
    pub(crate) async fn grow(self: &Rc<Self>, pool: Option<&str>) -> Done {
        let number = self.pool_meant(pool)?;
        let name = &self.pools[number].name;
        if self.core(number).growing.get() {
            return Err(AdminError::new(format!(
                "pool {name:?} is growing already; \"tier0 status\" shows how far, \"tier0 pool grow --stop\" ends it"
            )));
        }
        let grown = self.form_sets(number, None).await?;
        if grown.later.is_some() {
            self.core(number).growing.set(true);
            self.repair.start_rebuilds(number);
        }
        let by = grown.what.map(|(sets, more)| format!("{} and {more}", counted(sets, "set")));
        Ok(match (by, grown.later) {
            (by, Some((sets, moves))) => format!(
                "{}{} first, then there is room for {}; \"tier0 status\" shows how far, \"tier0 pool grow --stop\" \
                 leaves it at what has moved",
                by.map_or_else(String::new, |by| format!("pool {name} has grown by {by}; ")),
                format_args!("{} of pool {name} move to other drives", counted(moves as u64, "column")),
                counted(sets, "more set"),
            ),
            (by, None) => format!(
                "pool {name} has grown by {}; \"tier0 status\" shows how what it holds spreads over them",
                by.unwrap_or_else(|| "nothing".to_owned())
            ),
        })
    }

    /// Nothing more moves so that the pool can grow.
    pub(crate) fn stop_growing(&self, pool: Option<&str>) -> Done {
        let number = self.pool_meant(pool)?;
        let name = &self.pools[number].name;
        if !self.core(number).growing.replace(false) {
            return Err(AdminError::unchanged(format!(
                "no column of pool {name} moves so that it can grow; there is nothing to stop"
            )));
        }
        Ok(format!(
            "pool {name} stays as it is; what is being copied goes to its new place, and no more is begun"
        ))
    }

    /// Forms the sets for which columns have moved.
    pub(crate) async fn form_sets_to_come(self: &Rc<Self>, number: usize) {
        if !self.core(number).growing.replace(false) {
            return;
        }
        let kind = match self.form_sets(number, None).await.map(|grown| grown.what) {
            Ok(Some((sets, bytes))) => EventKind::PoolGrown { sets, bytes },
            Ok(None) => EventKind::GrowthStuck,
            Err(error) => EventKind::GrowthFailed { error: error.to_string() },
        };
        self.tell(self.pool_subject(number), kind);
    }

    /// New sets are about to lie on the drives that a record names.
    fn place_sets(
        &self,
        number: usize,
        record: &MetaRecord,
    ) -> Result<Option<PendingPlacement<'_>>, AdminError> {
        let MetaRecord::SetsAdded { columns, group, .. } = record else { return Ok(None) };
        let core = self.core(number);
        let layout = core.shape.layout_of(&core.metadata.state(), *group);
        let width = layout.columns();
        let members = |set: &[ChunkletAddress]| set.iter().map(|chunklet| chunklet.drive).collect();
        let placed = self
            .repair
            .core(number)
            .place(Placement::Sets { layout, members: columns.chunks(width).map(members).collect() });
        placed.map(Some).map_err(|failed| {
            AdminError::new(format!(
                "drive {:?} is about to be called lost; look at \"tier0 status\", then grow",
                core.drive_name(failed.member)
            ))
        })
    }

    /// Makes the first sets of a group; how many, and their usable bytes.
    pub(crate) async fn form_first_sets(
        self: &Rc<Self>,
        number: usize,
        group: u32,
    ) -> Result<(u64, ByteCount), AdminError> {
        Ok(self.form_sets(number, Some(group)).await?.what.unwrap_or_default())
    }

    /// Forms the sets that need no column to move, in every group or in one.
    async fn form_sets(self: &Rc<Self>, number: usize, group: Option<u32>) -> Result<Grown, AdminError> {
        let _turn = self.turn.acquire(1).await;
        let core = self.core(number);
        let slots_before = core.metadata.state().slot_count();
        let planned = {
            let state = core.metadata.state();
            plan_growth(&state, group, core.metadata.change_bytes_max())
        };
        let name = &self.pools[number].name;
        let Growth { records, sets, sets_later, moves } =
            planned.map_err(|fact| AdminError::new(format!("pool {name:?} does not grow: {fact}")))?;
        for record in records {
            let _under_way = self.place_sets(number, &record)?;
            core.metadata.commit(vec![record]).await?;
        }
        let more = {
            let state = core.metadata.state();
            (state.slot_count() - slots_before) * state.geometry().extent_sectors * SECTOR_BYTES
        };
        // The first sets of a group have nothing to share with others.
        if sets > 0 && group.is_none() {
            self.start_restripe(number, None);
        }
        Ok(Grown {
            what: (sets > 0).then_some((sets, ByteCount(more))),
            later: (moves > 0).then_some((sets_later, moves)),
        })
    }
}
