//! Which drives are in service, by their superblocks.

use futures_util::future::join_all;
use tier0_drive::DriveHandle;
use tier0_sim::SystemError;
use tier0_units::{Lba, Nanos};
use tier0_world::{BufMut, IoError, PayloadWidth, World};

use super::layout::{SECTOR, Superblock};

/// A drive that does not answer within this is as good as gone.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// A drive in service.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) number: u64,
    pub(crate) drive: DriveHandle,
    /// Everything is on it; until then it is written and not read.
    pub(crate) whole: bool,
}

/// Ends with a timeout what takes too long; `for_ever` waits.
pub(crate) async fn timed<T>(
    world: &World,
    for_ever: bool,
    command: impl Future<Output = Result<T, IoError>>,
) -> Result<T, IoError> {
    use futures_util::future::{Either, select};
    if for_ever {
        return command.await;
    }
    let command = std::pin::pin!(command);
    match select(command, world.sleep(PATIENCE)).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(IoError::Timeout),
    }
}

/// Writes the superblocks of new drives.
pub(crate) async fn create(world: &World, drives: &[DriveHandle]) -> Result<(), SystemError> {
    let members: Vec<u64> = (1..=drives.len() as u64).collect();
    for (number, drive) in (1..).zip(drives) {
        let superblock =
            Superblock { generation: 1, own: number, given: members.len() as u64, members: members.clone() };
        let written = write_superblock(world, drive, &superblock).await;
        written.map_err(|error| SystemError::Failed(error.to_string()))?;
    }
    Ok(())
}

/// Writes both copies, one after the other, each stable before the next.
pub(crate) async fn write_superblock(
    world: &World,
    drive: &DriveHandle,
    superblock: &Superblock,
) -> Result<(), IoError> {
    let block = drive.info().block_sectors;
    for copy in 0..2 {
        let mut buf = BufMut::zeroed(block, PayloadWidth::REAL);
        buf.as_mut_slice()[..SECTOR].copy_from_slice(&superblock.encode());
        timed(world, false, drive.write(Lba(copy * u64::from(block)), buf.freeze(), true)).await?;
    }
    Ok(())
}

/// The newest superblock of a drive.
pub(crate) async fn read_superblock(world: &World, drive: &DriveHandle) -> Option<Superblock> {
    let block = drive.info().block_sectors;
    let mut newest: Option<Superblock> = None;
    for copy in 0..2 {
        let buf = BufMut::new(block, PayloadWidth::REAL);
        let read = async {
            let (result, buf) = drive.read(Lba(copy * u64::from(block)), buf).await;
            result.map(|()| buf)
        };
        let Ok(buf) = timed(world, false, read).await else { continue };
        let found = Superblock::decode(&buf.as_slice()[..SECTOR]);
        if let Some(found) = found
            && newest.as_ref().is_none_or(|newest| newest.generation < found.generation)
        {
            newest = Some(found);
        }
    }
    newest
}

/// The members among `drives`, and the superblock that says so.
pub(crate) async fn find(
    world: &World,
    drives: Vec<DriveHandle>,
    believe_stale: bool,
) -> Result<(Superblock, Vec<Member>), SystemError> {
    let found = join_all(drives.iter().map(|drive| read_superblock(world, drive))).await;
    let newest = found.iter().flatten().max_by_key(|superblock| superblock.generation).cloned();
    let newest = newest.ok_or_else(|| SystemError::Failed("no drive has a superblock".to_owned()))?;
    let members = drives.into_iter().zip(found).filter_map(|(drive, superblock)| {
        let number = superblock?.own;
        let member = newest.members.contains(&number) || believe_stale;
        member.then_some(Member { number, drive, whole: true })
    });
    let mut members: Vec<Member> = members.collect();
    members.sort_by_key(|member| member.number);
    members.dedup_by_key(|member| member.number);
    Ok((newest, members))
}
