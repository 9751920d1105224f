//! The asking side: plain blocking I/O, one request, one reply.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use tier0_api::envelope::AnyEnvelope;
use tier0_api::{AdminReply, AdminRequest, ApiVersion, OtherVersion, ReplyEnvelope, RequestEnvelope};
use tier0_array::ArrayError;
use tier0_description::Description;
use tier0_drive::OpenError;
use tier0_world::real::listens;

use super::connecting::connected;
use crate::failure::Failure;
use crate::holder::silent_server;

/// How long an answer may take: a drive that is to join has 30 s to be opened.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How long an answer to a question may take, for which no drive is asked.
const QUESTION_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may take to take a connection, over which nothing is asked yet.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The longest reply that is read, bytes: a status of thousands of drives is far below it.
const REPLY_BYTES_MAX: u64 = 16 << 20;
/// How often a question is asked that a server which ends did not hear.
const QUESTIONS_MAX: u32 = 3;

/// Why no server answers.
pub(super) fn unserved(description: &Description, file: &Path) -> Failure {
    let (name, path) = (&description.name, control_path(description));
    if description.drives.iter().all(|drive| drive.path.is_none()) {
        return Failure::Input(format!(
            "array {name:?} is in memory only, and its server has no control socket; read its log for its \
             state, or edit the array file and restart it"
        ));
    }
    if std::fs::symlink_metadata(path).is_ok_and(|about| !about.file_type().is_socket()) {
        return Failure::Run(format!(
            "array {name:?} cannot be reached: its control socket path {path:?} is not a socket; remove that \
             file, and a running server creates its socket again"
        ));
    }
    Failure::Run(silent_server(description, file).unwrap_or_else(|| {
        format!(
            "array {name:?} is not running: no server listens on {path:?}; start it with \"tier0 serve {}\"",
            file.display()
        )
    }))
}

/// Asks the array of an array file that was read; none where no server serves it.
///
/// A server that is ending resets connections that it has not taken any more. A question is asked again then, and finds
/// the next server or none; what changes something is not sent twice.
pub(crate) fn ask_if_served(
    description: &Description,
    request: &AdminRequest,
) -> Result<Option<AdminReply>, Failure> {
    ask_at(control_path(description), Some(&description.name), request)
}

/// Asks the server that listens at the control socket `path`, whichever array it serves.
pub(crate) fn ask_socket(path: &Path, request: &AdminRequest) -> Result<AdminReply, Failure> {
    ask_at(path, None, request)?.ok_or_else(|| {
        Failure::Run(format!(
            "no server listens on the control socket {path:?}; start it with \"tier0 serve\""
        ))
    })
}

/// Asks the server that listens at `path`: that of the array of this name, or of whichever it serves.
pub(super) fn ask_at(
    path: &Path,
    array: Option<&str>,
    request: &AdminRequest,
) -> Result<Option<AdminReply>, Failure> {
    let is_question = is_question(request);
    for _ in 1..QUESTIONS_MAX {
        match ask_once(path, array, request)? {
            Asked::Unheard if is_question => {}
            asked => return asked.reply(),
        }
    }
    ask_once(path, array, request)?.reply()
}

/// Whether a request changes nothing.
fn is_question(request: &AdminRequest) -> bool {
    matches!(
        request,
        AdminRequest::Status
            | AdminRequest::Io
            | AdminRequest::Describe
            | AdminRequest::StartWithout { .. }
            | AdminRequest::CouldFail { .. }
    )
}

/// What came of one connection.
enum Asked {
    /// The array's answer.
    Answered(AdminReply),
    /// No server listens.
    Unserved,
    /// The connection ended without an answer.
    Unheard,
}

impl Asked {
    fn reply(self) -> Result<Option<AdminReply>, Failure> {
        match self {
            Asked::Answered(AdminReply::Refused(text)) => Err(Failure::Input(text)),
            Asked::Answered(AdminReply::Held(text)) => Err(Failure::Held(text)),
            Asked::Answered(AdminReply::Failed(text)) => Err(Failure::Run(text)),
            Asked::Answered(reply) => Ok(Some(reply)),
            Asked::Unserved => Ok(None),
            Asked::Unheard => Err(Failure::Run(
                "the server exited before it replied; check its log, and check with \"tier0 status\" whether \
                 the request took effect"
                    .into(),
            )),
        }
    }
}

fn ask_once(path: &Path, array: Option<&str>, request: &AdminRequest) -> Result<Asked, Failure> {
    let unusable = |error: std::io::Error| {
        let text =
            format!("cannot use the control socket {path:?}: {error}; check its owner and permissions");
        match error.kind() {
            // As of a drive or a file of events that this user may not open.
            ErrorKind::PermissionDenied => Failure::Input(text),
            _ => Failure::Run(text),
        }
    };
    let mut stream = match connected(path, CONNECT_LIMIT) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(Asked::Unserved);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(unanswered(CONNECT_LIMIT, "")),
        Err(error) => return Err(unusable(error)),
    };
    let limit = if is_question(request) { QUESTION_LIMIT } else { ANSWER_LIMIT };
    stream
        .set_read_timeout(Some(limit))
        .and_then(|()| stream.set_write_timeout(Some(limit)))
        .map_err(unusable)?;
    let envelope = RequestEnvelope::new(array.map(str::to_owned), request.clone());
    let mut line = serde_json::to_string(&envelope).expect("a request can be written as JSON");
    line.push('\n');
    let mut reply = String::new();
    let exchanged = stream
        .write_all(line.as_bytes())
        .and_then(|()| BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply));
    match exchanged {
        Ok(0) => return Ok(Asked::Unheard),
        Ok(_) => {}
        Err(error) => {
            return match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Asked::Unheard),
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    let later = match is_question(request) {
                        true => "",
                        false => "; it may still carry out the request (tier0 events)",
                    };
                    Err(unanswered(limit, later))
                }
                _ => Err(Failure::Run(format!(
                    "the server does not respond: {error}; check its log, and try again"
                ))),
            };
        }
    }
    read(&reply).map(Asked::Answered)
}

/// The reply in a line of the server, which may speak another version.
fn read(line: &str) -> Result<AdminReply, Failure> {
    let unreadable = |error: serde_json::Error| {
        Failure::Run(format!("cannot parse the server's reply ({error}); check its log, and try again"))
    };
    let any: AnyEnvelope = serde_json::from_str(line).map_err(unreadable)?;
    match any {
        AnyEnvelope { api: ApiVersion::CURRENT, .. } => {
            serde_json::from_str(line).map(|envelope: ReplyEnvelope| envelope.reply).map_err(unreadable)
        }
        AnyEnvelope { refused: Some(text), .. } => Ok(AdminReply::Refused(text)),
        // A server without versions carries out requests of every version.
        AnyEnvelope { api: server, .. } => Err(Failure::Run(format!(
            "the server may have carried out the request, and its reply cannot be read: {}",
            OtherVersion { client: ApiVersion::CURRENT, server }
        ))),
    }
}

/// A server that is there has said nothing for so long; `later` is what may come of the request all the same.
fn unanswered(limit: Duration, later: &str) -> Failure {
    Failure::Run(format!(
        "the server has not responded for {} s{later}; check its log, and check whether it is suspended or \
         the machine overloaded",
        limit.as_secs()
    ))
}

/// Why the array of the file at `file` cannot be opened: that it is served already, or this error.
pub(crate) fn served_already(description: &Description, file: &Path, error: ArrayError) -> Failure {
    served_instead(description, file, &error).unwrap_or_else(|| error.into())
}

/// Why the array of the file at `file` cannot be opened, where the reason of this error is that it is served already.
pub(crate) fn served_instead(description: &Description, file: &Path, error: &ArrayError) -> Option<Failure> {
    if !matches!(error, ArrayError::NotOpened { .. } | ArrayError::Open(_)) {
        return None;
    }
    match listens(control_path(description)) {
        Ok(()) => Some(is_served(description)),
        // A user who may not ask a server cannot know what it does.
        Err(denied) if denied.kind() == ErrorKind::PermissionDenied => Some(Failure::Input(format!(
            "array {:?}: this user may neither open its drives nor connect to its control socket {:?} \
             ({denied}): {}; it may be running under another user: run this as that user or as root, or \
             grant access (array.control_mode, and the modes of the drives)",
            description.name,
            control_path(description),
            match error {
                ArrayError::NotOpened { fact, .. } => fact.clone(),
                error => error.to_string(),
            }
        ))),
        Err(_) if is_denied(error) => None,
        Err(_) => silent_server(description, file).map(Failure::Input),
    }
}

/// Refuses what must not be done to an array that is served, whether or not its drives are where the file has them.
pub(crate) fn check_not_served(description: &Description) -> Result<(), Failure> {
    match listens(control_path(description)) {
        Ok(()) => Err(is_served(description)),
        Err(_) => Ok(()),
    }
}

fn is_served(description: &Description) -> Failure {
    Failure::Input(format!(
        "array {:?} is already running: its server listens on {:?}; \"tier0 status\" shows its state",
        description.name,
        control_path(description)
    ))
}

/// Whether the system does not let this user open a drive.
fn is_denied(error: &ArrayError) -> bool {
    match error {
        ArrayError::Open(OpenError::System { source, .. }) => source.kind() == ErrorKind::PermissionDenied,
        _ => false,
    }
}

fn control_path(description: &Description) -> &Path {
    description.control.as_deref().expect("an array file that was read has a control socket's path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_another_version_is_told_as_that() {
        let done = read(r#"{"api":1,"done":"it is done"}"#).expect("it is of this version");
        assert_eq!(done, AdminReply::Done("it is done".into()));
        for (reply, server) in
            [(r#"{"done":"it is done"}"#, "version 0"), (r#"{"api":9,"danced":[]}"#, "version 9")]
        {
            let told = read(reply).expect_err("it is of another version").text().unwrap_or_default();
            assert!(told.contains("version 1") && told.contains(server), "{told}");
        }
        let refused = read(r#"{"api":9,"refused":"use version 9"}"#).expect("every version can refuse");
        assert_eq!(refused, AdminReply::Refused("use version 9".into()));
    }
}
