//! Times of segments. A report counts blocks for segments, and I/Os with their times only for tablespaces: the segments of a
//! tablespace share its reads, read time and bytes by their blocks.
//!
//! What the segments leave stays an object of the level [`Level::Rest`]. No time goes from one tablespace to the segments of another.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{Counter, Counts, Identity, Kind, Level, Measured, Object, kind_of_tablespace};

/// Text reports cut names of tablespaces to so many characters in the table of segments.
const NAME_CUT: usize = 10;
/// The counters that segments share.
const SHARED: [Counter; 3] = [Counter::Reads, Counter::ReadMs, Counter::ReadBytes];

/// Shares the I/Os of tablespaces out. `homes` has the tablespace of each segment; `block` is the size of a block in bytes.
/// What the reader of the advice should know is returned.
pub(super) fn share_out(
    objects: &mut BTreeMap<Identity, Object>,
    homes: &BTreeMap<Identity, String>,
    block: f64,
) -> Vec<String> {
    let spaces = spaces(objects);
    if spaces.is_empty() {
        let note = "AWR counts blocks, not I/Os, for segments, and this report has no statistics of tablespaces, so read times of segments \
                    are not measured";
        return vec![note.to_owned()];
    }
    let mut blocks: BTreeMap<&str, f64> = BTreeMap::new();
    let mut lacking: BTreeSet<String> = BTreeSet::new();
    let mut found: Vec<(Identity, &str, f64)> = Vec::new();
    for object in objects.values_mut().filter(|object| object.identity.level == Level::Segment) {
        let count = object.counts.get(Counter::Reads).unwrap_or(0.0);
        let home = homes.get(&object.identity).map(String::as_str).unwrap_or_default();
        // Blocks are no I/Os: they do not compare with those of segments that have some.
        object.counts = Counts::default();
        match space_of(home, &spaces) {
            Some(space) => {
                *blocks.entry(space).or_default() += count;
                found.push((object.identity.clone(), space, count));
            }
            None => _ = lacking.insert(if home.is_empty() { "no name".to_owned() } else { home.to_owned() }),
        }
    }
    // Both are rounded, and segments also count direct reads, so either may be the larger one.
    let all = |space: &str| {
        let counts = &spaces[space];
        let read = counts.get(Counter::ReadBytes).map(|bytes| bytes / block).or(counts.get(Counter::Reads));
        read.unwrap_or(0.0).max(blocks.get(space).copied().unwrap_or(0.0)).max(1.0)
    };
    for (identity, space, count) in found {
        if let Some(object) = objects.get_mut(&identity) {
            object.counts = shared(&spaces[space], count / all(space));
        }
    }
    for (space, counts) in &spaces {
        let listed = blocks.get(space.as_str()).copied();
        let left = 1.0 - listed.unwrap_or(0.0) / all(space);
        let identity = Identity {
            level: Level::Rest,
            database: String::new(),
            name: if listed.is_some() { format!("rest of {space}") } else { space.clone() },
            path: None,
        };
        let object = Object {
            identity: identity.clone(),
            kind: kind_of_tablespace(space),
            table: None,
            bytes: None,
            measured: Measured::default(),
            // Writes of segments are not counted.
            counts: shared(counts, left).with(Counter::Writes, counts.get(Counter::Writes)),
        };
        objects.insert(identity, object);
    }
    let mut notes = vec![
        "AWR counts blocks, not I/Os, for segments, and lists only the largest; their I/Os and read times are shares of those of \
         their tablespace, by blocks"
            .to_owned(),
    ];
    if !lacking.is_empty() {
        let names: Vec<&str> = lacking.iter().take(5).map(String::as_str).collect();
        notes.push(format!(
            "I/Os of segments whose tablespace has no statistics are not measured (tablespace {}); a report as HTML has whole names",
            names.join(", ")
        ));
    }
    notes
}

/// Counts of tablespaces: their own, or those of their files.
fn spaces(objects: &BTreeMap<Identity, Object>) -> BTreeMap<String, Counts> {
    let of = |level: Level| {
        let mut spaces: BTreeMap<String, Counts> = BTreeMap::new();
        let of_data = |object: &&Object| object.identity.level == level && object.kind != Kind::Log;
        for object in objects.values().filter(of_data) {
            let Identity { name, database, .. } = &object.identity;
            let space = if level == Level::File { database } else { name };
            spaces.entry(space.clone()).or_default().add(&object.counts);
        }
        spaces
    };
    let own = of(Level::Tablespace);
    if own.is_empty() { of(Level::File) } else { own }
}

/// The tablespace of a name that may be cut; none where several begin so.
fn space_of<'a>(name: &str, spaces: &'a BTreeMap<String, Counts>) -> Option<&'a str> {
    if let Some((known, _)) = spaces.get_key_value(name) {
        return Some(known);
    }
    let mut begin_so =
        spaces.keys().filter(|known| name.chars().count() >= NAME_CUT && known.starts_with(name));
    let only = begin_so.next()?;
    begin_so.next().is_none().then_some(only.as_str())
}

/// So large a part of what segments share.
fn shared(of: &Counts, part: f64) -> Counts {
    let with = |counts: Counts, counter| counts.with(counter, of.get(counter).map(|value| value * part));
    SHARED.into_iter().fold(Counts::default(), with)
}
