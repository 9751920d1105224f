//! Reports of databases and hosts that the advisor reads, of every kind. What is read is advised on, too.

use tier0_advisor::evidence::Collector;
use tier0_advisor::gain::FlashTimes;
use tier0_advisor::read::read;
use tier0_advisor::rules::{Case, findings};
use tier0_advisor::site::Site;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "advise-report",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 16 << 10,
    inputs_in_tests: 1500,
    // Buffers of lines and records, of 64 KiB each at first; a row of a few bytes becomes an object with its counters.
    memory_bytes_max: (4 << 20, 2048),
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        include_str!("../../../crates/advisor/tests/it/samples/file_statistics.csv"),
        include_str!("../../../crates/advisor/tests/it/samples/blitz_table.csv"),
        include_str!("../../../crates/advisor/tests/it/samples/blitz_result.csv"),
        include_str!("../../../crates/advisor/tests/it/samples/objects.csv"),
        include_str!("../../../crates/advisor/tests/it/samples/iostat_old.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/iostat_new.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/sar.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/awr.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/awr.html"),
        include_str!("../../../crates/advisor/tests/it/samples/statspack.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/mysql_start.txt"),
        include_str!("../../../crates/advisor/tests/it/samples/postgres.jsonl"),
        include_str!("../../../crates/advisor/tests/it/samples/mariadb.jsonl"),
        include_str!("../../../studies/advise-example/after.csv"),
        include_str!("../../../studies/advise-example/perfmon.csv"),
    ];
    let mut seeds: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
    let units = texts[0].encode_utf16().flat_map(u16::to_le_bytes);
    seeds.push([0xff, 0xfe].into_iter().chain(units).collect());
    seeds
}

fn run(bytes: &[u8]) -> bool {
    let mut collector = Collector::default();
    match read("report", bytes, None, &mut collector) {
        Ok(_) => {
            let (evidence, site) = (collector.finish(Some(60.0)), Site::default());
            let times = FlashTimes { read_ms: 0.2, write_ms: 0.1 };
            std::hint::black_box(findings(&Case::new(&evidence, &site, Some(1e11), times)));
            true
        }
        Err(error) => {
            std::hint::black_box(error.to_string());
            false
        }
    }
}
