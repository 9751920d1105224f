//! The `disksim_disk` block: controller and buffer.
//!
//! A parameter that is missing takes the value that switches its mechanism off.

use tier0_units::Nanos;

use super::super::{
    AfterCommand, BufferParameters, ControllerParameters, ExtraWriteDisconnect, Overheads, Preseek,
    ReadAhead, RequestedData, Scheduling, WaterMarkOf, WriteReporting,
};
use super::Problem;
use super::syntax::{Block, Value};

/// FCFS in DiskSim's list of scheduling policies.
const POLICY_FCFS: f64 = 1.0;

/// Reads controller and buffer from a `disksim_disk` block.
pub(super) fn read(disk: &Block) -> Result<(ControllerParameters, BufferParameters), Problem> {
    let buffer = read_buffer(disk)?;
    let overheads = read_overheads(disk)?;
    let policy = match disk.entry("Scheduler").map(|entry| &entry.value) {
        Some(Value::Block(block)) => block.number_or("Scheduling policy", POLICY_FCFS)?,
        _ => POLICY_FCFS,
    };
    let time = |name: &str| scaled(disk, name, 1.0);
    let extra = ExtraWriteDisconnect {
        command: scaled(disk, "Extradisc command overhead", scale(disk)?)?,
        disconnect: scaled(disk, "Extradisc disconnect overhead", scale(disk)?)?,
        until_reconnect: time("Extradisc inter-disconnect delay")?,
        second_disconnect: scaled(disk, "Extradisc 2nd disconnect overhead", scale(disk)?)?,
        seek_delay: scaled(disk, "Extradisc seek delta", scale(disk)?)?,
    };
    let controller = ControllerParameters {
        // 0 means that DiskSim's host sends without limit.
        queue_depth: match disk.whole_or("Max queue length", 1, 0, 65_536)? {
            0 => 65_536,
            depth => depth as u32,
        },
        scheduling: if policy == POLICY_FCFS { Scheduling::Fifo } else { Scheduling::ShortestPositioning },
        starvation_limit: Nanos::from_secs(1),
        overheads,
        sector_transfer: time("Bulk sector transfer time")?,
        never_disconnect: disk.flag("Never disconnect")?,
        hold_bus_for_read: disk.flag("Hold bus entire read xfer")?,
        preseek: match disk.whole_or("Preseeking level", 0, 0, 2)? {
            0 => Preseek::AfterCompletion,
            1 => Preseek::AfterTransfer,
            _ => Preseek::AfterMedia,
        },
        extra_write_disconnect: disk.flag("Extra write disconnect")?.then_some(extra),
        minimum_write_seek: time("Minimum seek delay")?,
    };
    Ok((controller, buffer))
}

fn scale(disk: &Block) -> Result<f64, Problem> {
    disk.number_or("Time scale for overheads", 1.0)
}

/// A time in milliseconds, times `factor`.
fn scaled(disk: &Block, name: &str, factor: f64) -> Result<Nanos, Problem> {
    let ms = disk.number_or(name, 0.0)? * factor;
    if (0.0..=1_000.0).contains(&ms) {
        return Ok(Nanos::from_millis_f64(ms));
    }
    let line = disk.entry(name).map_or(disk.line, |entry| entry.line);
    Err(Problem::new(line, format!("\"{name}\" is {ms} ms; it must be from 0 to 1,000")))
}

fn read_overheads(disk: &Block) -> Result<Overheads, Problem> {
    let factor = scale(disk)?;
    let time = |name: &str| scaled(disk, name, factor);
    let pair = |read: &str, write: &str| Ok(AfterCommand { read: time(read)?, write: time(write)? });
    Ok(Overheads {
        per_request: time("Per-request overhead time")?,
        read_hit: pair("Read hit over. after read", "Read hit over. after write")?,
        read_miss: pair("Read miss over. after read", "Read miss over. after write")?,
        write_hit: pair("Write hit over. after read", "Write hit over. after write")?,
        write_miss: pair("Write miss over. after read", "Write miss over. after write")?,
        read_completion: time("Read completion overhead")?,
        write_completion: time("Write completion overhead")?,
        data_preparation: time("Data preparation overhead")?,
        first_reselect: time("First reselect overhead")?,
        other_reselect: time("Other reselect overhead")?,
        read_disconnect: pair("Read disconnect afterread", "Read disconnect afterwrite")?,
        write_disconnect: time("Write disconnect overhead")?,
    })
}

fn read_buffer(disk: &Block) -> Result<BufferParameters, Problem> {
    let segments = disk.whole_or("Number of buffer segments", 1, 1, 1_024)?;
    let segment_sectors = disk.whole_or("Segment size (in blks)", 1, 1, 1_000_000_000)?;
    let caching = disk.number_or("Enable caching in buffer", 1.0)? != 0.0;
    let size = |name| disk.whole_or(name, 0, 0, 1_000_000_000);
    Ok(BufferParameters {
        segments: segments as u32,
        segment_sectors,
        write_segments: disk.whole_or("Maximum number of write segments", segments, 1, segments)? as u32,
        // One segment cannot be set apart for writes and serve reads too.
        dedicated_write_segment: disk.flag("Use separate write segment")? && segments > 1,
        caching,
        read_ahead: match disk.whole_or("Buffer continuous read", 0, 0, 4)? {
            0 => ReadAhead::Off,
            1 => ReadAhead::TrackEnd,
            2 => ReadAhead::CylinderEnd,
            3 => ReadAhead::SegmentFull,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_min: size("Minimum read-ahead (blks)")?,
        read_ahead_max: size("Maximum read-ahead (blks)")?,
        requested_data: match disk.number_or("Read-ahead over requested", 0.0)? {
            negative if negative < 0.0 => RequestedData::Dropped,
            0.0 => RequestedData::Kept,
            _ => RequestedData::Replaceable,
        },
        read_ahead_on_hit: disk.flag("Read-ahead on idle hit")?,
        read_free_sectors: disk.flag("Read any free blocks")?,
        zero_latency_read: disk.flag("Immediate buffer read")?,
        zero_latency_write: disk.flag("Immediate buffer write")?,
        hit_on_next_sector: disk.flag("Allow almost read hits")?,
        hit_on_written: disk.flag("Allow read hits on write data")?,
        hit_while_busy: disk.flag("Allow sneaky full read hits")?,
        send_partial_hit_at_once: disk.flag("Immed transfer partial hit")?,
        write_reporting: match disk.whole_or("Fast write level", 0, 0, 2)? {
            0 => WriteReporting::Medium,
            1 => WriteReporting::SequentialInBuffer,
            _ => WriteReporting::InBuffer,
        },
        write_while_busy: disk.flag("Allow write prebuffering")?,
        combine_writes: disk.flag("Combine seq writes")?,
        interrupt_in_sector: disk.flag("Stop prefetch in sector")?,
        read_water_mark: disk.number_or("High (read) water mark", 0.0)?,
        water_mark_of: if disk.flag("Set watermark by reqsize")? {
            WaterMarkOf::Request
        } else {
            WaterMarkOf::Segment
        },
    })
}
