//! Columns of sets on drives that are not for data: told as long as they are there. They go back by themselves
//! ([`super::moving`]).

use std::rc::Rc;

use tier0_api::{Health, Severity};
use tier0_pool::PoolState;
use tier0_units::{counted, named};

use super::Control;
use super::drives::replace_command;
use super::report::{Findings, to_group};

/// What a drive is that is not for data.
const NOT_FOR_DATA: &str = "for the write log or the flash cache alone";

/// What brings columns back to drives of data, as an advice.
fn remedy(state: &PoolState, place: u32) -> String {
    if !state.moves_to_data_drives().is_empty() || !state.moves_home().is_empty() {
        return "they move back to drives of data, as \"tier0 status\" shows".to_owned();
    }
    let lost = state.members().iter().find(|member| !member.is_active() && !member.leaving);
    let lost = lost.filter(|member| member.state == tier0_pool::MemberState::Lost);
    let replace =
        lost.map(|lost| format!(", or replace the one that is lost ({})", replace_command(&lost.name)));
    let group = state.member(place).map_or_else(String::new, |member| to_group(state, member.group));
    format!(
        "they move to drives of data when one has room: add a drive (tier0 drive add{group}){}",
        replace.unwrap_or_default()
    )
}

impl Findings {
    /// Drives that are not for data and have columns.
    pub(super) fn look_at_misplaced(&mut self, state: &PoolState) {
        let misplaced: Vec<(u32, u64)> = state.misplaced_columns().collect();
        let Some((first, _)) = misplaced.first() else { return };
        let columns = misplaced.iter().map(|(_, columns)| columns).sum();
        let names = misplaced.iter().filter_map(|(place, _)| state.member(*place));
        let names: Vec<&str> = names.map(|member| member.name.as_str()).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let verb = if columns == 1 { "lies" } else { "lie" };
        let what = format!(
            "{} of sets {verb} on {}, which {are} {NOT_FOR_DATA}",
            counted(columns, "column"),
            named("drive", &names)
        );
        self.advise(Health::Warning, what, &remedy(state, *first));
    }
}

impl Control {
    /// Tells which drives that are not for data have columns now, and which have none any more.
    pub(super) fn tell_misplaced(self: &Rc<Self>, number: usize) {
        let core = self.core(number);
        let mut events = Vec::new();
        {
            let state = core.metadata.state();
            let mut told = core.misplaced_told.borrow_mut();
            for (place, columns) in state.misplaced_columns().filter(|(place, _)| !told.contains(place)) {
                let what = format!(
                    "it has {} of sets and is {NOT_FOR_DATA}: no drive of data had room for what had to be redundant again",
                    counted(columns, "column")
                );
                events.push((Severity::Warning, place, what, remedy(&state, place)));
            }
            for place in
                told.iter().filter(|place| state.is_active(**place) && state.columns_on(**place) == 0)
            {
                let what = "it has no columns of sets any more: they are on drives of data".to_owned();
                events.push((Severity::Info, *place, what, String::new()));
            }
            *told = state.misplaced_columns().map(|(place, _)| place).collect();
        }
        for (severity, place, what, remedy) in events {
            self.tell(severity, format!("drive {}", core.drive_name(place)), what, remedy);
        }
    }
}
