//! Columns of sets on drives that are not for data: told as long as they are there. They go back by themselves
//! ([`crate::balance::column_moves`]).

use std::rc::Rc;

use tier0_api::event::{AddTo, WayBack};
use tier0_api::{EventKind, FindingKind, Subject};
use tier0_pool::PoolState;

use super::Balance;
use crate::report::{Findings, add_to_group};

/// What brings columns back to drives of data.
fn way_back(state: &PoolState, place: u32) -> WayBack {
    if !state.moves_to_data_drives().is_empty() || !state.moves_home().is_empty() {
        return WayBack::Moving;
    }
    let lost = state.members().iter().find(|member| !member.is_active() && !member.leaving);
    let failed = lost.filter(|member| member.state == tier0_pool::MemberState::Lost);
    let add_to = state.member(place).map_or(AddTo::Pool, |member| add_to_group(state, member.group));
    WayBack::NeedsRoom { add_to, failed: failed.map(|lost| lost.name.clone()) }
}

impl Findings {
    /// Drives that are not for data and have columns.
    pub(crate) fn look_at_misplaced(&mut self, state: &PoolState) {
        let misplaced: Vec<(u32, u64)> = state.misplaced_columns().collect();
        let Some((first, _)) = misplaced.first() else { return };
        let columns = misplaced.iter().map(|(_, columns)| columns).sum();
        let names = misplaced.iter().filter_map(|(place, _)| state.member(*place));
        let drives = names.map(|member| member.name.clone()).collect();
        let way_back = way_back(state, *first);
        self.add(FindingKind::ColumnsMisplaced { columns, drives, way_back });
    }
}

impl Balance {
    /// Tells which drives that are not for data have columns now, and which have none any more.
    pub(crate) fn tell_misplaced(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        let mut events = Vec::new();
        {
            let state = core.metadata.state();
            let mut told = core.misplaced_told.borrow_mut();
            for (place, columns) in state.misplaced_columns().filter(|(place, _)| !told.contains(place)) {
                let way_back = way_back(&state, place);
                events.push((place, EventKind::ColumnsMisplaced { columns, way_back }));
            }
            for place in
                told.iter().filter(|place| state.is_active(**place) && state.columns_on(**place) == 0)
            {
                events.push((*place, EventKind::ColumnsReturned));
            }
            *told = state.misplaced_columns().map(|(place, _)| place).collect();
        }
        for (place, kind) in events {
            self.tell(Subject::drive(core.drive_name(place)), kind);
        }
    }
}
