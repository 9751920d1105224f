//! The answering side, in the world of the first shard.

use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;

use tier0_api::envelope::AnyEnvelope;
use tier0_api::{AdminReply, AdminRequest, ApiVersion, OtherVersion, ReplyEnvelope, RequestEnvelope};
use tier0_target::Throttle;
use tier0_units::Nanos;
use tier0_world::net::{Listener, PeerAddress, Socket};
use tier0_world::{Gather, World};

use crate::failure::Failure;
use crate::sockets::Access;

/// A request is one short line.
const REQUEST_BYTES_MAX: usize = 64 << 10;
/// How long to wait after a failed accept, so that a lack of descriptors does not become a busy loop.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);

/// Why there is no control socket.
pub(crate) enum Unserved {
    /// Another process listens at its path: another server, as it seems.
    Taken,
    /// It cannot be made.
    NotMade(std::io::Error),
    /// It cannot be given to whom it should be.
    NotGiven(Failure),
}

impl Unserved {
    /// The fact and the remedy.
    pub(crate) fn text(&self, path: &Path) -> String {
        match self {
            Unserved::Taken => format!(
                "another server listens on the control socket {path:?}; stop it, or set array.control to another path"
            ),
            Unserved::NotMade(error) if error.kind() == ErrorKind::AlreadyExists => format!(
                "cannot create the control socket {path:?}, so commands do not reach this server: {error}; \
                 remove that file, and the socket is created, or set array.control to another path"
            ),
            Unserved::NotMade(error) => format!(
                "cannot create the control socket {path:?}, so commands do not reach this server: {error}; \
                 set array.control to a writable path"
            ),
            Unserved::NotGiven(failure) => failure.text().unwrap_or_default(),
        }
    }
}

impl From<std::io::Error> for Unserved {
    fn from(error: std::io::Error) -> Unserved {
        match error.kind() {
            ErrorKind::AddrInUse => Unserved::Taken,
            _ => Unserved::NotMade(error),
        }
    }
}

/// Answers requests on the unix socket at `path` with `answer`, until the world ends.
///
/// # Errors
/// When the socket cannot be had.
pub(crate) fn serve<F>(
    world: &World,
    path: &Path,
    access: Access,
    array: &str,
    answer: impl Fn(AdminRequest) -> F + 'static,
) -> Result<(), Unserved>
where
    F: Future<Output = AdminReply> + 'static,
{
    let listener = Listener::bind(world, &PeerAddress::Unix(path.to_owned()))?;
    access.apply(path).map_err(Unserved::NotGiven)?;
    let complaints = Throttle::new(world, 1);
    let (answer, tasks, array) = (Rc::new(answer), world.clone(), Rc::<str>::from(array));
    let accepting = async move {
        loop {
            match listener.accept().await {
                Ok(socket) => {
                    let (answer, array) = (answer.clone(), array.clone());
                    tasks.spawn(async move { converse(socket, &array, &*answer).await }).detach();
                }
                Err(error) => {
                    complaints.happened(
                        || tracing::warn!("the control socket cannot accept a connection: {error}"),
                        move |count| {
                            tracing::warn!(
                                "the control socket still cannot accept a connection: {error}; {count} more \
                                 attempts failed within 10 s"
                            );
                        },
                    );
                    tasks.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    world.spawn(accepting).detach();
    Ok(())
}

/// One request, one reply. A client that goes away meanwhile gets none, which does no harm.
async fn converse<F>(socket: Socket, array: &str, answer: &impl Fn(AdminRequest) -> F)
where
    F: Future<Output = AdminReply>,
{
    let Some(line) = read_line(&socket).await else { return };
    let mut bytes = match read(&line) {
        Ok(RequestEnvelope { array: Some(meant), .. }) if meant != array => {
            to_bytes(AdminReply::Refused(format!(
                "this control socket belongs to array {array:?}, but the array file describes {meant:?}; use the \
             right array file, or correct array.control"
            )))
        }
        Ok(RequestEnvelope { request, .. }) => to_bytes(answer(request).await),
        Err(bytes) => bytes,
    };
    bytes.push(b'\n');
    let mut gather = Box::new(Gather::new());
    gather.push_header(&bytes);
    let _ = socket.send(gather).await;
}

/// The request in a line of a client, which may speak another version; else what the client is told.
fn read(line: &[u8]) -> Result<RequestEnvelope, Vec<u8>> {
    let client = serde_json::from_slice(line).map_or(ApiVersion::CURRENT, |any: AnyEnvelope| any.api);
    let refused = match client {
        ApiVersion::CURRENT => match serde_json::from_slice(line) {
            Ok(envelope) => return Ok(envelope),
            Err(error) => AdminReply::Refused(format!(
                "cannot parse the request ({error}); send a request of API version {client}, as \"tier0\" does"
            )),
        },
        _ => AdminReply::Refused(OtherVersion { client, server: ApiVersion::CURRENT }.to_string()),
    };
    Err(match client {
        // Clients that name no version do not know an envelope of replies either.
        ApiVersion::UNNAMED => serde_json::to_vec(&refused).expect("a reply can be written as JSON"),
        _ => to_bytes(refused),
    })
}

fn to_bytes(reply: AdminReply) -> Vec<u8> {
    serde_json::to_vec(&ReplyEnvelope::new(reply)).expect("a reply can be written as JSON")
}

async fn read_line(socket: &Socket) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(REQUEST_BYTES_MAX);
    while bytes.len() < REQUEST_BYTES_MAX {
        let (outcome, received) = socket.receive(bytes).await;
        bytes = received;
        if outcome.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            bytes.truncate(end);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of another version was told that its request could not be parsed.
    #[test]
    fn a_client_of_another_version_is_told_both() {
        let told =
            |line: &str| read(line.as_bytes()).map_err(|bytes| String::from_utf8(bytes).expect("UTF-8"));
        let request = told(r#"{"api":1,"array":"a","request":"status"}"#).expect("it is of this version");
        assert_eq!(request, RequestEnvelope::new(Some("a".into()), AdminRequest::Status));
        let refused = told(r#"{"array":"a","request":"status"}"#).expect_err("it names no version");
        assert!(refused.starts_with(r#"{"refused":"the command speaks API version 0 "#), "{refused}");
        let refused = told(r#"{"api":9,"request":"dance"}"#).expect_err("it is of another version");
        assert!(refused.starts_with(r#"{"api":1,"refused":"the command speaks API version 9 "#), "{refused}");
        assert!(refused.contains("API version 1;"), "{refused}");
        for wrong in ["{", "", r#"{"api":1,"request":"dance"}"#] {
            assert!(told(wrong).expect_err("it is no request").contains("cannot parse the request"));
        }
    }
}
