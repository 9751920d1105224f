//! How to reach what is served: NBD addresses, and the commands that mount one.

use std::path::absolute;

use tier0_nbd::protocol::{NbdAddress, NbdUri};
use tier0_world::net::PeerAddress;

/// The columns of a usual terminal.
const COLUMNS: usize = 80;

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
        NbdAddress::Unix(path) => {
            ["nbd-client -unix".to_owned(), format!("'{}'", path.display()), format!("-N {export} /dev/nbd0")]
        }
        NbdAddress::Tcp { host, port } => {
            [format!("nbd-client {host} {port}"), format!("-N {export}"), "/dev/nbd0".to_owned()]
        }
    };
    let uses: [(&str, Vec<String>); 4] = [
        (
            "as a file:",
            vec![format!("mkdir -p mnt && nbdfuse mnt/{export}"), format!("'{uri}'"), "&".to_owned()],
        ),
        ("as a device (root, kernel module nbd):", client.into()),
        (
            "in a machine:",
            vec!["qemu-system-x86_64 -drive".to_owned(), format!("'file={uri},format=raw,if=virtio'")],
        ),
        (
            "under a load:",
            vec!["tier0 load".to_owned(), format!("'{uri}'"), "--queue-depth 32 --time 10s".to_owned()],
        ),
    ];
    uses.iter().map(|(use_, parts)| format!("  {use_}\n{}\n", command(parts))).collect()
}

/// A command for a shell, on lines that a terminal of [`COLUMNS`] holds. Words that are longer stay whole.
pub(crate) fn command(parts: &[String]) -> String {
    let mut lines = vec!["   ".to_owned()];
    for part in parts {
        let is_first = lines.len() == 1 && lines[0].trim().is_empty();
        let last = lines.last_mut().expect("there is a line");
        // The line may go on with a blank and a backslash.
        if is_first || last.chars().count() + 1 + part.chars().count() + 2 <= COLUMNS {
            last.push(' ');
            last.push_str(part);
        } else {
            last.push_str(" \\");
            lines.push(format!("      {part}"));
        }
    }
    lines.join("\n")
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

    /// Commands were 140 columns wide, and a terminal cut them in their words.
    #[test]
    fn commands_are_cut_between_their_words() {
        let long = uri(&PeerAddress::Unix("/tmp/tier0-demo-1234567-abcdef/nbd.sock".into()), "lun0");
        let told = commands(&long);
        // A word that is longer than a line stays whole.
        let is_word = |line: &&str| !line.trim().trim_end_matches(" \\").contains(' ');
        let mut lines = told.lines().filter(|line| !is_word(line));
        assert!(lines.all(|line| line.chars().count() <= COLUMNS), "{told}");
        assert!(
            told.contains(&format!("tier0 load \\\n      '{long}' \\\n      --queue-depth 32")),
            "{told}"
        );
    }
}
