//! Who may connect to a unix socket.

use toml::Spanned;

use super::DescriptionError;
use super::error::Place;

/// The mode of a socket of which nothing is said: its owner's alone.
const MODE: u32 = 0o600;

/// Who may connect to a unix socket: owner, group and mode of its file. Connecting takes write permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketAccess {
    /// Permission bits, at most 0o777.
    pub mode: u32,
    /// A user's name or number; the user that runs the server where none is given.
    pub owner: Option<String>,
    /// A group's name or number; that of the user that runs the server where none is given.
    pub group: Option<String>,
}

impl Default for SocketAccess {
    /// The owner alone.
    fn default() -> SocketAccess {
        SocketAccess { mode: MODE, owner: None, group: None }
    }
}

/// The fields of the file; `field` is what their names begin with.
pub(super) fn check_access(
    field: &str,
    mode: Option<&Spanned<String>>,
    owner: Option<&Spanned<String>>,
    group: Option<&Spanned<String>>,
    place: &Place<'_>,
) -> Result<SocketAccess, DescriptionError> {
    let name = |what: &str, name: &Spanned<String>| match name.get_ref().is_empty() {
        false => Ok(name.get_ref().clone()),
        true => {
            Err(place.wrong(name.span(), format!("{field}_{what} is empty; name one, or remove the field")))
        }
    };
    Ok(SocketAccess {
        mode: mode.map_or(Ok(MODE), |mode| {
            read_mode(mode.get_ref())
                .map_err(|fact| place.wrong(mode.span(), format!("{field}_mode: {fact}")))
        })?,
        owner: owner.map(|owner| name("owner", owner)).transpose()?,
        group: group.map(|group| name("group", group)).transpose()?,
    })
}

fn read_mode(text: &str) -> Result<u32, String> {
    let digits = text.len() >= 3 && text.len() <= 4 && text.bytes().all(|digit| digit.is_ascii_digit());
    match u32::from_str_radix(text, 8) {
        Ok(mode) if digits && mode <= 0o777 => Ok(mode),
        _ => Err(format!("{text:?} is not a file mode; write octal digits, as in \"0660\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_octal() {
        assert_eq!(read_mode("0660"), Ok(0o660));
        assert_eq!(read_mode("777"), Ok(0o777));
        for text in ["", "6", "0680", "1777", "rw-", "+660", "00660"] {
            assert!(read_mode(text).is_err(), "{text}");
        }
    }
}
