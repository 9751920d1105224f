//! A claim on a file by its number, for loop devices whose file no path leads to.
//!
//! A file that was deleted, is called otherwise, or lies in another mount namespace cannot be opened, and so not be
//! locked, by a server that has a loop device on it; the loop device tells its number all the same. So every server
//! that opens a file, by its path or by a loop device, also binds an abstract socket that is named after the file's
//! number and its bytes that are used. No path, permission or file system is needed for that, and it ends with the
//! process. The names that others have are listed by /proc; a claim on bytes that overlap is refused. Two that claim at
//! once may both be refused, and both try again.
//!
//! What it does not see: servers in other network namespaces, as in most containers, and on other machines; one file under
//! two numbers, as a file of an overlay and the one below; a file below a device mapper (LVM, LUKS) on a loop device.
//! Any process that may open a socket can claim what is not its own, and keep a server from starting.

use std::io;
use std::ops::Range;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Which file: its file system's number and its own, as stat tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileNumber {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// A claim, until it is dropped.
pub(super) struct Claim {
    _socket: UnixDatagram,
}

/// Where the system lists the names of sockets, abstract ones with this in front.
const SOCKETS: &str = "/proc/net/unix";
const ABSTRACT: char = '@';
/// All bytes of a file.
const WHOLE: Range<u64> = 0..u64::MAX;

impl Claim {
    /// Claims bytes of a file, all of them if none are named.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] where some of them are claimed already; or what the system says.
    pub(super) fn on(file: FileNumber, part: Option<&Range<u64>>) -> io::Result<Claim> {
        let own = part.cloned().unwrap_or(WHOLE);
        let name = format!("{}{:x}-{:x}", prefix(file), own.start, own.end);
        // Bound first and looked around afterwards, so that of two who claim at once one sees the other.
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let sockets = std::fs::read_to_string(SOCKETS).unwrap_or_default();
        let others = claims_in(&sockets, file).filter(|other| *other != own);
        match { others }.any(|other| other.start < own.end && own.start < other.end) {
            true => Err(io::ErrorKind::AddrInUse.into()),
            false => Ok(Claim { _socket: socket }),
        }
    }
}

fn prefix(file: FileNumber) -> String {
    format!("tier0/{:x}/{:x}/", file.device, file.inode)
}

/// Which bytes of a file are claimed, of the system's list of sockets.
fn claims_in(sockets: &str, file: FileNumber) -> impl Iterator<Item = Range<u64>> {
    let prefix = format!("{ABSTRACT}{}", prefix(file));
    let names = sockets.lines().filter_map(|line| line.split_whitespace().last());
    names.filter_map(move |name| {
        let (start, end) = name.strip_prefix(&prefix)?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(start)?..number(end)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(inode: u64, part: Option<Range<u64>>) -> Result<Claim, io::ErrorKind> {
        // A file system that no machine has, of this process alone.
        let device = u64::MAX - u64::from(std::process::id());
        Claim::on(FileNumber { device, inode }, part.as_ref()).map_err(|error| error.kind())
    }

    #[test]
    fn a_file_is_claimed_once() {
        let first = claim(1, None).expect("nobody has it");
        assert_eq!(claim(1, None).err(), Some(io::ErrorKind::AddrInUse));
        let _other = claim(11, None).expect("it is another file");
        drop(first);
        claim(1, None).expect("nobody has it any more");
    }

    #[test]
    fn parts_that_overlap_are_claimed_once() {
        let _part = claim(2, Some(4096..8192)).expect("nobody has it");
        let _next = claim(2, Some(8192..16384)).expect("it is another part");
        for part in [None, Some(0..4097), Some(16383..20000), Some(5000..6000), Some(4096..8192)] {
            assert_eq!(claim(2, part.clone()).err(), Some(io::ErrorKind::AddrInUse), "{part:?}");
        }
        let _before = claim(2, Some(0..4096)).expect("what was refused has claimed nothing");
    }
}
