//! Who may connect to the unix sockets of a server: names become numbers before anything is opened, and the numbers
//! those of the socket's file once it is there.

use std::ffi::CString;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use tier0_description::{Description, SocketAccess};

use crate::failure::Failure;

/// Owner, group and mode of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
}

/// Those of a server's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accesses {
    pub(crate) nbd: Access,
    pub(crate) control: Access,
}

impl Accesses {
    /// What the array file says.
    ///
    /// # Errors
    /// A user or group that this machine does not have.
    pub(crate) fn of(description: &Description) -> Result<Accesses, Failure> {
        Ok(Accesses {
            nbd: Access::of(&description.socket_access, "nbd.socket")?,
            control: Access::of(&description.control_access, "array.control")?,
        })
    }
}

impl Access {
    fn of(wanted: &SocketAccess, field: &str) -> Result<Access, Failure> {
        let unknown = |what: &str, kind: &str, name: &str| {
            Failure::Input(format!(
                "{field}_{what}: no {kind} {name:?} on this machine; create it, or name another one"
            ))
        };
        let number = |name: &Option<String>, what: &str, kind: &str, look_up: fn(&str) -> Option<u32>| {
            let known = |name: &String| look_up(name).ok_or_else(|| unknown(what, kind, name));
            name.as_ref().map(known).transpose()
        };
        Ok(Access {
            mode: wanted.mode,
            owner: number(&wanted.owner, "owner", "user", user)?,
            group: number(&wanted.group, "group", "group", group)?,
        })
    }

    /// Gives the socket at `path` its owner, group and mode. Until then it is the server's own.
    ///
    /// # Errors
    /// The system refuses it.
    pub(crate) fn apply(&self, path: &Path) -> Result<(), Failure> {
        let given = match (self.owner, self.group) {
            (None, None) => Ok(()),
            (owner, group) => chown(path, owner, group),
        };
        let permissions = std::fs::Permissions::from_mode(self.mode);
        given.and_then(|()| std::fs::set_permissions(path, permissions)).map_err(|error| {
            Failure::Run(format!(
                "cannot set owner, group and mode of socket {path:?}: {error}; run the server as root, or as \
                 a member of that group"
            ))
        })
    }
}

/// A user's number, by name or as it is.
fn user(name: &str) -> Option<u32> {
    let text = CString::new(name).ok()?;
    // SAFETY: the text ends with a zero; what comes back is read before anything else could ask for another user. Only the
    // main thread asks, before there are others.
    let found = unsafe { libc::getpwnam(text.as_ptr()).as_ref().map(|entry| entry.pw_uid) };
    found.or_else(|| name.parse().ok())
}

/// A group's number, by name or as it is.
fn group(name: &str) -> Option<u32> {
    let text = CString::new(name).ok()?;
    // SAFETY: as for users.
    let found = unsafe { libc::getgrnam(text.as_ptr()).as_ref().map(|entry| entry.gr_gid) };
    found.or_else(|| name.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(owner: &str) -> Result<Access, Failure> {
        let wanted = SocketAccess { mode: 0o660, owner: Some(owner.to_owned()), group: None };
        Access::of(&wanted, "nbd.socket")
    }

    #[test]
    fn users_are_known_by_name_and_by_number() {
        assert_eq!(access("root").expect("every machine has it").owner, Some(0));
        assert_eq!(access("12345").expect("a number").owner, Some(12345));
        let refused = access("no such user").expect_err("nobody is called so");
        assert!(refused.text().is_some_and(|text| text.contains("nbd.socket_owner")), "{refused:?}");
    }

    #[test]
    fn a_socket_gets_its_mode() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        Access { mode: 0o620, owner: None, group: None }.apply(&path).expect("it is ours");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o620);
    }
}
