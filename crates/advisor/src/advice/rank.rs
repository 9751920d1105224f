//! Objects: what is worth moving, what stays and why.

use serde::Serialize;

use super::{Chosen, Question};
use crate::evidence::{Counter, Format, Kind, Level, Object, SEQUENTIAL_BYTES};
use crate::gain::{Gain, Model, Waits};
use crate::knapsack::{Item, choose};
use crate::rules::Case;

/// Objects with a smaller share of waits (or I/Os) are not worth a place.
const MINOR: f64 = 0.005;
/// Of the waits that writes of data take, this part counts: background writers do them, and a full cache delays sessions.
const WRITES_COUNT: f64 = 0.1;
/// Of the page requests of an object, so many are served by memory: what is left is little.
const CACHED: f64 = 0.999;

/// What to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It goes to flash.
    Flash,
    /// It would gain, and there is no room, or its size is not known.
    NoRoom,
    /// It stays.
    Stays,
}

/// An object with what is said of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Its name, with its database or schema.
    pub name: String,
    /// The name within it.
    pub own_name: String,
    /// Database, schema or owner.
    pub database: String,
    /// What it holds.
    pub kind: Kind,
    /// How fine it is.
    pub level: Level,
    /// The table of an index or a partition.
    pub table: Option<String>,
    /// Its path, where it is a file.
    pub path: Option<String>,
    /// The kind of report that counted it.
    pub format: Option<Format>,
    /// What to do.
    pub verdict: Verdict,
    /// Bytes.
    pub bytes: Option<f64>,
    /// Share of the I/Os of all data.
    pub io_share: Option<f64>,
    /// Share of the waits for storage.
    pub wait_share: Option<f64>,
    /// Milliseconds of an I/O.
    pub ms_per_io: Option<f64>,
    /// Reads per second.
    pub reads_s: Option<f64>,
    /// Writes per second.
    pub writes_s: Option<f64>,
    /// What it would bring alone; only of candidates.
    pub gain: Option<Gain>,
    /// The expected gain for each GB.
    pub gain_per_gb: Option<f64>,
    /// Why.
    pub why: String,
    /// What the plan weighs it by.
    #[serde(skip)]
    pub value: f64,
}

/// All objects in the order in which they are told, and what the chosen ones bring.
pub(super) fn rank(case: &Case<'_>, question: &Question) -> (Vec<Ranked>, Chosen) {
    let weights: Vec<Option<f64>> =
        case.waits.iter().map(|waits| Some(waits.as_ref()?.waited(WRITES_COUNT))).collect();
    let all_waits: f64 = weights.iter().flatten().sum();
    let has_waits = all_waits > 0.0;
    let has_time = case.evidence.seconds.is_some();
    // The places of waits among those of the model.
    let mut place = 0;
    let places: Vec<Option<usize>> = case
        .waits
        .iter()
        .map(|waits| {
            waits.as_ref()?;
            place += 1;
            Some(place - 1)
        })
        .collect();
    let gain = |moved: &[usize]| -> Option<Gain> {
        let model = case.model.as_ref()?;
        let mut flags = vec![false; model.all.len()];
        moved.iter().filter_map(|at| places[*at]).for_each(|at| flags[at] = true);
        Some(model.gain(&flags))
    };
    let mut ranked: Vec<(usize, Ranked, bool)> = case
        .objects
        .iter()
        .enumerate()
        .map(|(at, object)| {
            let wait_share = weights[at].filter(|_| has_waits).map(|wait| wait / all_waits);
            let io_share = (object.kind != Kind::Log).then(|| case.io_share(object)).flatten();
            let waits = case.waits[at];
            let value = value(object, waits, question);
            let reason = reason_to_stay(object, wait_share.or(io_share));
            // Candidates alone: there are at most 200 of them, and thousands of objects.
            let alone = if reason.is_none() { gain(&[at]) } else { None };
            let row = Ranked {
                name: object.full_name(),
                own_name: object.identity.name.clone(),
                database: object.identity.database.clone(),
                kind: object.kind,
                level: object.identity.level,
                table: object.table.clone(),
                path: object.identity.path.clone(),
                format: object.measured.format,
                verdict: Verdict::Stays,
                bytes: object.bytes,
                io_share,
                wait_share,
                ms_per_io: object.counts.ms_per_io(),
                reads_s: waits.filter(|_| has_time).map(|waits| waits.reads_s),
                writes_s: waits.filter(|_| has_time).and_then(|_| writes_s(object, case)),
                gain: alone,
                gain_per_gb: alone
                    .zip(object.bytes)
                    .map(|(gain, bytes)| gain.expected / (bytes / 1e9).max(1e-3)),
                why: reason.clone().unwrap_or_default(),
                value,
            };
            (at, row, reason.is_none())
        })
        .collect();
    let space = question.flash.unwrap_or(f64::INFINITY);
    place_in(&mut ranked, space, question.flash.is_some());
    let chosen_at: Vec<usize> =
        ranked.iter().filter(|(_, row, _)| row.verdict == Verdict::Flash).map(|(at, ..)| *at).collect();
    let sum = |of: fn(&Ranked) -> Option<f64>| {
        let values: Vec<f64> = ranked
            .iter()
            .filter(|(_, row, _)| row.verdict == Verdict::Flash)
            .filter_map(|(_, row, _)| of(row))
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let total = gain(&chosen_at).filter(|_| !chosen_at.is_empty());
    let of_candidates: Vec<usize> =
        ranked.iter().filter(|(_, row, _)| row.verdict != Verdict::Stays).map(|(at, ..)| *at).collect();
    let all = gain(&of_candidates).filter(|_| !of_candidates.is_empty());
    let chosen = Chosen {
        objects: chosen_at.len(),
        bytes: sum(|row| row.bytes).unwrap_or(0.0),
        wait_share: sum(|row| row.wait_share),
        io_share: sum(|row| row.io_share),
        gain: total,
        gain_of_all: all,
        busy_then: total.zip(case.model.as_ref()).map(|(gain, model)| model.busy_after(gain.expected)),
        storage_share_then: total.zip(case.model.as_ref()).map(|(_, model)| left(model, &chosen_at, &places)),
    };
    let order = |row: &Ranked| match row.verdict {
        Verdict::Flash => 0,
        Verdict::NoRoom => 1,
        Verdict::Stays => 2,
    };
    let weight =
        |row: &Ranked| row.gain_per_gb.unwrap_or_else(|| row.value / row.bytes.unwrap_or(1e12).max(1e6));
    ranked.sort_by(|(_, a, _), (_, b, _)| {
        order(a).cmp(&order(b)).then(weight(b).total_cmp(&weight(a))).then(a.name.cmp(&b.name))
    });
    (ranked.into_iter().map(|(_, row, _)| row).collect(), chosen)
}

/// Writes for each second of the object's period.
fn writes_s(of: &Object, case: &Case<'_>) -> Option<f64> {
    let seconds = of.measured.seconds.or(case.evidence.seconds)?;
    Some(of.counts.get(Counter::Writes).unwrap_or(0.0) / seconds)
}

/// What is worth saving: waits that flash takes away; or reads, where waits are not known.
fn value(object: &Object, waits: Option<Waits>, question: &Question) -> f64 {
    match waits {
        Some(waits) => {
            let times = question.drive.times;
            let read = waits.read - waits.reads_s * times.read_ms / 1e3;
            let write = waits.write - waits.writes_s * times.write_ms / 1e3;
            (read + WRITES_COUNT * write).max(0.0)
        }
        None => {
            object.counts.get(Counter::Reads).unwrap_or(0.0)
                + WRITES_COUNT * object.counts.get(Counter::Writes).unwrap_or(0.0)
        }
    }
}

/// Why an object stays, whatever the room; none where it is a candidate.
fn reason_to_stay(object: &Object, share: Option<f64>) -> Option<String> {
    if object.kind == Kind::Log {
        return Some("log: sequential; it stays on write-cached disks".to_owned());
    }
    let Some(share) = share else { return Some("its I/O was not measured".to_owned()) };
    if object.is_sequential() == Some(true) {
        let size = object.counts.bytes_per_read().filter(|bytes| *bytes > SEQUENTIAL_BYTES);
        let size = size.map(|bytes| format!(" (mean read {:.0} KiB)", bytes / 1024.0));
        return Some(format!("read by large scans{}: disks are good at them", size.unwrap_or_default()));
    }
    if share < MINOR {
        let cached = object.counts.hit_share().is_some_and(|hits| hits >= CACHED);
        return Some(match cached {
            true => "cached: memory serves its reads".to_owned(),
            false => "little I/O".to_owned(),
        });
    }
    None
}

/// Places candidates: temporary data only in what all others leave.
fn place_in(ranked: &mut [(usize, Ranked, bool)], space: f64, is_limited: bool) {
    let mut room = space;
    for of_temp in [false, true] {
        let candidates: Vec<usize> = (0..ranked.len())
            .filter(|at| ranked[*at].2 && (ranked[*at].1.kind == Kind::Temp) == of_temp)
            .collect();
        let items: Vec<Item> = candidates
            .iter()
            .map(|at| {
                let row = &ranked[*at].1;
                Item { bytes: row.bytes.unwrap_or(f64::INFINITY), value: row.value }
            })
            .collect();
        let chosen = match is_limited {
            true => choose(&items, room),
            // As much flash as the candidates take.
            false => items.iter().map(|item| item.value > 0.0).collect(),
        };
        for (at, chosen) in candidates.into_iter().zip(chosen) {
            let row = &mut ranked[at].1;
            if chosen && (row.bytes.is_some() || !is_limited) {
                row.verdict = Verdict::Flash;
                room -= row.bytes.unwrap_or(0.0);
                row.why = why(row);
                continue;
            }
            row.verdict = if row.value > 0.0 { Verdict::NoRoom } else { Verdict::Stays };
            row.why = match (row.bytes, row.value > 0.0) {
                (_, false) => "as fast as on flash already".to_owned(),
                (None, _) => "its size was not measured; give it to plan with it".to_owned(),
                (Some(bytes), _) if bytes > space => {
                    "larger than the flash: place its busy partitions".to_owned()
                }
                _ => "no room: others gain more for each GB".to_owned(),
            };
        }
    }
}

/// Why an object goes to flash.
fn why(row: &Ranked) -> String {
    let mut reasons = Vec::new();
    if let Some(ms) = row.ms_per_io {
        reasons.push(format!("{ms:.1} ms for an I/O"));
    }
    match row.kind {
        Kind::Index => reasons.push("index in use".to_owned()),
        Kind::Temp => reasons.push("temporary data: only because room is left".to_owned()),
        _ => {}
    }
    let share = row
        .wait_share
        .map(|share| (share, "of the waits"))
        .or(row.io_share.map(|share| (share, "of the I/Os")));
    if let Some((share, what)) = share {
        reasons.push(format!("{} {what}", crate::report::percent(share)));
    }
    reasons.join(", ")
}

/// The share of the time in which sessions still wait for storage, at the new throughput.
fn left(model: &Model, moved: &[usize], places: &[Option<usize>]) -> f64 {
    let flags: Vec<usize> = moved.iter().filter_map(|at| places[*at]).collect();
    let staying: f64 = model
        .all
        .iter()
        .enumerate()
        .map(|(at, waits)| match flags.contains(&at) {
            false => waits.waited(0.0),
            true => waits.reads_s * model.flash.read_ms / 1e3,
        })
        .sum();
    // The other demands grow in proportion, so the shares are those of one unit of throughput.
    staying / (staying + model.computing + model.other).max(1e-12)
}
