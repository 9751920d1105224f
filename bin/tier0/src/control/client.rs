//! The asking side: plain blocking I/O, one request, one reply.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use tier0_array::Description;
use tier0_array::admin::{AdminReply, AdminRequest};

use crate::failure::Failure;

/// The longest reply that is read, bytes: a status of thousands of drives is far below it.
const REPLY_BYTES_MAX: u64 = 16 << 20;

/// Asks the array that is served from the array file at `file`.
pub(crate) fn ask(file: &Path, request: &AdminRequest) -> Result<AdminReply, Failure> {
    let description = Description::read(file).map_err(Failure::input)?;
    let path = description.control.expect("an array file that was read has a control socket's path");
    let not_served = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::Run(format!(
            "array {:?} is not being served: nobody listens on {path:?}; run \"tier0 serve {}\" first",
            description.name,
            file.display()
        )),
        _ => Failure::Run(format!(
            "the control socket {path:?} cannot be used: {error}; check its owner and permissions"
        )),
    };
    let mut stream = UnixStream::connect(&path).map_err(not_served)?;
    let mut line = serde_json::to_string(request).expect("a request can be written as JSON");
    line.push('\n');
    let broken = |error: std::io::Error| {
        Failure::Run(format!("the server does not answer: {error}; look at its log, and try again"))
    };
    stream.write_all(line.as_bytes()).map_err(broken)?;
    let mut reply = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply).map_err(broken)?;
    match serde_json::from_str(&reply) {
        Ok(AdminReply::Refused(text)) => Err(Failure::Input(text)),
        Ok(AdminReply::Failed(text)) => Err(Failure::Run(text)),
        Ok(reply) => Ok(reply),
        Err(_) => Err(Failure::Run(
            "the server's answer makes no sense; is it of the same version as this program?".into(),
        )),
    }
}
