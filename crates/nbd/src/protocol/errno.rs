//! The error values of replies, and the one table from the system's error numbers to them.

use std::fmt;

/// Why a request failed, as the protocol can say it ("Error values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Errno {
    /// `EPERM`: a write on a read-only export.
    NotPermitted = 1,
    /// `EIO`: the device failed.
    Io = 5,
    /// `ENOMEM`: no memory for the request.
    NoMemory = 12,
    /// `EINVAL`: the request makes no sense here.
    Invalid = 22,
    /// `ENOSPC`: no room, or a write past the end.
    NoSpace = 28,
    /// `EOVERFLOW`: an unfragmented read that is too long.
    Overflow = 75,
    /// `ENOTSUP`: the request is not supported, or a fast zero would be slow.
    NotSupported = 95,
    /// `ESHUTDOWN`: the server is going down.
    Shutdown = 108,
}

/// Every value with its name and its text.
const ALL: [(Errno, &str, &str); 8] = [
    (Errno::NotPermitted, "EPERM", "not permitted"),
    (Errno::Io, "EIO", "input/output error"),
    (Errno::NoMemory, "ENOMEM", "out of memory"),
    (Errno::Invalid, "EINVAL", "invalid request"),
    (Errno::NoSpace, "ENOSPC", "no space"),
    (Errno::Overflow, "EOVERFLOW", "request too long"),
    (Errno::NotSupported, "ENOTSUP", "not supported"),
    (Errno::Shutdown, "ESHUTDOWN", "server is shutting down"),
];

/// The system's error numbers and what the protocol says instead. Whatever is missing is [`Errno::Io`].
/// `EDQUOT` and `EFBIG` are to be reported as `ENOSPC` ("Error values").
const FROM_OS: [(i32, Errno); 14] = [
    (libc::EPERM, Errno::NotPermitted),
    (libc::EACCES, Errno::NotPermitted),
    (libc::EROFS, Errno::NotPermitted),
    (libc::ENOMEM, Errno::NoMemory),
    (libc::ENOBUFS, Errno::NoMemory),
    (libc::EINVAL, Errno::Invalid),
    (libc::ENOSPC, Errno::NoSpace),
    (libc::EDQUOT, Errno::NoSpace),
    (libc::EFBIG, Errno::NoSpace),
    (libc::EOVERFLOW, Errno::Overflow),
    (libc::EOPNOTSUPP, Errno::NotSupported),
    (libc::ENOSYS, Errno::NotSupported),
    (libc::ENOTTY, Errno::NotSupported), // an ioctl the device does not know
    (libc::ESHUTDOWN, Errno::Shutdown),
];

impl Errno {
    /// The value on the wire.
    pub const fn wire(self) -> u32 {
        self as u32
    }

    /// The error a server reports, `None` for zero. A client takes values it does not know as `EINVAL`
    /// ("Error values").
    pub fn from_wire(value: u32) -> Option<Errno> {
        if value == 0 {
            return None;
        }
        Some(
            ALL.iter()
                .map(|(errno, ..)| *errno)
                .find(|errno| errno.wire() == value)
                .unwrap_or(Errno::Invalid),
        )
    }

    /// What to report for an error number of this system.
    pub fn from_os(code: i32) -> Errno {
        FROM_OS.iter().find(|(os, _)| *os == code).map_or(Errno::Io, |(_, errno)| *errno)
    }

    /// The system's number for this error.
    pub const fn os_code(self) -> i32 {
        self as i32
    }

    fn row(self) -> &'static (Errno, &'static str, &'static str) {
        ALL.iter().find(|(errno, ..)| *errno == self).expect("the table has every value")
    }

    /// The symbolic name: `EIO`.
    pub fn name(self) -> &'static str {
        self.row().1
    }
}

impl From<&std::io::Error> for Errno {
    fn from(error: &std::io::Error) -> Errno {
        error.raw_os_error().map_or(Errno::Io, Errno::from_os)
    }
}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> std::io::Error {
        std::io::Error::from_raw_os_error(errno.os_code())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, text) = self.row();
        write!(f, "{text} ({name})")
    }
}

impl std::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_survives_the_wire() {
        for (errno, name, _) in ALL {
            assert_eq!(Errno::from_wire(errno.wire()), Some(errno), "{name}");
            assert_eq!(Errno::from_os(errno.os_code()), errno, "{name}");
            assert_eq!(errno.name(), name);
        }
        assert_eq!(Errno::from_wire(0), None);
        assert_eq!(Errno::from_wire(9999), Some(Errno::Invalid), "unknown values are EINVAL to a client");
    }

    #[test]
    fn system_errors_without_a_value_of_their_own_find_one() {
        assert_eq!(Errno::from_os(libc::EDQUOT), Errno::NoSpace);
        assert_eq!(Errno::from_os(libc::EROFS), Errno::NotPermitted);
        assert_eq!(Errno::from_os(libc::EBADMSG), Errno::Io);
        assert_eq!(Errno::from(&std::io::Error::other("no number")), Errno::Io);
        assert_eq!(std::io::Error::from(Errno::NoSpace).kind(), std::io::ErrorKind::StorageFull);
    }
}
