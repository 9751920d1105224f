//! Searches on small databases.

use super::super::WhatIf;
use super::{SearchResult, found};

const BASE: &str = r#"
host = { cores = 16, transaction_ms = 0.1, io_us = 5 }
run = { warm_up = "1s", measured = "10s" }

[database]
engine = "sql-server-2008"
users = 60
object = [{ name = "orders", size = "8GB", reads = 4 }]

[system]
drive = [{ name = "disk{n}", count = 2, model = "hdd-7k2" }]
pool = [{ name = "pool0", raid = "raid1", set_size = 2 }]
volume = [{ name = "data", size = "20GiB" }]
"#;

fn file(search: &str) -> String {
    format!("{BASE}\n[search]\n{search}")
}

fn searched(search: &str) -> SearchResult {
    let whatif = WhatIf::parse(&file(search), "file").expect("it is a file");
    whatif.search.expect("it searches").run(2, &|_| ()).expect("it runs")
}

fn refused(search: &str) -> String {
    WhatIf::parse(&file(search), "file").expect_err("it is refused").to_string()
}

#[test]
fn the_fewest_drives_that_hold_are_found_and_the_cheapest_kind_comes_first() {
    let result = searched(
        r#"tps = 600
response = "400ms"
[[search.candidate]]
model = "hdd-7k2"
raid = "raid10"
most = 40
price = 100
[[search.candidate]]
model = "sas-15k-146gb-sff"
raid = "raid10"
most = 40
price = 1000"#,
    );
    let [first, second] = &result.candidates[..] else { panic!("two candidates: {result:?}") };
    assert_eq!((first.model.as_str(), second.model.as_str()), ("hdd-7k2", "sas-15k-146gb-sff"));
    assert!(first.price < second.price, "{result:?}");
    for candidate in &result.candidates {
        let drives = candidate.drives.expect("40 drives hold it");
        assert!(drives.is_multiple_of(2) && candidate.probe(drives).expect("it was tried").holds);
        let fewer = candidate.probe(drives - 2).expect("that fewer do not hold was seen");
        assert!(!fewer.holds && fewer.tps < 600.0, "{fewer:?}");
        assert_eq!(
            candidate.price,
            Some(f64::from(drives) * if candidate.model == "hdd-7k2" { 100.0 } else { 1000.0 })
        );
    }
    let words = found(&result);
    assert!(words[0].starts_with("Cheapest for 600 transactions per second at 400 ms"), "{words:?}");
    assert!(
        words[0].contains("x hdd-7k2 in raid10: ") && words[0].contains("fewer do not hold it: "),
        "{words:?}"
    );
}

#[test]
fn room_counts_and_what_no_number_holds_is_said() {
    let result = searched(
        r#"tps = 100000
response = "1ms"
fill = 10
[[search.candidate]]
model = "sas-15k-146gb-sff"
raid = "raid1"
most = 4"#,
    );
    let only = &result.candidates[0];
    // 21.5 GB are 10 % of two drives' 146 GB and a half.
    assert_eq!((only.drives_for_room, only.drives, only.probed.len()), (4, None, 1));
    let words = found(&result);
    assert!(words[0].starts_with("No candidate holds 100,000 transactions per second"), "{words:?}");
    assert!(words[1].contains("4 drives give") && words[1].contains("the limit is"), "{words:?}");
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_remedy() {
    let goal = "tps = 100\nresponse = \"10ms\"\n";
    let candidate = "[[search.candidate]]\nmodel = \"hdd-7k2\"\nraid = \"raid1\"\n";
    let cases = [
        (format!("tps = 0\nresponse = \"10ms\"\n{candidate}"), "search.tps is out of range"),
        (format!("tps = 1\nresponse = \"10\"\n{candidate}"), "search.response"),
        (format!("{goal}fill = 99\n{candidate}"), "search.fill is out of range"),
        (format!("{goal}candidate = []"), "1 to 32 entries"),
        (format!("{goal}drives = \"ssd\"\n{candidate}"), "there are no drives \"ssd\"; use one of disk{n}"),
        (format!("{goal}{}", candidate.replace("hdd-7k2", "hdd-8k")), "hdd-8k"),
        (format!("{goal}{}", candidate.replace("raid1", "raid7")), "raid"),
        (format!("{goal}{candidate}set_size = 3\nmost = 0"), "most is out of range"),
        (format!("{goal}{candidate}price = 3\n{candidate}"), "only some candidates have a price"),
        (
            format!("{goal}fill = 1\n{}most = 2", candidate.replace("hdd-7k2", "sas-15k-146gb-sff")),
            "drives are needed to hold 20GiB at 1 %",
        ),
        (format!("{goal}{candidate}cost = 3"), "docs/whatif.md"),
    ];
    for (search, told) in cases {
        let error = refused(&search);
        assert!(error.contains(told), "{told}: {error}");
    }
}
