//! From scripts to touches: which pages a transaction reads, changes and creates, in order.
//!
//! Invariants: the same seed draws the same transactions, whatever the time between them. What has been appended lies where it
//! was appended when a later transaction looks for it.

use tier0_world::Random;

use crate::layout::Layout;
use crate::workload::{Act, Among, At, Drawn, Law, Step, Workload};

/// One page that a transaction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The page.
    pub page: u64,
    /// What is done to it.
    pub kind: TouchKind,
    /// It belongs to a list of rows that is known before they are needed.
    pub is_listed: bool,
    /// The number of a row that is held until the transaction has committed.
    pub hold: Option<u64>,
}

/// What is done to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    /// A row is read.
    Read,
    /// A row is changed.
    Update,
    /// A row is the first of a new page, which nothing has to be read for.
    Create,
    /// So many pages are read from this one on with one I/O, past the buffer.
    Stretch(u64),
    /// So many pages of an object are read from this one on, in order.
    Scan(u64),
}

/// What has grown in a database.
struct Grown {
    /// Rows ever appended, by partition.
    tails: Vec<u64>,
    /// Sequence numbers that are taken, by partition.
    heads: Vec<u64>,
    /// The newest values of the kept dimension, a ring for each partition.
    kept: Vec<u32>,
    keeps: usize,
}

/// A value that no row of the run has set.
const OLDER: u32 = u32::MAX;

/// Bits of the number of a held row within its object.
const ROW_BITS: u32 = 48;

/// A database's transactions.
pub struct Script {
    workload: Workload,
    layout: Layout,
    /// By object, of those that grow.
    grown: Vec<Option<Grown>>,
    /// Laws over numbers of values, made at their first draw. There are few.
    laws: Vec<(u64, Law, Drawn)>,
    /// Chosen values, by dimension.
    values: Vec<u64>,
    /// The chosen sequence number.
    sequence: u64,
    home: u64,
    /// The steps are those of a list.
    in_list: bool,
}

impl Script {
    /// The transactions of a workload over a layout of it.
    pub fn new(workload: &Workload, layout: &Layout) -> Script {
        let grown = workload.objects.iter().zip(&layout.objects).map(|(object, placed)| {
            let growth = object.growth.as_ref()?;
            let partitions = placed.partitions as usize;
            let tail = placed.rows;
            let keeps = growth.keeps.map_or(0, |(_, last)| last);
            Some(Grown {
                tails: vec![tail; partitions],
                heads: vec![tail / growth.per_sequence - growth.backlog; partitions],
                kept: vec![OLDER; partitions * keeps],
                keeps,
            })
        });
        Script {
            grown: grown.collect(),
            laws: Vec::new(),
            values: vec![0; workload.dimensions.len()],
            sequence: 0,
            home: 0,
            in_list: false,
            workload: workload.clone(),
            layout: layout.clone(),
        }
    }

    /// The pages.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Draws which transaction a user begins.
    pub fn draw_kind(&self, random: &mut Random) -> usize {
        let mut left = random.unit();
        for (kind, transaction) in self.workload.transactions.iter().enumerate() {
            left -= transaction.share;
            if left < 0.0 {
                return kind;
            }
        }
        self.workload.transactions.len() - 1
    }

    /// Draws a transaction of a user with a home, and puts its touches behind those in `touches`.
    pub fn run(&mut self, kind: usize, home: u64, random: &mut Random, touches: &mut Vec<Touch>) {
        self.home = home;
        self.values.fill(0);
        self.values[0] = home % self.layout.sizes[0];
        // Taken out for the time being, so that the steps can be walked while the state changes.
        let steps = std::mem::take(&mut self.workload.transactions[kind].steps);
        self.steps(&steps, random, touches);
        self.workload.transactions[kind].steps = steps;
    }

    fn steps(&mut self, steps: &[Step], random: &mut Random, touches: &mut Vec<Touch>) {
        for step in steps {
            if step.probability < 1.0 && !random.chance(step.probability) {
                continue;
            }
            self.act(&step.act, random, touches);
        }
    }

    fn act(&mut self, act: &Act, random: &mut Random, touches: &mut Vec<Touch>) {
        match act {
            Act::Pick { dimension, law } => self.values[*dimension] = self.draw(*dimension, *law, random),
            Act::PickSequence { object, among: Among::Newest(back) } => {
                let partition = self.partition(*object) as usize;
                let tail = self.grown_of(*object).tails[partition] / self.per_sequence(*object);
                self.sequence = tail.saturating_sub(1 + random.below(*back));
            }
            Act::PickSequence { object, among: Among::All { law, group } } => {
                let numbers = self.layout.objects[*object].rows / self.per_sequence(*object);
                let drawn = self.draw_of(numbers.div_ceil(*group), *law, 0, random);
                self.sequence = (drawn * group + random.below(*group)).min(numbers.saturating_sub(1));
            }
            Act::Touch { object, update, rows, at, hold, .. } => {
                self.touch(*object, *update, *rows, *at, touches);
                if *hold {
                    self.hold(*object, touches);
                }
            }
            Act::Append { object } => self.append(*object, touches),
            Act::Take { object, hold } => {
                let partition = self.partition(*object) as usize;
                let per_sequence = self.per_sequence(*object);
                let grown = self.grown_of(*object);
                // With an empty backlog the newest one is taken again.
                let tail = grown.tails[partition] / per_sequence;
                let taken = grown.heads[partition].min(tail.saturating_sub(1));
                grown.heads[partition] = (taken + 1).min(tail);
                self.sequence = taken;
                self.touch(*object, true, 1, At::Sequence, touches);
                if *hold {
                    self.hold(*object, touches);
                }
            }
            Act::Repeat { least, most, within, is_list, steps } => {
                let times = least + random.below(most - least + 1);
                let (from, in_list) = (self.sequence, self.in_list);
                self.in_list |= is_list;
                for _ in 0..times {
                    if let Some(within) = within {
                        self.sequence = from + random.below(*within);
                    }
                    self.steps(steps, random, touches);
                }
                self.in_list = in_list;
            }
            Act::Each { dimension, steps } => {
                for value in 0..self.layout.sizes[*dimension] {
                    self.values[*dimension] = value;
                    self.steps(steps, random, touches);
                }
            }
            Act::Recall { object, last, law, steps } => {
                let keeps = self.workload.objects[*object].growth.as_ref().and_then(|growth| growth.keeps);
                let (dimension, _) = keeps.expect("checked");
                let partition = self.partition(*object) as usize;
                for back in 0..*last {
                    let grown = self.grown_of(*object);
                    let tail = grown.tails[partition] as usize;
                    let slot = partition * grown.keeps + (tail - 1 - back) % grown.keeps;
                    let kept = grown.kept[slot];
                    let value = match kept {
                        OLDER => self.draw(dimension, *law, random),
                        kept => u64::from(kept),
                    };
                    let grown = self.grown_of(*object);
                    grown.kept[slot] = value as u32;
                    self.values[dimension] = value;
                    self.steps(steps, random, touches);
                }
            }
            Act::Stretch { object, pages } => {
                let placed = &self.layout.objects[*object];
                // Aligned, so that no read lies on two pieces; a small object is read whole.
                let pages = (*pages).min(placed.pages.max(1));
                let page = placed.first_page + random.below((placed.pages / pages).max(1)) * pages;
                touches.push(Touch { page, kind: TouchKind::Stretch(pages), is_listed: false, hold: None });
            }
            Act::Scan { object, share } => {
                let placed = &self.layout.objects[*object];
                let pages = ((placed.pages as f64 * share) as u64).clamp(1, placed.pages.max(1));
                let page = placed.first_page + random.below(placed.pages.max(1) - pages + 1);
                touches.push(Touch { page, kind: TouchKind::Scan(pages), is_listed: false, hold: None });
            }
        }
    }

    fn draw(&mut self, dimension: usize, law: Law, random: &mut Random) -> u64 {
        // Beside the home, a dimension's own value is what others are compared with.
        let own = if dimension == 0 { self.home } else { self.values[dimension] };
        self.draw_of(self.layout.sizes[dimension], law, own, random)
    }

    fn draw_of(&mut self, values: u64, law: Law, own: u64, random: &mut Random) -> u64 {
        let known = self.laws.iter().position(|(of, known, _)| (*of, *known) == (values, law));
        let place = known.unwrap_or_else(|| {
            self.laws.push((values, law, law.over(values)));
            self.laws.len() - 1
        });
        self.laws[place].2.draw(random, own)
    }

    /// The number of the chosen values of an object's key.
    fn partition(&self, object: usize) -> u64 {
        let key = &self.workload.objects[object].key;
        key.iter()
            .fold(0, |number, dimension| number * self.layout.sizes[*dimension] + self.values[*dimension])
    }

    fn per_sequence(&self, object: usize) -> u64 {
        self.workload.objects[object].growth.as_ref().map_or(1, |growth| growth.per_sequence)
    }

    fn grown_of(&mut self, object: usize) -> &mut Grown {
        self.grown[object].as_mut().expect("checked: it grows")
    }

    fn touch(&mut self, object: usize, update: bool, rows: u64, at: At, touches: &mut Vec<Touch>) {
        let partition = self.partition(object);
        let per_sequence = self.per_sequence(object);
        let first = match at {
            At::Key => 0,
            At::Sequence => self.sequence * per_sequence,
            At::Tail => self.grown_of(object).tails[partition as usize].saturating_sub(rows),
        };
        let placed = &self.layout.objects[object];
        let kind = if update { TouchKind::Update } else { TouchKind::Read };
        let mut last = None;
        for row in first..first + rows {
            let (page, _) = placed.page_of(partition, row);
            if last != Some(page) {
                touches.push(Touch { page, kind, is_listed: self.in_list, hold: None });
                last = Some(page);
            }
        }
    }

    fn append(&mut self, object: usize, touches: &mut Vec<Touch>) {
        let partition = self.partition(object);
        let keeps = self.workload.objects[object].growth.as_ref().and_then(|growth| growth.keeps);
        let kept = keeps.map(|(dimension, _)| self.values[dimension] as u32);
        let grown = self.grown_of(object);
        let tail = grown.tails[partition as usize];
        grown.tails[partition as usize] = tail + 1;
        if let Some(value) = kept.filter(|_| grown.keeps > 0) {
            let slot = partition as usize * grown.keeps + tail as usize % grown.keeps;
            grown.kept[slot] = value;
        }
        let (page, is_first) = self.layout.objects[object].page_of(partition, tail);
        let kind = if is_first { TouchKind::Create } else { TouchKind::Update };
        touches.push(Touch { page, kind, is_listed: false, hold: None });
    }

    /// The newest touch is of a row that is held.
    fn hold(&self, object: usize, touches: &mut [Touch]) {
        let row = (object as u64) << ROW_BITS | self.partition(object);
        if let Some(touch) = touches.last_mut() {
            touch.hold = Some(row);
        }
    }
}
