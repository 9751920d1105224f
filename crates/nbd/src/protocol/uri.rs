//! NBD addresses as people write them: `nbd://host:port/export`, `nbd+unix:///export?socket=/path`.
//!
//! Follows "The NBD Uniform Resource Indicator (URI) format" of the NBD project. TLS schemes are recognised and
//! refused; query parameters that are not understood are refused rather than ignored, as that document advises.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::limits::STRING_BYTES_MAX;

/// The port IANA assigned to NBD.
pub const DEFAULT_PORT: u16 = 10809;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdAddress {
    /// A TCP port; the host is a name or an address, IPv6 without brackets.
    Tcp {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// A unix domain socket.
    Unix(PathBuf),
}

/// An export on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUri {
    /// The server.
    pub address: NbdAddress,
    /// The export's name; empty for the default export.
    pub export: String,
}

/// Why a text is no NBD address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseNbdUriError {
    /// Another scheme, or none.
    #[error("{0:?} is not an NBD address; write nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH")]
    Scheme(String),
    /// A scheme that asks for TLS.
    #[error("{0:?} asks for TLS, which is not supported; use nbd:// or nbd+unix://")]
    Tls(String),
    /// No host, or a bad port.
    #[error("{0:?} has no valid host and port; write nbd://HOST:PORT/EXPORT")]
    Authority(String),
    /// `nbd+unix` without its socket.
    #[error("{0:?} has no socket; append ?socket=PATH")]
    NoSocket(String),
    /// A parameter that is not understood.
    #[error("unknown parameter {parameter:?}; the only parameter is socket=PATH, with nbd+unix")]
    Parameter {
        /// The parameter's name.
        parameter: String,
    },
    /// A `%` without two hexadecimal digits, or bytes that are no string.
    #[error("{0:?} is badly encoded; write special characters as % and two hexadecimal digits")]
    Encoding(String),
}

impl FromStr for NbdUri {
    type Err = ParseNbdUriError;

    fn from_str(text: &str) -> Result<NbdUri, ParseNbdUriError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| ParseNbdUriError::Scheme(text.to_owned()))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let export = export_name(path)?;
        match scheme.to_ascii_lowercase().as_str() {
            "nbd" => {
                let no_socket = socket_parameter(query, false)?;
                debug_assert!(no_socket.is_none());
                let (host, port) =
                    host_port(authority).ok_or_else(|| ParseNbdUriError::Authority(text.to_owned()))?;
                Ok(NbdUri { address: NbdAddress::Tcp { host, port }, export })
            }
            "nbd+unix" => {
                let socket = socket_parameter(query, true)?;
                let socket = socket.ok_or_else(|| ParseNbdUriError::NoSocket(text.to_owned()))?;
                Ok(NbdUri { address: NbdAddress::Unix(socket), export })
            }
            "nbds" | "nbds+unix" => Err(ParseNbdUriError::Tls(text.to_owned())),
            _ => Err(ParseNbdUriError::Scheme(text.to_owned())),
        }
    }
}

/// The path without its leading `/`, decoded.
fn export_name(path: &str) -> Result<String, ParseNbdUriError> {
    let fail = || ParseNbdUriError::Encoding(path.to_owned());
    let name = String::from_utf8(percent_decode(path).ok_or_else(fail)?).map_err(|_| fail())?;
    if name.contains('\0') || name.len() > STRING_BYTES_MAX { Err(fail()) } else { Ok(name) }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
fn host_port(authority: &str) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().ok().filter(|p| *p != 0)?
        }
        Some(_) => return None,
    };
    let host = String::from_utf8(percent_decode(host)?).ok()?;
    // What ends an authority is no part of a host, encoded or not.
    let strange = |c: char| c.is_whitespace() || c.is_control() || "@/?#[]".contains(c);
    (!host.is_empty() && !host.contains(strange)).then_some((host, port))
}

/// The value of `socket=`; every other parameter is an error, and so is this one where it is not `allowed`.
fn socket_parameter(query: &str, allowed: bool) -> Result<Option<PathBuf>, ParseNbdUriError> {
    let mut socket = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if name != "socket" || !allowed || socket.is_some() {
            return Err(ParseNbdUriError::Parameter { parameter: name.to_owned() });
        }
        let path = percent_decode(value).ok_or_else(|| ParseNbdUriError::Encoding(value.to_owned()))?;
        socket = Some(PathBuf::from(OsString::from_vec(path))).filter(|path| !path.as_os_str().is_empty());
    }
    Ok(socket)
}

/// `%2f` and the like replaced by their bytes (RFC 3986, section 2.1).
fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        };
        decoded.push(byte);
    }
    Some(decoded)
}

/// Everything but the characters that mean themselves everywhere (RFC 3986, section 2.3) and those of `plain`.
fn percent_encode(bytes: &[u8], plain: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || plain.contains(&byte) {
            write!(f, "{}", char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

impl fmt::Display for NbdUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            NbdAddress::Tcp { host, port } => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                write!(f, "nbd://{open}")?;
                percent_encode(host.as_bytes(), b":", f)?;
                f.write_str(close)?;
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
                f.write_str("/")?;
                percent_encode(self.export.as_bytes(), b"/", f)
            }
            NbdAddress::Unix(path) => {
                f.write_str("nbd+unix:///")?;
                percent_encode(self.export.as_bytes(), b"/", f)?;
                f.write_str("?socket=")?;
                percent_encode(path.as_os_str().as_bytes(), b"/", f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp(host: &str, port: u16, export: &str) -> NbdUri {
        NbdUri { address: NbdAddress::Tcp { host: host.to_owned(), port }, export: export.to_owned() }
    }

    #[test]
    fn reads_the_forms_of_the_specification() {
        for (text, uri) in [
            ("nbd://example.com/disk", tcp("example.com", 10809, "disk")),
            ("nbd://example.com:10810/disk", tcp("example.com", 10810, "disk")),
            ("nbd://example.com", tcp("example.com", 10809, "")),
            ("nbd://example.com//disk", tcp("example.com", 10809, "/disk")),
            ("nbd://example.com/hello%20world", tcp("example.com", 10809, "hello world")),
            ("NBD://[::1]:9/a", tcp("::1", 9, "a")),
            ("nbd://[fe80::1%25eth0]/a", tcp("fe80::1%eth0", 10809, "a")),
            ("nbd://127.0.0.1:/", tcp("127.0.0.1", 10809, "")),
        ] {
            assert_eq!(text.parse(), Ok(uri), "{text}");
        }
        let unix = NbdUri { address: NbdAddress::Unix("/run/t0.sock".into()), export: "a b".to_owned() };
        assert_eq!("nbd+unix:///a%20b?socket=/run/t0.sock".parse(), Ok(unix));
    }

    #[test]
    fn says_what_is_wrong() {
        use ParseNbdUriError as E;
        let fail = |text: &str| text.parse::<NbdUri>().expect_err(text);
        assert!(matches!(fail("http://a/"), E::Scheme(_)));
        assert!(matches!(fail("example.com"), E::Scheme(_)));
        assert!(matches!(fail("nbds://a/"), E::Tls(_)));
        assert!(matches!(fail("nbd:///disk"), E::Authority(_)));
        assert!(matches!(fail("nbd://a:0/"), E::Authority(_)));
        assert!(matches!(fail("nbd://a:65536/"), E::Authority(_)));
        assert!(matches!(fail("nbd://a:+1/"), E::Authority(_)));
        assert!(matches!(fail("nbd://[::1/"), E::Authority(_)));
        assert!(matches!(fail("nbd://a%2Fb/"), E::Authority(_)));
        assert!(matches!(fail("nbd+unix:///disk"), E::NoSocket(_)));
        assert!(matches!(fail("nbd+unix:///disk?socket="), E::NoSocket(_)));
        assert!(matches!(fail("nbd+unix:///?socket=/a&tls-type=psk"), E::Parameter { .. }));
        assert!(matches!(fail("nbd://a/?socket=/a"), E::Parameter { .. }));
        assert!(matches!(fail("nbd://a/%zz"), E::Encoding(_)));
        assert!(matches!(fail("nbd://a/%00"), E::Encoding(_)));
        assert!(matches!(fail("nbd://a/%ff"), E::Encoding(_)));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,80}") {
            let _ = text.parse::<NbdUri>();
            let _ = format!("nbd://{text}").parse::<NbdUri>();
            let _ = format!("nbd+unix:///{text}").parse::<NbdUri>();
        }

        #[test]
        fn what_is_printed_is_read_back(export in "[^\0]{0,20}", path in "/[^\0]{1,20}", port in 1u16.., host in "[a-z0-9.:%^-]{1,20}") {
            let unix = NbdUri { address: NbdAddress::Unix(path.into()), export: export.clone() };
            prop_assert_eq!(unix.to_string().parse(), Ok(unix));
            let tcp = tcp(&host, port, &export);
            prop_assert_eq!(tcp.to_string().parse(), Ok(tcp));
        }
    }
}
