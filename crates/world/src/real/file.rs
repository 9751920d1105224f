//! Files and block devices: positioned reads and writes that go on until all is done.

use super::Fd;
use super::op::{Op, submit};
use crate::{Buf, BufMut, IoError, Payload, World};

/// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; on a block device it discards and guarantees zeros.
pub(crate) const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// Fills `buf` from `offset` (bytes). The end of the file inside the range is [`IoError::OutOfRange`].
pub async fn read_at(world: &World, fd: &Fd, offset: u64, mut buf: BufMut) -> (Result<(), IoError>, BufMut) {
    let bytes = buf.as_slice().len();
    let mut done = 0;
    while done < bytes {
        let op = Op::Read { offset: offset + done as u64, skip: done };
        let (outcome, payload) = submit(world, fd, op, Payload::Read(buf)).await;
        buf = payload.into_read();
        match outcome {
            Ok(0) => return (Err(IoError::OutOfRange), buf),
            Ok(count) => done += count as usize,
            Err(IoError::Os(libc::EINTR | libc::EAGAIN)) => {}
            Err(error) => return (Err(error), buf),
        }
    }
    (Ok(()), buf)
}

/// Writes `buf` at `offset` (bytes); `durable` makes it stable before it ends.
pub async fn write_at(world: &World, fd: &Fd, offset: u64, buf: Buf, durable: bool) -> Result<(), IoError> {
    let bytes = buf.as_slice().len();
    let mut done = 0;
    while done < bytes {
        let op = Op::Write { offset: offset + done as u64, skip: done, durable };
        match submit(world, fd, op, Payload::Write(buf.clone())).await.0 {
            Ok(0) => return Err(IoError::NoSpace),
            Ok(count) => done += count as usize,
            Err(IoError::Os(libc::EINTR | libc::EAGAIN)) => {}
            Err(IoError::Os(libc::ENOSPC)) => return Err(IoError::NoSpace),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes everything written before stable: fdatasync, which flushes the device's write cache too.
pub async fn sync_data(world: &World, fd: &Fd) -> Result<(), IoError> {
    submit(world, fd, Op::SyncData, Payload::None).await.0.map(|_| ())
}

/// Gives the space of a range back; it then reads as zeros. [`IoError::Unsupported`] where the file system or the
/// device cannot.
pub async fn deallocate(world: &World, fd: &Fd, offset: u64, bytes: u64) -> Result<(), IoError> {
    match submit(world, fd, Op::Deallocate { offset, bytes }, Payload::None).await.0 {
        Ok(_) => Ok(()),
        Err(IoError::Os(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOSYS)) => Err(IoError::Unsupported),
        Err(error) => Err(error),
    }
}
