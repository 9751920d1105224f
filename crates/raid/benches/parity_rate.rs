//! How fast parity is on this machine: GB/s of data per level, in turn with ISA-L where it is installed.
//!
//! `cargo bench -p tier0-raid --bench parity_rate`
//!
//! Each figure is the median of several rounds, and the rounds of all candidates alternate, so that a noisy
//! neighbour disturbs them alike. The data fits the second-level cache: it is arithmetic that is measured.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tier0_raid::parity::{Level, is_zero};

#[cfg(target_arch = "x86_64")]
#[path = "../tests/it/isal/mod.rs"]
mod isal;

const DATA_UNITS: usize = 8;
const UNIT_BYTES: usize = 8 << 10;
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(20);

/// One thing to measure: what it is, the bytes of data one call takes, the call.
struct Candidate {
    task: &'static str,
    who: String,
    data_bytes: usize,
    call: Box<dyn FnMut()>,
}

fn main() {
    let mut candidates = Vec::new();
    for level in Level::supported() {
        candidates.extend(of_level(level));
    }
    candidates.extend(of_isal());
    candidates.push(zero_detection());

    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for (candidate, rates) in candidates.iter_mut().zip(&mut rates) {
            rates.push(gigabytes_per_second(candidate));
        }
    }
    println!(
        "{DATA_UNITS} data units of {UNIT_BYTES} bytes, median of {ROUNDS} rounds, best level {:?}",
        Level::best()
    );
    println!("{:<34}{:<14}{:>8}", "task", "by", "GB/s");
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|&i| candidates[i].task);
    for i in order {
        rates[i].sort_by(f64::total_cmp);
        println!("{:<34}{:<14}{:>8.1}", candidates[i].task, candidates[i].who, rates[i][ROUNDS / 2]);
    }
}

/// GB (10^9 bytes) of data per second over one round.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock")]
fn gigabytes_per_second(candidate: &mut Candidate) -> f64 {
    let start = Instant::now();
    let mut calls = 0;
    loop {
        for _ in 0..64 {
            (candidate.call)();
        }
        calls += 64;
        let elapsed = start.elapsed();
        if elapsed >= ROUND {
            return (calls * candidate.data_bytes) as f64 / elapsed.as_secs_f64() / 1e9;
        }
    }
}

/// A unit at an address that suits every vector, as ISA-L demands.
#[repr(C, align(64))]
struct Unit([u8; UNIT_BYTES]);

impl AsRef<[u8]> for Unit {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn buffer(seed: usize) -> Unit {
    Unit(std::array::from_fn(|i| (i * 31 + seed * 17 + i / 253) as u8))
}

fn row() -> Vec<Unit> {
    (0..DATA_UNITS).map(buffer).collect()
}

fn of_level(level: Level) -> Vec<Candidate> {
    let candidate =
        |task, data_bytes, call| Candidate { task, who: level.name().to_owned(), data_bytes, call };
    let row_bytes = DATA_UNITS * UNIT_BYTES;

    let (data, mut p) = (row(), buffer(90));
    let sum = Box::new(move || level.xor_many(black_box(&mut p.0), black_box(&data[..])));
    let (data, mut p, mut q) = (row(), buffer(90), buffer(91));
    let both = Box::new(move || level.pq(black_box(&mut p.0), &mut q.0, black_box(&data[..])));
    let (data, p, q, mut x, mut y) = (row(), buffer(90), buffer(91), buffer(92), buffer(93));
    let pair = Box::new(move || {
        let holed: [Option<&[u8]>; DATA_UNITS] = std::array::from_fn(|i| (i > 1).then(|| &data[i].0[..]));
        level.recover_pair(black_box(&mut x.0), &mut y.0, black_box(&holed), &p.0, &q.0);
    });
    let (old, new, mut p, mut q) = (buffer(1), buffer(2), buffer(90), buffer(91));
    let update =
        Box::new(move || level.update_pq(black_box(&mut p.0), &mut q.0, 5, black_box(&old.0), &new.0));
    vec![
        candidate("1 P of a row", row_bytes, sum),
        candidate("2 P and Q of a row", row_bytes, both),
        candidate("3 two lost units of a row", row_bytes, pair),
        candidate("4 P and Q of a small write", UNIT_BYTES, update),
    ]
}

#[cfg(target_arch = "x86_64")]
fn of_isal() -> Vec<Candidate> {
    use std::rc::Rc;

    let Some(isal) = isal::Isal::load().map(Rc::new) else { return Vec::new() };
    let who = "ISA-L".to_owned();
    let columns =
        |n: usize| -> Vec<_> { (0..n).map(|i| isal::column(UNIT_BYTES / 64, i as u64 + 1)).collect() };
    let row_bytes = DATA_UNITS * UNIT_BYTES;
    let (mut sums, mut both, other) = (columns(DATA_UNITS + 1), columns(DATA_UNITS + 2), Rc::clone(&isal));
    vec![
        Candidate {
            task: "1 P of a row",
            who: who.clone(),
            data_bytes: row_bytes,
            call: Box::new(move || isal.xor(black_box(&mut sums))),
        },
        Candidate {
            task: "2 P and Q of a row",
            who,
            data_bytes: row_bytes,
            call: Box::new(move || other.pq(black_box(&mut both))),
        },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn of_isal() -> Vec<Candidate> {
    Vec::new()
}

fn zero_detection() -> Candidate {
    let zeros = vec![0; UNIT_BYTES];
    Candidate {
        task: "5 zero detection",
        who: "baseline".to_owned(),
        data_bytes: UNIT_BYTES,
        call: Box::new(move || {
            black_box(is_zero(black_box(&zeros)));
        }),
    }
}
