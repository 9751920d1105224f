//! Files of drives that were deleted while the array runs: they are served as long as the server has them open, and gone
//! when it ends. Nothing fails, so nothing else tells.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tier0_pool::PoolState;
use tier0_units::Nanos;

use super::Control;
use super::report::Findings;
use crate::admin::{Health, Severity};

/// How often is looked.
const LOOK: Nanos = Nanos::from_secs(10);

impl Control {
    /// Looks for deleted files as long as the array runs.
    pub(super) async fn watch_deleted_files(self: Rc<Self>) {
        let Some(shop) = self.shop.clone() else { return };
        loop {
            let found = shop.deleted();
            let before = self.deleted.replace(found.clone());
            for number in 0..self.pools.len() {
                for (name, path) in deleted_of(&self.guarded(number).metadata.state(), &found) {
                    if !before.iter().any(|known| known == path) {
                        let thing = format!("drive {name}");
                        self.tell(Severity::Critical, thing, fact(path), remedy(&name));
                    }
                }
            }
            self.world.sleep(LOOK).await;
        }
    }
}

impl Findings {
    /// Drives that serve and will be gone with the server.
    pub(super) fn look_at_deleted(&mut self, state: &PoolState, deleted: &[PathBuf]) {
        for (name, path) in deleted_of(state, deleted) {
            self.add(Health::Degraded, format!("drive {name}: {}; {}", fact(path), remedy(&name)));
        }
    }
}

/// The drives of a pool that serve and whose files are among these.
fn deleted_of<'a>(state: &PoolState, deleted: &'a [PathBuf]) -> Vec<(String, &'a Path)> {
    let serves = state.members().iter().filter(|member| member.is_active());
    serves
        .filter_map(|member| {
            let path = deleted.iter().find(|path| path.as_os_str() == member.path.as_str())?;
            Some((member.name.clone(), path.as_path()))
        })
        .collect()
}

fn fact(path: &Path) -> String {
    format!("its file {path:?} was deleted, and is there only as long as this server runs")
}

fn remedy(name: &str) -> String {
    format!(
        "do not stop it: replace the drive (tier0 drive replace {name}), one after the other if there are several"
    )
}
