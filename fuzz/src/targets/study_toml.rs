//! The study file.

use tier0_lab::study::Study;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "study-toml",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 32 << 10,
    inputs_in_tests: 60,
    // As for the array file; a study may name arrays of the catalogue, which are copied.
    memory_bytes_max: (4 << 20, 1024),
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        include_str!("../../../studies/cx4-oracle.toml"),
        include_str!("../../../studies/cx4-write-cache.toml"),
        include_str!("../../../studies/ps6100xv.toml"),
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match Study::parse(text, "study.toml") {
        Ok(_) => true,
        Err(error) => {
            std::hint::black_box(error.to_string());
            false
        }
    }
}
