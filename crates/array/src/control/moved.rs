//! Files of drives that were moved while the array runs: nothing fails, and the next start may not find them.

use std::path::PathBuf;

use tier0_pool::PoolState;

use super::report::Findings;
use crate::admin::Health;

impl Findings {
    /// Drives that serve and do not lie any more where they were opened; that place, and where they are.
    pub(super) fn look_at_moved(&mut self, state: &PoolState, moved: &[(PathBuf, PathBuf)]) {
        for member in state.members().iter().filter(|member| member.is_active()) {
            let own = moved.iter().find(|(from, _)| from.as_os_str() == member.path.as_str());
            if let Some((from, to)) = own {
                let fact = format!(
                    "drive {}: its file was moved from {from:?} to {to:?} while it serves, and a start may not find it; move \
                     it back, or put its new place into the array file",
                    member.name
                );
                self.add(Health::Warning, fact);
            }
        }
    }
}
