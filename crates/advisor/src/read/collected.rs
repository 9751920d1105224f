//! Lines of samples that `tier0 advise collect` writes, and what samples of all servers have in common: differences of the host's
//! processors and of an array's volumes.

use std::io::BufRead;

use super::error::ReadError;
use crate::evidence::{DevicePoint, HostPoint, Sample};
use crate::samples::{Collected, HostCounters, OBJECTS_MAX, VolumeCounters};

/// The longest line: a first sample of 200,000 objects.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Hands each sample to `add`, which says how many objects it knows by then.
pub(super) fn read<S: Collected>(
    file: &str,
    input: &mut dyn BufRead,
    mut add: impl FnMut(S) -> usize,
) -> Result<(), ReadError> {
    let wrong =
        |line: u64, fact: String| ReadError::Wrong { file: file.to_owned(), line, column: None, fact };
    let (mut before, mut known, mut number) = (None::<f64>, 0, 0);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = std::io::Read::take(&mut *input, LINE_BYTES_MAX + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| ReadError::System { file: file.to_owned(), source })?;
        if read == 0 {
            break;
        }
        number += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(wrong(number, "the line is too long; collect the samples again".to_owned()));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let is_cut = bytes.last() != Some(&b'\n');
        let mut sample: S = match serde_json::from_slice(&bytes) {
            Ok(sample) => sample,
            // A kill in the middle of a write: what is complete counts.
            Err(_) if is_cut && number > 1 => break,
            Err(error) => {
                let fact =
                    format!("this is no sample ({error}); remove the line, or collect the samples again");
                return Err(wrong(number, fact));
            }
        };
        let head = sample.head();
        if !S::MARKS.contains(&head.mark) || head.version != S::VERSION {
            let fact = format!(
                "the sample is of version {}, and this program reads version {}; use the program that wrote it",
                head.version,
                S::VERSION
            );
            return Err(wrong(number, fact));
        }
        let at = head.at;
        if before.is_some_and(|before| at < before) {
            let fact = "the sample is older than the one before; keep each file's lines as they were written";
            return Err(wrong(number, fact.to_owned()));
        }
        before = Some(at);
        if known + sample.objects().len() > OBJECTS_MAX * 2 {
            let fact = format!("there are more than {OBJECTS_MAX} objects; collect one database");
            return Err(wrong(number, fact));
        }
        known = add(sample);
    }
    if number == 0 {
        return Err(wrong(1, "there is no sample; collect for longer".to_owned()));
    }
    Ok(())
}

/// The host and the volumes of the sample before.
#[derive(Default)]
pub(super) struct Around {
    host: Option<HostCounters>,
    volumes: Vec<VolumeCounters>,
    at: Option<f64>,
}

impl Around {
    /// Adds to `sample` what happened since the one before.
    pub(super) fn since(
        &mut self,
        sample: &mut Sample,
        at: f64,
        host: Option<HostCounters>,
        volumes: Vec<VolumeCounters>,
    ) {
        if let Some(now) = host {
            sample.cores = Some(now.cores);
            sample.host = self.host.and_then(|then| point(then, now));
        }
        if let Some(seconds) = self.at.map(|before| at - before).filter(|seconds| *seconds > 0.0) {
            let known = |name: &str| self.volumes.iter().find(|volume| volume.name == name);
            sample.devices =
                volumes.iter().filter_map(|now| Some(volume(known(&now.name)?, now, seconds))).collect();
        }
        (self.host, self.volumes, self.at) = (host, volumes, Some(at));
    }
}

fn point(then: HostCounters, now: HostCounters) -> Option<HostPoint> {
    let all = now.all - then.all;
    (all > 0.0 && now.busy >= then.busy).then(|| HostPoint {
        busy: Some(((now.busy - then.busy) / all).clamp(0.0, 1.0)),
        io_wait: Some(((now.io_wait - then.io_wait) / all).clamp(0.0, 1.0)),
        ..HostPoint::default()
    })
}

fn volume(then: &VolumeCounters, now: &VolumeCounters, seconds: f64) -> DevicePoint {
    // After a restart of the array its counters begin again.
    let since = |now: f64, then: f64| if now >= then { now - then } else { now };
    let (reads, writes) = (since(now.reads, then.reads), since(now.writes, then.writes));
    let (read_ms, write_ms) = (since(now.read_ms, then.read_ms), since(now.write_ms, then.write_ms));
    DevicePoint {
        name: format!("volume {}", now.name),
        reads_s: Some(reads / seconds),
        writes_s: Some(writes / seconds),
        bytes_s: Some(since(now.bytes, then.bytes) / seconds),
        read_ms: (reads > 0.0).then(|| read_ms / reads),
        write_ms: (writes > 0.0).then(|| write_ms / writes),
        // Little's law.
        queue: Some((read_ms + write_ms) / 1e3 / seconds),
        ..DevicePoint::default()
    }
}
