//! What a start would say if drives that serve now were not to be found then.

use super::Membership;
use std::collections::BTreeSet;

use tier0_description::names::drives;
use tier0_plan::{ConsentNeeded, could_go_on};
use uuid::Uuid;

impl Membership {
    /// Why a start without these members would be refused, a sentence for each pool of which it would be.
    pub(crate) fn refusals_without(&self, absent: &[Uuid]) -> Vec<String> {
        (0..self.pools.len()).filter_map(|number| self.refusal_without(number, absent)).collect()
    }

    fn refusal_without(&self, number: usize, absent: &[Uuid]) -> Option<String> {
        let pool = &self.pools[number];
        let core = pool;
        let state = core.metadata.state();
        let is_absent = |place: &u32| state.member(*place).is_some_and(|member| absent.contains(&member.id));
        let places: BTreeSet<u32> = (0..state.members().len() as u32).filter(is_absent).collect();
        if places.is_empty() {
            return None;
        }
        let names: Vec<&str> = places
            .iter()
            .filter_map(|place| state.member(*place))
            .map(|member| member.name.as_str())
            .collect();
        let drives = drives(names.iter().copied());
        let them = if names.len() == 1 { "it" } else { "them" };
        if let Err(objection) = self.repair.core(number).objection(&places) {
            return Some(format!(
                "a start would not find {drives} of pool {:?}, and without {them} {objection}; put back what was moved, and \
                 replace what was deleted while the server runs (tier0 drive replace)",
                pool.name
            ));
        }
        let is_absent = |place| places.contains(&place);
        let could_go_on = could_go_on(&core.shape.sets, &state, &core.metadata.carriers(), is_absent);
        // The witness knows whether they have.
        (could_go_on && self.repair.has_no_witness()).then(|| {
            let options = names.iter().map(|name| format!("--without {name}")).collect::<Vec<_>>().join(" ");
            ConsentNeeded { pool: pool.name.clone(), drives, options }.to_string()
        })
    }
}
