//! The advice of whole sets of reports.

use tier0_advisor::advice::{Advice, Question, Verdict, advise};
use tier0_advisor::drives::{Disk, FlashDrive};
use tier0_advisor::rules::Outcome;
use tier0_advisor::site::Site;
use tier0_catalog::Catalog;

use crate::evidence;

fn advice(names: &[&str], flash: Option<f64>) -> Advice {
    let catalog = Catalog::embedded();
    let question = Question {
        flash,
        drive: FlashDrive::of(&catalog, "ssd-sata").expect("it is there"),
        disk: Disk::of(&catalog, "sas-10k-900gb-sff").expect("it is there"),
        site: Site { cores: Some(16.0), ..Site::default() },
    };
    advise(&evidence(names), &question)
}

fn chosen(advice: &Advice) -> Vec<&str> {
    let rows = advice.objects.iter().filter(|row| row.verdict == Verdict::Flash);
    rows.map(|row| row.own_name.as_str()).collect()
}

fn why<'a>(advice: &'a Advice, name: &str) -> &'a str {
    let row = advice.objects.iter().find(|row| row.own_name == name).expect(name);
    assert_ne!(row.verdict, Verdict::Flash, "{row:?}");
    &row.why
}

fn outcome(advice: &Advice, rule: &str) -> Outcome {
    advice.findings.iter().find(|finding| finding.rule == rule).expect(rule).outcome
}

#[test]
fn the_example_puts_the_small_hot_table_first() {
    let advice = advice(&["before.csv", "after.csv", "perfmon.csv"], Some(400e9));
    assert_eq!(chosen(&advice), ["customers", "orders", "order_indexes"]);
    assert!(why(&advice, "orders_log").contains("log"));
    assert!(why(&advice, "history").contains("scans"));
    assert!(why(&advice, "archive").contains("little I/O"));
    assert!(advice.answer[0].contains("Storage limits"), "{:?}", advice.answer);
    let gain = advice.chosen.gain.expect("everything was measured");
    // Processors are 34 % busy: three times is the most.
    assert!(gain.expected > 0.5 && gain.high <= 2.0, "{gain:?}");
    assert!(gain.low <= gain.expected && gain.expected <= gain.high);
    for (rule, wanted) in [
        ("waits-for-io", Outcome::Fires),
        ("cpu-limits", Outcome::Silent),
        ("log-stays", Outcome::Fires),
        ("small-read-table", Outcome::Fires),
        ("sequential", Outcome::Unknown),
        ("cable", Outcome::Unknown),
        ("stall-percent", Outcome::Unknown),
        ("one-sample", Outcome::Silent),
    ] {
        if rule != "sequential" {
            assert_eq!(outcome(&advice, rule), wanted, "{rule}");
        }
    }
}

/// Less flash than the largest object: the others, and the largest is told to be partitioned.
#[test]
fn little_flash_takes_the_small_ones() {
    let advice = advice(&["before.csv", "after.csv", "perfmon.csv"], Some(100e9));
    let mut names = chosen(&advice);
    names.sort_unstable();
    assert_eq!(names[..2], ["customers", "order_indexes"]);
    assert!(why(&advice, "orders").contains("partitions"));
    assert_eq!(outcome(&advice, "partitions"), Outcome::Fires);
    let bytes: f64 =
        advice.objects.iter().filter(|row| row.verdict == Verdict::Flash).filter_map(|row| row.bytes).sum();
    assert!(bytes <= 100e9);
}

#[test]
fn without_processors_the_gain_is_not_known() {
    let advice = advice(&["before.csv", "after.csv"], Some(400e9));
    assert_eq!(advice.chosen.gain, None);
    assert!(advice.answer[0].contains("not known"), "{:?}", advice.answer);
    assert_eq!(
        chosen(&advice),
        ["customers", "orders", "order_indexes"],
        "the order does not need processors"
    );
}

#[test]
fn oracle_alone_is_enough() {
    let limited = advice(&["awr.txt"], Some(100e9));
    assert!(limited.answer[1].contains("sizes of the candidates are not known"), "{:?}", limited.answer);
    let mut known = evidence(&["awr.txt"]);
    let site = Site::parse("[size]\n\"APP.ORDERS\" = \"40GB\"\n", "site.toml").expect("a site");
    site.add_sizes(&mut known);
    assert_eq!(known.objects.iter().filter_map(|object| object.bytes).collect::<Vec<_>>(), [40e9]);
    let advice = advice(&["awr.txt"], None);
    let first = &advice.objects[0];
    assert_eq!(first.verdict, Verdict::Flash);
    assert!(advice.objects.iter().all(|row| row.bytes.is_none()), "AWR has no sizes");
    assert!(advice.chosen.gain.is_some_and(|gain| gain.expected > 0.2), "{:?}", advice.chosen);
    assert!(why(&advice, "redo log").contains("log"));
}

/// A number of processors that is not known is not one.
#[test]
fn without_the_number_of_processors_there_is_no_gain() {
    let catalog = Catalog::embedded();
    let question = Question {
        flash: Some(400e9),
        drive: FlashDrive::of(&catalog, "ssd-sata").expect("it is there"),
        disk: Disk::of(&catalog, "sas-10k-900gb-sff").expect("it is there"),
        site: Site::default(),
    };
    let advice = advise(&evidence(&["before.csv", "after.csv", "perfmon.csv"]), &question);
    assert_eq!((advice.chosen.gain, advice.storage_share), (None, None));
    assert!(advice.answer[1].contains("--cores"), "{:?}", advice.answer);
}

/// Waits without a time have shares and no rates; the host's figures say what the database's do not.
#[test]
fn shares_need_no_time() {
    let report = advice(&["file_statistics.csv"], Some(250e9));
    assert_eq!(chosen(&report), ["sales_a"]);
    let row = &report.objects[0];
    assert!(row.wait_share.is_some_and(|share| share > 0.8), "{row:?}");
    assert!(row.reads_s.is_none() && row.gain.is_none(), "{row:?}");
    let host = advice(&["iostat_new.txt"], None);
    assert!(host.answer[0].contains("The host waits for storage"), "{:?}", host.answer);
}

#[test]
fn mariadb_alone_is_enough() {
    let advice = advice(&["mariadb.jsonl"], Some(100e9));
    assert_eq!(chosen(&advice), ["orders"]);
    assert!(advice.chosen.gain.is_some_and(|gain| gain.expected > 0.5), "{:?}", advice.chosen);
    assert!(why(&advice, "history").contains("large scans"), "{}", why(&advice, "history"));
    assert!(why(&advice, "redo log").contains("log") && why(&advice, "binary log").contains("log"));
}

#[test]
fn postgresql_alone_is_enough() {
    let advice = advice(&["postgres.jsonl"], Some(100e9));
    assert_eq!(chosen(&advice), ["orders"]);
    assert!(advice.chosen.gain.is_some_and(|gain| gain.expected > 0.5), "{:?}", advice.chosen);
}
