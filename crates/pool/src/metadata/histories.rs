//! Histories of a pool's labels under random orders of events, judged by what was acknowledged: the drives of a shelf are
//! pulled, join, fail, are taken out and given up, the power is cut between two superblocks, and each start finds some of the
//! drives. The real [`assemble`] and the real bytes of superblocks decide; the server beside them is a model. Some pools are
//! copied, and drives of the copy are exchanged with theirs; some have drives put back to older images; some are brought back
//! by the last resort. No start may do without what was acknowledged on a drive that is there, unless the administrator gave
//! that drive up, and none may believe a drive that lacks what another one has.

use std::collections::{BTreeMap, BTreeSet};

use tier0_drive::{Command, Drive, DriveInfo};
use tier0_units::SectorCount;
use tier0_world::{Completion, PayloadWidth, Random, VirtualRuntime, World};

use super::super::labels::set_state;
use super::super::open::MISSING_STEPS;
use super::super::starts::Starts;
use super::*;
use crate::features::Features;
use crate::samples::{area, member};

/// A drive of which only the name counts.
struct Stub(DriveInfo, World);

impl Drive for Stub {
    fn info(&self) -> &DriveInfo {
        &self.0
    }
    fn world(&self) -> &World {
        &self.1
    }
    fn submit(&self, _: Command, _: Completion) {
        unreachable!()
    }
}

/// The chance of a cut at each copy of the metadata.
const META_CUT: f64 = 0.05;
/// Events of a history.
const STEPS: u32 = 60;

/// The metadata, which are written after the labels.
#[derive(Clone, Debug, Default)]
struct Meta {
    version: u64,
    members: Vec<Member>,
}

/// A drive on the shelf: what it says, and the acknowledged writes that it holds.
#[derive(Clone, Debug, Default)]
struct Shelved {
    superblock: Option<Superblock>,
    holds: BTreeSet<u32>,
    /// Writes that it remembers as given up.
    gave_up: BTreeSet<u32>,
    /// Whether it has all that the pool had when it was last served with it.
    is_full: bool,
    meta: Meta,
}

/// A server of the pool.
struct Server {
    generation: u64,
    complete: u64,
    label: PoolLabel,
    drives: Vec<Option<usize>>,
    holds: BTreeSet<u32>,
    gave_up: BTreeSet<u32>,
    meta: Meta,
}

/// What happens in a history beside the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishaps {
    /// Nothing.
    None,
    /// All drives are copied, and some exchanged with those of the copy.
    Copies,
    /// Drives are put back to older images.
    Images,
    /// The last resort.
    Recovery,
}

/// A pool and what happens to it.
struct History {
    random: Random,
    handles: Vec<DriveHandle>,
    shelf: Vec<Shelved>,
    /// The copy, or the images that were kept.
    other: Option<Vec<Shelved>>,
    server: Option<Server>,
    members: u32,
    nonces: u64,
    writes: u32,
    versions: u64,
    /// The chance of a cut at each superblock of a start.
    cut: f64,
    mishaps: Mishaps,
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
        let o = if member.id == own.member { "*" } else { "" };
        format!("{o}{}{state}{at}", member.name)
    };
    let members: Vec<String> = (0..).zip(&label.members).map(state).collect();
    format!(
        "drive {drive}: generation {} ({}), {members:?}, {:?}, given up {:?}",
        own.generation, label.settled, label.starts, label.given_up
    )
}

impl Server {
    fn serving(&self) -> impl Iterator<Item = (usize, usize)> {
        let members = self.drives.iter().zip(&self.label.members).enumerate();
        members.filter_map(|(place, (drive, member))| Some((place, (*drive).filter(|_| member.is_active())?)))
    }
}

impl History {
    /// A pool of the first drives.
    fn new(drives: usize, first: u32, (cut, mishaps): (f64, Mishaps), seed: u64, world: &World) -> History {
        let mut shelf = vec![Shelved::default(); drives];
        shelf[..first as usize].iter_mut().for_each(|drive| drive.is_full = true);
        let label = PoolLabel {
            pool: Uuid::from_u128(1),
            array: "lab".into(),
            name: "p".into(),
            area: area(),
            carriers: vec![0],
            members: (0..first).map(member).collect(),
            features: Features { compatible: 1, ..Features::default() },
            settled: 0,
            lost_in: BTreeMap::new(),
            given_up: BTreeMap::new(),
            starts: Starts::of(&[(1, 1)]),
        };
        let meta = Meta { version: 1, members: label.members.clone() };
        let drive = |n: usize| {
            DriveHandle::new(Stub(
                DriveInfo {
                    name: format!("/d{n}"),
                    sectors: SectorCount(1 << 20),
                    block_sectors: 1,
                    volatile_cache: false,
                    discard_zeroes: false,
                },
                world.clone(),
            ))
        };
        shelf[..first as usize].iter_mut().for_each(|d| d.meta = meta.clone());
        let server = Server {
            generation: 0,
            complete: 0,
            label,
            drives: (0..first as usize).map(Some).collect(),
            holds: BTreeSet::new(),
            gave_up: BTreeSet::new(),
            meta,
        };
        let mut history = History {
            random: Random::new(seed, 0),
            handles: (0..drives).map(drive).collect(),
            shelf,
            other: None,
            server: Some(server),
            members: first,
            nonces: 1,
            writes: 0,
            versions: 1,
            cut,
            mishaps,
            told: Vec::new(),
        };
        history.publish(1, 0.0, false, |_| {});
        history
    }
    fn tell(&mut self, what: String) {
        self.told.push(what);
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    /// Writes the label to the drives that serve, in any order, while writes are acknowledged if `acks`; false if the power is
    /// cut in between.
    fn publish(&mut self, steps: u64, cut: f64, acks: bool, change: impl FnOnce(&mut PoolLabel)) -> bool {
        let mut server = self.server.take().expect("it serves");
        server.generation += steps;
        let gone = |label: &PoolLabel, place: usize| !label.members[place].is_active();
        let before: Vec<bool> = (0..server.label.members.len()).map(|p| gone(&server.label, p)).collect();
        change(&mut server.label);
        server.label.features = server.label.features.of_next_superblock();
        server.label.settled = server.complete;
        server.label.carriers = (0..server.label.members.len() as u32)
            .filter(|p| server.label.members[*p as usize].is_active())
            .collect();
        let newly: Vec<usize> = (0..server.label.members.len())
            .filter(|p| gone(&server.label, *p))
            .filter(|p| before.get(*p) != Some(&true))
            .collect();
        let generation = server.generation;
        server.label.lost_in.extend(newly.into_iter().map(|p| (p as u32, generation)));
        let mut acks = acks;
        loop {
            let mut left: Vec<(usize, usize)> = server.serving().collect();
            let mut failed: Vec<usize> = Vec::new();
            while !left.is_empty() {
                if acks && failed.is_empty() && self.random.chance(0.1) {
                    self.ack(&mut server);
                }
                let (place, drive) = left.swap_remove(self.random.below(left.len() as u64) as usize);
                if self.random.chance(cut) {
                    self.tell(format!("a cut while {} is written", server.generation));
                    return false;
                }
                let others_full = server
                    .serving()
                    .any(|(p, d)| p != place && !failed.contains(&p) && self.shelf[d].is_full);
                let write = |own: &mut History, server: &Server| {
                    let (generation, label) = (server.generation, server.label.clone());
                    let member = label.members[place].id;
                    own.shelf[drive].superblock = Some(Superblock { generation, member, label });
                    own.shelf[drive].gave_up = server.gave_up.clone();
                };
                if others_full && self.random.chance(0.02) {
                    failed.push(place);
                    if self.random.chance(0.5) {
                        write(self, &server);
                    }
                    continue;
                }
                write(self, &server);
            }
            if failed.is_empty() {
                server.complete = server.generation;
                self.server = Some(server);
                return true;
            }
            acks = false;
            server.generation += 1;
            for place in failed {
                self.tell(format!(
                    "member {} fails, lost in {}",
                    server.label.members[place].name, server.generation
                ));
                set_state(&mut server.label, place as u32, MemberState::Lost);
                server.label.lost_in.insert(place as u32, server.generation);
                server.drives[place] = None;
                if let Some(member) = server.meta.members.get_mut(place) {
                    member.state = MemberState::Lost;
                }
            }
        }
    }

    /// Writes the metadata; false if the power is cut in between.
    fn commit(&mut self, cut: f64) -> bool {
        let mut server = self.server.take().expect("serves");
        self.versions += 1;
        server.meta.version = self.versions;
        let mut left: Vec<(usize, usize)> = server.serving().collect();
        while !left.is_empty() {
            let (_, drive) = left.swap_remove(self.random.below(left.len() as u64) as usize);
            if self.random.chance(cut) {
                self.tell("a cut while metadata are written".into());
                return false;
            }
            self.shelf[drive].meta = server.meta.clone();
        }
        self.server = Some(server);
        true
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
        if present.is_empty() {
            return;
        }
        let mut order = present.clone();
        for i in (1..order.len()).rev() {
            order.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        let present = order;
        let mut without: Vec<String> = Vec::new();
        loop {
            let carriers: Vec<Carrier> = present
                .iter()
                .map(|d| {
                    let sb = self.shelf[*d].superblock.clone().expect("there");
                    let bytes = superblock::encode(&sb);
                    let superblock::Copy::Valid(sb2) = superblock::decode(&bytes) else {
                        panic!("seed {seed}: not decoded: {sb:?}")
                    };
                    Carrier {
                        drive: self.handles[*d].clone(),
                        newest: Newest { superblock: *sb2, copy: 0, is_alone: false },
                    }
                })
                .collect();
            let found = assemble(carriers, &without);
            match &found.problem {
                Some(PoolError::Split { one, other, .. }) => {
                    if self.random.chance(0.4) {
                        return self.tell(format!("a start with {present:?} without {without:?} is refused"));
                    }
                    let side = if self.random.chance(0.5) { one } else { other };
                    let before = without.len();
                    without.extend(side.places.clone());
                    without.sort();
                    without.dedup();
                    let leads_on = without.len() > before && without.len() < present.len();
                    assert!(leads_on, "seed {seed}: no way out\n{}", self.told.join("\n"));
                }
                Some(problem) => {
                    return self.tell(format!("a start with {present:?}: {problem:?}"));
                }
                None => return self.go_on(seed, found, &present, &without),
            }
        }
    }

    /// The number of a drive.
    fn index(handle: &DriveHandle) -> usize {
        handle.info().name[2..].parse().expect("a number")
    }

    /// Goes on as `FoundPool::inspect` and `Opening` do.
    fn go_on(&mut self, seed: u64, mut found: FoundPool, present: &[usize], without: &[String]) {
        if found.standing(Standing::Present).any(|(_, m)| found.is_done_without(m)) {
            return self.tell("not without".into());
        }
        let superblocks: Vec<Superblock> =
            present.iter().filter_map(|d| self.shelf[*d].superblock.clone()).collect();
        let mut readmitting = false;
        let is_full = |own: &History, found: &FoundPool| {
            found
                .members
                .iter()
                .filter(|m| m.member.is_active())
                .filter_map(|m| m.drive.as_ref())
                .any(|h| own.shelf[Self::index(h)].is_full)
        };
        if !is_full(self, &found) {
            if self.mishaps != Mishaps::Recovery || self.random.chance(0.5) {
                return self.tell(format!("with {present:?} nobody is full"));
            }
            // The last resort: the freshest of those that are full.
            let mut best: Option<(u64, u32)> = None;
            for one in found.unbelieved() {
                let d = found.unbelieved_drive(one.place).expect("there");
                if self.shelf[Self::index(&d)].is_full {
                    let until = found.holds_until(one.place);
                    if best.is_none_or(|(u, _)| until > u) {
                        best = Some((until, one.place));
                    }
                }
            }
            let Some((_, place)) = best else { return };
            assert!(found.readmit(place));
            readmitting = true;
            self.tell(format!(
                "the last resort with {present:?} without {without:?} believes member {place} again"
            ));
        }
        let believed_before: Vec<usize> = found
            .members
            .iter()
            .filter(|m| m.member.is_active())
            .filter_map(|m| m.drive.as_ref())
            .map(Self::index)
            .collect();
        let mut meta = believed_before
            .iter()
            .map(|d| &self.shelf[*d].meta)
            .max_by_key(|m| m.version)
            .expect("some")
            .clone();
        found.take_in(&meta.members);
        let mut is_changed = found.is_uneven;
        let generation = found.generation;
        let known_len = meta.members.len();
        for place in 0..found.members.len() {
            let fm = &found.members[place];
            if place >= known_len {
                meta.members.push(Member { state: MemberState::Active, ..fm.member.clone() });
            }
            if meta.members[place].id != found.label.members[place].id {
                let told = self.told.join("\n");
                let l: Vec<String> = present.iter().zip(&superblocks).map(words).collect();
                panic!(
                    "seed {seed}: MISMATCH of metadata and label at place {place}: {:?} {:?}\n{told}\n{}",
                    meta.members[place].name,
                    found.label.members[place].name,
                    l.join("\n")
                );
            }
            if fm.is_readmitted && meta.members[place].state == MemberState::Lost {
                meta.members[place].state = MemberState::Active;
            }
            let known = meta.members[place].state;
            let agreed = match found.label.members[place].state {
                _ if known == MemberState::Removed => MemberState::Removed,
                MemberState::Active if fm.drive.is_none() => MemberState::Lost,
                MemberState::Active => known,
                state => state,
            };
            let changed = found.label.members[place].state != agreed;
            is_changed |= changed;
            if changed {
                set_state(&mut found.label, place as u32, agreed);
                if agreed != MemberState::Active {
                    found.label.lost_in.entry(place as u32).or_insert(generation + MISSING_STEPS);
                }
            }
            if agreed == MemberState::Lost && known == MemberState::Active {
                meta.members[place].state = MemberState::Lost;
            }
        }
        let drives: Vec<Option<usize>> = found
            .members
            .iter()
            .enumerate()
            .map(|(p, m)| m.drive.as_ref().filter(|_| found.label.members[p].is_active()).map(Self::index))
            .collect();
        let believed: Vec<usize> = drives.iter().flatten().copied().collect();
        let full: Vec<usize> = believed.iter().copied().filter(|d| self.shelf[*d].is_full).collect();
        if full.is_empty() {
            return self.tell(format!("with {present:?} nobody is full by the metadata"));
        }
        let mut holds: BTreeSet<u32> =
            full.iter().flat_map(|d| self.shelf[*d].holds.iter().copied()).collect();
        let mut gave_up: BTreeSet<u32> =
            believed.iter().flat_map(|d| self.shelf[*d].gave_up.iter().copied()).collect();
        let named = |d: usize| without.iter().any(|w| *w == format!("/d{d}"));
        let heeded = present.iter().filter(|d| !named(**d));
        gave_up.extend(heeded.flat_map(|d| self.shelf[*d].gave_up.iter().copied()));
        for d in present.iter().filter(|d| named(**d) || readmitting) {
            gave_up.extend(self.shelf[*d].holds.iter().filter(|w| !holds.contains(w)));
        }
        self.tell(format!("a start with {present:?} without {without:?} believes {believed:?} (full {full:?}) label of generation {} changed {is_changed}, holds {holds:?}", found.counting));
        let complain = |own: &History, what: String| -> ! {
            let l: Vec<String> = present.iter().zip(&superblocks).map(words).collect();
            panic!("{:?} seed {seed}: {what}\n{}\n{}", own.mishaps, own.told.join("\n"), l.join("\n"));
        };
        for d in present {
            if let Some(w) = self.shelf[*d].holds.iter().find(|w| !holds.contains(w) && !gave_up.contains(w))
            {
                complain(self, format!("LOST write {w} on drive {d} is gone"));
            }
        }
        for d in &full {
            if let Some(w) = holds.iter().find(|w| !self.shelf[*d].holds.contains(w)) {
                complain(self, format!("STALE drive {d} serves and lacks write {w}"));
            }
        }
        if readmitting {
            for d in &self.shelf {
                gave_up.extend(d.holds.iter().filter(|w| !holds.contains(w)));
            }
        }
        gave_up.retain(|w| !holds.contains(w));
        let complete = if is_changed { found.label.settled } else { generation };
        let steps = if is_changed { MISSING_STEPS } else { 1 };
        holds = std::mem::take(&mut holds);
        self.server = Some(Server { generation, complete, label: found.label, drives, holds, gave_up, meta });
        self.nonces += 1;
        let (from, nonce, cut) = (generation + steps, self.nonces, self.cut);
        let begin = move |label: &mut PoolLabel| label.starts.push(from, nonce);
        if !self.publish(steps, cut, false, begin)
            || !self.publish(1, cut, false, |_| {})
            || !self.commit(cut)
        {
            return;
        }
        if readmitting
            && !self.publish(1, cut, false, |label| {
                let s: Vec<bool> = label.members.iter().map(Member::is_active).collect();
                label.lost_in.retain(|p, _| !s[*p as usize]);
            })
        {
            return;
        }
        let server = self.server.as_ref().expect("serves");
        let gave_up = server.gave_up.clone();
        for (_, d) in server.serving() {
            self.shelf[d].gave_up = gave_up.clone();
        }
        self.acknowledge();
    }

    fn ack(&mut self, server: &mut Server) {
        self.writes += 1;
        server.holds.insert(self.writes);
        let drives: Vec<usize> =
            server.serving().map(|(_, d)| d).filter(|d| self.shelf[*d].is_full).collect();
        drives.iter().for_each(|d| _ = self.shelf[*d].holds.insert(self.writes));
        self.tell(format!("write {} is acknowledged on {drives:?}", self.writes));
    }
    fn acknowledge(&mut self) {
        let mut s = self.server.take().expect("serves");
        self.ack(&mut s);
        self.server = Some(s);
    }

    fn join(&mut self) {
        let server = self.server.as_ref().expect("serves");
        let serving: BTreeSet<usize> = server.serving().map(|(_, d)| d).collect();
        let is_dear = |d: usize| {
            self.shelf[d].holds.iter().any(|w| !server.holds.contains(w) && !server.gave_up.contains(w))
        };
        // Who holds what the others do not have is not taken back unasked.
        let answers = server.label.members.iter().find(|member| member.is_active()).expect("one serves").id;
        let serves =
            Superblock { generation: server.generation, member: answers, label: server.label.clone() };
        let is_lost = |id| server.label.members.iter().any(|m| m.id == id && m.state == MemberState::Lost);
        for drive in (0..self.shelf.len()).filter(|d| !serving.contains(d) && is_dear(*d)) {
            let own = self.shelf[drive].superblock.as_ref().filter(|own| is_lost(own.member));
            assert!(
                own.is_none_or(|own| lineage::went_on_alone(own, &serves)),
                "drive {drive} is taken back unasked: {own:#?}\nby {serves:#?}\n{}",
                self.told.join("\n")
            );
        }
        let free: Vec<usize> =
            (0..self.shelf.len()).filter(|d| !serving.contains(d) && !is_dear(*d)).collect();
        if free.is_empty() {
            return;
        }
        let newcomer = member(self.members);
        let mut label = server.label.clone();
        label.members.push(newcomer.clone());
        label.carriers =
            (0..label.members.len() as u32).filter(|p| label.members[*p as usize].is_active()).collect();
        (label.features, label.settled) = (label.features.of_next_superblock(), server.complete);
        let superblock = Superblock { generation: server.generation + 1, member: newcomer.id, label };
        let gave_up = server.gave_up.clone();
        self.members += 1;
        let drive = self.pick(&free);
        self.tell(format!("drive {drive} joins as {} in {}", newcomer.name, superblock.generation));
        self.shelf[drive] = Shelved { superblock: Some(superblock), gave_up, ..Shelved::default() };
        match self.random.below(100) {
            0..15 => return self.server = None,
            15..25 => return self.tell("it fails when it has its superblock".to_owned()),
            _ => {}
        }
        self.server.as_mut().expect("it serves").drives.push(Some(drive));
        let n = newcomer.clone();
        if self.publish(1, 0.08, true, |label| label.members.push(n)) {
            let s = self.server.as_mut().expect("serves");
            let state = s.label.members.last().expect("one").state;
            s.meta.members.push(Member { state, ..newcomer });
            if self.commit(META_CUT) && self.random.chance(0.6) {
                self.rebuild();
            }
        }
    }

    fn rebuild(&mut self) {
        let server = self.server.as_ref().expect("serves");
        let lacking: Vec<usize> =
            server.serving().map(|(_, d)| d).filter(|d| !self.shelf[*d].is_full).collect();
        for d in lacking {
            self.shelf[d].is_full = true;
            self.shelf[d].holds = server.holds.clone();
            self.shelf[d].gave_up = server.gave_up.clone();
        }
    }

    fn leave(&mut self, state: MemberState) {
        let server = self.server.as_ref().expect("serves");
        let serving: Vec<(usize, usize)> = server.serving().collect();
        let lost: Vec<usize> = server
            .label
            .members
            .iter()
            .enumerate()
            .filter(|(_, m)| m.state == MemberState::Lost)
            .map(|(p, _)| p)
            .collect();
        let takes_lost = state == MemberState::Removed && !lost.is_empty() && self.random.chance(0.5);
        let can: Vec<usize> = serving
            .iter()
            .filter(|(p, _)| serving.iter().any(|(q, d)| q != p && self.shelf[*d].is_full))
            .map(|(p, _)| *p)
            .collect();
        if !takes_lost && can.is_empty() {
            return;
        }
        let place = if takes_lost { self.pick(&lost) } else { self.pick(&can) };
        let server = self.server.as_mut().expect("serves");
        self.told.push(format!("member {} becomes {state:?}", server.label.members[place].name));
        if state == MemberState::Removed {
            if let Some(d) = server.drives[place] {
                self.shelf[d].is_full = false;
                self.shelf[d].holds.clear();
            }
            server.meta.members[place].state = state;
            if !self.commit(META_CUT) {
                return;
            }
            let drive = self.server.as_mut().expect("s").drives[place].take();
            if !self.publish(1, 0.04, true, |label| set_state(label, place as u32, state)) {
                return;
            }
            if let Some(drive) = drive.filter(|_| self.random.chance(0.6)) {
                self.shelf[drive].superblock = None;
            }
        } else {
            server.drives[place] = None;
            server.meta.members[place].state = state;
            if self.publish(1, 0.04, false, |label| set_state(label, place as u32, state)) {
                self.commit(META_CUT);
            }
        }
    }

    /// The copy, or the pool itself, is what goes on; or a drive is exchanged with the copy's.
    fn elsewhere(&mut self) {
        let count = self.shelf.len() as u64;
        let (event, drive) = (self.random.below(10), self.random.below(count) as usize);
        let Some(other) = self.other.as_mut().filter(|_| event >= 3) else {
            self.other = Some(self.shelf.clone());
            return self.tell("all drives are copied".into());
        };
        match event {
            3..6 => std::mem::swap(other, &mut self.shelf),
            _ => std::mem::swap(&mut other[drive], &mut self.shelf[drive]),
        }
        let what = if event < 6 { "the copy goes on".into() } else { format!("drive {drive} is the copy's") };
        self.tell(what);
    }

    /// Images of all drives are kept, or one is put back.
    fn put_back(&mut self) {
        let drive = self.random.below(self.shelf.len() as u64) as usize;
        let keeps = self.random.chance(0.3);
        let Some(images) = self.other.as_ref().filter(|_| !keeps) else {
            self.other = Some(self.shelf.clone());
            return self.tell("images are kept".into());
        };
        self.shelf[drive] = images[drive].clone();
        self.tell(format!("drive {drive} is put back"));
    }

    fn live(&mut self, seed: u64) {
        for _ in 0..STEPS {
            if self.server.is_none() {
                if self.mishaps == Mishaps::Copies && self.random.chance(0.3) {
                    self.elsewhere();
                    continue;
                }
                if self.mishaps == Mishaps::Images && self.random.chance(0.2) {
                    self.put_back();
                    continue;
                }
                self.start(seed);
                continue;
            }
            match self.random.below(100) {
                0..25 => self.acknowledge(),
                25..37 => _ = self.publish(1, 0.05, true, |_| {}),
                37..42 => self.rebuild(),
                42..60 => self.join(),
                60..72 => self.leave(MemberState::Lost),
                72..82 => self.leave(MemberState::Removed),
                _ => self.server = None,
            }
        }
    }
}

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `HISTORIES` says how many, `HISTORIES_FROM` with which seed they begin: of each number of drives, and each kind of mishap.
#[test]
fn no_start_does_without_what_was_acknowledged() {
    let (histories, first) = (number("HISTORIES", 400), number("HISTORIES_FROM", 0));
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let world = runtime.world().clone();
    for mishaps in [Mishaps::None, Mishaps::Copies, Mishaps::Images, Mishaps::Recovery] {
        for (drives, at_first) in [(2, 2), (3, 2), (4, 2), (4, 3), (5, 3)] {
            for seed in first..first + histories {
                let cut = [0.04, 0.3, 0.12][(seed % 3) as usize];
                History::new(drives, at_first, (cut, mishaps), seed, &world).live(seed);
            }
        }
    }
}
