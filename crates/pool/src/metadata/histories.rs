//! Random histories of a mirror and its labels: halves that go on without each other, joinings that are cut short, drives
//! that are lost, replaced and taken out, starts with some of the drives. No start may do without what was acknowledged on a
//! drive that is there, unless the administrator gave that drive up.

use std::collections::{BTreeMap, BTreeSet};

use tier0_world::Random;

use super::lineage::{self, Choice};
use super::open::MISSING_STEPS;
use super::starts::Starts;
use super::superblock::{PoolLabel, Superblock};
use crate::features::Features;
use crate::samples::{area, member};
use crate::{Member, MemberState};

/// A drive on the shelf: what it says, and the acknowledged writes that it holds.
#[derive(Clone, Debug, Default)]
struct Shelved {
    superblock: Option<Superblock>,
    holds: BTreeSet<u32>,
    /// Whether it has all that the pool had when it was last served with it.
    is_full: bool,
}

/// A server of the pool.
struct Server {
    generation: u64,
    complete: u64,
    label: PoolLabel,
    /// By member: its drive, if it is there.
    drives: Vec<Option<usize>>,
    holds: BTreeSet<u32>,
}

struct History {
    random: Random,
    shelf: Vec<Shelved>,
    server: Option<Server>,
    members: u32,
    cut: f64,
    nonces: u64,
    writes: u32,
    given_up: BTreeSet<u32>,
    told: Vec<String>,
}

/// What a drive says, in a line: members with the generation in which they left, and starts.
fn words((drive, own): (&usize, &Superblock)) -> String {
    let label = &own.label;
    let state = |(place, member): (u32, &Member)| {
        let state = match member.state {
            MemberState::Active => "",
            MemberState::Lost => " lost",
            MemberState::Removed => " removed",
        };
        let at = label.lost_in.get(&place).map(|at| format!(" {at}")).unwrap_or_default();
        let own = if member.id == own.member { "*" } else { "" };
        format!("{own}{place}{state}{at}")
    };
    let members: Vec<String> = (0..).zip(&label.members).map(state).collect();
    let (members, starts) = (members.join(", "), &label.starts);
    format!(
        "drive {drive}: generation {} ({}), [{members}], {starts:?}, given up {:?}",
        own.generation, label.settled, label.given_up
    )
}

impl Server {
    fn serving(&self) -> impl Iterator<Item = (usize, usize)> {
        let members = self.drives.iter().zip(&self.label.members).enumerate();
        members.filter_map(|(place, (drive, member))| Some((place, (*drive).filter(|_| member.is_active())?)))
    }

    /// As `labels::publish`: whoever is gone by this generation is remembered with it.
    fn note_left(&mut self, before: &[bool]) {
        for (place, member) in self.label.members.iter().enumerate() {
            if !member.is_active() && before.get(place) != Some(&false) {
                self.label.lost_in.entry(place as u32).or_insert(self.generation);
            }
        }
    }
}

impl History {
    /// A pool of the first drives, whose starts are cut at a label with this chance.
    fn new(drives: usize, first: u32, cut: f64, seed: u64) -> History {
        let mut shelf = vec![Shelved::default(); drives];
        shelf[..first as usize].iter_mut().for_each(|drive| drive.is_full = true);
        let label = PoolLabel {
            pool: uuid::Uuid::from_u128(1),
            array: "lab".into(),
            name: "p".into(),
            area: area(),
            carriers: vec![0],
            members: (0..first).map(member).collect(),
            features: Features::default(),
            settled: 0,
            lost_in: BTreeMap::new(),
            given_up: BTreeMap::new(),
            starts: Starts::of(&[(1, 1)]),
        };
        let drives = (0..first as usize).map(Some).collect();
        let server = Server { generation: 0, complete: 0, label, drives, holds: BTreeSet::new() };
        let mut history = History {
            random: Random::new(seed, 0),
            shelf,
            server: Some(server),
            members: first,
            cut,
            nonces: 1,
            writes: 0,
            given_up: BTreeSet::new(),
            told: Vec::new(),
        };
        history.publish(1, 0.0, |_| {});
        history
    }

    fn tell(&mut self, what: String) {
        self.told.push(what);
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    /// Writes the label to the drives that serve, in any order; false if the power is cut in between.
    fn publish(&mut self, steps: u64, cut: f64, change: impl FnOnce(&mut PoolLabel)) -> bool {
        let mut server = self.server.take().expect("it serves");
        server.generation += steps;
        let before: Vec<bool> = server.label.members.iter().map(Member::is_active).collect();
        change(&mut server.label);
        server.label.settled = server.complete;
        server.note_left(&before);
        loop {
            let mut left: Vec<(usize, usize)> = server.serving().collect();
            let mut failed = Vec::new();
            let all = left.len();
            while !left.is_empty() {
                let (place, drive) = left.swap_remove(self.random.below(left.len() as u64) as usize);
                if self.random.chance(cut) {
                    self.tell(format!("a cut while {} is written", server.generation));
                    return false;
                }
                if failed.len() + 1 < all && self.random.chance(0.02) {
                    failed.push(place);
                    continue;
                }
                let (generation, label) = (server.generation, server.label.clone());
                let member = label.members[place].id;
                self.shelf[drive].superblock = Some(Superblock { generation, member, label });
            }
            if failed.is_empty() {
                server.complete = server.generation;
                self.server = Some(server);
                return true;
            }
            server.generation += 1;
            for place in failed {
                self.tell(format!("member {place} fails, lost in {}", server.generation));
                server.label.members[place].state = MemberState::Lost;
                server.label.lost_in.insert(place as u32, server.generation);
                server.drives[place] = None;
            }
        }
    }

    /// Starts the pool with some of the drives; a split is refused, or one side of it given up.
    fn start(&mut self, seed: u64) {
        let all_there = self.random.chance(0.3);
        let mut present: Vec<usize> = Vec::new();
        for drive in 0..self.shelf.len() {
            if self.shelf[drive].superblock.is_some() && (all_there || self.random.chance(0.6)) {
                present.push(drive);
            }
        }
        let labels: Vec<Superblock> =
            present.iter().filter_map(|drive| self.shelf[*drive].superblock.clone()).collect();
        let mut left_out = BTreeSet::new();
        loop {
            let is_given_up = |own: &Superblock| {
                labels.iter().filter(|other| other.member != own.member).any(|other| {
                    other.label.given_up.get(&own.member).is_some_and(|up_to| own.generation <= *up_to)
                })
            };
            let all: Vec<&Superblock> = labels.iter().collect();
            let counts = |one: &usize| {
                !left_out.contains(one)
                    && !is_given_up(all[*one])
                    && !lineage::is_rolled_back(all[*one], &all)
            };
            let counting: Vec<(usize, &Superblock)> =
                (0..all.len()).filter(counts).map(|one| (one, all[one])).collect();
            if counting.is_empty() {
                return;
            }
            match lineage::choose(&counting) {
                Choice::Split(one, other) => {
                    if self.random.chance(0.5) {
                        return self.tell(format!("a start with {present:?} is refused"));
                    }
                    let side = if self.random.chance(0.5) { one } else { other };
                    for label in side {
                        self.given_up.extend(self.shelf[present[label]].holds.iter().copied());
                        left_out.insert(label);
                    }
                }
                Choice::One(chosen) => {
                    let counting: BTreeSet<usize> = counting.iter().map(|(one, _)| *one).collect();
                    return self.go_on(seed, &present, &labels, chosen, &counting, &left_out);
                }
            }
        }
    }

    /// Goes on from the label that was chosen.
    fn go_on(
        &mut self,
        seed: u64,
        present: &[usize],
        labels: &[Superblock],
        chosen: usize,
        counting: &BTreeSet<usize>,
        left_out: &BTreeSet<usize>,
    ) {
        let mut label = labels[chosen].label.clone();
        let generation = labels.iter().map(|label| label.generation).max().expect("some are there");
        let mut is_changed = labels[chosen].generation != generation;
        let mut drives = vec![None; label.members.len()];
        for (one, own) in labels.iter().enumerate() {
            let place = label.members.iter().position(|member| member.id == own.member);
            if left_out.contains(&one) {
                label.given_up.insert(own.member, own.generation);
                is_changed = true;
                continue;
            }
            let Some(place) = place else { continue };
            if label.members[place].is_active() && counting.contains(&one) {
                drives[place] = Some(present[one]);
                is_changed |= own.generation != generation || own.label != labels[chosen].label;
            }
        }
        let believed: Vec<usize> = drives.iter().flatten().copied().collect();
        if !believed.iter().any(|drive| self.shelf[*drive].is_full) {
            return;
        }
        let holds: BTreeSet<u32> =
            believed.iter().flat_map(|drive| self.shelf[*drive].holds.iter().copied()).collect();
        self.tell(format!("a start with {present:?} believes {believed:?}"));
        for (one, drive) in present.iter().enumerate().filter(|(one, _)| !left_out.contains(one)) {
            let lost = |write: &&u32| !holds.contains(write) && !self.given_up.contains(write);
            if let Some(write) = self.shelf[*drive].holds.iter().find(lost) {
                let told = self.told.join("\n");
                let labels: Vec<String> = present.iter().zip(labels).map(words).collect();
                let labels = labels.join("\n");
                panic!("seed {seed}: write {write} on drive {drive} ({one}) is gone\n{told}\n{labels}");
            }
        }
        for (place, drive) in (0u32..).zip(&drives) {
            let member = &mut label.members[place as usize];
            if member.is_active() && drive.is_none() {
                member.state = MemberState::Lost;
                label.lost_in.insert(place, generation + MISSING_STEPS);
                is_changed = true;
            }
        }
        let complete = if is_changed { label.settled } else { generation };
        let steps = if is_changed { MISSING_STEPS } else { 1 };
        self.server = Some(Server { generation, complete, label, drives, holds: holds.clone() });
        self.nonces += 1;
        let (from, nonce) = (generation + steps, self.nonces);
        let cut = self.cut;
        if self.publish(steps, cut, |label| label.starts.push(from, nonce)) {
            let server = self.server.as_ref().expect("it serves");
            for drive in server.serving().map(|(_, drive)| drive).collect::<Vec<_>>() {
                self.shelf[drive].is_full = true;
                self.shelf[drive].holds = holds.clone();
            }
            self.publish(1, cut, |_| {});
        }
    }

    /// A write is acknowledged.
    fn acknowledge(&mut self) {
        let Some(server) = &mut self.server else { return };
        self.writes += 1;
        server.holds.insert(self.writes);
        let drives: Vec<usize> = server.serving().map(|(_, drive)| drive).collect();
        drives.iter().for_each(|drive| _ = self.shelf[*drive].holds.insert(self.writes));
        self.tell(format!("write {} is acknowledged on {drives:?}", self.writes));
    }

    /// A drive joins, unless it holds what nobody else has.
    fn join(&mut self) {
        let Some(server) = &self.server else { return };
        let serving: BTreeSet<usize> = server.serving().map(|(_, drive)| drive).collect();
        let is_dear = |drive: usize| {
            self.shelf[drive]
                .holds
                .iter()
                .any(|write| !server.holds.contains(write) && !self.given_up.contains(write))
        };
        let free: Vec<usize> =
            (0..self.shelf.len()).filter(|drive| !serving.contains(drive) && !is_dear(*drive)).collect();
        if free.is_empty() {
            return;
        }
        let newcomer = member(self.members);
        let mut label = server.label.clone();
        label.members.push(newcomer.clone());
        label.settled = server.complete;
        let superblock = Superblock { generation: server.generation + 1, member: newcomer.id, label };
        self.members += 1;
        let drive = self.pick(&free);
        self.tell(format!("drive {drive} joins in {}", superblock.generation));
        self.shelf[drive] = Shelved { superblock: Some(superblock), ..Shelved::default() };
        match self.random.below(100) {
            0..25 => return self.server = None,
            25..35 => return self.tell("it fails when it has its superblock".to_owned()),
            _ => {}
        }
        self.server.as_mut().expect("it serves").drives.push(Some(drive));
        if self.publish(1, 0.08, |label| label.members.push(newcomer)) {
            let server = self.server.as_ref().expect("it serves");
            if server.serving().any(|(_, serving)| serving == drive) {
                self.shelf[drive].holds = server.holds.clone();
                self.shelf[drive].is_full = true;
            }
        }
    }

    /// A drive is lost, or a member taken out, lost or emptied before.
    fn leave(&mut self, state: MemberState) {
        let Some(server) = &mut self.server else { return };
        let serving: Vec<(usize, usize)> = server.serving().collect();
        let members = server.label.members.iter().enumerate();
        let lost: Vec<usize> =
            members.filter(|(_, member)| member.state == MemberState::Lost).map(|(place, _)| place).collect();
        let takes_lost = state == MemberState::Removed && !lost.is_empty() && self.random.chance(0.5);
        if !takes_lost && serving.len() < 2 {
            return;
        }
        let place = match takes_lost {
            true => self.pick(&lost),
            false => self.pick(&serving).0,
        };
        let server = self.server.as_mut().expect("it serves");
        let drive = server.drives[place].take();
        self.tell(format!("member {place} becomes {state:?}"));
        if let Some(drive) = drive.filter(|_| state == MemberState::Removed) {
            self.shelf[drive].is_full = false;
            self.shelf[drive].holds.clear();
            if self.random.chance(0.7) {
                self.shelf[drive].superblock = None;
            }
        }
        self.publish(1, 0.04, |label| label.members[place].state = state);
    }

    fn live(&mut self, seed: u64) {
        for _ in 0..60 {
            if self.server.is_none() {
                self.start(seed);
                continue;
            }
            match self.random.below(100) {
                0..25 => self.acknowledge(),
                25..40 => _ = self.publish(1, 0.03, |_| {}),
                40..60 => self.join(),
                60..72 => self.leave(MemberState::Lost),
                72..82 => self.leave(MemberState::Removed),
                _ => self.server = None,
            }
        }
    }
}

/// `HISTORIES` says how many, `HISTORIES_FROM` with which seed they begin; of each number of drives.
#[test]
fn no_start_does_without_what_was_acknowledged() {
    let histories = std::env::var("HISTORIES").ok().and_then(|many| many.parse().ok()).unwrap_or(2000);
    let first: u64 = std::env::var("HISTORIES_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
    for (drives, at_first) in [(2, 2), (3, 2), (4, 2), (4, 3), (5, 3)] {
        for seed in first..first + histories {
            let cut = [0.04, 0.3][(seed % 2) as usize];
            History::new(drives, at_first, cut, seed).live(seed);
        }
    }
}
