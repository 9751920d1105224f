//! Cut and changed reports: readers end with evidence or an error, never with a panic, and an advice can be made of all of it.

use proptest::prelude::*;
use tier0_advisor::advice::{Question, advise};
use tier0_advisor::drives::{Disk, FlashDrive};
use tier0_advisor::evidence::Collector;
use tier0_advisor::read::read;
use tier0_advisor::report::{Provenance, html};
use tier0_advisor::site::Site;
use tier0_catalog::Catalog;

use crate::{EXAMPLE, SAMPLES};

/// Pieces that readers care about.
const PIECES: [&[u8]; 16] = [
    b"\n",
    b"\"",
    b",",
    b";",
    b"-",
    b"------ ----",
    b"<",
    b"<table>",
    b"</tr>",
    b"\t",
    b"NaN",
    b"-1",
    b"99999999999999999999",
    b"\xff\xfe",
    b":",
    b"Average:",
];

#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Set(usize, u8),
    Insert(usize, usize),
    Remove(usize, usize),
    Repeat(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<usize>(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<usize>(), 1..200_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (any::<usize>(), 1..200_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let place = |at: usize, length: usize| if length == 0 { 0 } else { at % length };
    match change {
        Change::Cut(at) => bytes.truncate(place(*at, bytes.len())),
        Change::Set(at, byte) => {
            let at = place(*at, bytes.len());
            if let Some(old) = bytes.get_mut(at) {
                *old = *byte;
            }
        }
        Change::Insert(at, piece) => {
            let at = place(*at, bytes.len());
            bytes.splice(at..at, PIECES[*piece].iter().copied());
        }
        Change::Remove(at, count) => {
            let at = place(*at, bytes.len());
            let end = (at + count).min(bytes.len());
            bytes.drain(at..end);
        }
        Change::Repeat(at, count) => {
            let at = place(*at, bytes.len());
            let end = (at + count).min(bytes.len());
            let piece = bytes[at..end].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

fn question() -> Question {
    let catalog = Catalog::embedded();
    Question {
        flash: Some(100e9),
        drive: FlashDrive::of(&catalog, "ssd-sata").expect("it is there"),
        disk: Disk::of(&catalog, "sas-10k-900gb-sff").expect("it is there"),
        site: Site::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_reader_panics(which in 0..SAMPLES.len() + EXAMPLE.len(), changes in proptest::collection::vec(change(), 0..6)) {
        let (name, text) = SAMPLES.iter().chain(&EXAMPLE).nth(which).expect("it is there");
        let mut bytes = text.as_bytes().to_vec();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        let mut collector = Collector::default();
        match read(name, bytes.as_slice(), None, &mut collector) {
            Ok(_) => {
                let advice = advise(&collector.finish(Some(60.0)), &question());
                prop_assert!(!advice.answer.is_empty());
                for row in &advice.objects {
                    let shares = [row.io_share, row.wait_share];
                    prop_assert!(shares.iter().flatten().all(|share| (-1e-9..=1.0 + 1e-9).contains(share)), "{row:?}");
                    let gain = row.gain.map_or(0.0, |gain| gain.expected);
                    prop_assert!(gain.is_finite(), "{row:?}");
                }
                let provenance = Provenance { command: "c".into(), version: "v".into(), commit: None };
                prop_assert!(html(&advice, &provenance).is_ok());
            }
            Err(error) => {
                let words = error.to_string();
                prop_assert!(words.starts_with(name) && words.contains("; "), "no place or remedy: {words}");
            }
        }
    }
}
