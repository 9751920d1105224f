//! Keeps the unix sockets of a server where clients look for them: one that was removed is made again, and what lies in
//! its place is told, by status as long as it does.
//!
//! A thread looks at the paths, because a file system may hang. What is to be made is made in the first shard's world.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tier0_api::EventKind;
use tier0_world::World;
use tier0_world::sync::{MailSender, mailbox};

use crate::troubles::Troubles;

/// How often the thread looks.
const LOOK: Duration = Duration::from_secs(1);

/// A unix socket of a server.
pub(crate) struct KeptSocket {
    /// The field of the array file that names it.
    pub(crate) field: &'static str,
    pub(crate) path: PathBuf,
    /// Whether it was made; where it was not, that was told.
    pub(crate) is_made: bool,
    /// Listens on the path anew.
    pub(crate) make: Box<dyn Fn() -> Result<(), String>>,
}

/// A socket's file: its device, and its number there.
type FileId = (u64, u64);

/// The files of the sockets, by their places, as they were made last.
type Made = Arc<Mutex<Vec<Option<FileId>>>>;

/// What the thread has found at the path of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    SomethingElse,
    /// The socket, where it was not before.
    Itself,
}

/// Looks after `sockets` until `is_stopping`.
pub(crate) fn keep(
    world: &World,
    sockets: Vec<KeptSocket>,
    troubles: Troubles,
    is_stopping: impl Fn() -> bool + Clone + Send + 'static,
) {
    let paths: Vec<PathBuf> = sockets.iter().map(|socket| socket.path.clone()).collect();
    let files = sockets.iter().map(|socket| file_at(&socket.path).filter(|_| socket.is_made));
    let made: Made = Arc::new(Mutex::new(files.collect()));
    let (news, mut inbox) = mailbox::<(usize, Found)>();
    let (looked_at, ends) = (made.clone(), is_stopping.clone());
    let thread = std::thread::Builder::new().name("tier0-sockets".to_owned());
    if let Err(error) = thread.spawn(move || look(&paths, &looked_at, &news, ends)) {
        return tracing::warn!("cannot watch the unix sockets for removal: {error}");
    }
    let mending = async move {
        // What was told of a socket last.
        let mut told: Vec<Option<String>> =
            sockets.iter().map(|socket| (!socket.is_made).then(String::new)).collect();
        while let Some((place, found)) = inbox.receive().await {
            if is_stopping() {
                return;
            }
            if found == Found::Itself && told[place].is_none() {
                // It was made again.
                continue;
            }
            let socket = &sockets[place];
            let KeptSocket { field, path, .. } = socket;
            let name = format!("{field}: {}", path.display());
            let fact = match (found, mend(socket, found)) {
                (Found::Nothing, Ok(())) | (Found::Itself, _) => {
                    let is_back = found == Found::Itself;
                    let what = if is_back { "is back" } else { "was removed, and is created again" };
                    made.lock().unwrap_or_else(PoisonError::into_inner)[place] = file_at(path);
                    let text = format!("{field}: the socket {path:?} {what}");
                    tracing::warn!("{text}");
                    troubles.tell(&match is_back {
                        true => EventKind::SocketRestored { text },
                        false => EventKind::SocketLost { text },
                    });
                    troubles.is_over(&name);
                    told[place] = None;
                    continue;
                }
                (Found::Nothing, Err(error)) => error,
                (Found::SomethingElse, _) => format!(
                    "{field}: {path:?} is no longer this server's socket, so clients cannot connect there; \
                     remove that file, and the server creates its socket again"
                ),
            };
            // What has been told since the start is told once.
            let is_known = told[place].as_ref().is_some_and(|known| known.is_empty() || *known == fact);
            if !is_known {
                tracing::error!("{fact}");
                troubles.tell(&EventKind::SocketLost { text: fact.clone() });
            }
            troubles.note(&name, fact.clone());
            told[place] = Some(fact);
        }
    };
    world.spawn(mending).detach();
}

fn mend(socket: &KeptSocket, found: Found) -> Result<(), String> {
    match found {
        Found::Nothing => (socket.make)(),
        Found::SomethingElse | Found::Itself => Ok(()),
    }
}

/// Tells of each socket that is not where it was made, at each look, and once of one that is there again.
#[expect(clippy::disallowed_methods, reason = "a thread outside of all worlds, which waits for nobody")]
fn look(paths: &[PathBuf], made: &Made, news: &MailSender<(usize, Found)>, is_stopping: impl Fn() -> bool) {
    let mut is_away = vec![false; paths.len()];
    while !is_stopping() {
        std::thread::sleep(LOOK);
        for (place, path) in paths.iter().enumerate() {
            let known = made.lock().unwrap_or_else(PoisonError::into_inner)[place];
            let found = match std::fs::symlink_metadata(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::Nothing,
                Ok(_) if known.is_none() || file_at(path) != known => Found::SomethingElse,
                Ok(_) if is_away[place] => Found::Itself,
                // It is there, or its path cannot be read.
                Ok(_) | Err(_) => continue,
            };
            is_away[place] = found != Found::Itself;
            news.send((place, found));
        }
    }
}

fn file_at(path: &Path) -> Option<FileId> {
    let about = std::fs::symlink_metadata(path).ok().filter(|about| about.file_type().is_socket())?;
    Some((about.dev(), about.ino()))
}
