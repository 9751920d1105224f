//! Files and block devices: positioned reads and writes that go on until all is done.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::Fd;
use super::op::{Op, start};
use crate::completion::Outcome;
use crate::{Buf, BufMut, Completion, IoError, Payload};

/// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE; on a block device it discards and guarantees zeros.
pub(crate) const PUNCH_HOLE: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

/// An open file or block device. Clones share the descriptor, which stays open while an operation on it is under way.
#[derive(Clone, Debug)]
pub struct BlockFile {
    fd: Fd,
    submission: Submission,
}

/// Who gives an operation on a file to its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// This thread: the kernel returns at once, and the device works on its own.
    Direct,
    /// A thread of the kernel's: for file systems whose server may keep the calling thread waiting (FUSE, NFS and the
    /// like), and with it the whole shard.
    Apart,
}

impl BlockFile {
    /// The file behind a descriptor.
    pub fn new(fd: OwnedFd, submission: Submission) -> BlockFile {
        BlockFile { fd: Rc::new(fd), submission }
    }

    /// Fills `buf`, which is not empty, from `offset` (bytes); it comes back as [`Payload::Read`]. The end of the file
    /// inside the range is [`IoError::OutOfRange`].
    pub fn read_at(&self, offset: u64, buf: BufMut, completion: Completion) {
        self.start(completion, Op::Read { offset, skip: 0 }, Payload::Read(buf));
    }

    /// Writes `buf`, which is not empty, at `offset` (bytes); `durable` makes it stable before it ends. A full file system
    /// or device is [`IoError::NoSpace`].
    pub fn write_at(&self, offset: u64, buf: Buf, durable: bool, completion: Completion) {
        self.start(completion, Op::Write { offset, skip: 0, durable }, Payload::Write(buf));
    }

    /// Makes everything written before stable: fdatasync, which flushes the device's write cache too.
    pub fn sync_data(&self, completion: Completion) {
        self.start(completion, Op::SyncData, Payload::None);
    }

    /// Gives the space of a range back; it then reads as zeros. [`IoError::Unsupported`] where the file system or the
    /// device cannot.
    pub fn deallocate(&self, offset: u64, bytes: u64, completion: Completion) {
        self.start(completion, Op::Deallocate { offset, bytes }, Payload::None);
    }

    /// How many bytes it has now, or nothing where a server would be asked, which may not answer.
    pub fn size(&self) -> Option<u64> {
        if self.submission == Submission::Apart {
            return None;
        }
        let about = rustix::fs::fstat(&*self.fd).ok()?;
        match rustix::fs::FileType::from_raw_mode(about.st_mode).is_block_device() {
            true => device_bytes(&self.fd),
            false => u64::try_from(about.st_size).ok(),
        }
    }

    fn start(&self, completion: Completion, op: Op, payload: Payload) {
        start(completion, &self.fd, op, self.submission, payload);
    }
}

/// The size of a block device. Seeking to its end would wait for whoever reads it through the page cache, and that one for a
/// device that may not answer.
fn device_bytes(device: &OwnedFd) -> Option<u64> {
    /// `BLKGETSIZE64` of Linux: the size in bytes.
    const SIZE: rustix::ioctl::Opcode = rustix::ioctl::opcode::read::<usize>(0x12, 114);
    // SAFETY: the operation writes one u64, although its number says a size_t.
    unsafe { rustix::ioctl::ioctl(device, rustix::ioctl::Getter::<SIZE, u64>::new()) }.ok()
}

impl Op {
    /// What an operation on a file has come to, or nothing if it is to go on: then what is done of it is counted. The
    /// buffer has `bytes`. Who uses sockets sees for himself to what is left.
    pub(super) fn advance(&mut self, outcome: Outcome, bytes: usize) -> Option<Outcome> {
        let (offset, skip, end) = match self {
            Op::Read { offset, skip } => (offset, skip, IoError::OutOfRange),
            Op::Write { offset, skip, .. } => (offset, skip, IoError::NoSpace),
            Op::Deallocate { .. } => {
                return Some(outcome.map_err(|error| match error {
                    IoError::Os(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOSYS) => IoError::Unsupported,
                    error => error,
                }));
            }
            _ => return Some(outcome),
        };
        match outcome {
            Ok(0) => Some(Err(end)),
            Ok(count) if *skip + count as usize == bytes => Some(Ok(count)),
            Ok(count) => {
                *offset += u64::from(count);
                *skip += count as usize;
                None
            }
            Err(IoError::Os(libc::EINTR | libc::EAGAIN)) => None,
            Err(IoError::Os(libc::ENOSPC)) => Some(Err(IoError::NoSpace)),
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_goes_on_until_all_is_done() {
        let mut op = Op::Write { offset: 4096, skip: 0, durable: false };
        assert_eq!(op.advance(Ok(512), 2048), None);
        assert_eq!(op.advance(Err(IoError::Os(libc::EINTR)), 2048), None);
        assert!(matches!(op, Op::Write { offset: 4608, skip: 512, durable: false }));
        assert_eq!(op.advance(Ok(1536), 2048), Some(Ok(1536)));
    }

    #[test]
    fn what_ends_early_says_why() {
        let after = |mut op: Op, outcome| op.advance(outcome, 512);
        let read = Op::Read { offset: 0, skip: 0 };
        let write = Op::Write { offset: 0, skip: 0, durable: true };
        let deallocate = Op::Deallocate { offset: 0, bytes: 512 };
        assert_eq!(after(read.clone(), Ok(0)), Some(Err(IoError::OutOfRange)));
        assert_eq!(after(read, Err(IoError::Os(libc::EIO))), Some(Err(IoError::Os(libc::EIO))));
        assert_eq!(after(write.clone(), Ok(0)), Some(Err(IoError::NoSpace)));
        assert_eq!(after(write, Err(IoError::Os(libc::ENOSPC))), Some(Err(IoError::NoSpace)));
        assert_eq!(after(deallocate, Err(IoError::Os(libc::EOPNOTSUPP))), Some(Err(IoError::Unsupported)));
    }
}
