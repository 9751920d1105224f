//! Segments of Oracle: each has the I/Os and the times of its own tablespace.

use tier0_advisor::advice::{Advice, Question, Ranked, Verdict, advise};
use tier0_advisor::drives::{Disk, FlashDrive};
use tier0_advisor::evidence::{Counter, Evidence, Kind, Level};
use tier0_advisor::site::Site;
use tier0_catalog::Catalog;

use crate::{object, try_texts};

/// An archive that is read by scans, orders that are read one by one, and a tablespace whose name is cut in the table of segments.
const REPORT: &str = "\
WORKLOAD REPOSITORY report for

   Elapsed:               60.00 (mins)
   DB Time:              300.00 (mins)

               Buffer Cache:    24,576M    24,576M  Std Block Size:         8K

Host CPU (CPUs:    8 Cores:    8 Sockets:    2)
~~~~~~~~         Load Average
               Begin       End     %User   %System      %WIO     %Idle
           --------- --------- --------- --------- --------- ---------
                6.00      7.00      28.0       4.0      40.0      68.0

Tablespace IO Stats                       DB/Inst: SHOP/shop  Snaps: 10-11
-> ordered by IOs (Reads + Writes) desc

Tablespace
------------------------------
                 Av       Av     Av                       Av     Buffer  Av Buf
         Reads Reads/s  Rd(ms) Blks/Rd       Writes Writes/s      Waits  Wt(ms)
-------------- ------- ------- ------- ------------ -------- ---------- -------
ORDERS
     1,000,000     278    10.0     1.0      400,000      111        100     1.0
HISTORY
        36,000      10    20.0    32.0            0        0          0     0.0
CUSTOMERS_2024
       100,000      28     5.0     1.0            0        0          0     0.0
TEMP
        10,000       3    15.0    16.0       90,000       25          0     0.0
          -------------------------------------------------------------
Segments by Physical Reads                DB/Inst: SHOP/shop  Snaps: 10-11
-> Total Physical Reads:       2,412,000

           Tablespace                      Subobject  Obj.      Physical
Owner         Name    Object Name            Name     Type         Reads  %Total
---------- ---------- -------------------- ---------- ----- ------------ -------
APP        HISTORY    ORDERS_HIST                     TABLE    1,152,000   47.76
APP        ORDERS     ORDERS                          TABLE      600,000   24.88
APP        ORDERS     IX_ORDERS                       INDEX      300,000   12.44
APP        CUSTOMERS_ CUSTOMERS                       TABLE      110,000    4.56
APP        ELSEWHERE  OTHERS                          TABLE      100,000    4.15
          -------------------------------------------------------------
End of Report
";

fn of(report: &str) -> Evidence {
    try_texts(&[("awr.txt", report)]).unwrap_or_else(|error| panic!("{error}"))
}

fn advice(evidence: &Evidence) -> Advice {
    let catalog = Catalog::embedded();
    let question = Question {
        flash: None,
        drive: FlashDrive::of(&catalog, "ssd-sata").expect("it is there"),
        disk: Disk::of(&catalog, "sas-10k-900gb-sff").expect("it is there"),
        site: Site::default(),
    };
    advise(evidence, &question)
}

fn row<'a>(advice: &'a Advice, name: &str) -> &'a Ranked {
    advice.objects.iter().find(|row| row.own_name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Reads, milliseconds and bytes of a read.
fn reads(evidence: &Evidence, name: &str) -> [Option<f64>; 3] {
    let segment = evidence.objects.iter().filter(|object| object.identity.level >= Level::Segment);
    let mut counts = segment.filter(|object| object.identity.name == name).map(|object| object.counts);
    let counts = counts.next().unwrap_or_else(|| panic!("no {name}"));
    [counts.get(Counter::Reads), counts.ms_per_read(), counts.bytes_per_read()]
        .map(|value| value.map(|value| (value * 1e6).round() / 1e6))
}

#[test]
fn each_segment_has_the_times_of_its_tablespace() {
    let evidence = of(REPORT);
    let block = 8192.0;
    for (name, count, ms, bytes) in [
        ("ORDERS_HIST", 36_000.0, 20.0, 32.0 * block),
        ("ORDERS", 600_000.0, 10.0, block),
        ("IX_ORDERS", 300_000.0, 10.0, block),
        ("rest of ORDERS", 100_000.0, 10.0, block),
        // More blocks than its tablespace: what is rounded invents no I/Os.
        ("CUSTOMERS", 100_000.0, 5.0, block),
        // Nothing of it is listed.
        ("TEMP", 10_000.0, 15.0, 16.0 * block),
    ] {
        assert_eq!(reads(&evidence, name), [Some(count), Some(ms), Some(bytes)], "{name}");
    }
    assert_eq!(reads(&evidence, "OTHERS"), [None; 3], "its tablespace has no statistics");
    assert!(
        evidence.notes.iter().any(|note| note.contains("(tablespace ELSEWHERE)")),
        "{:?}",
        evidence.notes
    );
    assert_eq!(object(&evidence, "IX_ORDERS").kind, Kind::Index);
}

/// All segments had the mean time of all blocks, so that an archive of scans had nearly half of the waits and went to flash.
#[test]
fn a_scanned_archive_stays_with_and_without_segments() {
    let section = REPORT.find("Segments by Physical").expect("it is there");
    let without = format!("{}End of Report\n", &REPORT[..section]);
    let (with, without) = (advice(&of(REPORT)), advice(&of(&without)));
    for (advice, name) in [(&with, "ORDERS_HIST"), (&without, "HISTORY")] {
        let row = row(advice, name);
        assert_eq!(row.verdict, Verdict::Stays, "{row:?}");
        assert_eq!(row.why, "read by large scans (mean read 256 KiB): disks are good at them");
        // 720 of 11,370 seconds.
        assert!(row.wait_share.is_some_and(|share| (0.06..0.07).contains(&share)), "{row:?}");
    }
    let flash = |advice: &Advice| {
        let chosen = advice.objects.iter().filter(|row| row.verdict == Verdict::Flash);
        let mut names: Vec<String> = chosen.map(|row| row.own_name.clone()).collect();
        names.sort_unstable();
        names
    };
    assert_eq!(flash(&with), ["CUSTOMERS", "IX_ORDERS", "ORDERS", "rest of ORDERS"]);
    assert_eq!(flash(&without), ["CUSTOMERS_2024", "ORDERS"]);
    assert_eq!(row(&with, "OTHERS").why, "its I/O was not measured");
}

#[test]
fn without_tablespaces_blocks_are_all_that_is_known() {
    let (from, to) = (
        REPORT.find("Tablespace IO").expect("it is there"),
        REPORT.find("Segments by").expect("it is there"),
    );
    let evidence = of(&format!("{}{}", &REPORT[..from], &REPORT[to..]));
    assert_eq!(reads(&evidence, "ORDERS_HIST"), [Some(1_152_000.0), None, None]);
    assert!(
        evidence.notes.iter().any(|note| note.contains("no statistics of tablespaces")),
        "{:?}",
        evidence.notes
    );
}
