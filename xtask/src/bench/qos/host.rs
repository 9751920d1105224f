//! Hosts that load volumes side by side, and what each load got.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, Nanos, SECTOR_BYTES};
use tier0_world::{Buf, BufMut, IoError, Random, World};

/// What hosts do to a volume.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) hosts: u64,
    /// Each host begins a request so often; zero: when the last one has ended.
    pub(super) every: Nanos,
    pub(super) sectors: u32,
    /// Of 100 requests so many are reads.
    pub(super) reads: u64,
    pub(super) is_sequential: bool,
}

/// A load of a part of a volume.
#[derive(Clone)]
pub(super) struct Loaded<T> {
    target: T,
    load: Load,
    sectors: Range<u64>,
}

impl<T: BlockTarget> Loaded<T> {
    /// A load of all of it.
    pub(super) fn whole(target: T, load: Load) -> Loaded<T> {
        let sectors = 0..target.info().sectors.0;
        Loaded { target, load, sectors }
    }

    /// A load of these sectors.
    pub(super) fn part(target: T, load: Load, sectors: Range<u64>) -> Loaded<T> {
        Loaded { target, load, sectors }
    }
}

/// What a load got.
#[derive(Clone, Default)]
pub(super) struct Got {
    /// Sorted.
    latencies: Vec<u64>,
    bytes: u64,
    seconds: f64,
}

impl Got {
    /// In milliseconds.
    pub(super) fn quantile(&self, percent: usize) -> f64 {
        let index = self.latencies.len().saturating_sub(1) * percent / 100;
        self.latencies.get(index).copied().unwrap_or(0) as f64 / 1e6
    }

    pub(super) fn requests_per_s(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    pub(super) fn megabytes_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds
    }
}

/// Runs all loads together, measured for `time` after a third of it; what each got, in order.
pub(super) async fn measured<T: BlockTarget + Clone + 'static>(
    world: World,
    loads: Vec<Loaded<T>>,
    time: Nanos,
) -> Result<Vec<Got>, IoError> {
    let from = world.now() + Nanos(time.0 / 3);
    let (mut hosts, mut all) = (Vec::new(), Vec::new());
    for (number, loaded) in (0u64..).zip(loads) {
        let (cursor, got) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Got::default())));
        for host in 0..loaded.load.hosts {
            let one = Host {
                world: world.clone(),
                loaded: loaded.clone(),
                cursor: cursor.clone(),
                got: got.clone(),
                counts: from..from + time,
            };
            hosts.push(world.spawn(one.run(number * 100 + host)));
        }
        all.push(got);
    }
    for host in hosts {
        host.await?;
    }
    let finished = |got: Rc<RefCell<Got>>| {
        let mut got = got.take();
        got.latencies.sort_unstable();
        Got { seconds: time.as_secs_f64(), ..got }
    };
    Ok(all.into_iter().map(finished).collect())
}

/// One host of a load.
struct Host<T> {
    world: World,
    loaded: Loaded<T>,
    /// Where the next request of a sequential load begins.
    cursor: Rc<Cell<u64>>,
    got: Rc<RefCell<Got>>,
    /// What ends in this time counts.
    counts: Range<Nanos>,
}

impl<T: BlockTarget> Host<T> {
    async fn run(self, seed: u64) -> Result<(), IoError> {
        let Loaded { target, load, sectors: range } = self.loaded;
        let Load { every, sectors, reads, is_sequential, .. } = load;
        let mut random = self.world.random(seed);
        let places = (range.end - range.start) / u64::from(sectors);
        let mut due = self.world.now() + Nanos(random.below(every.0 + 1));
        loop {
            self.world.sleep(due.saturating_sub(self.world.now())).await;
            // A request that is late because another took long counts from when it was due.
            let began = if every == Nanos::ZERO { self.world.now() } else { due };
            due = began + every;
            let place =
                if is_sequential { self.cursor.replace(self.cursor.get() + 1) } else { random.below(places) };
            let lba = Lba(range.start + place % places * u64::from(sectors));
            let buf = self.world.buffer(sectors);
            match random.below(100) < reads {
                true => target.read(lba, buf).await.0?,
                false => target.write(lba, filled(buf, &mut random), false).await?,
            }
            let now = self.world.now();
            if now > self.counts.end {
                return Ok(());
            }
            if now > self.counts.start {
                let mut got = self.got.borrow_mut();
                got.latencies.push((now - began).0);
                got.bytes += u64::from(sectors) * SECTOR_BYTES;
            }
        }
    }
}

/// Something other than zeros.
fn filled(mut buf: BufMut, random: &mut Random) -> Buf {
    let byte = 1 + random.below(255) as u8;
    buf.as_mut_slice().fill(byte);
    buf.freeze()
}
