//! The parameters of a modelled disk: mechanism, layout, controller and buffer.
//!
//! They are plain data. They come from a datasheet ([`super::Datasheet`]) or from the files of a measured drive
//! ([`super::disksim`]); the vocabulary of the controller and the buffer follows the DiskSim 4.0 reference manual
//! (Bucy, Schindler, Schlosser, Ganger; CMU-PDL-08-101, section 3.4), whose measured drives the model is judged on.
//!
//! What it does not do: it checks nothing; [`super::Geometry::new`] does.

use tier0_units::{Nanos, SectorCount};

use super::SeekCurve;

/// Everything that the model knows of one kind of disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskParameters {
    /// A name for messages.
    pub name: String,
    /// Spindle and arm.
    pub mechanism: MechanismParameters,
    /// Where the logical blocks lie.
    pub layout: LayoutParameters,
    /// Command processing and queueing.
    pub controller: ControllerParameters,
    /// The buffer and what it does on its own.
    pub buffer: BufferParameters,
}

/// Spindle and arm.
#[derive(Clone, Debug, PartialEq)]
pub struct MechanismParameters {
    /// Revolutions per minute, 60 to 100,000.
    pub rpm: f64,
    /// Seek times before a read, by distance in cylinders.
    pub seek_read: SeekCurve,
    /// Seek times before a write, settling included.
    pub seek_write: SeekCurve,
    /// Change to another head before a read.
    pub head_switch_read: Nanos,
    /// Change to another head before a write, settling included.
    pub head_switch_write: Nanos,
    /// How rotation is accounted for.
    pub rotation: Rotation,
}

/// How rotation is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The platter's true angle at every instant.
    Exact,
    /// Half a revolution before each transfer.
    Average,
}

/// Where the logical blocks lie on the platters.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutParameters {
    /// Recording surfaces, 1 to 255, one head each.
    pub surfaces: u32,
    /// Cylinders, 1 to 16 million.
    pub cylinders: u32,
    /// Order of a cylinder's tracks.
    pub track_order: TrackOrder,
    /// Where spare sectors lie and what defects do.
    pub sparing: Sparing,
    /// The zones, from the first logical block on, in ascending cylinders.
    pub zones: Vec<ZoneParameters>,
    /// Sectors that the drive reports, where it is less than its zones hold.
    pub capacity: Option<SectorCount>,
}

/// Order in which a cylinder's tracks are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackOrder {
    /// Every cylinder from the first surface to the last.
    Ascending,
    /// Alternating, the first cylinder of each zone ascending, so that a change of cylinder keeps the head.
    SerpentineByZone,
    /// Alternating over the disk: even cylinders ascend, odd ones descend.
    SerpentineByDisk,
}

/// Where spare sectors lie. `slips` and `remaps` of a zone count physical sectors from the zone's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// No spares, or spares at the end of each zone; a slipped sector shifts the rest of its zone.
    Zone,
    /// `spares` sectors at the end of every track.
    Track,
    /// `spares` sectors in every group of cylinders, at its end or its front.
    CylinderGroup {
        /// Cylinders of a group, at least 1.
        cylinders: u32,
        /// Whether the spares come first.
        at_front: bool,
        /// Whether slipped sectors shift the rest of the zone instead of using the group's spares.
        slip_to_end: bool,
    },
}

/// A band of cylinders with one number of sectors per track.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneParameters {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector, in revolutions.
    pub first_sector_rev: f64,
    /// Angle by which a track starts later than the one before it, in revolutions.
    pub track_skew_rev: f64,
    /// The same where the next track lies on the next cylinder.
    pub cylinder_skew_rev: f64,
    /// Sectors at the start that hold no logical blocks.
    pub unused_sectors: u64,
    /// Spare sectors, per unit of [`Sparing`].
    pub spares: u64,
    /// Skipped sectors, ascending.
    pub slips: Vec<u64>,
    /// Defective sectors and where their content lies, ascending by the first.
    pub remaps: Vec<(u64, u64)>,
}

/// Command processing, the way to the host, and queueing.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerParameters {
    /// Commands that the drive accepts at a time, at least 1; more wait at the host's end.
    pub queue_depth: u32,
    /// Order in which queued commands reach the mechanism.
    pub scheduling: Scheduling,
    /// A command that waited longer than this goes first, whatever its position.
    pub starvation_limit: Nanos,
    /// Processing times.
    pub overheads: Overheads,
    /// Time to move one sector of 512 bytes between buffer and host.
    pub sector_transfer: Nanos,
    /// Whether the drive stays connected from command to completion, so that it never pays to reconnect.
    pub never_disconnect: bool,
    /// Whether a read stays connected between its first and last sector.
    pub hold_bus_for_read: bool,
    /// When the arm may leave for the next command.
    pub preseek: Preseek,
    /// An additional disconnection that some drives insert into writes.
    pub extra_write_disconnect: Option<ExtraWriteDisconnect>,
    /// Least time between command processing and media access of a write that does not continue the one before.
    pub minimum_write_seek: Nanos,
}

/// Order in which queued commands reach the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// In order of arrival.
    Fifo,
    /// Shortest positioning time (seek and rotation) first: Seltzer, Chen, Ousterhout, "Disk Scheduling
    /// Revisited", USENIX 1990; Jacobson and Wilkes, HPL-CSL-91-7.
    ShortestPositioning,
}

/// When the arm may leave for the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preseek {
    /// Once the host has got the completion.
    AfterCompletion,
    /// Once the last sector is in the host.
    AfterTransfer,
    /// Once the last sector is in the buffer or on the medium.
    AfterMedia,
}

/// Processing times of commands. "After read/write" refers to the command completed before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Before anything else, of every command.
    pub per_request: Nanos,
    /// Read from the buffer.
    pub read_hit: AfterCommand,
    /// Read from the medium.
    pub read_miss: AfterCommand,
    /// Write that completes in the buffer.
    pub write_hit: AfterCommand,
    /// Write that completes on the medium.
    pub write_miss: AfterCommand,
    /// End of a read.
    pub read_completion: Nanos,
    /// End of a write.
    pub write_completion: Nanos,
    /// Before each stretch of data that crosses the bus.
    pub data_preparation: Nanos,
    /// First reconnection of a command.
    pub first_reselect: Nanos,
    /// Further reconnections.
    pub other_reselect: Nanos,
    /// Disconnection within a read.
    pub read_disconnect: AfterCommand,
    /// Disconnection within a write.
    pub write_disconnect: Nanos,
}

impl Overheads {
    pub(crate) fn all(&self) -> [Nanos; 17] {
        let o = self;
        let of = |pair: AfterCommand| [pair.read, pair.write];
        let ([a, b], [c, d], [e, f], [g, h]) =
            (of(o.read_hit), of(o.read_miss), of(o.write_hit), of(o.write_miss));
        let [i, j] = of(o.read_disconnect);
        let (k, l, m, n) = (o.per_request, o.read_completion, o.write_completion, o.data_preparation);
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o.first_reselect, o.other_reselect, o.write_disconnect]
    }
}

/// A time that depends on the command before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AfterCommand {
    /// After a read.
    pub read: Nanos,
    /// After a write.
    pub write: Nanos,
}

impl AfterCommand {
    /// The same time after both.
    pub const fn both(time: Nanos) -> AfterCommand {
        AfterCommand { read: time, write: time }
    }

    pub(crate) fn after(self, write: bool) -> u64 {
        if write { self.write.0 } else { self.read.0 }
    }
}

/// A disconnection between a write's command and its data, seen on some SCSI drives where a write follows a write
/// that it does not continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraWriteDisconnect {
    /// Command processing, in place of the write's overhead.
    pub command: Nanos,
    /// Disconnection, in parallel with the seek.
    pub disconnect: Nanos,
    /// From disconnection to the attempt to reconnect.
    pub until_reconnect: Nanos,
    /// The disconnection after the data.
    pub second_disconnect: Nanos,
    /// From the end of command processing to the start of the seek.
    pub seek_delay: Nanos,
}

/// The buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferParameters {
    /// Segments, 1 to 1,024, each holding one stretch of consecutive sectors.
    pub segments: u32,
    /// Sectors of a segment, at least 1.
    pub segment_sectors: u64,
    /// Segments that may hold unwritten data at a time, 1 to `segments`.
    pub write_segments: u32,
    /// Whether the first segment serves all writes and no read.
    pub dedicated_write_segment: bool,
    /// Whether reads may be served from data left in the buffer.
    pub caching: bool,
    /// How far the drive reads on after a read.
    pub read_ahead: ReadAhead,
    /// Read-ahead that the next command cannot interrupt.
    pub read_ahead_min: u64,
    /// Most that is read ahead; 0 leaves it to the size of the segment.
    pub read_ahead_max: u64,
    /// What becomes of the data that were asked for.
    pub requested_data: RequestedData,
    /// Whether a read served from the buffer resumes the read-ahead of an idle mechanism.
    pub read_ahead_on_hit: bool,
    /// Whether the sectors before the requested ones are kept where they pass under the head on the way.
    pub read_free_sectors: bool,
    /// Whether a read may start in the middle of the requested sectors and take the first ones last.
    pub zero_latency_read: bool,
    /// The same for a write.
    pub zero_latency_write: bool,
    /// Whether a read that starts at the sector now being read ahead counts as a hit.
    pub hit_on_next_sector: bool,
    /// Whether data left by a write serve reads.
    pub hit_on_written: bool,
    /// Whether a read hit is served while the mechanism works for another command.
    pub hit_while_busy: bool,
    /// Whether the part of a read that is in the buffer is sent at once.
    pub send_partial_hit_at_once: bool,
    /// When writes are reported done.
    pub write_reporting: WriteReporting,
    /// Whether writes enter the buffer while the mechanism works for another command.
    pub write_while_busy: bool,
    /// Whether a write may be appended to buffered unwritten data.
    pub combine_writes: bool,
    /// Whether read-ahead can be interrupted within a sector.
    pub interrupt_in_sector: bool,
    /// Sectors that must be in the buffer before a read sends the first, as a share of `water_mark_of`.
    pub read_water_mark: f64,
    /// What the water mark is a share of.
    pub water_mark_of: WaterMarkOf,
}

/// How far the drive reads on after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// Not at all.
    Off,
    /// To the end of the track.
    TrackEnd,
    /// To the end of the cylinder.
    CylinderEnd,
    /// Until the segment is full.
    SegmentFull,
    /// To the end of the track, and of the next one where the segment already spans a track boundary.
    NextTrack,
}

/// What becomes of the data of a read, once sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedData {
    /// They stay in the segment; read-ahead without a limit of its own takes only the rest.
    Kept,
    /// Read-ahead may replace them.
    Replaceable,
    /// They are given up at once.
    Dropped,
}

/// When writes are reported done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteReporting {
    /// Once on the medium.
    Medium,
    /// Once in the buffer, while they continue the buffered data or nothing else is queued.
    SequentialInBuffer,
    /// Once in the buffer.
    InBuffer,
}

/// What a water mark is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaterMarkOf {
    /// The request, or the segment where it is smaller.
    Request,
    /// The segment.
    Segment,
}
