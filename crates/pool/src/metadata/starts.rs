//! The starts of a pool: who has served it when, as its superblocks remember.
//!
//! Generations alone do not tell two histories apart: a copy of an array that is served elsewhere counts on from the same
//! number. Each start draws a nonce and puts it on every drive before anything is served, with the generation from which
//! on it holds. Two superblocks belong to one history if they name the same start at a generation that both know to be
//! complete.

use tier0_world::World;

use crate::codec::{Reader, Writer};

/// Starts that are remembered, 4 KiB of them. An image that is older than all of them counts as another history.
pub(super) const STARTS_MAX: usize = 256;
/// Bytes of their number.
pub(super) const COUNT_BYTES: usize = 4;
const START_BYTES: usize = 16;
/// Bytes of the starts for which there is always room: a drive that missed more of them is taken for one of a copy.
pub(super) const KEPT_BYTES: usize = 16 * START_BYTES;

/// A start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    /// The first generation that it wrote.
    from: u64,
    /// What no other start has.
    nonce: u64,
}

/// The newest starts of a pool, by the generation from which on they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts(Vec<Start>);

impl Starts {
    /// These starts.
    #[cfg(test)]
    pub(super) fn of(starts: &[(u64, u64)]) -> Starts {
        Starts(starts.iter().map(|(from, nonce)| Start { from: *from, nonce: *nonce }).collect())
    }

    /// Whose the superblock of a generation is; none if that is not remembered.
    pub fn at(&self, generation: u64) -> Option<u64> {
        self.0.iter().rfind(|start| start.from <= generation).map(|start| start.nonce)
    }

    /// Whether a start that is remembered wrote this generation first.
    pub(super) fn begins_with(&self, generation: u64) -> bool {
        self.0.iter().any(|start| start.from == generation)
    }

    /// The first generations of the starts that came after this one, as far as it is remembered.
    pub(super) fn after(&self, nonce: u64) -> impl Iterator<Item = u64> {
        let later = self.0.iter().skip_while(move |start| start.nonce != nonce).skip(1);
        later.map(|start| start.from)
    }

    /// The first generations of all.
    pub(super) fn generations(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|start| start.from)
    }

    /// Whether none is remembered: a program has written them that knows nothing of starts.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The newest one.
    pub fn current(&self) -> Option<u64> {
        self.0.last().map(|start| start.nonce)
    }

    /// One more.
    #[cfg(test)]
    pub(super) fn push(&mut self, from: u64, nonce: u64) {
        self.0.push(Start { from, nonce });
    }

    /// A new one begins with this generation, which is above all others.
    pub(super) fn begin(&mut self, world: &World, from: u64) {
        if self.0.len() == STARTS_MAX {
            self.0.remove(0);
        }
        self.0.push(Start { from, nonce: world.nonce() });
    }

    /// Writes as many as there is room for, the newest ones.
    pub(super) fn encode(&self, writer: &mut Writer, room: usize) {
        let kept = room.saturating_sub(COUNT_BYTES) / START_BYTES;
        let kept = &self.0[self.0.len().saturating_sub(kept)..];
        writer.count(kept.len());
        for start in kept {
            writer.u64(start.from);
            writer.u64(start.nonce);
        }
    }

    /// Bytes that they take where there is room.
    pub(super) fn bytes(&self) -> usize {
        COUNT_BYTES + self.0.len() * START_BYTES
    }

    /// Reads what [`Starts::encode`] wrote.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Option<Starts> {
        let start = |reader: &mut Reader<'_>| Some(Start { from: reader.u64()?, nonce: reader.u64()? });
        let starts = reader.many(START_BYTES, start)?;
        let ascend = starts.is_sorted_by(|one, next| one.from < next.from);
        (starts.len() <= STARTS_MAX && ascend).then_some(Starts(starts))
    }
}

#[cfg(test)]
mod tests {
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;

    #[test]
    fn the_newest_starts_are_kept_and_each_is_another() {
        let runtime = VirtualRuntime::new(7, PayloadWidth::REAL);
        let mut starts = Starts::default();
        assert_eq!((starts.current(), starts.at(9)), (None, None));
        (0..STARTS_MAX as u64 + 4).for_each(|start| starts.begin(runtime.world(), 10 * start + 1));
        assert_eq!(starts.0.len(), STARTS_MAX);
        assert_eq!(starts.at(40), None, "it is forgotten");
        assert_eq!(starts.at(41), Some(starts.0[0].nonce));
        assert_eq!(starts.at(50), starts.at(41));
        assert_eq!(starts.at(u64::MAX), starts.current());
        let nonces: std::collections::BTreeSet<u64> = starts.0.iter().map(|start| start.nonce).collect();
        assert_eq!(nonces.len(), STARTS_MAX);
    }

    #[test]
    fn what_has_no_room_is_left_out_and_the_newest_stay() {
        let starts = Starts::of(&[(1, 11), (5, 12), (9, 13)]);
        for (room, kept) in [(1000, 3), (starts.bytes(), 3), (starts.bytes() - 1, 2), (COUNT_BYTES, 0)] {
            let mut writer = Writer::default();
            starts.encode(&mut writer, room);
            assert!(writer.0.len() <= room);
            let read = Starts::decode(&mut Reader(&writer.0)).expect("valid");
            assert_eq!(read.0, starts.0[3 - kept..]);
        }
    }

    #[test]
    fn starts_that_do_not_ascend_are_damage() {
        let mut writer = Writer::default();
        Starts::of(&[(5, 11), (5, 12)]).encode(&mut writer, 1000);
        assert_eq!(Starts::decode(&mut Reader(&writer.0)), None);
    }
}
