//! One's own database as a workload: objects with what a transaction reads and writes of them, as the database counts it.
//!
//! The counts are I/Os: what the memory at hand did not keep. So a buffer in the model is memory beside the one with which they were
//! counted.

use tier0_units::ByteCount;

use super::{Act, At, Dimension, Growth, Law, Object, Size, Step, Transaction, Workload};
use crate::engine::Engine;

/// A table, an index or a file.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnObject {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size: ByteCount,
    /// Reads for each transaction.
    pub reads: f64,
    /// Size of a read; a page where it is no more than that.
    pub read_size: ByteCount,
    /// Pages written for each transaction.
    pub writes: f64,
    /// Which of its pages.
    pub law: Law,
}

impl Workload {
    /// The workload of objects of one's own: one kind of transaction, which touches single pages.
    pub fn of_objects(objects: &[OwnObject], engine: &Engine) -> Workload {
        let page = engine.page_bytes().0;
        let mut workload = Workload {
            id: "own".into(),
            title: "objects of one's own".into(),
            description: "single pages of objects, as often as a database has counted".into(),
            unit: "databases".into(),
            headline: 0,
            dimensions: Vec::new(),
            objects: Vec::new(),
            transactions: Vec::new(),
            choices: Default::default(),
            sources: Vec::new(),
            scan_us: 0.0,
        };
        let mut steps = Vec::new();
        for own in objects {
            let stretch = stretch_pages(own.read_size, page);
            // A page that is changed is read before. What is written beyond that are new pages, as is all that is written of an
            // object with large reads.
            let changed = if stretch > 1 { 0.0 } else { own.reads.min(own.writes) };
            let (read, appended) = (own.reads - changed, own.writes - changed);
            let appended_share = appended / (own.reads + appended).max(f64::MIN_POSITIVE);
            let pages = (own.size.0 / page).max(2);
            let tail = (pages as f64 * appended_share) as u64;
            let dimension = workload.dimensions.len();
            let table = workload.objects.len();
            workload
                .dimensions
                .push(Dimension { name: own.name.clone(), size: Size::Fixed((pages - tail).max(1)) });
            workload.objects.push(Object {
                name: own.name.clone(),
                key: vec![dimension],
                row_bytes: page as f64 * ONE_ROW,
                rows: 1,
                growth: None,
                index_of: None,
                primary_key_bytes: None,
                is_filled_at_random: false,
            });
            let touch = |update| {
                vec![
                    Step { probability: 1.0, act: Act::Pick { dimension, law: own.law } },
                    Step {
                        probability: 1.0,
                        act: Act::Touch {
                            object: table,
                            update,
                            rows: 1,
                            at: At::Key,
                            hold: false,
                            direct: false,
                        },
                    },
                ]
            };
            steps.extend(match stretch {
                1 => times(read, touch(false)),
                pages => {
                    times(read, vec![Step { probability: 1.0, act: Act::Stretch { object: table, pages } }])
                }
            });
            steps.extend(times(changed, touch(true)));
            if appended > 0.0 {
                let object = workload.objects.len();
                workload.objects.push(Object {
                    name: format!("{}, appended", own.name),
                    key: Vec::new(),
                    row_bytes: page as f64 * ONE_ROW,
                    rows: tail.max(1),
                    growth: Some(Growth { per_sequence: 1, backlog: 0, keeps: None }),
                    index_of: Some(table),
                    primary_key_bytes: None,
                    is_filled_at_random: false,
                });
                let append = Step { probability: 1.0, act: Act::Append { object } };
                steps.extend(times(appended, vec![append]));
            }
        }
        workload.transactions.push(Transaction { name: "transaction".into(), share: 1.0, steps });
        workload
    }
}

/// A row of this part of a page has the page to itself.
const ONE_ROW: f64 = 0.6;

/// The largest read: a piece of an object on a volume.
const READ_MAX: ByteCount = ByteCount::mib(1);

/// Pages of a read: a power of two, so that no read lies on two pieces.
fn stretch_pages(read: ByteCount, page: u64) -> u64 {
    let pages = read.min(READ_MAX).0 / page;
    if pages <= 1 { 1 } else { 1 << pages.ilog2() }
}

/// Steps that are taken so many times on average.
fn times(count: f64, steps: Vec<Step>) -> Vec<Step> {
    let whole = count.floor();
    let repeat = |times: u64| Act::Repeat {
        least: times,
        most: times,
        within: None,
        is_list: false,
        steps: steps.clone(),
    };
    let always = (whole > 0.0).then(|| Step { probability: 1.0, act: repeat(whole as u64) });
    let rest = (count > whole).then(|| Step { probability: count - whole, act: repeat(1) });
    always.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Scale};
    use crate::script::{Script, TouchKind};

    #[test]
    fn touches_come_as_often_as_was_counted() {
        let engine = Engine::find("sql-server-2008").expect("it is there");
        let object = |name: &str, mib, reads, writes| OwnObject {
            name: name.into(),
            size: ByteCount::mib(mib),
            reads,
            read_size: ByteCount(0),
            writes,
            law: Law::Uniform,
        };
        let large = OwnObject { read_size: ByteCount::kib(100), ..object("scanned", 32, 0.25, 0.0) };
        let objects = [object("orders", 64, 3.25, 1.5), object("temp", 16, 0.5, 2.0), large];
        let workload = Workload::of_objects(&objects, &engine);
        let layout = Layout::new(&workload, &engine, &Scale { units: 1.0, grown: 1.0 });
        let sizes = layout.bytes().0 as f64 / ByteCount::mib(112).0 as f64;
        assert!((0.99..1.01).contains(&sizes), "{sizes}");
        let mut script = Script::new(&workload, &layout);
        let mut random = tier0_world::Random::new(1, 0);
        let mut touches = Vec::new();
        const TIMES: usize = 20_000;
        (0..TIMES).for_each(|_| script.run(0, 0, &mut random, &mut touches));
        let share = |kind: TouchKind, of: &[usize]| {
            let is_of = |page: u64| of.contains(&layout.object_of(page));
            let found = touches.iter().filter(|touch| touch.kind == kind && is_of(touch.page)).count();
            found as f64 / TIMES as f64
        };
        for (found, counted) in [
            (share(TouchKind::Read, &[0]), 1.75),
            (share(TouchKind::Update, &[0]), 1.5),
            (share(TouchKind::Update, &[1]), 0.5),
            (share(TouchKind::Create, &[2]), 1.5),
            // 100 KiB are 12 pages of 8 KiB, of which a power of two is read.
            (share(TouchKind::Stretch(8), &[3]), 0.25),
        ] {
            assert!((found / counted - 1.0).abs() < 0.03, "{found} for {counted}");
        }
    }
}
