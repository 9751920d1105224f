//! Every target takes its seeds, keeps what was found repaired, and stands a moment of mutations.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tier0_fuzz::mutate::mutate;
use tier0_fuzz::{Target, targets};
use tier0_world::Random;

#[test]
fn seeds_are_valid() {
    for target in targets::ALL {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (number, seed) in seeds.iter().enumerate() {
            assert!(seed.len() <= target.input_bytes_max, "{}: seed {number} is too long", target.name);
            assert!(target.check(seed), "{}: seed {number} is no valid input", target.name);
        }
    }
}

#[test]
fn what_was_found_once_stays_repaired() {
    for target in targets::ALL {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("a readable folder").path();
            let input = std::fs::read(&path).expect("a readable file");
            let kept = catch_unwind(AssertUnwindSafe(|| target.check(&input)));
            assert!(kept.is_ok(), "{} is at fault again with {}", target.name, path.display());
        }
    }
}

#[test]
fn mutated_inputs_do_no_harm() {
    for target in targets::ALL {
        if let Some(input) = first_fault(target, 1, target.inputs_in_tests) {
            panic!("{} is at fault with {}", target.name, input.escape_ascii());
        }
    }
}

#[test]
fn a_planted_fault_behind_length_and_checksum_is_found() {
    for seed in 0..5 {
        // Without guidance: seeds that land deep, repair, and many inputs.
        let found = first_fault(&targets::CANARY, seed, targets::CANARY.inputs_in_tests);
        assert!(found.is_some(), "the planted fault was not found from seed {seed}");
    }
}

#[test]
fn the_planted_fault_is_out_of_reach_without_repair() {
    let blunt = Target { repair: |_| {}, ..targets::CANARY };
    assert!(first_fault(&blunt, 0, 50_000).is_none(), "the checksum guards it");
}

/// Valid inputs that are kept to be mutated on.
const CORPUS_MAX: usize = 4096;

/// The first of `count` mutated inputs with which the target is at fault. Half of them come from the seeds, half from
/// valid inputs that came before: without the guidance of coverage, those alone would drift towards the trivial.
fn first_fault(target: &Target, seed: u64, count: u64) -> Option<Vec<u8>> {
    let seeds = (target.seeds)();
    let mut corpus = seeds.clone();
    let mut known: BTreeSet<Vec<u8>> = seeds.iter().cloned().collect();
    let mut random = Random::new(seed, 0);
    for number in 1..=count {
        let mut input = pick(if random.chance(0.5) { &seeds } else { &corpus }, &mut random).clone();
        mutate(target, &mut input, pick(&corpus, &mut random), &mut random);
        match catch_unwind(AssertUnwindSafe(|| target.check(&input))) {
            Ok(true) if corpus.len() < CORPUS_MAX && known.insert(input.clone()) => corpus.push(input),
            Ok(_) => {}
            Err(_) => {
                eprintln!("{} is at fault with input {number} of seed {seed}", target.name);
                return Some(input);
            }
        }
    }
    None
}

fn pick<'a>(inputs: &'a [Vec<u8>], random: &mut Random) -> &'a Vec<u8> {
    &inputs[random.below(inputs.len() as u64) as usize]
}
