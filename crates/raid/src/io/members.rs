//! The drives of a pool as one shard sees them: which are lost, and how busy the others are.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tier0_drive::DriveHandle;
use tier0_units::Lba;
use tier0_world::{Buf, BufMut, IoError, PayloadWidth};

use crate::layout::{Column, ColumnMask, Row};
use crate::set::{RaidSets, SetIndex};

/// Makes the loss of a drive known to the others.
pub trait FailureReport {
    /// Ends when every other drive remembers that `member` is lost, so that what it holds is never believed again.
    fn report(&self, member: usize, error: IoError) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// Which drives of a pool are lost; shared by all shards.
#[derive(Debug)]
pub struct LostDrives {
    lost: Box<[AtomicBool]>,
    count: AtomicUsize,
}

impl LostDrives {
    /// Room for `count` drives, those included that may join later; none lost.
    pub fn new(count: usize) -> Arc<LostDrives> {
        Arc::new(LostDrives {
            lost: (0..count).map(|_| AtomicBool::new(false)).collect(),
            count: AtomicUsize::new(0),
        })
    }

    /// Declares a drive lost; false if it was already.
    pub fn set_lost(&self, member: usize) -> bool {
        let fresh = !self.lost[member].swap(true, Ordering::SeqCst);
        if fresh {
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        fresh
    }

    /// Drives there is room for.
    pub fn room(&self) -> usize {
        self.lost.len()
    }

    /// Whether a drive is lost.
    #[inline]
    pub fn is_lost(&self, member: usize) -> bool {
        self.any() && self.lost[member].load(Ordering::Relaxed)
    }

    /// Whether any drive is lost.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }
}

/// The drives of a pool in one shard; clones share them.
#[derive(Clone)]
pub struct Members(Rc<Inner>);

struct Inner {
    /// By place, with room for drives that join.
    drives: Box<[Member]>,
    lost: Arc<LostDrives>,
    report: Rc<dyn FailureReport>,
    width: PayloadWidth,
}

#[derive(Default)]
struct Member {
    drive: OnceCell<DriveHandle>,
    under_way: Cell<u32>,
}

impl Members {
    /// The drives by their place in the pool; a missing one must be declared lost.
    pub fn new(
        drives: Vec<Option<DriveHandle>>,
        lost: Arc<LostDrives>,
        report: Rc<dyn FailureReport>,
    ) -> Members {
        let all_there = drives.iter().enumerate().all(|(i, drive)| drive.is_some() || lost.is_lost(i));
        assert!(all_there, "a missing drive is a lost one");
        let width = drives.iter().flatten().next().map_or(PayloadWidth::REAL, |drive| drive.world().width());
        let member = |drive: Option<DriveHandle>| Member {
            drive: drive.map_or_else(OnceCell::new, OnceCell::from),
            under_way: Cell::new(0),
        };
        let room = lost.room().max(drives.len());
        let absent = std::iter::repeat_with(Member::default);
        let drives = drives.into_iter().map(member).chain(absent).take(room).collect();
        Members(Rc::new(Inner { drives, lost, report, width }))
    }

    /// A drive joins at this place, which no drive had. Panics where there is no room.
    pub fn add(&self, member: usize, drive: DriveHandle) {
        let fresh = self.0.drives[member].drive.set(drive).is_ok();
        assert!(fresh, "place {member} is taken");
    }

    /// Which drives are lost.
    pub fn lost(&self) -> &LostDrives {
        &self.0.lost
    }

    /// A drive by its place in the pool, unless it is missing.
    pub fn drive(&self, member: usize) -> Option<&DriveHandle> {
        self.0.drives[member].drive.get()
    }

    /// Some drive that is not missing.
    pub fn any(&self) -> Option<&DriveHandle> {
        self.0.drives.iter().find_map(|member| member.drive.get())
    }

    /// Bytes per sector in the buffers of this world.
    pub fn width(&self) -> PayloadWidth {
        self.0.width
    }

    /// How many places there are, those of lost drives and those for drives that join included.
    pub fn count(&self) -> usize {
        self.0.drives.len()
    }

    /// Makes every completed write stable on these drives, by their places in the pool; those that are lost are left out.
    /// The result is false if one of them was lost by it.
    ///
    /// # Errors
    /// What a drive fails with that is not lost by that.
    pub async fn flush_these(&self, members: impl IntoIterator<Item = usize>) -> Result<bool, IoError> {
        let flush_one = |member: usize| async move {
            let Ok(drive) = self.live(member) else { return Ok(true) };
            let Err(error) = drive.flush().await else { return Ok(true) };
            self.fail(member, error, true).await.map(|()| false)
        };
        let flushed = futures_util::future::join_all(members.into_iter().map(flush_one)).await;
        flushed.into_iter().try_fold(true, |all, one| Ok(all & one?))
    }

    /// The columns of a set that cannot be had in this row: their drives are lost, or they are not rebuilt yet.
    #[inline]
    pub(crate) fn lost_columns(&self, sets: &RaidSets, set: SetIndex, row: Row) -> ColumnMask {
        let place = |column: Column| sets.place_of_row(set, column, row).0;
        self.on_lost_drives(sets, set, place) | sets.missing_columns(set, row)
    }

    /// The columns of a set that some row must do without.
    pub(crate) fn impaired_columns(&self, sets: &RaidSets, set: SetIndex) -> ColumnMask {
        let source = |column: Column| sets.source(set, column).map(|chunklet| chunklet.drive as usize);
        let sources =
            self.on_lost_drives(sets, set, |column| source(column).unwrap_or(sets.place(set, column).0));
        let targets = self.on_lost_drives(sets, set, |column| sets.place(set, column).0);
        sources | targets | sets.lacking_columns(set)
    }

    /// The columns whose place is on a lost drive.
    #[inline]
    fn on_lost_drives(&self, sets: &RaidSets, set: SetIndex, place: impl Fn(Column) -> usize) -> ColumnMask {
        if !self.0.lost.any() {
            return ColumnMask::EMPTY;
        }
        sets.columns(set).filter(|column| self.0.lost.is_lost(place(*column))).collect()
    }

    /// The column whose drive has the fewest commands under way. Where several have as few, rows take turns, so that all
    /// copies of a mirror serve a single reader too. The drive's own read-ahead covers the rows that it skips.
    #[inline]
    pub(crate) fn idlest(&self, sets: &RaidSets, set: SetIndex, row: Row, columns: ColumnMask) -> Column {
        let busy = |column: Column| self.0.drives[sets.place(set, column).0].under_way.get();
        let turn = |index: usize| (index as u64 + row.0) % columns.len() as u64;
        let load = |&(index, column): &(usize, Column)| (busy(column), turn(index));
        columns.iter().enumerate().min_by_key(load).expect("there is a column to choose").1
    }

    /// Whether an error means that the drive is lost. A drive with a guard is lost by the verdict alone, which is
    /// [`IoError::Gone`]. One without has no arbiter: there a failed write, or no answer, is as good as a verdict.
    fn is_loss(&self, member: usize, error: IoError, writes: bool) -> bool {
        let is_guarded = self.drive(member).is_some_and(|drive| drive.guard().is_some());
        match error {
            IoError::Gone => true,
            IoError::Timeout => !is_guarded,
            _ => writes && !is_guarded,
        }
    }

    /// A command has failed: the drive is lost if that is what it means.
    ///
    /// # Errors
    /// `error`, where the drive is not lost: then no other drive remembers what it lacks.
    pub(crate) async fn fail(&self, member: usize, error: IoError, writes: bool) -> Result<(), IoError> {
        if !self.is_loss(member, error, writes) {
            return Err(error);
        }
        self.lose(member, error).await;
        Ok(())
    }

    /// The result of writes of one content to several drives. It is there if one has taken it and the others are lost: a
    /// drive that has not and still serves would go on holding something else.
    ///
    /// The results are those of [`Members::write`], so [`IoError::Gone`] says that the drive is lost. Whether a place is
    /// lost now says nothing: a lost column may have moved to a spare meanwhile.
    ///
    /// # Errors
    /// The error of a drive that is not lost, else that of the last one.
    pub fn written(results: impl IntoIterator<Item = Result<(), IoError>>) -> Result<(), IoError> {
        let mut written = Err(IoError::RedundancyLost);
        for result in results {
            match result {
                Err(IoError::Gone) => {}
                Err(error) => return Err(error),
                Ok(()) => written = Ok(()),
            }
        }
        written
    }

    /// Reads from a drive. A drive that is gone altogether is lost from now on; one that merely cannot read here
    /// is not.
    pub async fn read(&self, member: usize, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        let drive = match self.live(member) {
            Ok(drive) => drive,
            Err(error) => return (Err(error), buf),
        };
        let under_way = &self.0.drives[member].under_way;
        under_way.set(under_way.get() + 1);
        let (result, buf) = drive.read(lba, buf).await;
        under_way.set(under_way.get() - 1);
        if let Err(error) = result {
            // Whether it is lost or not, there is nothing to be had from it here.
            let _ = self.fail(member, error, false).await;
        }
        (result, buf)
    }

    /// Writes to a drive; a drive whose guard gives it up, or that has no guard and fails, is lost from now on.
    ///
    /// # Errors
    /// [`IoError::Gone`] where it is lost, and the others know; anything else where it is not.
    pub async fn write(&self, member: usize, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        let drive = self.live(member)?;
        let under_way = &self.0.drives[member].under_way;
        under_way.set(under_way.get() + 1);
        let result = drive.write(lba, buf, durable).await;
        under_way.set(under_way.get() - 1);
        if let Err(error) = result {
            self.fail(member, error, true).await?;
            return Err(IoError::Gone);
        }
        Ok(())
    }

    #[inline]
    fn live(&self, member: usize) -> Result<&DriveHandle, IoError> {
        match self.0.drives[member].drive.get() {
            Some(drive) if !self.0.lost.is_lost(member) => Ok(drive),
            _ => Err(IoError::Gone),
        }
    }

    /// Declares a drive lost and waits until the others know. A second caller waits too: nothing may be acknowledged on
    /// top of a loss that is not yet remembered.
    async fn lose(&self, member: usize, error: IoError) {
        if self.0.lost.set_lost(member) {
            let name = self.0.drives[member].drive.get().map_or("", |drive| &drive.info().name);
            tracing::error!("drive {name:?} fails ({error}) and is taken out of service; replace it");
        }
        self.0.report.report(member, error).await;
    }
}
