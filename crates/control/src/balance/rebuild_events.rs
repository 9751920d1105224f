//! Events of rebuilds, and of columns that move.

use tier0_api::{EventKind, RebuildPurpose};

use super::Balance;
use super::column_moves::MoveReason;
use crate::report::lacking_groups;

impl Balance {
    /// Tells when a rebuild has begun or ended, and when there is no room for one.
    pub(crate) fn look_at_rebuild(&self, number: usize) {
        self.repair.look_at_findings(number);
        let core = self.repair.core(number);
        let running = core.rebuild.is_running();
        let was_told = core.rebuild_told.replace(running);
        let pool = self.pool_subject(number);
        let (lacking, leaving) = {
            let state = core.metadata.state();
            (state.lost_columns().count() as u64, state.leaving_columns().next().is_some())
        };
        if running {
            let kind = match lacking {
                _ if was_told => return,
                _ if leaving => EventKind::MoveStarted { purpose: RebuildPurpose::Emptying },
                0 => match self.next_column_moves(number) {
                    (_, moves) if moves.is_empty() => EventKind::RebuildStarted,
                    (MoveReason::CopyBack, _) => EventKind::MoveStarted { purpose: RebuildPurpose::CopyBack },
                    _ => EventKind::MoveStarted { purpose: RebuildPurpose::Spares },
                },
                _ => EventKind::RebuildStarted,
            };
            return self.tell(pool, kind);
        }
        let homeless = core.rebuild.without_spare.get();
        let homeless_told = core.room_told.replace(homeless);
        let lacks_space = |columns, has_ended| EventKind::RebuildLacksSpace {
            columns,
            has_ended,
            add_to: lacking_groups(&core.metadata.state()),
        };
        match (was_told, lacking) {
            (true, 0) => self.tell(pool, EventKind::RebuildFinished),
            (true, lacking) => self.tell(pool, lacks_space(lacking, true)),
            (false, _) if homeless > 0 && homeless != homeless_told => {
                self.tell(pool, lacks_space(homeless, false));
            }
            (false, _) => {}
        }
    }
}
