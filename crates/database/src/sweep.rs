//! A page buffer under a workload, without time: what a transaction reads and writes as a function of the buffer's size. Scans
//! take their pages through it, and are not counted.

use tier0_policy::PolicyKind;
use tier0_world::Random;

use crate::buffer::{Access, Buffer};
use crate::engine::Engine;
use crate::layout::{Layout, Scale};
use crate::script::{Script, Touch, TouchKind};
use crate::workload::Workload;

/// What transactions needed, on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepCounts {
    /// Transactions that were counted.
    pub transactions: u64,
    /// Pages touched.
    pub touches: f64,
    /// Pages read, for each.
    pub reads: f64,
    /// Pages that were written because they gave way, for each.
    pub writes: f64,
    /// Pages read by object, for each.
    pub reads_by_object: Vec<f64>,
    /// Pages that are dirty at the end, as a share of the buffer.
    pub dirty_share: f64,
}

/// Runs transactions until the buffer is full and has taken in as much again `turnovers` times, then counts.
pub fn sweep(
    workload: &Workload,
    engine: &Engine,
    scale: &Scale,
    buffer_pages: u64,
    users: u64,
    counted: u64,
    seed: u64,
) -> SweepCounts {
    let layout = Layout::new(workload, engine, scale);
    let mut script = Script::new(workload, &layout);
    let mut buffer = Buffer::new(buffer_pages, PolicyKind::Lru);
    let mut random = Random::new(seed, 0);
    let mut run = Run {
        script: &mut script,
        engine,
        buffer: &mut buffer,
        random: &mut random,
        users,
        touches: Vec::new(),
        scanned: 0,
    };
    run.warm();
    let mut counts =
        SweepCounts { reads_by_object: vec![0.0; layout.objects.len()], ..SweepCounts::default() };
    for _ in 0..counted {
        run.transaction(&mut |page, access| {
            counts.touches += 1.0;
            if let Access::Miss { .. } = access {
                counts.reads += 1.0;
                counts.reads_by_object[layout.object_of(page)] += 1.0;
            }
            let evicted = match access {
                Access::Miss { evicted } | Access::Back { evicted } => evicted,
                Access::Hit => None,
            };
            counts.writes += f64::from(u8::from(evicted.is_some()));
        });
    }
    let per = |sum: f64| sum / counted.max(1) as f64;
    SweepCounts {
        transactions: counted,
        touches: per(counts.touches),
        reads: per(counts.reads),
        writes: per(counts.writes),
        reads_by_object: counts.reads_by_object.into_iter().map(per).collect(),
        dirty_share: buffer.dirty() as f64 / buffer.capacity() as f64,
    }
}

/// A buffer is warm when it has taken in so many times as many pages as it holds, or when misses become no rarer.
const TURNOVERS: u64 = 2;
/// Misses are compared over windows of so many transactions at least.
const WINDOW: u64 = 20_000;
/// They become no rarer where a window has at least this share of the misses of the one before.
const STEADY: f64 = 0.99;
/// For so many windows in a row.
const STEADY_WINDOWS: u32 = 3;

/// Transactions on a buffer.
pub(crate) struct Run<'a> {
    pub(crate) script: &'a mut Script,
    pub(crate) engine: &'a Engine,
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) random: &'a mut Random,
    /// How many; each has a home.
    pub(crate) users: u64,
    pub(crate) touches: Vec<Touch>,
    /// Pages that scans have taken through the buffer.
    pub(crate) scanned: u64,
}

impl Run<'_> {
    /// Runs transactions until the buffer is as it will be, and returns how many.
    pub(crate) fn warm(&mut self) -> u64 {
        let window = WINDOW.max(self.buffer.capacity() / 20);
        let (mut all, mut before, mut steady, mut done) = (0, u64::MAX, 0, 0);
        while all < self.buffer.capacity() * TURNOVERS && steady < STEADY_WINDOWS {
            let (mut misses, mut left) = (0, window);
            let scanned = self.scanned + TURNOVERS * self.buffer.capacity();
            while left > 0 && self.scanned < scanned {
                self.transaction(&mut |_, access| misses += u64::from(matches!(access, Access::Miss { .. })));
                left -= 1;
            }
            steady = if misses as f64 >= before as f64 * STEADY { steady + 1 } else { 0 };
            (all, before, done) = (all + misses, misses, done + window - left);
        }
        done
    }

    /// Runs one transaction; what gives way counts as written at once.
    pub(crate) fn transaction(&mut self, on: &mut dyn FnMut(u64, Access)) {
        let kind = self.script.draw_kind(self.random);
        let user = self.random.below(self.users.max(1));
        self.touches.clear();
        let home = home_of(user, self.users, self.script.layout().sizes[0]);
        self.script.run(kind, home, self.random, &mut self.touches);
        for touch in &self.touches {
            if let TouchKind::Stretch(_) = touch.kind {
                self.scanned += 1;
                on(touch.page, Access::Hit);
                continue;
            }
            if let TouchKind::Scan(pages) = touch.kind {
                self.scanned += scan(self.script.layout(), self.engine, self.buffer, touch.page, pages);
                on(touch.page, Access::Hit);
                continue;
            }
            let access = match touch.kind {
                TouchKind::Create => match self.buffer.access(touch.page) {
                    Access::Miss { evicted } => Access::Back { evicted },
                    other => other,
                },
                _ => self.buffer.access(touch.page),
            };
            if touch.kind != TouchKind::Read {
                self.buffer.change(touch.page, 0);
            }
            on(touch.page, access);
            if let Access::Miss { evicted: Some(gone) } | Access::Back { evicted: Some(gone) } = access {
                self.buffer.gather(gone, 1, gone..gone + 1);
            }
        }
    }
}

/// Takes the pages of a scan through a buffer, if it keeps them, and returns how many it took.
fn scan(layout: &Layout, engine: &Engine, buffer: &mut Buffer, first: u64, pages: u64) -> u64 {
    if !engine.keeps_scanned(layout.objects[layout.object_of(first)].pages, buffer.capacity()) {
        return 0;
    }
    for page in first..first + pages {
        if let Access::Miss { evicted: Some(gone) } | Access::Back { evicted: Some(gone) } =
            buffer.access(page)
        {
            buffer.gather(gone, 1, gone..gone + 1);
        }
    }
    pages
}

/// The home of a user: users are spread evenly over the homes.
pub fn home_of(user: u64, users: u64, homes: u64) -> u64 {
    (u128::from(user) * u128::from(homes) / u128::from(users.max(1))) as u64
}
