//! From a workload's file to a checked workload.

use std::collections::BTreeMap;

use thiserror::Error;
use tier0_toml::Misread;

use super::file::{ObjectSection, StepSection, WorkloadFile};
use super::law::Law;
use super::{Act, Among, At, Changes, Dimension, Growth, Object, Size, Step, Transaction, Workload};

/// A workload that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// There is none of that name.
    #[error("there is no workload {id:?}; use one of {known}")]
    Unknown {
        /// The name.
        id: String,
        /// Those that there are.
        known: String,
    },
    /// The file has another form.
    #[error("{file}:{line}: {field}: {fact}")]
    Parse {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong, and the remedy.
        fact: String,
    },
    /// What it says contradicts itself.
    #[error("{file}: {place}: {fact}")]
    Wrong {
        /// The file.
        file: String,
        /// The object, dimension or transaction.
        place: String,
        /// What is wrong, and the remedy.
        fact: String,
    },
}

/// The steps of a transaction may lie in each other so deep.
const DEPTH_MAX: usize = 8;
/// The most rows that a step touches, and the most repetitions of it.
const TIMES_MAX: u64 = 100_000;

/// The most sequence numbers among which one is chosen, and the most of a group.
const NUMBERS_MAX: u64 = 1_000_000_000;

/// The names of a workload while it is checked.
struct Names<'a> {
    dimensions: &'a [Dimension],
    objects: &'a mut Vec<Object>,
    choices: &'a BTreeMap<String, Law>,
}

impl Workload {
    /// Reads a workload's file, with what a study says otherwise; `file` is its name in messages.
    ///
    /// # Errors
    /// [`WorkloadError`] with the place and the remedy.
    pub fn parse(text: &str, file: &str, changes: &Changes) -> Result<Workload, WorkloadError> {
        let mut read: WorkloadFile = tier0_toml::read(text).map_err(|Misread { line, field, fact }| {
            WorkloadError::Parse { file: file.to_owned(), line, field, fact }
        })?;
        let changed = change(&mut read, changes).and_then(|()| check(&read));
        changed.map_err(|(place, fact)| WorkloadError::Wrong { file: file.to_owned(), place, fact })
    }
}

type Wrong = (String, String);

fn change(file: &mut WorkloadFile, changes: &Changes) -> Result<(), Wrong> {
    for (name, law) in &changes.choices {
        let known = file.choice.keys().cloned().collect::<Vec<_>>().join(", ");
        let unknown =
            || (format!("choices.{name}"), format!("is no choice of the workload; use one of {known}"));
        file.choice.get_mut(name).ok_or_else(unknown)?.law.clone_from(law);
    }
    for (name, key) in &changes.keys {
        let place = format!("keys.{name}");
        let found = file.object.iter_mut().find(|object| object.name == *name);
        let object =
            found.ok_or_else(|| (place.clone(), "is no object of the workload; correct it".into()))?;
        let sorted = |names: &[String]| names.iter().cloned().collect::<std::collections::BTreeSet<_>>();
        if object.grows || sorted(&object.key) != sorted(key) || object.key.len() != key.len() {
            let same = object.key.join(", ");
            return Err((place, format!("is no other order of its key; put {same} into another order")));
        }
        object.key.clone_from(key);
    }
    mix(file, &changes.mix)
}

/// Leaves the transactions of a mix.
fn mix(file: &mut WorkloadFile, mix: &BTreeMap<String, f64>) -> Result<(), Wrong> {
    if mix.is_empty() {
        return Ok(());
    }
    for (name, share) in mix {
        let place = format!("mix.{name}");
        let known: Vec<&str> = file.transaction.iter().map(|section| section.name.as_str()).collect();
        if !known.contains(&name.as_str()) {
            return Err((
                place,
                format!("is no transaction of the workload; use one of {}", known.join(", ")),
            ));
        }
        if !(*share > 0.0 && share.is_finite()) {
            return Err((place, "has no share above 0; give one, or leave it out".into()));
        }
    }
    file.transaction.retain(|section| mix.contains_key(&section.name));
    for section in &mut file.transaction {
        section.share = mix[&section.name];
    }
    if !mix.contains_key(&file.headline) {
        file.headline.clone_from(&file.transaction[0].name);
    }
    Ok(())
}

fn check(file: &WorkloadFile) -> Result<Workload, Wrong> {
    let mut sources = Vec::new();
    let mut choices = BTreeMap::new();
    for (name, choice) in &file.choice {
        let place = format!("choice.{name}");
        let law: Law = choice.law.parse().map_err(|error| (place.clone(), format!("{error}")))?;
        choices.insert(name.clone(), law);
        sources.push((place, choice.kind, choice.source.clone()));
    }
    let mut dimensions: Vec<Dimension> = Vec::new();
    for section in &file.dimension {
        let place = format!("dimension {:?}", section.name);
        let size = match (section.count, section.per_unit) {
            (Some(count), None) if count > 0 => Size::Fixed(count),
            (None, Some(each)) if each > 0.0 => Size::PerUnit(each),
            _ => return Err((place, "needs count or per_unit, one of them, above 0".into())),
        };
        if dimensions.iter().any(|known| known.name == section.name) {
            return Err((place, "is there twice; rename one".into()));
        }
        dimensions.push(Dimension { name: section.name.clone(), size });
        sources.push((place, section.kind, section.source.clone()));
    }
    if dimensions.is_empty() {
        return Err(("dimension".into(), "is missing; add at least the users' home".into()));
    }
    let mut objects: Vec<Object> = Vec::new();
    for section in &file.object {
        let place = format!("object {:?}", section.name);
        let object = object(section, &dimensions, &objects).map_err(|fact| (place.clone(), fact))?;
        objects.push(object);
        sources.push((place, section.kind, section.source.clone()));
    }
    let total: f64 = file.transaction.iter().map(|section| section.share).sum();
    let mut transactions = Vec::new();
    for section in &file.transaction {
        let place = format!("transaction {:?}", section.name);
        if !(section.share > 0.0 && total.is_finite()) {
            return Err((place, "has no share above 0; give one".into()));
        }
        let mut names = Names { dimensions: &dimensions, objects: &mut objects, choices: &choices };
        let steps = steps(&section.steps, &mut names, 0).map_err(|fact| (place.clone(), fact))?;
        holds_in_order(&steps, &mut None).map_err(|fact| (place.clone(), fact))?;
        transactions.push(Transaction { name: section.name.clone(), share: section.share / total, steps });
        sources.push((place, section.kind, section.source.clone()));
    }
    let headline = transactions.iter().position(|transaction| transaction.name == file.headline);
    let missing = || ("headline".to_owned(), format!("{:?} is no transaction; name one", file.headline));
    let scans = file.transaction.iter().any(|section| has_scan(&section.steps));
    let scan_us = match &file.scan_us {
        Some(time) if (0.0..=1e6).contains(&time.value) => {
            sources.push(("scan_us".to_owned(), time.kind, time.source.clone()));
            time.value
        }
        Some(_) => return Err(("scan_us".into(), "is out of range; use 0 to 1000000".into())),
        None if scans => {
            return Err(("scan_us".into(), "is missing, and a transaction scans; add it".into()));
        }
        None => 0.0,
    };
    Ok(Workload {
        scan_us,
        id: file.id.clone(),
        title: file.title.clone(),
        description: file.description.clone(),
        unit: file.unit.clone(),
        headline: headline.ok_or_else(missing)?,
        dimensions,
        objects,
        transactions,
        choices,
        sources,
    })
}

fn object(section: &ObjectSection, dimensions: &[Dimension], known: &[Object]) -> Result<Object, String> {
    let dimension = |name: &String| {
        let found = dimensions.iter().position(|dimension| dimension.name == *name);
        found.ok_or_else(|| format!("has {name:?} in its key, which is no dimension; add it or correct it"))
    };
    if known.iter().any(|object| object.name == section.name) {
        return Err("is there twice; rename one".into());
    }
    if !(section.row_bytes > 0.0 && section.row_bytes < 1e6) {
        return Err("has a row_bytes out of range; use more than 0, less than 1000000".into());
    }
    let index_of = match &section.index_of {
        Some(table) => {
            let found = known.iter().position(|object| object.name == *table);
            Some(found.ok_or_else(|| format!("is an index of {table:?}, which is no object above it"))?)
        }
        None => None,
    };
    if !section.grows && (section.per_sequence.is_some() || section.backlog.is_some()) {
        return Err("has per_sequence or backlog and does not grow; add grows = true".into());
    }
    let per_sequence = section.per_sequence.unwrap_or(1);
    let rows = section.rows.unwrap_or(1);
    if rows == 0 || per_sequence == 0 || section.backlog.unwrap_or(0) * per_sequence > rows {
        return Err("has rows, per_sequence or backlog out of range; rows hold the backlog at least".into());
    }
    if section
        .primary_key_bytes
        .is_some_and(|bytes| !(1.0..=1024.0).contains(&bytes) || section.index_of.is_some())
    {
        return Err("has a primary_key_bytes out of range, or is an index; give tables 1 to 1024".into());
    }
    let growth = Growth { per_sequence, backlog: section.backlog.unwrap_or(0), keeps: None };
    Ok(Object {
        name: section.name.clone(),
        key: section.key.iter().map(dimension).collect::<Result<_, _>>()?,
        row_bytes: section.row_bytes,
        rows,
        growth: section.grows.then_some(growth),
        index_of,
        primary_key_bytes: section.primary_key_bytes,
        is_filled_at_random: false,
    })
}

fn steps(sections: &[StepSection], names: &mut Names, depth: usize) -> Result<Vec<Step>, String> {
    if depth > DEPTH_MAX {
        return Err(format!("has steps in steps, more than {DEPTH_MAX} deep; write fewer"));
    }
    sections.iter().map(|section| step(section, names, depth)).collect()
}

fn step(section: &StepSection, names: &mut Names, depth: usize) -> Result<Step, String> {
    let verbs = [
        &section.pick,
        &section.pick_sequence,
        &section.read,
        &section.update,
        &section.append,
        &section.take,
        &section.repeat,
        &section.each,
        &section.recall,
        &section.scan,
    ];
    if verbs.iter().filter(|verb| verb.is_some()).count() != 1 {
        return Err("has a step without exactly one of pick, pick_sequence, read, update, append, take, repeat, each, \
                    recall, scan; write one step for each"
            .into());
    }
    let probability = section.percent.unwrap_or(100.0) / 100.0;
    if !(0.0..=1.0).contains(&probability) {
        return Err("has a percent out of range; use 0 to 100".into());
    }
    let inner = |names: &mut Names| steps(&section.steps, names, depth + 1);
    let act = if let Some(name) = &section.pick {
        Act::Pick { dimension: names.dimension(name)?, law: names.law(section.by.as_deref())? }
    } else if let Some(name) = &section.pick_sequence {
        let object = names.growing(name)?;
        let among = match (&section.by, section.back) {
            (None, back) => Among::Newest(numbers(back.unwrap_or(1), "back")?),
            (Some(by), None) => {
                Among::All { law: names.law(Some(by))?, group: numbers(section.group.unwrap_or(1), "group")? }
            }
            (Some(_), Some(_)) => {
                return Err(
                    "has a pick_sequence with back and by; choose among the newest, or among all by a law"
                        .into(),
                );
            }
        };
        Act::PickSequence { object, among }
    } else if let Some(name) = section.read.as_ref().or(section.update.as_ref()) {
        let at = match section.at.as_deref() {
            None | Some("key") => At::Key,
            Some("sequence") => At::Sequence,
            Some("tail") => At::Tail,
            Some(other) => return Err(format!("has at = {other:?}; use \"key\", \"sequence\" or \"tail\"")),
        };
        let object = match at {
            At::Key => names.object(name)?,
            At::Sequence | At::Tail => names.growing(name)?,
        };
        let rows = times(section.rows.unwrap_or(1), "rows")?;
        let (update, hold, direct) = (section.update.is_some(), section.hold, section.direct);
        if hold && (!update || rows > 1 || at != At::Key) {
            return Err("holds what is not one row that is updated by its key; leave out hold".into());
        }
        let entry = &mut names.objects[object];
        entry.is_filled_at_random |= update && entry.index_of.is_some() && at == At::Key;
        Act::Touch { object, update, rows, at, hold, direct }
    } else if let Some(name) = &section.append {
        let object = names.growing(name)?;
        if let Some(kept) = &section.keep {
            let dimension = names.dimension(kept)?;
            let growth = names.objects[object].growth.as_mut().expect("it grows");
            let last = growth.keeps.map_or(0, |(_, last)| last);
            growth.keeps = Some((dimension, last));
        }
        Act::Append { object }
    } else if let Some(name) = &section.take {
        Act::Take { object: names.growing(name)?, hold: section.hold }
    } else if let Some(count) = &section.repeat {
        let (least, most) = match count.split_once("..") {
            Some((least, most)) => (least.trim().parse().ok(), most.trim().parse().ok()),
            None => (count.trim().parse().ok(), count.trim().parse().ok()),
        };
        let wrong = || format!("has repeat = {count:?}; use a count, or \"5..15\" for 5 to 15");
        let (least, most): (u64, u64) = (least.ok_or_else(wrong)?, most.ok_or_else(wrong)?);
        if least > most || most > TIMES_MAX {
            return Err(wrong());
        }
        let within = section.within.map(|count| numbers(count, "within")).transpose()?;
        Act::Repeat { least, most, within, is_list: section.list, steps: inner(names)? }
    } else if let Some(name) = &section.each {
        Act::Each { dimension: names.dimension(name)?, steps: inner(names)? }
    } else if let Some(name) = &section.scan {
        let share = section.share.unwrap_or(1.0);
        if !(share > 0.0 && share <= 1.0) {
            return Err("has a scan with a share out of range; use more than 0, at most 1".into());
        }
        Act::Scan { object: names.object(name)?, share }
    } else {
        let name = section.recall.as_ref().expect("one of the verbs");
        let object = names.growing(name)?;
        let last = times(section.last.unwrap_or(1), "last")? as usize;
        let set = section.set.as_ref().ok_or("has a recall without set; name the dimension that it sets")?;
        let dimension = names.dimension(set)?;
        let growth = names.objects[object].growth.as_mut().expect("it grows");
        match &mut growth.keeps {
            Some((kept, most)) if *kept == dimension => *most = (*most).max(last),
            _ => {
                return Err(format!(
                    "recalls {set:?} of {name:?}, which no transaction above appends with keep = {set:?}; add that"
                ));
            }
        }
        Act::Recall { object, last, law: names.law(section.by.as_deref())?, steps: inner(names)? }
    };
    Ok(Step { probability, act })
}

/// Two transactions must not wait for each other in a circle: each holds one row of an object, in the order of the objects.
fn holds_in_order(steps: &[Step], last: &mut Option<usize>) -> Result<(), String> {
    for step in steps {
        match &step.act {
            Act::Touch { object, hold: true, .. } | Act::Take { object, hold: true } => {
                if last.is_some_and(|last| last >= *object) {
                    return Err("holds rows in another order than that of the objects; change the order, or leave out hold".into());
                }
                *last = Some(*object);
            }
            // The values of a dimension follow in their order, so a row of each can be held, of one object.
            Act::Each { steps: inner, .. } => {
                if count_holds(inner) > 1 {
                    return Err("holds rows of several objects in an each; leave out hold".into());
                }
                holds_in_order(inner, last)?;
            }
            Act::Repeat { steps: inner, .. } | Act::Recall { steps: inner, .. } if count_holds(inner) > 0 => {
                return Err("holds rows in a repeat or recall; leave out hold".into());
            }
            _ => {}
        }
    }
    Ok(())
}

fn count_holds(steps: &[Step]) -> usize {
    let count = |step: &Step| match &step.act {
        Act::Touch { hold, .. } | Act::Take { hold, .. } => usize::from(*hold),
        Act::Each { steps, .. } | Act::Repeat { steps, .. } | Act::Recall { steps, .. } => count_holds(steps),
        _ => 0,
    };
    steps.iter().map(count).sum()
}

fn has_scan(sections: &[StepSection]) -> bool {
    sections.iter().any(|section| section.scan.is_some() || has_scan(&section.steps))
}

fn times(count: u64, field: &str) -> Result<u64, String> {
    match count {
        1..=TIMES_MAX => Ok(count),
        _ => Err(format!("has a {field} out of range; use 1 to {TIMES_MAX}")),
    }
}

fn numbers(count: u64, field: &str) -> Result<u64, String> {
    match count {
        1..=NUMBERS_MAX => Ok(count),
        _ => Err(format!("has a {field} out of range; use 1 to {NUMBERS_MAX}")),
    }
}

impl Names<'_> {
    fn dimension(&self, name: &str) -> Result<usize, String> {
        let found = self.dimensions.iter().position(|dimension| dimension.name == name);
        found.ok_or_else(|| format!("names {name:?}, which is no dimension; add it or correct it"))
    }

    fn object(&self, name: &str) -> Result<usize, String> {
        let found = self.objects.iter().position(|object| object.name == name);
        found.ok_or_else(|| format!("names {name:?}, which is no object; add it or correct it"))
    }

    fn growing(&self, name: &str) -> Result<usize, String> {
        let object = self.object(name)?;
        match self.objects[object].growth {
            Some(_) => Ok(object),
            None => Err(format!("needs {name:?} to grow; add grows = true to the object")),
        }
    }

    fn law(&self, by: Option<&str>) -> Result<Law, String> {
        let by = by.unwrap_or("uniform");
        match self.choices.get(by) {
            Some(law) => Ok(*law),
            None => by.parse().map_err(|error| format!("{error}")),
        }
    }
}
