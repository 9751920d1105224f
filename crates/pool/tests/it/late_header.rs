//! A header of the journal before is late: the next journal lies in the same place, and must not be overwritten by it.

use crate::common::{Rack, create, essence, extent, new_state, open, slot};
use tier0_drive::{Fault, FaultPlan};
use tier0_pool::MetaRecord;
use tier0_units::Nanos;

const MEMBERS: usize = 3;
/// Commits after which the journal's tail is persisted in the background: a quarter of its blocks, and some.
const COMMITS: u64 = 24;

#[test]
fn a_late_header_of_the_old_journal_does_not_hide_the_new_one() {
    let rack = Rack::new(MEMBERS, 3);
    rack.run(0, |world, drives| async move { create(&world, drives, MEMBERS as u32).await });
    let media = rack.media.clone();
    let known = rack.run(1, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        for number in 0..COMMITS {
            let record = MetaRecord::map([(extent(0, number as u32), slot(number, number + 1))]);
            metadata.commit(vec![record]).await.expect("accepted");
        }
        let journal = new_state(MEMBERS as u32).geometry().area.journal_start().0;
        for medium in &media {
            let late = Fault::Latency(Nanos::from_secs(1));
            let plan = FaultPlan { times: Some(1), ..FaultPlan::always_in(late, journal..journal + 8) };
            medium.inject(plan);
        }
        metadata.renew().await.expect("the drives take it");
        let record = MetaRecord::map([(extent(0, 60), slot(60, 61))]);
        metadata.commit(vec![record]).await.expect("accepted");
        world.sleep(Nanos::from_secs(5)).await;
        essence(&metadata.state())
    });
    let found = rack.run(2, |world, drives| async move {
        let metadata = open(&world, drives).await.expect("opens");
        let state = metadata.state();
        essence(&state)
    });
    assert!(known.is_some() && found == known, "what was committed to the new journal is there");
}
