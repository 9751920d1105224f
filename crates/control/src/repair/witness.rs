//! The witness: a file outside of the array's drives that remembers which of them a pool went on without.
//!
//! Where either half of a pool could go on without the other, as the legs of a mirror can, the half that is there cannot
//! know whether it is the one that was left behind, and the administrator has to consent to start with it alone. A
//! witness knows: a half that goes on without drives that could go on by themselves has it written there first, and a
//! half that the other has not gone on without may start. Where the witness cannot be asked, consent is asked for as
//! without one; where it cannot be told, neither half goes on.
//!
//! It also knows up to which generation of its labels the pool has come (`pool::metadata`), so that drives which were all
//! put back to an older image do not start as if they were what was there last. A generation is noted after all drives that
//! serve have it: what a crash leaves is never older than what is noted.
//!
//! The file is JSON, replaced as a whole, and locked by a file beside it while it is changed, so that two hosts that share
//! it do not both go on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::{Either, select};
use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use tier0_pool::PoolState;
use tier0_units::Nanos;
use tier0_world::World;
use tier0_world::sync::oneshot;
use uuid::Uuid;

/// The version of the file. The one before had no generations, and is read.
const VERSION: u32 = 2;
const WITHOUT_GENERATIONS: u32 = 1;
/// A larger file is none of ours, bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Threads that may wait for it at once: more than pools that part at one time, and few where it hangs for good.
const THREADS_MAX: usize = 8;
/// Of the file that is locked while it is changed.
const LOCK_MODE: u32 = 0o660;
/// How long the file system that has it may take.
const LIMIT: Nanos = Nanos::from_secs(10);

/// A witness file.
#[derive(Clone, Debug)]
pub struct Witness {
    path: Arc<Path>,
    /// Whether a thread looks at it. On a file system that hangs none ends, so there is never more than one.
    looked_at: Arc<AtomicBool>,
    /// Threads that ask or tell it.
    threads: Arc<AtomicUsize>,
}

/// Who goes on, and without whom: members by identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitRecord {
    pool: Uuid,
    /// For people who read the file.
    name: String,
    going_on: BTreeSet<Uuid>,
    without: BTreeSet<Uuid>,
    /// From where it goes on, at a start: what was noted beyond that is given up.
    from: Option<u64>,
}

/// How far a pool has come: its labels' last generation that all drives have which serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pool: Uuid,
    serving: BTreeSet<Uuid>,
    pub(crate) generation: u64,
}

/// What the witness knows of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// The members that it went on without.
    pub without: BTreeSet<Uuid>,
    /// The generation that it has reached, 0 if none is noted.
    pub generation: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    pools: BTreeMap<Uuid, Entry>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Array and pool, as they were called the last time.
    name: String,
    /// The members that the pool went on without.
    without: BTreeSet<Uuid>,
    /// The generation of its labels that all members had which served.
    #[serde(default)]
    generation: u64,
}

impl SplitRecord {
    /// The pool goes on with the members that serve, but for these places, and without all others.
    pub fn of(state: &PoolState, but: &[u32]) -> SplitRecord {
        let goes_on = |place: u32| state.is_active(place) && !but.contains(&place);
        let (going_on, without): (Vec<_>, Vec<_>) =
            (0u32..).zip(state.members()).partition(|(place, _)| goes_on(*place));
        let ids = |members: Vec<(u32, &tier0_pool::Member)>| members.iter().map(|(_, one)| one.id).collect();
        SplitRecord {
            pool: state.id(),
            name: format!("{}/{}", state.array(), state.name()),
            going_on: ids(going_on),
            without: ids(without),
            from: None,
        }
    }

    /// The same at a start, of drives whose labels have this generation.
    pub fn starting_from(self, generation: u64) -> SplitRecord {
        SplitRecord { from: Some(generation), ..self }
    }
}

impl Progress {
    /// The members that serve have this generation.
    pub(crate) fn of(state: &PoolState, generation: u64) -> Progress {
        let serve = state.members().iter().filter(|member| member.is_active());
        Progress { pool: state.id(), serving: serve.map(|member| member.id).collect(), generation }
    }
}

impl Witness {
    /// The witness in this file, which need not be there yet.
    pub fn new(path: &Path) -> Witness {
        Witness { path: path.into(), looked_at: Arc::default(), threads: Arc::default() }
    }

    /// What the witness knows of a pool; nothing if it does not know the pool.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub async fn known(&self, world: &World, pool: Uuid) -> Result<Option<Known>, String> {
        let path = self.path.clone();
        let ask = move || {
            let entry = read(&path)?.pools.remove(&pool);
            Ok(entry.map(|Entry { without, generation, .. }| Known { without, generation }))
        };
        self.beside(world, ask)
            .await
            .map_err(|fact| format!("the witness {:?} cannot be asked: {fact}", self.path))
    }

    /// Notes that a pool goes on without members, unless it has gone on already without one that is to go on; with
    /// `consent`, what it did so is given up. Ends when it is stable.
    ///
    /// # Errors
    /// Why the pool must not go on.
    pub async fn note(&self, world: &World, split: SplitRecord, consent: bool) -> Result<(), String> {
        let path = self.path.clone();
        let waiting = Waiting::default();
        let given_up = waiting.given_up();
        let tell = move || note(&path, &split, consent, || given_up.is_set());
        // What is not waited for any longer must not be noted later: the pool has not gone on.
        self.beside(world, tell)
            .await
            .map_err(|fact| format!("the witness {:?} cannot be told: {fact}", self.path))
    }

    /// Takes back that a pool went on without a member, as `split` says: it has not. What others have noted stays. Ends when
    /// that is stable.
    ///
    /// # Errors
    /// Why it cannot be told.
    pub(crate) async fn take_back(
        &self,
        world: &World,
        split: SplitRecord,
        member: Uuid,
        given_up: GivenUp,
    ) -> Result<(), String> {
        let path = self.path.clone();
        let tell = move || take_back(&path, &split, member, || given_up.is_set());
        self.beside(world, tell)
            .await
            .map_err(|fact| format!("the witness {:?} cannot be told: {fact}", self.path))
    }

    /// Whether it could be asked and told now. Nothing is written.
    ///
    /// # Errors
    /// Why not, what follows, and what to do.
    pub async fn check(&self, world: &World) -> Result<(), String> {
        self.look(world, examine).await
    }

    /// The same, and notes how far pools have come, of those that it knows and that the other drives have not gone on
    /// without.
    ///
    /// # Errors
    /// As [`Witness::check`].
    pub(crate) async fn look_after(&self, world: &World, progress: Vec<Progress>) -> Result<(), String> {
        let waiting = Waiting::default();
        let given_up = waiting.given_up();
        let work = move |path: &Path| {
            examine(path)?;
            match progress.is_empty() {
                true => Ok(()),
                false => change(path, || given_up.is_set(), |content| Ok(advance(content, &progress))),
            }
        };
        self.look(world, work).await
    }

    /// Looks at it, unless a look has not ended yet.
    async fn look(
        &self,
        world: &World,
        examine: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
    ) -> Result<(), String> {
        let (path, looked_at) = (self.path.clone(), self.looked_at.clone());
        let looked = match looked_at.swap(true, Ordering::AcqRel) {
            true => Err(silent()),
            false => {
                let look = Look(looked_at);
                let work = move || {
                    let _until_it_ends = look;
                    examine(&path)
                };
                self.beside(world, work).await
            }
        };
        looked.map_err(|fact| {
            format!(
                "the witness {:?} cannot be used, so that a pool pauses instead of going on without half of its drives: \
                 {fact}",
                self.path
            )
        })
    }

    /// In a thread of its own: the witness may lie on a file system that hangs.
    async fn beside<T: Send + 'static>(
        &self,
        world: &World,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, String> {
        let (reply, answer) = oneshot::channel();
        let thread = std::thread::Builder::new().name("tier0-witness".to_owned());
        let Some(counted) = Counted::of(&self.threads) else { return Err(silent()) };
        let work = move || {
            let _until_it_ends = counted;
            // The caller may have stopped waiting.
            drop(reply.send(work()));
        };
        thread.spawn(work).map_err(|error| error.to_string())?;
        let limit = pin!(world.sleep(LIMIT));
        match select(answer, limit).await {
            Either::Left((Ok(done), _)) => done.map_err(|error| with_remedy(&error)),
            Either::Left((Err(_), _)) | Either::Right(_) => Err(silent()),
        }
    }
}

/// One of the threads that ask or tell a witness, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// One more; `None` if there are as many as may be.
    fn of(threads: &Arc<AtomicUsize>) -> Option<Counted> {
        let counted = Counted(threads.clone());
        (threads.fetch_add(1, Ordering::AcqRel) < THREADS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A look at the witness, until it is dropped.
struct Look(Arc<AtomicBool>);

impl Drop for Look {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Tells a thread, when it is dropped, that the caller does not wait for it any more.
#[derive(Default)]
pub(crate) struct Waiting(Arc<AtomicBool>);

/// What the thread has of it.
#[derive(Clone)]
pub(crate) struct GivenUp(Arc<AtomicBool>);

impl Waiting {
    pub(crate) fn given_up(&self) -> GivenUp {
        GivenUp(self.0.clone())
    }
}

impl GivenUp {
    /// Whether the caller has stopped waiting.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn silent() -> String {
    format!("no answer within {} s; mend that, or correct array.witness", LIMIT.0 / Nanos::from_secs(1).0)
}

/// What is wrong with a witness, and what to do.
fn with_remedy(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "make its directory, or correct array.witness",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "let the server write to its directory, or correct array.witness"
        }
        io::ErrorKind::InvalidData => "take that file away, or correct array.witness",
        io::ErrorKind::ResourceBusy => "bring those back",
        _ => "mend that, or correct array.witness",
    };
    format!("{error}; {remedy}")
}

/// Whether a witness could be read and replaced.
fn examine(path: &Path) -> io::Result<()> {
    read(path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// What a witness knows; nothing yet where there is no file.
fn read(path: &Path) -> io::Result<Content> {
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => file.take(BYTES_MAX).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Content { version: VERSION, pools: BTreeMap::new() });
        }
        Err(error) => return Err(error),
    };
    let mut content: Content =
        serde_json::from_str(&text).map_err(|error| no_witness(format!("it is no witness file: {error}")))?;
    if !matches!(content.version, VERSION | WITHOUT_GENERATIONS) {
        let fact = format!("it has version {}, and this program knows {VERSION}", content.version);
        return Err(no_witness(fact));
    }
    content.version = VERSION;
    Ok(content)
}

fn no_witness(fact: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fact)
}

/// Notes a split, unless the caller has stopped waiting by the time it would be there for all to see.
fn note(path: &Path, split: &SplitRecord, consent: bool, is_given_up: impl Fn() -> bool) -> io::Result<()> {
    change(path, is_given_up, |content| record_split(content, split, consent))
}

/// Takes back that a pool went on without a member, unless others have gone on without those who would have.
fn take_back(
    path: &Path,
    split: &SplitRecord,
    member: Uuid,
    is_given_up: impl Fn() -> bool,
) -> io::Result<()> {
    change(path, is_given_up, |content| {
        let Some(entry) = content.pools.get_mut(&split.pool) else { return Ok(false) };
        Ok(entry.without.is_disjoint(&split.going_on) && entry.without.remove(&member))
    })
}

/// Whether a split changes what is known.
///
/// # Errors
/// The others have gone on without those that are to go on.
fn record_split(content: &mut Content, split: &SplitRecord, consent: bool) -> io::Result<bool> {
    let entry = content.pools.entry(split.pool).or_default();
    if !consent && !entry.without.is_disjoint(&split.going_on) {
        let fact = "the other drives have gone on without these";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, fact));
    }
    let generation = split.from.map_or(entry.generation, |from| entry.generation.min(from));
    let known = entry.name == split.name && entry.without.is_superset(&split.without);
    if known && generation == entry.generation && entry.without.is_disjoint(&split.going_on) {
        return Ok(false);
    }
    entry.name.clone_from(&split.name);
    entry.without.retain(|member| !split.going_on.contains(member));
    entry.without.extend(&split.without);
    entry.generation = generation;
    Ok(true)
}

/// Whether how far pools have come changes what is known.
fn advance(content: &mut Content, progress: &[Progress]) -> bool {
    let mut changes = false;
    for one in progress {
        let Some(entry) = content.pools.get_mut(&one.pool) else { continue };
        // Others that have gone on without these count, and what is being decided now is noted the next time.
        if entry.without.is_disjoint(&one.serving) && entry.generation != one.generation {
            entry.generation = one.generation;
            changes = true;
        }
    }
    changes
}

/// Changes the file as a whole, locked, unless the caller has stopped waiting. A later change waits for the lock even
/// if this hangs at its last step, so what was given up too late is seen by the next.
fn change(
    path: &Path,
    is_given_up: impl Fn() -> bool,
    edit: impl FnOnce(&mut Content) -> io::Result<bool>,
) -> io::Result<()> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let mut options = File::options();
    // Who may open it for reading may hold it. One that is there has the mode that somebody has given it.
    let lock = options.create(true).truncate(false).write(true).mode(LOCK_MODE).open(beside(".lock"))?;
    lock.lock()?;
    let mut content = read(path)?;
    if !edit(&mut content)? {
        return Ok(());
    }
    let new = beside(".new");
    let mut file = File::create(&new)?;
    file.write_all(&serde_json::to_vec_pretty(&content).map_err(io::Error::other)?)?;
    file.sync_all()?;
    if is_given_up() {
        fs::remove_file(&new)?;
        return Err(io::Error::other("nobody waits for it any more"));
    }
    fs::rename(&new, path)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    fn ids(numbers: &[u128]) -> BTreeSet<Uuid> {
        numbers.iter().map(|number| Uuid::from_u128(*number)).collect()
    }

    fn split_record(going_on: &[u128], without: &[u128]) -> SplitRecord {
        let pool = Uuid::from_u128(99);
        SplitRecord { pool, name: "lab/p".into(), going_on: ids(going_on), without: ids(without), from: None }
    }

    fn left_behind(path: &Path) -> Option<BTreeSet<Uuid>> {
        read(path).expect("it can be read").pools.remove(&Uuid::from_u128(99)).map(|entry| entry.without)
    }

    #[test]
    fn one_half_goes_on_and_the_other_does_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        assert_eq!(left_behind(&path), None);
        note(&path, &split_record(&[1, 2], &[]), false, || false).expect("both are there");
        assert_eq!(left_behind(&path), Some(ids(&[])));
        note(&path, &split_record(&[1], &[2]), false, || false).expect("nobody went on without 1");
        note(&path, &split_record(&[1], &[2]), false, || false).expect("that is known");
        let error = note(&path, &split_record(&[2], &[1]), false, || false).expect_err("1 has gone on");
        assert!(error.to_string().contains("gone on without"), "{error}");
        assert_eq!(left_behind(&path), Some(ids(&[2])));
        note(&path, &split_record(&[2], &[1]), true, || false).expect("somebody gives up what 1 did");
        assert_eq!(left_behind(&path), Some(ids(&[1])));
    }

    /// A witness that was slow noted after all what the pool had waited for in vain, and the pool had not gone on.
    #[test]
    fn what_nobody_waits_for_is_not_noted() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        note(&path, &split_record(&[1, 2], &[]), false, || false).expect("both are there");
        let waiting = Waiting::default();
        let given_up = waiting.given_up();
        drop(waiting);
        note(&path, &split_record(&[1], &[2]), false, || given_up.is_set()).expect_err("it comes too late");
        assert_eq!(left_behind(&path), Some(ids(&[])));
    }

    #[test]
    fn what_did_not_come_to_pass_is_taken_back_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let (all, ours, two) =
            (split_record(&[1, 2, 3], &[]), split_record(&[1], &[2, 3]), Uuid::from_u128(2));
        take_back(&path, &ours, two, || false).expect("nothing is known");
        note(&path, &all, false, || false).expect("all are there");
        note(&path, &ours, false, || false).expect("nobody went on without 1");
        take_back(&path, &ours, two, || true).expect_err("nobody waits");
        assert_eq!(left_behind(&path), Some(ids(&[2, 3])));
        take_back(&path, &ours, two, || false).expect("2 serves on");
        assert_eq!(left_behind(&path), Some(ids(&[3])));
        note(&path, &split_record(&[3], &[1, 2]), true, || false).expect("somebody consents");
        take_back(&path, &ours, two, || false).expect("it is not theirs");
        assert_eq!(left_behind(&path), Some(ids(&[1, 2])));
    }

    #[test]
    fn what_is_no_witness_is_not_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        for text in
            ["[array]\n", "{\"version\": 3, \"pools\": {}}", "{}", "{\"version\": 1, \"pools\": {\"x\": 1}}"]
        {
            fs::write(&path, text).expect("written");
            note(&path, &split_record(&[1], &[2]), true, || false).expect_err(text);
            assert_eq!(fs::read_to_string(&path).expect("read"), text);
        }
    }

    fn generation(path: &Path) -> u64 {
        read(path).expect("it can be read").pools[&Uuid::from_u128(99)].generation
    }

    #[test]
    fn how_far_a_pool_has_come_is_noted_for_those_who_serve() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let advance = |serving: &[u128], generation| {
            let one = Progress { pool: Uuid::from_u128(99), serving: ids(serving), generation };
            change(&path, || false, |content| Ok(super::advance(content, &[one]))).expect("it can be told");
        };
        advance(&[1, 2], 4);
        assert_eq!(left_behind(&path), None, "a pool that it does not know may have gone on before");
        note(&path, &split_record(&[1, 2], &[]), false, || false).expect("both are there");
        advance(&[1, 2], 5);
        assert_eq!(generation(&path), 5);
        note(&path, &split_record(&[1], &[2]), false, || false).expect("nobody went on without 1");
        advance(&[2], 9);
        advance(&[1, 2], 9);
        assert_eq!(generation(&path), 5, "2 was left behind");
        advance(&[1], 7);
        note(&path, &split_record(&[1], &[2]).starting_from(8), false, || false).expect("a start");
        assert_eq!(generation(&path), 7, "8 may have been begun and not be everywhere");
        note(&path, &split_record(&[2], &[1]).starting_from(5), true, || false).expect("somebody consents");
        assert_eq!((generation(&path), left_behind(&path)), (5, Some(ids(&[1]))));
    }

    /// A witness of a program that noted no generations is gone on with.
    #[test]
    fn an_older_witness_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let (pool, member) = (Uuid::from_u128(99), Uuid::from_u128(2));
        let old = format!(
            "{{\"version\": 1, \"pools\": {{\"{pool}\": {{\"name\": \"lab/p\", \"without\": [\"{member}\"]}}}}}}"
        );
        fs::write(&path, old).expect("written");
        assert_eq!((generation(&path), left_behind(&path)), (0, Some(ids(&[2]))));
        note(&path, &split_record(&[1], &[2, 3]), false, || false).expect("nobody went on without 1");
        assert_eq!(left_behind(&path), Some(ids(&[2, 3])));
    }

    #[test]
    fn what_hangs_is_looked_at_by_one_thread_at_a_time() {
        let directory = tempfile::tempdir().expect("a directory");
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let witness = Witness::new(&directory.path().join("witness"));
        witness.looked_at.store(true, Ordering::Release);
        let told = runtime.run(async move { witness.check(&world).await.expect_err("a look goes on") });
        assert!(told.contains("no answer"), "{told}");
    }

    /// A witness that could not be used was noticed only when it was needed.
    #[test]
    fn what_is_wrong_with_a_witness_is_found_before_it_is_needed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("witness");
        let told =
            |path: &Path| examine(path).map_err(|error| with_remedy(&error)).expect_err("it is broken");
        examine(&path).expect("it is made when it is needed");
        assert!(!path.exists(), "nothing is written");
        assert!(told(&directory.path().join("absent/witness")).contains("make its directory"));
        fs::write(&path, "garbage").expect("written");
        assert!(told(&path).contains("no witness file") && told(&path).contains("take that file away"));
    }

    #[test]
    fn two_who_part_at_once_do_not_both_go_on() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("witness");
            note(&path, &split_record(&[1, 2], &[]), false, || false).expect("both are there");
            let halves = [split_record(&[1], &[2]), split_record(&[2], &[1])];
            let results: Vec<bool> = std::thread::scope(|scope| {
                let tell = |half: SplitRecord| {
                    let path = path.clone();
                    scope.spawn(move || note(&path, &half, false, || false).is_ok())
                };
                halves.map(tell).map(|thread| thread.join().expect("no panic")).to_vec()
            });
            assert_eq!(results.iter().filter(|went_on| **went_on).count(), 1);
        }
    }
}
