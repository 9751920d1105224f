//! What is read of each format.

use tier0_advisor::evidence::{Counter, Format, Kind, Level, Trap};

use crate::{evidence, object, text, try_texts};

#[track_caller]
fn near(found: Option<f64>, wanted: f64) {
    let found = found.expect("it was measured");
    assert!((found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0), "{found} and not {wanted}");
}

#[test]
fn the_report_of_sql_server_and_its_trap() {
    let evidence = evidence(&["file_statistics.csv"]);
    let file = object(&evidence, "sales_a");
    assert_eq!((file.kind, file.bytes), (Kind::Data, Some(214_748_364_800.0)));
    near(file.counts.ms_per_io(), 14.5);
    assert_eq!(file.counts.ms_per_read(), None, "the report does not tell reads and writes apart");
    assert_eq!(object(&evidence, "sales_log").kind, Kind::Log);
    assert_eq!(object(&evidence, "tempdev").kind, Kind::Temp);
    assert_eq!(evidence.traps, [Trap::StallPercent { equal: 4, of: 4 }]);
    assert!(!evidence.is_period, "one sample");
}

/// Sizes in a unit that is not known are not measured.
#[test]
fn sizes_of_an_unknown_unit_are_not_measured() {
    let small = text("file_statistics.csv").replace("214748364800", "26214400").replace("8589934592", "1024");
    let evidence = try_texts(&[("f", &small)]).expect("it is read");
    assert_eq!(object(&evidence, "sales_a").bytes, None);
    assert!(evidence.notes.iter().any(|note| note.contains("--size-unit")), "{:?}", evidence.notes);
}

#[test]
fn two_samples_of_virtual_file_stats() {
    let evidence = evidence(&["before.csv", "after.csv"]);
    near(evidence.seconds, 3600.0);
    assert!(evidence.is_period);
    let orders = object(&evidence, "orders");
    near(orders.counts.get(Counter::Reads), 1800.0 * 3600.0);
    near(orders.counts.ms_per_read(), 12.6);
    near(orders.counts.ms_per_write(), 9.0);
    assert_eq!(object(&evidence, "orders_log").kind, Kind::Log);
}

#[test]
fn the_table_of_blitz_first_with_a_restart() {
    let evidence = evidence(&["blitz_table.csv"]);
    // 90,000 before the restart, 9,000 since.
    near(object(&evidence, "sales_a").counts.get(Counter::Reads), 99_000.0);
    near(evidence.seconds, 1800.0);
    assert_eq!(evidence.restarts, 1);
    near(object(&evidence, "sales_a").bytes, 200_000.0 * 1024.0 * 1024.0);
}

#[test]
fn the_result_of_blitz_first() {
    let evidence = evidence(&["blitz_result.csv"]);
    let file = object(&evidence, "sales_a");
    near(file.counts.ms_per_read(), 18.0);
    near(file.counts.ms_per_write(), 7.0);
    near(evidence.seconds, 30.0);
    assert_eq!(object(&evidence, "sales_log").counts.get(Counter::Reads), None, "it is not listed");
    assert_eq!(object(&evidence, "sales_log").kind, Kind::Log);
}

#[test]
fn statistics_of_objects_and_logical_reads_among_them() {
    let evidence = evidence(&["objects.csv"]);
    assert_eq!(object(&evidence, "ix_orders_date").kind, Kind::Index);
    near(object(&evidence, "orders").counts.hit_share(), 0.95);
    let doubted: Vec<_> = evidence.traps.iter().map(|trap| format!("{trap:?}")).collect();
    assert!(doubted.len() == 1 && doubted[0].contains("countries"), "{doubted:?}");
}

#[test]
fn both_sets_of_columns_of_iostat() {
    for (name, read_ms, queue) in [("iostat_old.txt", None, 12.0), ("iostat_new.txt", Some(14.0), 11.6)] {
        let evidence = evidence(&[name]);
        assert_eq!(evidence.devices.len(), 1);
        let device = &evidence.devices[0];
        near(device.reads_s, 700.0);
        near(device.queue, queue);
        near(device.bytes_s, 8000.0 * 1024.0);
        assert_eq!(device.read_ms, read_ms, "{name}");
        near(evidence.host.busy, 0.25);
        near(evidence.host.io_wait, 0.45);
        near(evidence.host.cores, 8.0);
    }
    near(evidence(&["iostat_old.txt"]).host.interval_s, 10.0);
    near(evidence(&["iostat_old.txt"]).devices[0].io_ms, 12.0);
}

#[test]
fn sar_over_midnight() {
    let evidence = evidence(&["sar.txt"]);
    near(evidence.host.busy, 0.3);
    near(evidence.host.run_queue, 7.0);
    near(evidence.host.interval_s, 300.0);
    let sda = evidence.devices.iter().find(|device| device.name == "sda").expect("it is there");
    near(sda.io_ms, 14.0);
    let idle = evidence.devices.iter().find(|device| device.name == "sdb").expect("it is there");
    assert_eq!(idle.io_ms, None, "no I/O has no latency");
}

#[test]
fn perfmon_of_a_host() {
    let evidence = evidence(&["perfmon.csv"]);
    assert_eq!(evidence.devices.len(), 1);
    assert_eq!(evidence.devices[0].name, "1 E:");
    assert!(evidence.host.busy.is_some_and(|busy| (0.3..0.4).contains(&busy)));
    assert!(evidence.hit_share().is_some_and(|share| (0.96..0.99).contains(&share)));
    near(evidence.host.interval_s, 10.0);
}

#[test]
fn perfmon_of_another_language_says_what_to_do() {
    let german = "\"(PDH-CSV 4.0) (Mitteleuropäische Zeit)(-60)\";\"\\\\DB1\\Prozessor(_Total)\\Prozessorzeit (%)\"\n\
                  \"05/01/2024 10:00:00.000\";\"12,5\"\n";
    let error = try_texts(&[("perf.csv", german)]).expect_err("no counter is known").to_string();
    assert!(error.contains("perf.csv, line 1") && error.contains("English names"), "{error}");
}

#[test]
fn reports_of_oracle_as_text_and_page() {
    for name in ["awr.txt", "awr.html"] {
        let evidence = evidence(&[name]);
        assert_eq!(evidence.sources[0].format, Format::Awr);
        near(evidence.seconds, 3600.0);
        near(evidence.host.busy, 0.32);
        near(evidence.host.cores, 8.0);
        near(evidence.hit_share(), 0.965);
        near(evidence.instance.active_ms, 54_000_000.0);
        near(evidence.instance.cpu_ms, 9_000_000.0);
        near(evidence.instance.log_wait_ms, 2_700_000.0);
        let space = object(&evidence, "ORDERS");
        let spaces = evidence.objects.iter().filter(|object| object.identity.level == Level::Tablespace);
        let orders = spaces.clone().find(|object| object.identity.name == "ORDERS").unwrap_or(space);
        near(orders.counts.get(Counter::Reads), 2_900_000.0);
        near(orders.counts.ms_per_read(), 10.2);
        near(orders.counts.bytes_per_read(), 1.1 * 8192.0);
        let temp = spaces.clone().find(|object| object.identity.name == "TEMP").expect("it is there");
        assert_eq!((temp.kind, temp.is_sequential()), (Kind::Temp, Some(true)));
        let lines = object(&evidence, "ORDER_LINES:P2024");
        assert_eq!((lines.kind, lines.identity.database.as_str()), (Kind::Partition, "APP"));
        // 1,900,000 of the 3,190,000 blocks of its tablespace, whose 2,900,000 reads have 1.1 each.
        near(lines.counts.get(Counter::Reads), 1_900_000.0 / 1.1);
        near(lines.counts.ms_per_read(), 10.2);
        assert_eq!(object(&evidence, "IX_ORDERS_CUSTOMER").kind, Kind::Index);
    }
    let text = evidence(&["awr.txt"]);
    near(text.instance.io_wait_ms, 37_500_000.0);
    near(object(&text, "orders01.dbf").counts.get(Counter::Reads), 1_900_000.0);
    let rest = object(&text, "rest of ORDERS");
    near(rest.counts.get(Counter::Reads), 150_000.0 / 1.1);
    near(rest.counts.get(Counter::Writes), 400_000.0);
    let log = object(&text, "redo log");
    near(log.counts.ms_per_write(), 2.0);
}

#[test]
fn statspack() {
    let evidence = evidence(&["statspack.txt"]);
    near(evidence.seconds, 1800.0);
    near(object(&evidence, "USERS").counts.get(Counter::Reads), 1_800_000.0);
    near(evidence.instance.io_wait_ms, 18_000_000.0);
    near(evidence.instance.cpu_ms, 2_500_000.0);
}

#[test]
fn a_report_that_is_cut_off_says_so() {
    let cut = &text("awr.txt")[..1500];
    let error = try_texts(&[("awr.txt", cut)]).expect_err("it has no tables").to_string();
    assert!(error.contains("cut off") && error.contains("line"), "{error}");
}

#[test]
fn a_pair_of_mysql() {
    let evidence = evidence(&["mysql_start.txt", "mysql_end.txt"]);
    near(evidence.seconds, 600.0);
    near(evidence.instance.transactions, 60_000.0);
    let data = object(&evidence, "data");
    near(data.counts.get(Counter::Reads), 400_000.0);
    near(data.counts.get(Counter::Writes), 40_000.0);
    assert_eq!(data.counts.wait_ms(), None, "the status has no waits");
    near(object(&evidence, "log").counts.get(Counter::Writes), 60_000.0);
}

#[test]
fn samples_of_postgresql() {
    let evidence = evidence(&["postgres.jsonl"]);
    near(evidence.seconds, 60.0);
    let orders = object(&evidence, "orders");
    near(orders.counts.get(Counter::Reads), 60_000.0);
    near(orders.counts.ms_per_read(), 10.0);
    near(orders.counts.get(Counter::Writes), 6000.0);
    let index = object(&evidence, "orders_pkey");
    assert_eq!((index.kind, index.table.as_deref()), (Kind::Index, Some("orders")));
    near(index.counts.get(Counter::Reads), 0.0);
    near(evidence.host.busy, 0.25);
    near(object(&evidence, "write-ahead log").counts.ms_per_write(), 2.0);
}

#[test]
fn samples_of_mariadb() {
    let evidence = evidence(&["mariadb.jsonl"]);
    near(evidence.seconds, 60.0);
    near(evidence.instance.transactions, 6000.0);
    let orders = object(&evidence, "orders");
    near(orders.counts.get(Counter::Reads), 60_000.0);
    near(orders.counts.get(Counter::Writes), 6000.0);
    near(orders.counts.ms_per_io(), 10.0);
    assert_eq!(orders.counts.get(Counter::WriteMs), None, "InnoDB does not time its writes");
    assert_eq!(orders.identity.path.as_deref(), Some("/var/lib/mysql/shop/orders.ibd"));
    let part = object(&evidence, "lines:p1");
    assert_eq!((part.kind, part.table.as_deref()), (Kind::Partition, Some("lines")));
    near(object(&evidence, "lines:p0").counts.get(Counter::Reads), 0.0);
    // Pages are read one by one, also those of scans.
    assert_eq!(object(&evidence, "history").is_sequential(), Some(true));
    near(object(&evidence, "stage").counts.get(Counter::Reads), 200.0);
    assert_eq!(evidence.restarts, 0, "a table that was emptied is no restart");
    near(object(&evidence, "binary log").counts.ms_per_write(), 2.0);
    near(object(&evidence, "redo log").counts.get(Counter::Writes), 6000.0);
    near(evidence.host.busy, 0.25);
    assert!(evidence.notes.iter().all(|note| !note.contains("performance_schema")), "{:?}", evidence.notes);
}

/// MariaDB's default: the tables are known with their sizes, and their I/O is not 0.
#[test]
fn samples_without_performance_schema() {
    let lines = text("mariadb.jsonl").lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        line["has_files"] = false.into();
        line["has_io_times"] = false.into();
        line["instance"]["transactions"] = serde_json::Value::Null;
        let objects = line["objects"].as_array_mut().expect("a list");
        objects.retain(|object| object["bytes"].is_number());
        for object in objects.iter_mut().filter_map(|object| object.as_object_mut()) {
            object.retain(|field, _| {
                ["schema", "name", "partition", "kind", "bytes"].contains(&field.as_str())
            });
        }
        format!("{line}\n")
    });
    let text: String = lines.collect();
    let evidence = try_texts(&[("f", &text)]).expect("samples");
    assert_eq!(object(&evidence, "orders").counts.get(Counter::Reads), None);
    let ranked: Vec<_> = evidence.ranked().iter().map(|object| object.full_name()).collect();
    assert_eq!(ranked, ["all data of InnoDB", "redo log"]);
    let data = object(&evidence, "all data of InnoDB");
    near(data.counts.get(Counter::Reads), 60_000.0);
    near(data.bytes, 480.58e9);
    near(evidence.instance.transactions, 5400.0);
    for word in ["performance_schema = ON", "COMMIT"] {
        assert!(evidence.notes.iter().any(|note| note.contains(word)), "{word}: {:?}", evidence.notes);
    }
}

/// A line of 600 KB whose objects would take 60 MB, and one of 64 MB a hundred times as much.
#[test]
fn a_list_without_an_end_is_refused_before_it_takes_memory() {
    for name in ["mariadb.jsonl", "postgres.jsonl"] {
        let line = text(name).lines().next().expect("a line");
        let list = if name == "mariadb.jsonl" { "\"objects\":[" } else { "\"relations\":[" };
        let line = line.replacen(list, &format!("{list}{}", "{},".repeat(200_000)), 1);
        let error = try_texts(&[("f", &format!("{line}\n"))]).expect_err("too many").to_string();
        assert!(error.starts_with("f, line 1: ") && error.contains("more than 200000"), "{error}");
    }
}

/// A kill in the middle of a line.
#[test]
fn a_cut_line_of_samples_is_left_out() {
    let whole = text("postgres.jsonl");
    let cut = format!("{whole}{}", &whole[..300]);
    assert!(try_texts(&[("f", &cut)]).is_ok());
    let broken = whole.replacen("\"version\":1", "\"version\":x", 1);
    let error = try_texts(&[("f", &broken)]).expect_err("it is wrong").to_string();
    assert!(error.starts_with("f, line 1: "), "{error}");
}

#[test]
fn what_is_not_known_is_refused_with_a_remedy() {
    for (text, word) in [
        ("", "empty"),
        ("hello\nworld\n", "not recognised"),
        ("\u{feff}a,b\n1,2\n", "not recognised"),
        // What SSMS saves unless it is told otherwise.
        ("shop,orders,8316000,12000\nshop,log,12,900000\n", "header may be missing"),
        ("<html><body>news</body></html>", "awrrpt.sql"),
        ("\0\u{1}\0\0\0\0\0\0\0\0\0\0", "binary"),
        ("Device:            tps    kB_read/s\nsda 1 2\n", "iostat -x"),
    ] {
        let error = try_texts(&[("f", text)]).expect_err("it is no report").to_string();
        assert!(error.starts_with('f') && error.contains(word), "{text:?}: {error}");
    }
}

#[test]
fn a_wrong_cell_has_line_and_column() {
    let wrong = text("after.csv").replacen("83160000", "8316x", 1);
    let error = try_texts(&[("after.csv", &wrong)]).expect_err("it is wrong").to_string();
    assert!(error.starts_with("after.csv, line 2, column \"num_of_reads\": \"8316x\""), "{error}");
}
