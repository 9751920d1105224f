//! The superblock: who a drive is, whom it belongs to, and who else does; two copies at the front, written one after the
//! other, and one near the end where no chunklet has the place ([`last_copy`]): what overwrites the front of a drive, as
//! partitioning and formatting do, leaves that one.
//!
//! A copy starts at byte 65,536 (copy 0) or 131,072 (copy 1), or where [`last_copy`] says, and has room for 65,536 bytes,
//! little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–7 | `tier0sb` and a zero byte |
//! | 8–11 | format version, 3; 2 is read too, 1 is that of pre-releases |
//! | 12–15 | length of the body, bytes |
//! | 16–23 | generation; the valid copy with the highest counts, on a drive and among drives |
//! | 24–39 | this member's identity (UUID) |
//! | 40–47 | CRC-64/NVME of bytes 0–39 and the body |
//! | 48– | body |
//!
//! The body of version 3 begins with the feature flags: compatible, read-only, incompatible (8 bytes each)
//!
//! Then, as in version 2: identity of the pool (UUID, 16 bytes); name of the array and name of the pool (length in 2 bytes, UTF-8);
//! the metadata area (sectors of the journal, sectors of a checkpoint slot, first sector of the data; 8 bytes each);
//! how many members carry the metadata (4 bytes) and their places (4 bytes each); how many members there are (4 bytes),
//! and of each its identity (16), size in sectors (8), state (1: 0 active, 1 lost, 2 removed), class (1: 0 flash,
//! 1 disk, 2 memory) and name (length in 2 bytes, UTF-8).
//!
//! Then the last generation that was complete (8 bytes); by member the generation in which it was recorded lost, else 0
//! (8 bytes), and the generation up to which what it did by itself was given up, else 0 (8 bytes); and the paths of
//! members, as many as there is room for: how many (4), of each the place (4) and the text.
//!
//! With the compatible feature 0 the newest starts of the pool follow ([`Starts`]): how many (4), of each the first
//! generation that it wrote (8) and its nonce (8), by ascending generation.
//!
//! A new superblock is first written where the newest one of this drive is not, so a torn write leaves the newest, and
//! then over that one too. Nothing is acknowledged on it before both are stable, so one copy that cannot be read, or is
//! damaged, hides nothing that matters. The format is read from untrusted bytes: every length is checked before it is
//! used.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join;
use tier0_drive::DriveHandle;
use tier0_drive::guard::Guard;
use tier0_units::{Lba, SECTOR_BYTES, SectorCount};
use tier0_world::{BufMut, IoError, PayloadWidth};
use uuid::Uuid;

use super::starts::{self, Starts};
use crate::checkpoint::{
    PATHS_COUNT_BYTES, decode_area, decode_member, decode_paths, encode_area, encode_member, encode_paths,
};
use crate::codec::{Reader, Writer, crc64};
use crate::features::{Features, GIVEN_UP, GROUPS, IN_SUPERBLOCKS, LEFT, STARTS};
use crate::state::{Member, MemberState};
use crate::{MetadataArea, PoolError};

/// The newest format this code knows, and the one it writes.
pub const VERSION: u32 = 3;
/// The format without feature flags, which is read too.
const WITHOUT_FEATURES: u32 = 2;
/// The format of pre-releases, which is not read.
const PRE_RELEASE: u32 = 1;

const MAGIC: [u8; 8] = *b"tier0sb\0";
const HEADER_BYTES: usize = 48;
const CHECKSUM_AT: usize = 40;
const MEMBER_BYTES_MIN: usize = 28;
/// Bytes of a member that left: its place, and when; and of how many there are.
const LEFT_BYTES: usize = 12;
const LEFT_COUNT_BYTES: usize = 4;
const GIVEN_UP_BYTES: usize = 32;
const GIVEN_UP_COUNT_BYTES: usize = 4;
/// Generations are below this: at a thousand a second it is reached after 140 million years.
const GENERATIONS_END: u64 = 1 << 62;
const COPY_BYTES: usize = 64 << 10;
/// A copy is read and written in multiples of this: no drive has larger blocks.
const BLOCK_BYTES: usize = 4096;
/// Copies at the front.
const COPIES: u64 = 2;
/// The number of the copy near the end.
const LAST: u64 = 2;
const FIRST_COPY_BYTE: u64 = 64 << 10;

/// The first sector of the first copy.
pub(crate) const START_SECTORS: u64 = FIRST_COPY_BYTE / SECTOR_BYTES;
/// The room of a copy.
pub(crate) const COPY_SECTORS: u64 = COPY_BYTES as u64 / SECTOR_BYTES;
/// The first sector behind both copies.
pub const END_SECTORS: u64 = (FIRST_COPY_BYTE + COPIES * COPY_BYTES as u64) / SECTOR_BYTES;

/// Where the last copy lies on a drive of so many sectors, if there is room for it: 128 KiB before its end, or a bit earlier,
/// because partition tables have copies of theirs at the end.
pub(super) fn last_copy(sectors: SectorCount) -> Option<Lba> {
    let room = COPY_BYTES as u64 / SECTOR_BYTES;
    let at = sectors.0.checked_sub(2 * room)? / room * room;
    (at >= END_SECTORS).then_some(Lba(at))
}

/// A pool as the superblocks of its drives know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLabel {
    /// The pool's identity.
    pub pool: Uuid,
    /// The array's name.
    pub array: String,
    /// The pool's name.
    pub name: String,
    /// Where the metadata lies on every drive.
    pub area: MetadataArea,
    /// The places of the members that carry journal and checkpoints.
    pub carriers: Vec<u32>,
    /// All members there ever were, by place.
    pub members: Vec<Member>,
    /// What the superblock has beyond its version.
    pub features: Features,
    /// The last generation known to be complete on all members that it calls active; 0 if none is known.
    pub settled: u64,
    /// By place: the generation in which a member was recorded lost, or removed if it was not lost before, where that is
    /// known.
    pub lost_in: BTreeMap<u32, u64>,
    /// By identity: drives that went on by themselves, which the administrator gave up. One may have joined there and be no
    /// member here.
    pub given_up: BTreeMap<Uuid, GivenUp>,
    /// Who has served the pool when.
    pub starts: Starts,
}

/// What was given up of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Its history up to this generation.
    pub up_to: u64,
    /// The start that served it then, where that is known: under another one, as of an older image that was served again, it
    /// is another history.
    pub start: Option<u64>,
}

impl GivenUp {
    /// All that a drive has.
    pub(super) fn of(superblock: &Superblock) -> GivenUp {
        GivenUp { up_to: superblock.generation, start: superblock.label.starts.current() }
    }

    /// Whether a drive has no more than that.
    pub(super) fn covers(&self, own: &Superblock) -> bool {
        own.generation <= self.up_to
            && self.start.is_none_or(|start| own.label.starts.current() == Some(start))
    }
}

/// A superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The newest counts. Every change of the label raises it.
    pub generation: u64,
    /// Which member this drive is.
    pub member: Uuid,
    /// The pool.
    pub label: PoolLabel,
}

/// What one copy's place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// A valid superblock.
    Valid(Box<Superblock>),
    /// A format this code does not know, or does not know any more.
    Other(u32),
    /// Incompatible features that this code does not know, a bit each.
    Unknown(u64),
    /// The magic is there, the rest is damaged.
    Damaged,
    /// Something else.
    None,
}

/// A drive's superblock, and which of its copies is the newest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The superblock.
    pub superblock: Superblock,
    /// Its copy, 0 to 2.
    pub copy: u64,
    /// Whether another copy is not there, or older: it is to be written again.
    pub is_alone: bool,
}

impl Newest {
    /// The copy at the front that is written first the next time: not the newest one.
    pub fn next_copy(&self) -> u64 {
        u64::from(self.copy == 0)
    }

    /// Whether the front of the drive was overwritten: only the last copy is there. What else was overwritten is not known.
    pub fn is_front_lost(&self) -> bool {
        self.copy == LAST && self.is_alone
    }
}

/// Whether a label fits a copy; paths and starts that do not are left out.
pub fn fits(label: &PoolLabel) -> bool {
    bytes_needed(label) <= COPY_BYTES
}

/// Whether a label that gets a member fits a copy with the starts by which the pool knows its drives from those of a copy.
pub(super) fn fits_with_starts(label: &PoolLabel) -> bool {
    bytes_needed(label) + starts::KEPT_BYTES <= COPY_BYTES
}

fn bytes_needed(label: &PoolLabel) -> usize {
    HEADER_BYTES + encode_fixed(label, 0).0.len() + PATHS_COUNT_BYTES + starts::COUNT_BYTES
}

fn encode_label(label: &PoolLabel) -> Vec<u8> {
    let has_starts = label.features.compatible & STARTS != 0;
    let for_starts = if has_starts { label.starts.bytes() } else { 0 };
    let room = |writer: &Writer| COPY_BYTES.saturating_sub(HEADER_BYTES + writer.0.len());
    let fixed = encode_fixed(label, 0);
    let room_behind = room(&fixed).saturating_sub(for_starts + PATHS_COUNT_BYTES);
    let given_up = encode_given_up(label, room_behind);
    let left = encode_left(label, room_behind - given_up.len());
    let has = |feature: u64, part: &[u8]| if part.is_empty() { 0 } else { feature };
    let mut writer = match has(LEFT, &left) | has(GIVEN_UP, &given_up) {
        0 => fixed,
        features => encode_fixed(label, features),
    };
    let behind = left.len() + given_up.len();
    let for_paths = room(&writer).saturating_sub(for_starts + behind);
    encode_paths(&mut writer, &label.members, for_paths);
    if has_starts {
        let room = room(&writer) - behind;
        label.starts.encode(&mut writer, room);
    }
    writer.0.extend_from_slice(&left);
    writer.0.extend_from_slice(&given_up);
    writer.0
}

/// When removed members left, as far as that is known, the last ones, as many as fit `room` bytes; nothing where there are
/// none.
fn encode_left(label: &PoolLabel, room: usize) -> Vec<u8> {
    let is_removed = |place: u32| label.members[place as usize].state == MemberState::Removed;
    let known = label.lost_in.iter().filter(|(place, _)| is_removed(**place));
    let mut left: Vec<(u64, u32)> = known.map(|(place, generation)| (*generation, *place)).collect();
    left.sort_unstable();
    let kept = left.len().min(room.saturating_sub(LEFT_COUNT_BYTES) / LEFT_BYTES);
    let mut writer = Writer::default();
    if kept > 0 {
        writer.count(kept);
        for (generation, place) in &left[left.len() - kept..] {
            writer.u32(*place);
            writer.u64(*generation);
        }
    }
    writer.0
}

/// Reads what [`encode_left`] wrote.
fn decode_left(reader: &mut Reader<'_>, label: &mut PoolLabel) -> Option<()> {
    for (place, generation) in reader.many(LEFT_BYTES, |reader| Some((reader.u32()?, reader.u64()?)))? {
        let is_removed = label.members.get(place as usize)?.state == MemberState::Removed;
        if !is_removed || generation == 0 || label.lost_in.insert(place, generation).is_some() {
            return None;
        }
    }
    Some(())
}

/// What was given up of drives that are no members, or under a start that is known: the last generations, as many as fit
/// `room` bytes; nothing where there is none.
fn encode_given_up(label: &PoolLabel, room: usize) -> Vec<u8> {
    let is_member = |id: &Uuid| label.members.iter().any(|member| member.id == *id);
    let told = label.given_up.iter().filter(|(id, given_up)| given_up.start.is_some() || !is_member(id));
    let mut told: Vec<(u64, Uuid, u64)> =
        told.map(|(id, given_up)| (given_up.up_to, *id, given_up.start.unwrap_or(0))).collect();
    told.sort_unstable();
    let kept = told.len().min(room.saturating_sub(GIVEN_UP_COUNT_BYTES) / GIVEN_UP_BYTES);
    let mut writer = Writer::default();
    if kept > 0 {
        writer.count(kept);
        for (up_to, id, start) in &told[told.len() - kept..] {
            writer.uuid(*id);
            writer.u64(*up_to);
            writer.u64(*start);
        }
    }
    writer.0
}

/// Reads what [`encode_given_up`] wrote.
fn decode_given_up(reader: &mut Reader<'_>, label: &mut PoolLabel) -> Option<()> {
    let read = |reader: &mut Reader<'_>| Some((reader.uuid()?, reader.u64()?, reader.u64()?));
    let mut seen = BTreeSet::new();
    for (id, up_to, start) in reader.many(GIVEN_UP_BYTES, read)? {
        let start = (start != 0).then_some(start);
        // Of a member the same was said before.
        let before = label.given_up.insert(id, GivenUp { up_to, start });
        let is_member = label.members.iter().any(|member| member.id == id);
        let is_same = before.map(|before| before.up_to) == is_member.then_some(up_to);
        if up_to == 0 || !is_same || !seen.insert(id) || (is_member && start.is_none()) {
            return None;
        }
    }
    Some(())
}

/// All but paths, starts and what lies behind them, whose features are `behind`.
fn encode_fixed(label: &PoolLabel, behind: u64) -> Writer {
    let mut writer = Writer::default();
    let compatible = label.features.compatible & !(LEFT | GIVEN_UP) | behind;
    Features { compatible, ..label.features }.encode(&mut writer);
    writer.uuid(label.pool);
    writer.text(&label.array);
    writer.text(&label.name);
    encode_area(&mut writer, &label.area);
    writer.count(label.carriers.len());
    label.carriers.iter().for_each(|place| writer.u32(*place));
    writer.count(label.members.len());
    label.members.iter().for_each(|member| encode_member(&mut writer, member));
    writer.u64(label.settled);
    for (place, member) in (0u32..).zip(&label.members) {
        let known = label.lost_in.get(&place).filter(|_| member.state != MemberState::Removed);
        writer.u64(known.copied().unwrap_or(0));
        writer.u64(label.given_up.get(&member.id).map_or(0, |given_up| given_up.up_to));
    }
    if label.features.incompatible & GROUPS != 0 {
        label.members.iter().for_each(|member| writer.u32(member.group));
    }
    writer
}

/// Whether all generations that a label names can be.
fn has_sound_generations(label: &PoolLabel) -> bool {
    let given_up = label.given_up.values().map(|given_up| given_up.up_to);
    let left = given_up.chain(label.lost_in.values().copied());
    let all = left.chain(label.starts.generations()).chain([label.settled]);
    all.into_iter().all(|generation| generation < GENERATIONS_END)
}

/// Reads a body whose checksum is right; the bits of unknown features instead.
fn decode_label(version: u32, bytes: &[u8]) -> Option<Result<PoolLabel, u64>> {
    let mut reader = Reader(bytes);
    let features = match version {
        WITHOUT_FEATURES => Features::default(),
        _ => Features::decode(&mut reader)?,
    };
    let unknown = features.beyond(IN_SUPERBLOCKS);
    if unknown.incompatible != 0 {
        return Some(Err(unknown.incompatible));
    }
    let mut label = PoolLabel {
        pool: reader.uuid()?,
        array: reader.text()?,
        name: reader.text()?,
        area: decode_area(&mut reader)?,
        carriers: reader.many(4, Reader::u32)?,
        members: reader.many(MEMBER_BYTES_MIN, decode_member)?,
        features,
        settled: 0,
        lost_in: BTreeMap::new(),
        given_up: BTreeMap::new(),
        starts: Starts::default(),
    };
    if version != WITHOUT_FEATURES {
        label.settled = reader.u64()?;
        for (place, member) in (0u32..).zip(&label.members) {
            match reader.u64()? {
                0 => {}
                generation if member.state != MemberState::Removed => {
                    label.lost_in.insert(place, generation);
                }
                _ => return None,
            }
            match reader.u64()? {
                0 => {}
                up_to => _ = label.given_up.insert(member.id, GivenUp { up_to, start: None }),
            }
        }
        if features.incompatible & GROUPS != 0 {
            for member in &mut label.members {
                member.group = reader.u32()?;
            }
        }
        decode_paths(&mut reader, &mut label.members)?;
    }
    if features.compatible & STARTS != 0 {
        label.starts = Starts::decode(&mut reader)?;
    }
    if features.compatible & LEFT != 0 {
        decode_left(&mut reader, &mut label)?;
    }
    if features.compatible & GIVEN_UP != 0 {
        decode_given_up(&mut reader, &mut label)?;
    }
    if !has_sound_generations(&label) {
        return None;
    }
    let known = |place: &u32| (*place as usize) < label.members.len();
    let is_whole = reader.is_empty() || features.has_rest_beyond(IN_SUPERBLOCKS);
    (is_whole && label.area.is_sound() && label.carriers.iter().all(known)).then_some(Ok(label))
}

/// The bytes of a copy, a multiple of 4096. The label must fit.
pub fn encode(superblock: &Superblock) -> Vec<u8> {
    let body = encode_label(&superblock.label);
    let mut writer = Writer::default();
    writer.0.extend_from_slice(&MAGIC);
    writer.u32(VERSION);
    writer.count(body.len());
    writer.u64(superblock.generation);
    writer.uuid(superblock.member);
    let checksum = crc64(&[&writer.0, &body]);
    writer.u64(checksum);
    writer.0.extend_from_slice(&body);
    writer.0.resize(writer.0.len().next_multiple_of(BLOCK_BYTES), 0);
    assert!(writer.0.len() <= COPY_BYTES, "labels are checked to fit a superblock");
    writer.0
}

/// Reads a copy from arbitrary bytes.
pub fn decode(bytes: &[u8]) -> Copy {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Copy::None };
    if header[..8] != MAGIC {
        return Copy::None;
    }
    let mut reader = Reader(&header[8..]);
    let version = reader.u32().unwrap_or(0);
    if version > VERSION || version == PRE_RELEASE {
        return Copy::Other(version);
    }
    match decode_known(version, reader, &header[..CHECKSUM_AT], rest) {
        Some(Ok(superblock)) => Copy::Valid(Box::new(superblock)),
        Some(Err(bits)) => Copy::Unknown(bits),
        None => Copy::Damaged,
    }
}

fn decode_known(
    version: u32,
    mut reader: Reader<'_>,
    covered: &[u8],
    rest: &[u8],
) -> Option<Result<Superblock, u64>> {
    let body = rest.get(..reader.u32()? as usize)?;
    let (generation, member) = (reader.u64()?, reader.uuid()?);
    let is_sound = crc64(&[covered, body]) == reader.u64()? && generation < GENERATIONS_END;
    if !is_sound || version < WITHOUT_FEATURES {
        return None;
    }
    Some(decode_label(version, body)?.map(|label| Superblock { generation, member, label }))
}

/// Reads a drive's superblock: none if it never had one. A copy that cannot be read for a bad sector is none; what else
/// a drive fails with, it fails with.
pub async fn read(drive: &DriveHandle) -> Result<Option<Newest>, PoolError> {
    let name = || drive.info().name.clone();
    if drive.info().sectors.0 < END_SECTORS {
        return Ok(None);
    }
    let mut newest: Option<Newest> = None;
    let (mut damaged, mut unreadable) = (false, None);
    for copy in 0..COPIES {
        let bytes = match read_copy(drive, copy_lba(copy)).await {
            Ok(bytes) => bytes,
            Err(IoError::Medium) => {
                unreadable = Some(PoolError::Drive { drive: name(), source: IoError::Medium });
                continue;
            }
            Err(source) => return Err(PoolError::Drive { drive: name(), source }),
        };
        match decode(&bytes) {
            Copy::Valid(found) => newest = Some(newer(newest, *found, copy)),
            Copy::Other(PRE_RELEASE) => return Err(PoolError::PreRelease { drive: name() }),
            Copy::Other(found) => {
                return Err(PoolError::TooNew { drive: name(), found, known: VERSION });
            }
            Copy::Unknown(bits) => {
                return Err(PoolError::Features {
                    what: format!("the superblock of drive {:?}", name()),
                    bits,
                });
            }
            Copy::Damaged => damaged = true,
            Copy::None => {}
        }
    }
    newest = with_last_copy(drive, newest).await?;
    match (newest, unreadable) {
        (Some(newest), _) => Ok(Some(newest)),
        (None, Some(error)) => Err(error),
        (None, None) if damaged => Err(PoolError::Damaged { drive: name() }),
        (None, None) => Ok(None),
    }
}

/// The newer of the copies at the front and the last one. Beside those at the front it counts only if it is of the same member:
/// its place may be a chunklet's, which holds anything.
async fn with_last_copy(drive: &DriveHandle, front: Option<Newest>) -> Result<Option<Newest>, PoolError> {
    let Some(at) = last_copy(drive.info().sectors) else { return Ok(front) };
    let bytes = match read_copy(drive, at).await {
        Ok(bytes) => bytes,
        Err(IoError::Medium) => return Ok(front),
        Err(source) => return Err(PoolError::Drive { drive: drive.info().name.clone(), source }),
    };
    let Copy::Valid(last) = decode(&bytes) else { return Ok(front) };
    let is_same = |front: &Newest| {
        front.superblock.member == last.member && front.superblock.label.pool == last.label.pool
    };
    match front {
        Some(front) if !is_same(&front) => Ok(Some(front)),
        Some(front) if front.superblock.generation >= last.generation => Ok(Some(front)),
        Some(_) => Ok(Some(Newest { superblock: *last, copy: LAST, is_alone: false })),
        None => Ok(Some(Newest { superblock: *last, copy: LAST, is_alone: true })),
    }
}

/// Reads a copy as far as its header says that it goes: a bad sector behind that does no harm.
async fn read_copy(drive: &DriveHandle, start: Lba) -> Result<Vec<u8>, IoError> {
    let read = async |offset: usize, bytes: usize| {
        let buf = BufMut::new((bytes as u64 / SECTOR_BYTES) as u32, PayloadWidth::REAL);
        let at = Lba(start.0 + offset as u64 / SECTOR_BYTES);
        let (result, buf) = drive.read(at, buf).await;
        result.map(|()| buf.as_slice().to_vec())
    };
    let mut bytes = read(0, BLOCK_BYTES).await?;
    let end = encoded_bytes(&bytes);
    if end > BLOCK_BYTES {
        bytes.extend(read(BLOCK_BYTES, end - BLOCK_BYTES).await?);
    }
    Ok(bytes)
}

/// Bytes of a copy that begins with these, in whole blocks.
fn encoded_bytes(front: &[u8]) -> usize {
    let length = front.get(12..16).filter(|_| front.starts_with(&MAGIC));
    let length = length.map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
    (HEADER_BYTES + length as usize).min(COPY_BYTES).next_multiple_of(BLOCK_BYTES)
}

/// The newer of what is known and what a copy holds.
fn newer(known: Option<Newest>, found: Superblock, copy: u64) -> Newest {
    match known {
        Some(known) if known.superblock.generation >= found.generation => {
            Newest { is_alone: known.superblock != found, ..known }
        }
        _ => Newest { superblock: found, copy, is_alone: true },
    }
}

/// Writes both copies at the front, the one that is not the newest first, and with the second one the last copy, if that has
/// a place; each step is stable before the next thing happens.
pub(super) async fn write(
    drive: &DriveHandle,
    superblock: &Superblock,
    first: u64,
    last: Option<Lba>,
) -> Result<(), IoError> {
    write_at(drive, superblock, copy_lba(first)).await?;
    let second = write_at(drive, superblock, copy_lba(1 - first));
    let last = async {
        if let Some(at) = last {
            write_last_at(drive, superblock, at).await;
        }
    };
    join(second, last).await.0
}

/// Writes the last copy as far as the drive takes it: there may be no space for it under a thin device or a sparse file, and
/// nothing waits for that. Then an older one is there, or none.
async fn write_last_at(drive: &DriveHandle, superblock: &Superblock, at: Lba) {
    let bare = drive.guard().map_or(drive, Guard::bare);
    if let Err(error) = write_at(bare, superblock, at).await {
        tracing::debug!(drive = bare.info().name, %error, "the last copy of the superblock is not written");
    }
}

/// Writes a copy, and makes it stable.
async fn write_at(drive: &DriveHandle, superblock: &Superblock, at: Lba) -> Result<(), IoError> {
    let buf = BufMut::copy_from(&encode(superblock), PayloadWidth::REAL).freeze();
    drive.write(at, buf, true).await?;
    drive.flush().await
}

/// Writes copy 0 or 1, and makes it stable.
pub(super) async fn write_copy(
    drive: &DriveHandle,
    superblock: &Superblock,
    copy: u64,
) -> Result<(), IoError> {
    write_at(drive, superblock, copy_lba(copy)).await
}

/// Writes the last copy, and makes it stable; where it has no place, none that may be there is left.
pub(super) async fn write_last(
    drive: &DriveHandle,
    superblock: &Superblock,
    last: Option<Lba>,
) -> Result<(), IoError> {
    match last {
        Some(at) => write_last_at(drive, superblock, at).await,
        None => erase_last(drive).await?,
    }
    Ok(())
}

/// Takes the beginnings of all copies away: the drive is in no pool any more. What else it holds stays.
pub async fn erase(drive: &DriveHandle) -> Result<(), IoError> {
    // First the one that counts least: a crash in between leaves a drive that is still what it was.
    erase_last(drive).await?;
    for copy in 0..COPIES {
        erase_at(drive, copy_lba(copy)).await?;
    }
    drive.flush().await
}

/// Takes the last copy away, if there is one.
async fn erase_last(drive: &DriveHandle) -> Result<(), IoError> {
    let Some(at) = last_copy(drive.info().sectors) else { return Ok(()) };
    // What cannot be read is no superblock.
    let is_there = read_copy(drive, at).await.is_ok_and(|bytes| bytes.starts_with(&MAGIC));
    if is_there { erase_at(drive, at).await } else { Ok(()) }
}

async fn erase_at(drive: &DriveHandle, at: Lba) -> Result<(), IoError> {
    let sectors = (BLOCK_BYTES as u64 / SECTOR_BYTES) as u32;
    let zeros = BufMut::zeroed(sectors, PayloadWidth::REAL).freeze();
    drive.write(at, zeros, true).await
}

fn copy_lba(copy: u64) -> Lba {
    Lba((FIRST_COPY_BYTE + copy * COPY_BYTES as u64) / SECTOR_BYTES)
}
