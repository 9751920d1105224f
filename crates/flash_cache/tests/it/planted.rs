//! Bugs planted on purpose are found by the lives.

use std::rc::Rc;

use tier0_world::{PlantedBug, plant};

use crate::lives::{Counts, lives};

const SEEDS: u64 = 60;

fn is_found(bug: PlantedBug) -> bool {
    (0..SEEDS).any(|seed| {
        let counts = Rc::new(Counts::default());
        let planted = plant(bug);
        let found = lives(seed, 8, &counts).err();
        drop(planted);
        if let Some(failure) = &found {
            println!("{bug:?}: {failure}");
            let sound = lives(seed, 8, &counts);
            assert_eq!(sound, Ok(()), "without the bug the seed is clean");
        }
        found.is_some()
    })
}

#[test]
fn an_insert_that_is_logged_before_its_data_is_found() {
    assert!(is_found(PlantedBug::FlashInsertBeforeData));
}

#[test]
fn a_line_that_is_written_over_too_early_is_found() {
    assert!(is_found(PlantedBug::FlashOverwriteBeforeEvicted));
}

#[test]
fn a_strike_that_is_not_logged_is_found() {
    assert!(is_found(PlantedBug::FlashStrikeNotLogged));
}

#[test]
fn an_old_map_that_is_trusted_is_found() {
    assert!(is_found(PlantedBug::FlashTrustsOldMap));
}
