//! How to reach what is served: NBD addresses, and the commands that mount one.

use std::path::absolute;

use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_world::net::PeerAddress;

/// The address of `export` at a server that listens on `address`.
pub(crate) fn uri(address: &PeerAddress, export: &str) -> NbdUri {
    let address = match address {
        // The client that mounts it may run in another directory.
        PeerAddress::Unix(path) => NbdAddress::Unix(absolute(path).unwrap_or_else(|_| path.clone())),
        PeerAddress::Tcp(address) => NbdAddress::Tcp { host: address.ip().to_string(), port: address.port() },
    };
    NbdUri { address, export: export.to_owned() }
}

/// One line per way to use the export at `uri`.
pub(crate) fn commands(uri: &NbdUri) -> String {
    let export = &uri.export;
    let client = match &uri.address {
        NbdAddress::Unix(path) => format!("nbd-client -unix '{}' -N {export} /dev/nbd0", path.display()),
        NbdAddress::Tcp { host, port } => format!("nbd-client {host} {port} -N {export} /dev/nbd0"),
    };
    format!(
        "  as a file:        mkdir -p mnt && nbdfuse mnt/{export} '{uri}' &\n\
         \x20 as a device:      {client}    (root, kernel module nbd)\n\
         \x20 in a machine:     qemu-system-x86_64 -drive 'file={uri},format=raw,if=virtio'\n\
         \x20 under a load:     tier0 load '{uri}' --queue-depth 32 --time 10s\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_can_be_read_back_from_any_directory() {
        let unix = uri(&PeerAddress::Unix("x.sock".into()), "lun0");
        assert_eq!(unix.to_string().parse::<NbdUri>().expect("an NBD address"), unix);
        let NbdAddress::Unix(path) = &unix.address else { panic!("a unix socket") };
        assert!(path.is_absolute());
        let tcp = uri(&PeerAddress::Tcp("[::1]:7".parse().expect("an address")), "lun0");
        assert_eq!(tcp.to_string(), "nbd://[::1]:7/lun0");
        assert!(commands(&tcp).contains("nbd-client ::1 7 -N lun0"));
    }
}
