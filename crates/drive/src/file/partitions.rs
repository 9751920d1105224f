//! Partitions that the kernel goes on offering until it reads the table of their device again.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::ioctl::NoArg;

/// The request that has the kernel read a device's partition table again (include/uapi/linux/fs.h).
const BLKRRPART: rustix::ioctl::Opcode = 0x125f;

/// Has the kernel read the partition table of a device again. Where it refuses, the log tells what helps.
pub(super) fn reread(device: &impl AsFd, path: &Path) {
    // SAFETY: the request takes no argument and touches no memory of this process.
    let reread = unsafe { rustix::ioctl::ioctl(device, NoArg::<BLKRRPART>::new()) };
    if let Err(error) = reread {
        tracing::warn!(
            "the partition table of {path:?} was erased, and the kernel still offers its partitions ({error}); do not use them, \
             and run \"partprobe {}\" when the array is stopped",
            path.display()
        );
    }
}
