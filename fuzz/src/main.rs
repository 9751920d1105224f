//! The coverage-guided fuzzing program: libFuzzer around one target, which the environment variable
//! `TIER0_FUZZ_TARGET` names. `cargo xtask fuzz` builds and starts it.
//!
//! Half of the mutations are libFuzzer's own, which know what the program compared the input with; the other half are this
//! crate's. The target's repair follows on most of both.

#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use tier0_fuzz::mutate::mutate;
use tier0_fuzz::{Target, find, targets};
use tier0_world::Random;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TIER0_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| panic!("set TIER0_FUZZ_TARGET to a target; there is no {name:?}"))
});

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| (TARGET.seeds)());

/// Of eight mutated inputs, so many are repaired.
const REPAIRED_OF_8: u64 = 7;

fuzz_target!(init: prepare(), |bytes: &[u8]| {
    TARGET.check(bytes);
});

fuzz_mutator!(|data: &mut [u8], size: usize, size_max: usize, seed: u32| {
    let mut random = Random::new(u64::from(seed), 0);
    let mut input;
    if random.chance(0.5) {
        let size = fuzzer_mutate(data, size, size_max);
        input = data[..size].to_vec();
        if random.below(8) < REPAIRED_OF_8 {
            (TARGET.repair)(&mut input);
        }
    } else {
        input = data[..size].to_vec();
        let other = &SEEDS[random.below(SEEDS.len() as u64) as usize];
        mutate(&TARGET, &mut input, other, &mut random);
    }
    let size = input.len().min(size_max);
    data[..size].copy_from_slice(&input[..size]);
    size
});

/// Lists the targets, if that is asked for; otherwise the seeds begin the corpus.
fn prepare() {
    if std::env::var_os("TIER0_FUZZ_LIST").is_some() {
        targets::ALL.iter().for_each(|target| println!("{}", target.name));
        std::process::exit(0);
    }
    let Some(directory) = std::env::var_os("TIER0_FUZZ_SEEDS").map(PathBuf::from) else { return };
    for (number, seed) in SEEDS.iter().enumerate() {
        let path = directory.join(format!("seed-{number}"));
        std::fs::write(&path, seed).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}
