//! The answering side, in the world of the first shard.

use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;

use tier0_control::admin::{AdminReply, AdminRequest};
use tier0_target::Throttle;
use tier0_units::Nanos;
use tier0_world::net::{Listener, PeerAddress, Socket};
use tier0_world::{Gather, World};

use super::Envelope;
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
    let reply = match serde_json::from_slice(&line) {
        Ok(Envelope { array: Some(meant), .. }) if meant != array => AdminReply::Refused(format!(
            "this control socket belongs to array {array:?}, but the array file describes {meant:?}; use the \
             right array file, or correct array.control"
        )),
        Ok(Envelope { request, .. }) => answer(request).await,
        Err(error) => AdminReply::Refused(format!(
            "cannot parse the request ({error}); use a client of the same version as the server"
        )),
    };
    let mut bytes = serde_json::to_vec(&reply).expect("a reply can be written as JSON");
    bytes.push(b'\n');
    let mut gather = Box::new(Gather::new());
    gather.push_header(&bytes);
    let _ = socket.send(gather).await;
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
