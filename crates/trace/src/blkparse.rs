//! What `blkparse` prints by default of a recording of `blktrace`.
//!
//! One line for each event: `major,minor cpu sequence time pid action rwbs`, then for most `sector + count [process]`.
//! Of all actions that a request goes through one is counted. The summary at the end is passed over.

use std::fmt;
use std::str::FromStr;

use tier0_units::SECTOR_BYTES;

use crate::access::{Access, Op, Place};
use crate::error::Misread;
use crate::reader::{CHECK_LINE, CLOCK, Clock, volume_error};
use crate::text::{number, word};
use crate::volumes::Volumes;

/// Which action of a request counts as the access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// `Q`: it enters the queue, as whoever made it asked for it.
    #[default]
    Queue,
    /// `D`: it goes to the drive, merged with others or cut.
    Dispatch,
    /// `C`: the drive has answered.
    Complete,
}

impl Action {
    /// All, from what was asked for to what came of it.
    const ALL: [Action; 3] = [Action::Queue, Action::Dispatch, Action::Complete];

    /// The letter that stands for it in a recording.
    pub fn letter(self) -> char {
        char::from(self.letters()[0])
    }

    fn letters(self) -> &'static [u8] {
        match self {
            Action::Queue => b"Q",
            Action::Dispatch => b"D",
            Action::Complete => b"C",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Queue => "queue",
            Action::Dispatch => "dispatch",
            Action::Complete => "complete",
        })
    }
}

/// A name that no action has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is no action of a request; there are queue, dispatch and complete")]
pub struct UnknownAction {
    /// The name.
    pub name: String,
}

impl FromStr for Action {
    type Err = UnknownAction;

    fn from_str(name: &str) -> Result<Action, UnknownAction> {
        Action::ALL
            .into_iter()
            .find(|action| action.to_string() == name)
            .ok_or_else(|| UnknownAction { name: name.to_owned() })
    }
}

/// What is known of a recording while it is read.
#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    pub(crate) action: Action,
    /// It counts because its beginning has none of an earlier action.
    is_substitute: bool,
    /// An event has come, so a summary may follow.
    has_events: bool,
    in_summary: bool,
}

/// Whether the first line of a file is of this format.
pub(crate) fn resembles(line: &[u8]) -> bool {
    let mut rest = line;
    is_preamble(line)
        || is_device(word(&mut rest))
            && number(word(&mut rest)).is_some()
            && number(word(&mut rest)).is_some()
            && nanos(word(&mut rest)).is_some()
}

const EVENT: &str = "\"major,minor cpu sequence time pid action rwbs sector + count [process]\"";

const LATE: &str = "an action as they are at the beginning of the recording";

impl Blkparse {
    /// A recording of which this action counts.
    pub(crate) fn new(action: Action) -> Blkparse {
        Blkparse { action, ..Blkparse::default() }
    }

    /// A recording that begins like this, of which the earliest action counts that it has: some are made of what a drive was
    /// sent, or of what it answered, alone.
    pub(crate) fn beginning(head: &[u8]) -> Blkparse {
        let mut has = [false; Action::ALL.len()];
        for line in head.split(|&byte| byte == b'\n') {
            let action = action_of(line);
            for (has, known) in has.iter_mut().zip(Action::ALL) {
                *has |= action == known.letters();
            }
        }
        let found = Action::ALL.into_iter().zip(has).find(|(_, has)| *has);
        let action = found.map_or(Action::default(), |(action, _)| action);
        Blkparse { action, is_substitute: action != Action::default(), ..Blkparse::default() }
    }

    /// Whether another action counts than the one that usually does, which the recording has not.
    pub(crate) fn is_substitute(&self) -> bool {
        self.is_substitute
    }

    /// Whether an event is of an action that would have counted, had it come earlier.
    fn came_late(&self, action: &[u8]) -> bool {
        let earlier = Action::ALL.iter().take_while(|known| **known != self.action);
        self.is_substitute && earlier.into_iter().any(|known| known.letters() == action)
    }

    /// The access of a line; none where it is another action, or no event.
    #[inline]
    pub(crate) fn parse(
        &mut self,
        line: &[u8],
        volumes: &mut Volumes,
        clock: &mut Clock,
    ) -> Result<Option<Access>, Misread> {
        let mut rest = line;
        let device = word(&mut rest);
        if !is_device(device) {
            return self.no_event(line);
        }
        self.has_events = true;
        let (cpu, sequence, time, pid) = (word(&mut rest), word(&mut rest), word(&mut rest), word(&mut rest));
        let (action, flags) = (word(&mut rest), word(&mut rest));
        let (Some(_), Some(_), Some(time), Some(_)) =
            (number(cpu), number(sequence), nanos(time), number(pid))
        else {
            return Err(Misread::new(EVENT, line, CHECK_LINE));
        };
        if flags.is_empty() {
            return Err(Misread::new(EVENT, line, CHECK_LINE));
        }
        if action != self.action.letters() {
            return match self.came_late(action) {
                true => Err(Misread::new(
                    LATE,
                    action,
                    "name the action that counts: queue, dispatch or complete",
                )),
                false => Ok(None),
            };
        }
        // Every line of these actions ends with the process, or with the error in the same brackets.
        if !line.trim_ascii_end().ends_with(b"]") {
            return Err(Misread::new(EVENT, line, CHECK_LINE));
        }
        let range = match range(rest) {
            Ok(range) => range,
            Err(Elsewhere::Command) => return Ok(None),
            Err(Elsewhere::Wrong) => return Err(Misread::new(EVENT, line, CHECK_LINE)),
        };
        let Some(op) = op(flags, range.is_some()).ok_or_else(|| {
            let expected = "what is done: R (read), W (write), D (discard), F (flush), Z (zones) or N (none)";
            Misread::new(expected, flags, CHECK_LINE)
        })?
        else {
            return Ok(None);
        };
        let place = match range {
            None => Place::Volume,
            Some((sector, count)) => {
                let bytes = |sectors: u64| sectors.checked_mul(SECTOR_BYTES);
                match (bytes(sector), bytes(count)) {
                    (Some(offset), Some(length)) if offset.checked_add(length).is_some() => {
                        Place::Bytes { offset, length }
                    }
                    _ => return Err(Misread::new("a range that ends within 2^64 bytes", line, CHECK_LINE)),
                }
            }
        };
        let name = |key: &[u8]| key.escape_ascii().to_string();
        let volume = volumes.number(device, name).map_err(|refusal| volume_error(&refusal, device))?;
        let at = clock.since_first(time, 1).ok_or_else(|| Misread::new(CLOCK, line, CHECK_LINE))?;
        Ok(Some(Access { at: Some(at), volume, op, place }))
    }

    /// A line that does not begin with a device.
    #[cold]
    fn no_event(&mut self, line: &[u8]) -> Result<Option<Access>, Misread> {
        self.in_summary |= self.has_events && begins_summary(line);
        match self.in_summary || line.trim_ascii().is_empty() || is_preamble(line) {
            true => Ok(None),
            false => Err(Misread::new(EVENT, line, CHECK_LINE)),
        }
    }
}

/// `major,minor`.
#[inline]
fn is_device(word: &[u8]) -> bool {
    let mut rest = word;
    let (major, minor) = (crate::text::column(&mut rest), crate::text::column(&mut rest));
    rest.is_empty() && major.and_then(number).is_some() && minor.and_then(number).is_some()
}

/// The action of an event; empty where a line is none.
fn action_of(line: &[u8]) -> &[u8] {
    let mut rest = line;
    match is_device(word(&mut rest)) {
        true => {
            (0..4).for_each(|_| _ = word(&mut rest));
            word(&mut rest)
        }
        false => b"",
    }
}

/// What `blkparse` says before the first event, and before those of another recording behind it.
fn is_preamble(line: &[u8]) -> bool {
    line.starts_with(b"Input file ")
}

/// Whether the summary begins here: with a CPU, the total, or a program; where it was interrupted, behind `^C`.
fn begins_summary(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"^C").unwrap_or(line).trim_ascii_end();
    line.starts_with(b"CPU") || line.starts_with(b"Total (") || line.ends_with(b")") || line.ends_with(b"):")
}

/// Seconds with nine digits behind the point, as nanoseconds.
#[inline]
fn nanos(time: &[u8]) -> Option<u64> {
    let (seconds, fraction) = time.split_at_checked(time.len().checked_sub(10)?)?;
    let fraction = number(fraction.strip_prefix(b".")?)?;
    number(seconds)?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Why an event has no range.
enum Elsewhere {
    /// It is a command of the drive's own protocol, whose bytes are printed.
    Command,
    /// It is malformed.
    Wrong,
}

/// Sector and number of sectors, where the event has them.
#[inline]
fn range(mut rest: &[u8]) -> Result<Option<(u64, u64)>, Elsewhere> {
    let first = word(&mut rest);
    if first.starts_with(b"[") {
        return Ok(None);
    }
    if first.starts_with(b"(") {
        return Err(Elsewhere::Command);
    }
    let sector = number(first).ok_or(Elsewhere::Wrong)?;
    match word(&mut rest) {
        b"+" => Ok(Some((sector, number(word(&mut rest)).ok_or(Elsewhere::Wrong)?))),
        other if other.starts_with(b"(") => Err(Elsewhere::Command),
        // A completion without data: the sector and the error.
        other if other.starts_with(b"[") => Ok(None),
        _ => Err(Elsewhere::Wrong),
    }
}

/// What is done; none within where it is nothing of interest, none where the letters are unknown.
///
/// A flush stands before the letter of what it comes with: `FWS` with data is a write, without data it is the flush.
#[inline]
fn op(flags: &[u8], has_data: bool) -> Option<Option<Op>> {
    let (flush, what) = match flags {
        [b'F', what @ ..] => (true, what),
        what => (false, what),
    };
    if flush && !has_data {
        return Some(Some(Op::Flush));
    }
    let op = match what {
        [b'R', ..] => Op::Read,
        [b'W', ..] | [b'Z', b'A', ..] => Op::Write,
        [b'D' | b'E', ..] => Op::Discard,
        // The state of zones changes, or nothing does.
        [b'Z' | b'N', ..] => return Some(None),
        _ => return None,
    };
    Some(has_data.then_some(op))
}

#[cfg(test)]
mod tests {
    use tier0_units::Nanos;

    use super::*;

    const RECORDING: &str = "\
Input file sda.blktrace.0 added
  8,0    3        1     0.000000000   697  A   W 223490 + 8 <- (8,1) 223427
  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]
  8,0    3        3     0.000009941   697  G   W 223490 + 8 [kjournald]
  8,0    3        4     0.000010500   697  P   N [kjournald]
  8,0    1        0     0.000011000     0  m   N cfq697S / alloced
253,12   0        5     1.000001829   802  Q  RA 1024 + 256 [my prog 1]
  8,0    3        6     1.100000000   697  Q FWFSM 8 + 16 [kjournald]
  8,0    3        7     1.200000000   697  Q FWS [kjournald]
  8,0    3        8     1.300000000   697  Q  FN [kjournald]
  8,0    3        9     1.400000000   697  Q  DS 2048 + 2048 [fstrim]
  8,0    3       10     1.500000000   697  Q   R 96 (1a 00 08 00 60 00 ..) [smartd]
  8,0    3       11     1.600000000     0  D   W 223490 + 16 [kworker/3:1H]
  8,0    3       12     1.700000000     0  C   W 223490 + 16 [0]
^CCPU3 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,       12KiB
 Read depth:             0               Write depth:             1

Total (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,       12KiB

Throughput (R/W): 0KiB/s / 33KiB/s
Events (8,0): 12 entries
Skips: 0 forward (0 -   0.0%)
";

    fn read(action: Action) -> (Vec<Access>, Vec<String>) {
        let (mut blkparse, mut volumes, mut clock) =
            (Blkparse::new(action), Volumes::new(), Clock::default());
        let lines = RECORDING.lines();
        let parsed = lines.map(|line| blkparse.parse(line.as_bytes(), &mut volumes, &mut clock).expect(line));
        let accesses = parsed.flatten().collect();
        (accesses, volumes.names().to_vec())
    }

    #[test]
    fn one_action_counts_and_flushes_and_discards_are_told_apart() {
        let (accesses, names) = read(Action::Queue);
        let access = |at, volume, op, place| Access { at: Some(Nanos(at)), volume, op, place };
        let place = |offset, length| Place::Bytes { offset, length };
        assert_eq!(
            accesses,
            [
                access(0, 0, Op::Write, place(223490 * 512, 4096)),
                access(1_000_000_000, 1, Op::Read, place(1024 * 512, 128 << 10)),
                access(1_099_998_171, 0, Op::Write, place(4096, 8192)),
                access(1_199_998_171, 0, Op::Flush, Place::Volume),
                access(1_299_998_171, 0, Op::Flush, Place::Volume),
                access(1_399_998_171, 0, Op::Discard, place(1 << 20, 1 << 20)),
            ]
        );
        assert_eq!(names, ["8,0", "253,12"]);
        for action in [Action::Dispatch, Action::Complete] {
            let (accesses, _) = read(action);
            assert_eq!(accesses, [access(0, 0, Op::Write, place(223490 * 512, 8192))], "{action}");
        }
    }

    /// A recording of dispatched and completed requests alone had no request that counts.
    #[test]
    fn the_earliest_action_that_there_is_counts() {
        for (letters, action) in [
            ("QDC", Action::Queue),
            ("GDC", Action::Dispatch),
            ("CD", Action::Dispatch),
            ("CC", Action::Complete),
            ("GP", Action::Queue),
            ("", Action::Queue),
        ] {
            let line = |action: char| format!("8,0 1 1 0.000000000 7 {action} R 8 + 8 [a]\n");
            let head: String = letters.chars().map(line).collect();
            let blkparse = Blkparse::beginning(head.as_bytes());
            assert_eq!(blkparse.action, action, "{letters}");
            assert_eq!(blkparse.is_substitute(), action != Action::Queue, "{letters}");
        }
        let mut blkparse = Blkparse::beginning(b"8,0 1 1 0.000000000 7 C R 8 + 8 [0]\n");
        let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
        let late = b"8,0 1 1 0.000000000 7 D R 8 + 8 [a]";
        let misread = blkparse.parse(late, &mut volumes, &mut clock).expect_err("it would be left out");
        assert!(misread.expected == LATE && misread.remedy.contains("dispatch"), "{misread:?}");
    }

    #[test]
    fn recordings_may_follow_each_other() {
        let (mut blkparse, mut volumes, mut clock) =
            (Blkparse::new(Action::Queue), Volumes::new(), Clock::default());
        let event = "8,0 1 1 0.000000000 7 Q R 8 + 8 [a]";
        let begin = "Input file sdb.blktrace.0 added";
        let lines = [begin, event, begin, event, "", "CPU0 (8,0):", " Reads Queued: 1", begin, event, ""];
        let mut parse = |line: &str| blkparse.parse(line.as_bytes(), &mut volumes, &mut clock).expect(line);
        assert_eq!(lines.into_iter().filter_map(&mut parse).count(), 3);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let before = "  8,0    3        2     0.000001829   697";
        for (line, expected) in [
            ("junk".to_owned(), "\"major,minor"),
            ("CPU0 (8,0):".to_owned(), "\"major,minor"),
            ("8,0 3".to_owned(), "\"major,minor"),
            ("8,0 3 2 0.0018 697 Q W 8 + 8 [a]".to_owned(), "\"major,minor"),
            (before.to_owned(), "\"major,minor"),
            (format!("{before} Q W"), "\"major,minor"),
            (format!("{before} Q W 8"), "\"major,minor"),
            (format!("{before} Q W 8 + 1"), "\"major,minor"),
            (format!("{before} Q W 8 + 1 [kjour"), "\"major,minor"),
            (format!("{before} Q W x + 1 [a]"), "\"major,minor"),
            (format!("{before} Q X 8 + 1 [a]"), "what is done"),
            (format!("{before} Q R 36028797018963968 + 1 [a]"), "a range"),
            (format!("{before} Q R 36028797018963967 + 1 [a]"), "a range"),
        ] {
            let (mut volumes, mut clock) = (Volumes::new(), Clock::default());
            let misread =
                Blkparse::default().parse(line.as_bytes(), &mut volumes, &mut clock).expect_err(&line);
            assert!(misread.expected.starts_with(expected), "{line}: {misread:?}");
        }
        // Junk between events is no summary.
        let (mut blkparse, mut volumes, mut clock) = (Blkparse::default(), Volumes::new(), Clock::default());
        let event = format!("{before} Q W 8 + 1 [a]");
        blkparse.parse(event.as_bytes(), &mut volumes, &mut clock).expect("an event");
        assert!(blkparse.parse(b"junk", &mut volumes, &mut clock).is_err());
    }

    #[test]
    fn actions_have_names() {
        for action in [Action::Queue, Action::Dispatch, Action::Complete] {
            assert_eq!(action.to_string().parse(), Ok(action));
        }
        assert!("Q".parse::<Action>().is_err());
    }
}
