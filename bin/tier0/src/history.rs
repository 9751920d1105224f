//! The events of an array in a file beside its own, so that they outlive the server: a JSON object a line.
//!
//! A thread writes them, because a file system may hang and the array must not wait for it. What cannot be written is
//! tried again with the next event, and every [`AGAIN`]; as long as that is so, it is a trouble of the server. The file
//! is opened anew each time, so it may be moved or taken away; it is moved to `.old` where it gets larger than
//! [`BYTES_MAX`], in the place of the one before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use tier0_api::{Event, EventId, EventKind, Severity, Subject, render};
use tier0_description::moved_events;

use crate::output::json_line;
use crate::troubles::Troubles;

/// A file of more bytes than this is moved away: some thousands of events.
const BYTES_MAX: u64 = 1 << 20;
/// A file that cannot be moved away grows up to so many times that.
const ROTATED_MAX: u64 = 16;
/// How a file of events begins.
const BEGIN: &str = "{\"time\":\"";
/// A link leads to something else, and opening a pipe would wait for its other end.
const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK;
/// Events that wait for the file; more are counted by their sender.
const WAITING_MAX: usize = 1000;
/// How often what could not be written is tried again without a new event.
const AGAIN: Duration = Duration::from_secs(5);
/// How long the end of the server waits for what is still to be written.
const END: Duration = Duration::from_secs(2);

/// Who is in trouble where events cannot be kept.
const FIELD: &str = "array.events";

/// A file: its device, and its number there.
pub(crate) type FileId = (u64, u64);

/// An event as the file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptEvent {
    /// When it was told.
    pub(crate) time: Timestamp,
    pub(crate) severity: Severity,
    /// To what it happened, as `drive d0`.
    pub(crate) thing: String,
    /// What it was, and its cause.
    pub(crate) what: String,
    /// What to do; empty where nothing is to be done.
    pub(crate) remedy: String,
    /// Which event it is; none of a server of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// What it is about; none of a server of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Subject>,
    /// Where the file of a drive lies whose place something else has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original: Option<PathBuf>,
}

impl KeptEvent {
    #[expect(clippy::disallowed_methods, reason = "people read it; the engine does not")]
    fn now(event: Event) -> KeptEvent {
        let Event { severity, thing, what, remedy, id, subject, original, age_s: _ } = event;
        let (id, subject) = (Some(id), Some(subject));
        KeptEvent { time: Timestamp::now(), severity, thing, what, remedy, id, subject, original }
    }

    /// Whether it is this event: by its id, or as it began when events had none.
    pub(crate) fn is(&self, id: EventId) -> bool {
        match &self.id {
            Some(own) => own == id.name(),
            None => beginning(id).is_some_and(|beginning| self.what.starts_with(beginning)),
        }
    }
}

/// How an event begins that servers left before events had ids.
fn beginning(id: EventId) -> Option<&'static str> {
    match id {
        EventId::ServerEnded => Some(render::ENDED),
        EventId::ArrayRecovered => Some(render::RECOVERED),
        EventId::DriveLeft => Some(render::LEFT),
        EventId::DriveFileBack => Some("its file is at"),
        _ => None,
    }
}

/// What a server serves.
pub(crate) struct Served {
    /// The names of its drives.
    pub(crate) drives: BTreeSet<String>,
    /// Where everything lies that may be one of them.
    pub(crate) places: Vec<PathBuf>,
}

/// Writes events as long as there is a sender of them.
pub(crate) struct Keeper {
    to: SyncSender<Event>,
    ended: Receiver<()>,
}

impl Keeper {
    /// Writes into this file from now on, which need not be there; first, where that is so, that the server before has not
    /// said how it ended, and which of the drives that are served may be copies.
    pub(crate) fn start(path: PathBuf, served: Served, troubles: Troubles) -> io::Result<Keeper> {
        let (to, events) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        std::thread::Builder::new().name("tier0-events".to_owned()).spawn(move || {
            keep(&path, &served, &events, &troubles);
            // The server may have stopped waiting.
            let _ = end.send(());
        })?;
        Ok(Keeper { to, ended })
    }

    /// To tell events.
    pub(crate) fn sender(&self) -> SyncSender<Event> {
        self.to.clone()
    }

    /// Ends when all is written that was told, or after [`END`]. All other senders must be gone.
    pub(crate) fn end(self) {
        drop(self.to);
        let _ = self.ended.recv_timeout(END);
    }
}

/// Adds an event to the file of an array that has no server.
///
/// # Errors
/// It cannot be written.
pub(crate) fn add(path: &Path, event: Event) -> io::Result<()> {
    append(path, &[KeptEvent::now(event)].into())
}

/// Lets go of all files that the server has open but for the standard ones, in this thread alone: while a file system hangs the
/// thread outlives the server, and the drives would be locked as long.
fn let_go_of_files() {
    // SAFETY: the thread has a table of its own then, and no file that it uses is open yet.
    let done =
        unsafe { libc::unshare(libc::CLONE_FILES) == 0 && libc::close_range(3, libc::c_uint::MAX, 0) == 0 };
    if !done {
        tracing::debug!("events: {}", io::Error::last_os_error());
    }
}

fn keep(path: &Path, served: &Served, events: &Receiver<Event>, troubles: &Troubles) {
    let_go_of_files();
    let before = of_the_server_before(path);
    let mut waiting: VecDeque<KeptEvent> = unended(&before, troubles.array()).into_iter().collect();
    for copied in perhaps_copies(&before, served) {
        troubles.note(&copied.thing, format!("{}: {}; {}", copied.thing, copied.what, copied.remedy));
        waiting.push_back(copied);
    }
    let mut is_told = false;
    loop {
        let next = events.recv_timeout(AGAIN);
        let is_over = next == Err(RecvTimeoutError::Disconnected);
        waiting.extend(next.ok().into_iter().chain(events.try_iter()).map(KeptEvent::now));
        while waiting.len() > WAITING_MAX {
            waiting.pop_front();
        }
        let kept = match waiting.is_empty() {
            // The next event may be long in coming, and should find its file.
            true => check(path),
            false => append(path, &waiting),
        };
        match kept {
            Ok(()) => {
                waiting.clear();
                if troubles.is_over(FIELD) {
                    tracing::info!("writing events to {path:?} again");
                }
                is_told = false;
            }
            Err(error) => {
                let fault = format!(
                    "cannot write events to {path:?}: {error}; free space or grant access, or choose another \
                     file ({FIELD})"
                );
                if !std::mem::replace(&mut is_told, true) {
                    tracing::error!("{fault}");
                }
                troubles.note(FIELD, fault);
            }
        }
        if is_over {
            return;
        }
    }
}

/// What servers have left in the file, and before that in the one that was moved away.
fn of_the_server_before(path: &Path) -> Vec<KeptEvent> {
    let of_a_server = |event: &KeptEvent| !event.is(EventId::ArrayRecovered);
    let kept = |path: &Path| -> Vec<KeptEvent> {
        let events = content(path).map(|(_, text)| read(&text).0).unwrap_or_default();
        events.into_iter().filter(of_a_server).collect()
    };
    let mut events = kept(&moved_events(path));
    events.extend(kept(path));
    events
}

/// Drives whose files were moved under a server, and still lie there, although others lay in their places. Nothing on
/// those contradicts it if they are copies.
fn perhaps_copies(before: &[KeptEvent], served: &Served) -> Vec<KeptEvent> {
    let mut moved: BTreeMap<&str, (&KeptEvent, &Path)> = BTreeMap::new();
    for event in before {
        match &event.original {
            Some(original) => {
                moved.insert(&event.thing, (event, original));
            }
            // It does not matter any more where the file was moved.
            None if event.is(EventId::DriveFileBack) || event.is(EventId::DriveLeft) => {
                moved.remove(event.thing.as_str());
            }
            None => {}
        }
    }
    let plain = |path: &Path| std::fs::canonicalize(path).ok();
    let places: Vec<_> = served.places.iter().filter_map(|path| plain(path)).collect();
    let is_left = |original: &Path| plain(original).is_some_and(|original| !places.contains(&original));
    // One that does not serve is told as lost.
    let serves = |thing: &str| thing.strip_prefix("drive ").is_some_and(|name| served.drives.contains(name));
    let left = moved.into_iter().filter(|(thing, (_, original))| serves(thing) && is_left(original));
    let left = left.map(|(_, one)| one);
    left.map(|(event, original)| {
        let (original, moved_at) = (original.to_owned(), event.time.strftime("%F %TZ").to_string());
        let subject = event
            .subject
            .clone()
            .unwrap_or_else(|| Subject::drive(event.thing.strip_prefix("drive ").unwrap_or(&event.thing)));
        let event = Event::new(subject, &EventKind::DriveMayBeCopy { original, moved_at });
        tracing::warn!("{}: {}", event.thing, event.what);
        KeptEvent::now(event)
    })
    .collect()
}

/// That the server before has not written its end; nothing where it has, or where there was none.
fn unended(before: &[KeptEvent], array: &str) -> Option<KeptEvent> {
    let last = before.last()?;
    if last.is(EventId::ServerEnded) {
        return None;
    }
    let last_event = last.time.strftime("%F %TZ").to_string();
    let event = Event::new(Subject::array(array), &EventKind::ServerKilled { last_event });
    tracing::warn!("{}", event.what);
    Some(KeptEvent::now(event))
}

fn append(path: &Path, events: &VecDeque<KeptEvent>) -> io::Result<()> {
    let mut file = open_to_write(path)?;
    let length = file.metadata()?.len();
    if length > BYTES_MAX {
        match move_away(path) {
            Ok(()) => file = open_to_write(path)?,
            // Something is in the way there.
            Err(error) if length > ROTATED_MAX * BYTES_MAX => return Err(error),
            Err(_) => {}
        }
    }
    let mut text = String::new();
    // A crash may have cut the last line.
    if !ends_in_line_feed(&mut file)? {
        text.push('\n');
    }
    events.iter().for_each(|event| text.push_str(&json_line(event)));
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// Moves the file to where the last one was moved, which goes; nothing else that lies there does.
fn move_away(path: &Path) -> io::Result<()> {
    let to = moved_events(path);
    match open_events(OpenOptions::new().read(true), &to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(in_the_way(&to, &error)),
        Ok(_) | Err(_) => {}
    }
    std::fs::rename(path, &to).map_err(|error| in_the_way(&to, &error))
}

fn in_the_way(to: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("it is due for rotation and cannot be moved to {to:?}: {error}"))
}

/// Opens the file to append to it: a regular file that is empty or holds events, and nothing else.
fn open_to_write(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o640);
    open_events(&mut options, path)
}

/// Opens a regular file that is empty or begins as a file of events does.
fn open_events(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let mut file = checked(options.custom_flags(FLAGS).open(path)?)?;
    let mut begin = [0; BEGIN.len()];
    let read = file.read(&mut begin)?;
    match begin[..read] == BEGIN.as_bytes()[..read] {
        true => Ok(file),
        false => Err(io::Error::other("it exists and does not contain events")),
    }
}

/// The content of a file of events.
///
/// # Errors
/// It is no regular file, or larger than any that the server leaves, or cannot be read.
pub(crate) fn content(path: &Path) -> io::Result<(FileId, Vec<u8>)> {
    let file = checked(OpenOptions::new().read(true).custom_flags(FLAGS).open(path)?)?;
    let about = file.metadata()?;
    let mut text = Vec::new();
    file.take(2 * ROTATED_MAX * BYTES_MAX).read_to_end(&mut text)?;
    Ok(((about.dev(), about.ino()), text))
}

fn checked(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// What is wrong with the file in which events are to be kept; none where they can be, or nothing is there yet.
pub(crate) fn fault(path: &Path) -> Option<String> {
    if let Err(error) = check(path) {
        return Some(format!(
            "cannot write events to {path:?} ({FIELD}): {error}; grant access, or choose another file"
        ));
    }
    let error = check_directory(path).err()?;
    Some(format!(
        "the event file {path:?} ({FIELD}) cannot be rotated: its directory is not writable: {error}; grant \
         access, or choose another file"
    ))
}

/// Whether events could be written now. Nothing is made.
fn check(path: &Path) -> io::Result<()> {
    match open_events(OpenOptions::new().read(true).append(true), path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_directory(path),
        opened => opened.map(drop),
    }
}

/// Whether a file could be made beside this one.
fn check_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    takes_files(directory.unwrap_or(Path::new(".")))
}

/// Whether this process may make files in a directory.
pub(crate) fn takes_files(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

fn ends_in_line_feed(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// The events in a text of the file, and how many of its lines are none.
pub(crate) fn read(text: &[u8]) -> (Vec<KeptEvent>, usize) {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (mut events, mut others) = (Vec::new(), 0);
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(event) => events.push(event),
            Err(_) => others += 1,
        }
    }
    (events, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Served {
        Served { drives: BTreeSet::new(), places: Vec::new() }
    }

    fn event(number: usize) -> Event {
        let text = "suspect".repeat(20);
        Event::new(Subject::drive(format!("d{number}")), &EventKind::StartWarning { text })
    }

    fn things(path: &Path) -> Vec<String> {
        let (events, others) = read(&std::fs::read(path).expect("it is there"));
        assert_eq!(others, 0);
        events.into_iter().map(|event| event.thing).collect()
    }

    #[test]
    fn events_outlive_their_keeper_and_a_torn_line_hides_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.events");
        for number in 0..2 {
            let keeper = Keeper::start(path.clone(), nothing(), Troubles::of("a")).expect("a thread");
            keeper.sender().send(event(number)).expect("it listens");
            keeper.end();
        }
        assert_eq!(things(&path), ["drive d0", "array a", "drive d1"]);
        let mut file = open_to_write(&path).expect("it opens");
        file.write_all(b"{\"time\":\"20").expect("it is written");
        let keeper = Keeper::start(path.clone(), nothing(), Troubles::of("a")).expect("a thread");
        keeper.sender().send(event(2)).expect("it listens");
        keeper.end();
        let (events, others) = read(&std::fs::read(&path).expect("it is there"));
        assert_eq!((events.len(), others), (5, 1));
    }

    /// A server that was killed left nothing that said so.
    #[test]
    fn a_server_that_has_not_told_its_end_is_told_by_the_next_one() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.events");
        assert_eq!(unended(&of_the_server_before(&path), "a"), None);
        let of_array = |kind| Event::new(Subject::array("a"), &kind);
        let ended = of_array(EventKind::ServerEnded { error: Some("a drive failed".into()) });
        // As an earlier version wrote it.
        let old = KeptEvent { id: None, subject: None, ..KeptEvent::now(ended.clone()) };
        for ended in [old, KeptEvent::now(ended)] {
            append(&path, &[KeptEvent::now(event(0)), ended].into()).expect("it is written");
            assert_eq!(unended(&of_the_server_before(&path), "a"), None);
        }
        add(&path, of_array(EventKind::ArrayRecovered { volumes_harmed: Vec::new() }))
            .expect("it is written");
        assert_eq!(
            unended(&of_the_server_before(&path), "a"),
            None,
            "what no server writes says nothing of a server"
        );
        append(&path, &[KeptEvent::now(event(1))].into()).expect("it is written");
        let killed = unended(&of_the_server_before(&path), "a").expect("it has not ended");
        assert!(killed.severity == Severity::Warning && killed.thing == "array a", "{killed:?}");
        assert!(killed.what.contains("exited uncleanly (killed") && killed.what.ends_with('Z'), "{killed:?}");
        std::fs::rename(&path, moved_events(&path)).expect("it moves");
        assert!(unended(&of_the_server_before(&path), "a").is_some());
    }

    /// An administrator who asked for the status was not told that events are lost.
    #[test]
    fn events_that_cannot_be_kept_are_a_trouble_until_they_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.events");
        std::fs::create_dir(&path).expect("a directory in its place");
        let troubles = Troubles::of("a");
        let keeper = Keeper::start(path.clone(), nothing(), troubles.clone()).expect("a thread");
        let to = keeper.sender();
        to.send(event(0)).expect("it listens");
        let deadline = 100;
        let mut looks = 0..deadline;
        while !troubles.is_over(FIELD) {
            assert!(looks.next().is_some(), "it is no trouble");
            #[expect(clippy::disallowed_methods, reason = "a test waits for a thread")]
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::remove_dir(&path).expect("it is empty");
        drop(to);
        keeper.end();
        assert!(!troubles.is_over(FIELD) && things(&path) == ["drive d0"]);
    }

    #[test]
    fn a_large_file_is_moved_away_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.events");
        let batch = |from: usize| (from..from + 5000).map(|number| KeptEvent::now(event(number))).collect();
        append(&path, &batch(0)).expect("it is written");
        append(&path, &batch(5000)).expect("it is written");
        append(&path, &batch(10_000)).expect("it is written");
        assert_eq!(things(&path)[0], "drive d10000");
        assert_eq!(things(&moved_events(&path))[0], "drive d5000");
    }

    #[test]
    fn what_cannot_be_written_waits() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("later/a.events");
        let keeper = Keeper::start(path.clone(), nothing(), Troubles::of("a")).expect("a thread");
        let to = keeper.sender();
        to.send(event(0)).expect("it listens");
        std::fs::create_dir(directory.path().join("later")).expect("a directory");
        to.send(event(1)).expect("it listens");
        drop(to);
        keeper.end();
        assert_eq!(things(&path), ["drive d0", "drive d1"]);
    }

    /// A drive that was named as the file of events was moved away, and the next move overwrote it.
    #[test]
    fn what_holds_no_events_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("d0.img");
        let events: VecDeque<KeptEvent> = [KeptEvent::now(event(0))].into();
        for content in [vec![0; 2 << 20], b"[array]\n".to_vec()] {
            std::fs::write(&path, &content).expect("it is written");
            assert!(append(&path, &events).is_err() && fault(&path).is_some());
            assert!(std::fs::read(&path).expect("it is read") == content && !moved_events(&path).exists());
        }
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert!(append(&link, &events).is_err() && super::content(&link).is_err());
        assert!(
            append(directory.path(), &events).is_err() && super::content(Path::new("/dev/zero")).is_err()
        );
        // Nor is it moved over.
        let full = directory.path().join("full");
        let line = json_line(&KeptEvent::now(event(0)));
        std::fs::write(&full, line.repeat(1 + BYTES_MAX as usize / line.len())).expect("it is written");
        std::fs::write(moved_events(&full), "precious").expect("it is written");
        append(&full, &events).expect("it grows on");
        assert_eq!(std::fs::read(moved_events(&full)).expect("it is read"), b"precious");
        assert_eq!(fault(&directory.path().join("new.events")), None);
        assert!(fault(&directory.path().join("none/new.events")).is_some());
    }
}
