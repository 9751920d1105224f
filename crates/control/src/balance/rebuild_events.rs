//! Events of rebuilds, and of columns that move.

use tier0_units::counted;

use super::Balance;
use super::column_moves::MoveReason;
use crate::admin::Severity;
use crate::report::which_groups;

impl Balance {
    /// Tells when a rebuild has begun or ended, and when there is no room for one.
    pub(crate) fn look_at_rebuild(&self, number: usize) {
        self.repair.look_at_findings(number);
        let core = self.repair.core(number);
        let running = core.rebuild.is_running();
        let was_told = core.rebuild_told.replace(running);
        let thing = format!("pool {}", self.pools[number].name);
        let (lacking, leaving) = {
            let state = core.metadata.state();
            (state.lost_columns().count() as u64, state.leaving_columns().next().is_some())
        };
        if running {
            let what = match lacking {
                _ if was_told => return,
                _ if leaving => "what drives that leave hold is being copied",
                0 => match self.next_column_moves(number) {
                    (_, moves) if moves.is_empty() => "a rebuild has begun",
                    (MoveReason::CopyBack, _) => "columns move back to the drives that they belong on",
                    _ => "columns move to drives that have more room",
                },
                _ => "a rebuild has begun",
            };
            return self.tell(Severity::Info, thing, what, "");
        }
        let homeless = core.rebuild.without_spare.get();
        let homeless_told = core.room_told.replace(homeless);
        let remedy = || format!("add a drive (tier0 drive add{})", which_groups(&core.metadata.state()));
        match (was_told, lacking) {
            (true, 0) => self.tell(Severity::Info, thing, "every set is whole, and nothing is rebuilt", ""),
            (true, lacking) => {
                let columns = counted(lacking, "column");
                let what = format!("the rebuild has ended, and no spare chunklet is there for {columns}");
                self.tell(Severity::Warning, thing, what, remedy());
            }
            (false, _) if homeless > 0 && homeless != homeless_told => {
                let columns = counted(homeless, "column");
                let what = format!("{columns} cannot be rebuilt: no spare chunklet is there");
                self.tell(Severity::Warning, thing, what, remedy());
            }
            (false, _) => {}
        }
    }
}
