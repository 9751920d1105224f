//! Streams of commits, each remembered once the database has acknowledged it.
//!
//! A stream is one session that inserts rows numbered 1, 2, 3 … and commits each by itself. Row n + 1 is sent when row n
//! was acknowledged, so after a crash a stream has all acknowledged rows, perhaps one more, and no gap.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::TortureError;
use crate::postgres::Cluster;

/// The table of all streams.
pub(crate) const TABLE: &str =
    "create table torture (stream int, n bigint, filler text, primary key (stream, n))";

/// One stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    number: u32,
    /// The last row that was acknowledged; 0 for none.
    acknowledged: u64,
}

impl Stream {
    /// A stream without rows.
    pub(crate) fn new(number: u32) -> Stream {
        Stream { number, acknowledged: 0 }
    }

    /// Commits one row after the other until the database or its storage is gone; how many it committed.
    pub(crate) fn run(&mut self, cluster: &Cluster) -> Result<u64, TortureError> {
        let fail = |what| TortureError::system(format!("psql {what}"));
        let mut psql = cluster.client("psql");
        psql.args(["--no-psqlrc", "--set", "ON_ERROR_STOP=1", "postgres"]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = psql.spawn().map_err(fail("cannot be started"))?;
        let mut input = child.stdin.take().expect("it is piped");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let before = self.acknowledged;
        loop {
            let n = self.acknowledged + 1;
            let sql = format!("insert into torture values ({}, {n}, repeat('{n} ', 40));\n", self.number);
            if input.write_all(sql.as_bytes()).is_err() {
                break;
            }
            // The command's tag comes after the commit (PostgreSQL protocol, "Simple Query").
            match lines.next() {
                Some(Ok(tag)) if tag == "INSERT 0 1" => self.acknowledged = n,
                Some(Ok(other)) => return Err(TortureError::Failed(format!("psql answers {other:?}"))),
                Some(Err(_)) | None => break,
            }
        }
        drop(input);
        child.wait().map_err(fail("cannot be waited for"))?;
        Ok(self.acknowledged - before)
    }

    /// Checks that all acknowledged rows are there, in the state after a restart, and takes one more for acknowledged if
    /// it is.
    pub(crate) fn check(&mut self, cluster: &Cluster) -> Result<(), TortureError> {
        let number = self.number;
        let sql = format!(
            "select count(*), coalesce(max(n), 0), coalesce(sum(n), 0), \
             count(*) filter (where filler <> repeat(n || ' ', 40)) from torture where stream = {number}"
        );
        let answer = cluster.query(&sql)?;
        let figures: Vec<u64> = answer.split('|').filter_map(|figure| figure.parse().ok()).collect();
        let [count, last, sum, damaged] = figures[..] else {
            return Err(TortureError::Failed(format!("stream {number}: the database answers {answer:?}")));
        };
        let acknowledged = self.acknowledged;
        let whole = count == last && sum == last * (last + 1) / 2 && damaged == 0;
        if !whole || last < acknowledged || last > acknowledged + 1 {
            return Err(TortureError::Failed(format!(
                "stream {number}: {acknowledged} rows were acknowledged, but the database has {count} up to number \
                 {last}, {damaged} of them damaged"
            )));
        }
        self.acknowledged = last;
        Ok(())
    }
}
