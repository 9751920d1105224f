//! The volumes of a running array.

use tier0_advisor::samples::VolumeCounters;
use tier0_api::{AdminReply, AdminRequest};

use crate::control::Addressee;
use crate::failure::Failure;

/// What hosts have asked of each volume since the array's start.
pub(super) fn volumes(array: &Addressee) -> Result<Vec<VolumeCounters>, Failure> {
    let AdminReply::Io(report) = array.ask(&AdminRequest::Io)? else {
        return Err(Failure::Run(
            "the array answered another question; use a server of this version".to_owned(),
        ));
    };
    let volumes = report.pools.iter().flat_map(|pool| &pool.volumes);
    Ok(volumes
        .map(|volume| {
            let (read, write) = (&volume.io.read, &volume.io.write);
            VolumeCounters {
                name: volume.name.clone(),
                reads: read.count as f64,
                writes: write.count as f64,
                bytes: (read.bytes + write.bytes) as f64,
                read_ms: read.time_ns as f64 / 1e6,
                write_ms: write.time_ns as f64 / 1e6,
            }
        })
        .collect())
}
