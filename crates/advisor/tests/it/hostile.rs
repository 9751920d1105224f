//! Reports that are cut off, in other encodings, with counters that fell, or with lines that are no report's.

use std::collections::BTreeMap;

use tier0_advisor::evidence::{Collector, Counter, Evidence, Identity, Level};
use tier0_advisor::read::{ReadError, read};

use crate::{EXAMPLE, SAMPLES, object, text, try_texts};

fn of_bytes(bytes: &[u8]) -> Result<Evidence, ReadError> {
    let mut collector = Collector::default();
    read("f", bytes, None, &mut collector)?;
    Ok(collector.finish(None))
}

fn notes_have(evidence: &Evidence, word: &str) -> bool {
    evidence.notes.iter().any(|note| note.contains(word))
}

/// Reads and writes of all objects that have some.
fn counted(evidence: &Evidence) -> BTreeMap<Identity, [Option<f64>; 2]> {
    let of = |object: &tier0_advisor::evidence::Object| {
        (object.identity.clone(), [Counter::Reads, Counter::Writes].map(|counter| object.counts.get(counter)))
    };
    evidence.objects.iter().map(of).collect()
}

/// Half of a number must not pass for a number, wherever a copy of a report ended.
#[test]
fn a_report_of_oracle_that_is_cut_anywhere_says_so_and_invents_nothing() {
    for (name, end) in [("awr.txt", "End of Report"), ("awr.html", "</html>")] {
        let whole = of_bytes(text(name).as_bytes()).expect("it is whole");
        assert!(!notes_have(&whole, "cut off"), "{name}: {:?}", whole.notes);
        let known = counted(&whole);
        let mut read_in_part = 0;
        for length in 1..text(name).find(end).expect("it has an end") {
            // A page or a text that begins with nothing that names it is refused.
            let Ok(cut) = of_bytes(&text(name).as_bytes()[..length]) else { continue };
            read_in_part += 1;
            assert!(notes_have(&cut, "may be cut off"), "{name}, {length} bytes: {:?}", cut.notes);
            for (identity, counts) in counted(&cut) {
                // The log's waits come from two tables: of the first one, those of commits. What segments leave is the more, the
                // fewer of them are listed.
                let is_known = known.get(&identity) == Some(&counts)
                    || identity.name == "redo log"
                    || identity.level == Level::Rest;
                assert!(is_known, "{name}, {length} bytes: {identity:?} {counts:?}");
            }
            let (found, known) = (cut.instance, whole.instance);
            assert!(
                found.transactions.is_none() || found.transactions == known.transactions,
                "{name}, {length} bytes"
            );
            assert!(
                found.active_ms.is_none() || found.active_ms == known.active_ms,
                "{name}, {length} bytes"
            );
        }
        assert!(read_in_part > 1000, "{name}: {read_in_part}");
    }
}

#[test]
fn a_table_that_is_cut_within_its_last_row_is_refused() {
    let whole = text("file_statistics.csv").trim_end();
    let last = whole.rfind('\n').expect("it has lines") + 1;
    let cut = &whole[..last + whole[last..].find(',').expect("it has columns") + 3];
    let error = try_texts(&[("f", cut)]).expect_err("a row has half of its cells").to_string();
    assert!(error.contains("line") && error.contains("cut off"), "{error}");
    // A log of counters may be copied while it is written: its last row is left out.
    let perfmon = text("perfmon.csv").trim_end();
    let cut = &perfmon[..perfmon.rfind("\",\"").expect("it has columns")];
    let (all, rest) = (of_bytes(perfmon.as_bytes()).expect("whole"), of_bytes(cut.as_bytes()).expect("cut"));
    assert_eq!(rest.sources[0].samples + 1, all.sources[0].samples);
}

#[test]
fn every_report_is_read_in_utf_16() {
    for (name, text) in SAMPLES.iter().chain(&EXAMPLE) {
        let wanted = format!("{:?}", of_bytes(text.as_bytes()).expect("it is read"));
        let units = || "\u{feff}".encode_utf16().chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for bytes in [&little[..], &big[..], &little[2..], &big[2..]] {
            let found = of_bytes(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(format!("{found:?}"), wanted, "{name}");
        }
    }
}

/// The separators of Germany, with counters under their English names, in quotes and with either delimiter.
#[test]
fn perfmon_with_decimal_commas() {
    for delimiter in [",", ";"] {
        let cells = |row: [&str; 4]| row.map(|cell| format!("\"{cell}\"")).join(delimiter);
        let disk = r"\\DB1\PhysicalDisk(1 E:)";
        let text = [
            cells([
                "(PDH-CSV 4.0) (Mitteleuropäische Zeit)(-60)",
                r"\\DB1\Processor(_Total)\% Processor Time",
                &format!(r"{disk}\Avg. Disk sec/Read"),
                &format!(r"{disk}\Disk Reads/sec"),
            ]),
            cells(["05/01/2024 10:00:00,000", " ", " ", " "]),
            cells(["05/01/2024 10:00:10,000", "12,5", "0,005", "1234,567"]),
        ];
        let text = format!("\r\n{}\r\n\r\nThe command completed successfully.\r\n", text.join("\r\n"));
        let evidence = try_texts(&[("f", &text)]).unwrap_or_else(|error| panic!("{error}"));
        let disk = &evidence.devices[0];
        assert_eq!((disk.read_ms, disk.reads_s), (Some(5.0), Some(1234.567)), "{delimiter}");
        assert_eq!(evidence.host.busy, Some(0.125));
    }
}

/// `720.000` was 720 reads.
#[test]
fn points_between_thousands_of_a_table_with_decimal_commas() {
    let of = |reads: &str| {
        format!(
            "name;num_of_reads;num_of_writes;num_of_bytes_read;size_on_disk_mb\na;{reads};30;5.898.240.000;12,5\n"
        )
    };
    let evidence = try_texts(&[("f", &of("720.000"))]).unwrap_or_else(|error| panic!("{error}"));
    let file = object(&evidence, "a");
    assert_eq!(file.counts.get(Counter::Reads), Some(720_000.0));
    assert_eq!(file.counts.bytes_per_read(), Some(8192.0));
    assert_eq!(file.bytes, Some(12.5 * 1024.0 * 1024.0), "a size may have a fraction");
    for wrong in ["720.5", "720,5", "7200.125"] {
        let error = try_texts(&[("f", &of(wrong))]).expect_err(wrong).to_string();
        let begin = format!("f, line 2, column \"num_of_reads\": \"{wrong}\" is not a whole count");
        assert!(error.starts_with(&begin), "{error}");
    }
    let with_commas = of("720.000").replace(';', "\t");
    assert!(
        try_texts(&[("f", &with_commas)]).is_err(),
        "two points are no number where a comma is not the decimal one"
    );
}

/// What `sqlcmd -s ";"` writes with and without `-W`, and PowerShell's `Export-Csv`.
#[test]
fn the_lines_that_tools_add_are_no_rows() {
    for text in [
        "name;num_of_reads;num_of_writes\n----;------------;-------------\na;1200;30\n\n(1 rows affected)\n",
        "name      ;num_of_reads        ;num_of_writes       \n\
         ----------;--------------------;--------------------\n\
         a         ;                1200;                  30\n\n(1 rows affected)\n",
        "name,num_of_reads,num_of_writes\n----  ,------------  ,  -------------\na,1200,30\n",
        "#TYPE System.Data.DataRow\n\"name\",\"num_of_reads\",\"num_of_writes\"\n\"a\",\"1200\",\"30\"\n",
        "\u{feff}#TYPE Selected.System.Data.DataRow\r\n\"name\";\"num_of_reads\";\"num_of_writes\"\r\n\"a\";\"1.200\";\"30\"\r\n",
    ] {
        let evidence = try_texts(&[("f", text)]).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(object(&evidence, "a").counts.get(Counter::Reads), Some(1200.0), "{text}");
        assert_eq!(evidence.objects.len(), 1, "{text}");
    }
    let wrong = "#TYPE System.Data.DataRow\nname,num_of_reads,num_of_writes\na,12z,30\n";
    let error = try_texts(&[("f", wrong)]).expect_err("a wrong cell").to_string();
    assert!(error.starts_with("f, line 3, column \"num_of_reads\""), "{error}");
    let error = try_texts(&[("f", "#TYPE System.Data.DataRow\n")]).expect_err("nothing").to_string();
    assert!(error.contains("not recognised"), "{error}");
}

#[test]
fn counters_that_fell_are_a_restart() {
    // MySQL says how long it is up.
    let (start, end) = (text("mysql_start.txt"), text("mysql_end.txt"));
    let restarted = try_texts(&[("f", end), ("g", start)]).expect("both are read");
    assert_eq!(
        (restarted.restarts, restarted.seconds),
        (1, Some(1000.0)),
        "what was counted since its start"
    );
    assert_eq!(object(&restarted, "data").counts.get(Counter::Reads), Some(50_000.0));
    // Statements were thrown out of SQL Server's cache.
    let objects = text("objects.csv");
    let fewer = objects.replace("400000", "40");
    let fallen = try_texts(&[("f", objects), ("g", &fewer)]).expect("both are read");
    assert_eq!(fallen.restarts, 1);
    assert!(notes_have(&fallen, "counters fell"), "{:?}", fallen.notes);
    // A table of PostgreSQL that was made again, and all others as before.
    let samples = text("postgres.jsonl");
    let last = samples.lines().last().expect("it has samples");
    let before = try_texts(&[("f", samples)]).expect("it is read");
    let reads = |evidence: &Evidence, name: &str| object(evidence, name).counts.get(Counter::Reads);
    let mut sample: serde_json::Value = serde_json::from_str(last).expect("JSON");
    for relation in sample["relations"].as_array_mut().expect("relations") {
        if relation["name"] == "orders" {
            relation["reads"] = 5.into();
        }
    }
    let made_again = try_texts(&[("f", &format!("{samples}{sample}\n"))]).expect("it is read");
    assert_eq!(made_again.restarts, 0);
    assert_eq!(reads(&made_again, "orders"), reads(&before, "orders").map(|reads| reads + 5.0));
    assert_eq!(reads(&made_again, "orders_pkey"), reads(&before, "orders_pkey"));
}

#[test]
fn one_sample_only_says_so() {
    let first = |name: &str| text(name).lines().next().expect("a line").to_owned() + "\n";
    for one in [text("mysql_start.txt").to_owned(), text("objects.csv").to_owned(), first("postgres.jsonl")] {
        let evidence = try_texts(&[("f", &one)]).unwrap_or_else(|error| panic!("{error}"));
        assert!(!evidence.is_period && notes_have(&evidence, "one sample only"), "{:?}", evidence.notes);
    }
}

/// The same file twice was a period in which nothing waited.
#[test]
fn the_same_file_twice_is_one_sample() {
    for name in ["before.csv", "file_statistics.csv", "mysql_start.txt", "objects.csv"] {
        let twice =
            try_texts(&[("f", text(name)), ("g", text(name))]).unwrap_or_else(|error| panic!("{error}"));
        let once = try_texts(&[("f", text(name))]).unwrap_or_else(|error| panic!("{error}"));
        assert!(
            !twice.is_period && notes_have(&twice, "g: the samples are the same"),
            "{name}: {:?}",
            twice.notes
        );
        assert_eq!(twice.objects, once.objects, "{name}");
    }
}

#[test]
fn lines_without_an_end_are_refused() {
    let long = "x".repeat(100_000);
    for (begin, name) in
        [(text("iostat_new.txt"), "iostat"), (text("sar.txt"), "sar"), (text("awr.txt"), "awr")]
    {
        let error = try_texts(&[("f", &format!("{begin}\n{long}"))]).expect_err(name).to_string();
        assert!(error.contains("line") && error.contains("65536 bytes"), "{error}");
    }
    // A table may have long cells, up to a bound.
    let csv = format!("name,num_of_reads,num_of_writes\n{long},1,2\n");
    assert!(try_texts(&[("f", &csv)]).is_ok());
}

/// Old iostat writes times of the day, and `-xs` one row of sums.
#[test]
fn other_forms_of_iostat() {
    let old = "Linux 2.6.18 (db1)\t10/07/2014\n\nTime: 11:59:55 PM\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
               \x20          10.00    0.00    5.00    5.00    0.00   80.00\n\n\
               Device:  r/s   w/s   rsec/s   wsec/s avgqu-sz await  svctm  %util\nsda 1.00 1.00 16.00 16.00 0.10 5.00 1.00 1.00\n\n";
    let next = old.replace("11:59:55 PM", "12:00:05 AM").replace("sda 1.00 1.00", "sda 3.00 1.00");
    let evidence = try_texts(&[("f", &format!("{old}{next}"))]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((evidence.host.interval_s, evidence.devices[0].reads_s), (Some(10.0), Some(3.0)));
    let short = "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\nsda 8.00 279.00 1.75 12.00 32.51 0.10 0.46\n";
    let evidence = try_texts(&[("f", short)]).unwrap_or_else(|error| panic!("{error}"));
    let device = &evidence.devices[0];
    assert_eq!((device.ios_s, device.io_ms, device.bytes_s), (Some(8.0), Some(12.0), Some(279.0 * 1024.0)));
}

/// Colours, units for people, and a table of memory behind that of the processors.
#[test]
fn other_forms_of_sar() {
    let text = "Linux 6.1 (db1) \t05/01/24 \t_x86_64_\t(4 CPU)\n\n\
                10:00:00        CPU     %user     %nice   %system   %iowait    %steal     %idle\n\
                10:10:00   \u{1b}[32;22m     all\u{1b}[0m\u{1b}[34;1m     20.0%\u{1b}[0m 0.0% 5.0% 5.0% 0.0% 70.0%\n\n\
                10:00:00    kbmemfree   kbavail kbmemused\n10:10:00      1437740   4389516   3179712\n\n\
                10:00:00 tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util DEV\n10:10:00 9.62 1.5M 0.5k 0.0k 2.5k 0.01 13.00 1.0% sda\n";
    let evidence = try_texts(&[("f", text)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(evidence.host.busy.map(|busy| (busy * 100.0).round()), Some(25.0));
    assert_eq!(evidence.devices[0].bytes_s, Some((1536.0 + 0.5) * 1024.0));
}

/// 11.2 writes the processors directly under the events, without an end of the table.
#[test]
fn processors_of_oracle_under_a_table_without_an_end() {
    let text = text("awr.txt").replacen(
        "          -------------------------------------------------------------\nHost CPU",
        "Host CPU",
        1,
    );
    assert_ne!(text, crate::text("awr.txt"));
    let evidence = try_texts(&[("f", &text)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (evidence.host.busy.map(|busy| (busy * 100.0).round()), evidence.host.cores),
        (Some(32.0), Some(8.0))
    );
    let whole = of_bytes(crate::text("awr.txt").as_bytes()).expect("it is read");
    assert_eq!(evidence.instance, whole.instance);
}

/// A part of MySQL's status, and several statuses without the name that the whole ones begin with.
#[test]
fn parts_of_the_status_of_mysql() {
    let of = |reads: u64, uptime: u64| {
        format!(
            "Variable_name\tValue\nInnodb_buffer_pool_read_requests\t{}\nInnodb_buffer_pool_reads\t{reads}\nUptime\t{uptime}\n",
            90 * reads
        )
    };
    let evidence =
        try_texts(&[("f", &(of(100, 10) + &of(500, 20)))]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(object(&evidence, "data").counts.get(Counter::Reads), Some(400.0));
    assert_eq!(evidence.seconds, Some(10.0));
}
