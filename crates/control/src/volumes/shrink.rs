//! Volumes made smaller while the array runs.
//!
//! 1. Clients that use the volume refuse it, or are disconnected where the administrator says so; no request enters any more.
//! 2. Every shard discards what it holds beyond the new size, and brings into place what the log has of the volume. From
//!    then on no recovery finds anything of that part, also where the volume grows again. Where drives do not answer, that
//!    is given up after a while, so that the volume can be used and other changes can begin.
//! 3. The metadata give the volume its new size, then the shards do, and it is offered again.
//!
//! A crash or an error before the third step leaves the volume with its old size; what lay beyond the new one may be zeros
//! by then.

use std::rc::Rc;

use tier0_pool::MetaRecord;
use tier0_units::{ByteCount, SectorCount};
use tier0_world::IoError;

use super::Volumes;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::volumes::VolumesCommand;
use crate::volumes::lifecycle::{Meant, check_size};

impl Volumes {
    /// Makes a volume smaller; what it holds beyond `size` is discarded. `force` disconnects the clients that use it.
    pub(crate) async fn shrink_volume(self: &Rc<Self>, name: &str, size: ByteCount, force: bool) -> Done {
        check_size(size)?;
        self.settle_before_shrink(name).await?;
        let _turn = self.turn.acquire(1).await;
        let meant = self.volume_meant(name)?;
        let (now, sectors) = (SectorCount(meant.record.sectors).bytes(), SectorCount::in_bytes(size).0);
        if sectors > meant.record.sectors {
            return Err(AdminError::new(format!(
                "volume {name:?} has {now}, which is less than {size}; \"tier0 volume resize\" makes it larger"
            )));
        }
        if sectors == meant.record.sectors {
            return Err(AdminError::unchanged(format!("volume {name} already has {now}; nothing changed")));
        }
        self.check_goes_on(&meant)?;
        let number = meant.number;
        if let Err(error) = self.withdraw_volume(name, number, force).await {
            self.offer_volume(number).await?;
            return Err(error);
        }
        let shrunk = self.cut_off_tail(&meant, sectors).await;
        self.command(|reply| VolumesCommand::Open { number, reply }).await?;
        self.offer_volume(number).await?;
        shrunk.map(|()| format!("shrunk volume {name} from {now} to {size}"))
    }

    /// A discard would wait for the drives of a paused pool, or for space under full ones, while no client could use the
    /// volume and no other change could begin.
    fn check_goes_on(&self, meant: &Meant) -> Result<(), AdminError> {
        let core = self.core(meant.pool);
        let (name, pool) = (&meant.record.name, &self.pools[meant.pool].name);
        if core.pauses.since().is_some() {
            return Err(AdminError::new(format!(
                "volume {name:?} cannot shrink while its pool {pool:?} is paused; bring back the drives that it waits for, and try \
                 again"
            )));
        }
        let full: Vec<String> = core.pauses.full().into_iter().map(|place| core.drive_name(place)).collect();
        match full.is_empty() {
            true => Ok(()),
            false => Err(AdminError::new(format!(
                "volume {name:?} cannot shrink while there is no space under drive {} of its pool {pool:?}; free space there, and \
                 try again",
                full.join(", ")
            ))),
        }
    }

    /// Brings into place what the log has of a volume while hosts and administrators go on, so that the volume is closed
    /// for a short time only.
    async fn settle_before_shrink(&self, name: &str) -> Result<(), AdminError> {
        let meant = self.volume_meant(name)?;
        self.check_goes_on(&meant)?;
        let number = meant.number;
        let settled = self.command(|reply| VolumesCommand::Settle { number, reply }).await?;
        let settled: Result<(), IoError> = settled.into_iter().collect();
        settled.map_err(|error| {
            AdminError::failed(format!(
                "volume {name:?} keeps its size: its dirty pages cannot be destaged ({error}); look at \"tier0 status\", and try \
                 again"
            ))
        })
    }

    /// Closes a withdrawn volume, discards what it holds beyond its first `sectors`, and makes these its size.
    async fn cut_off_tail(&self, meant: &Meant, sectors: u64) -> Result<(), AdminError> {
        let Meant { pool, record, number } = meant;
        let number = *number;
        let discarded = self.command(|reply| VolumesCommand::DiscardTail { number, sectors, reply }).await?;
        let discarded: Result<(), IoError> = discarded.into_iter().collect();
        discarded.map_err(|error| {
            let why = match error {
                IoError::Timeout => "its drives took too long".to_owned(),
                error => error.to_string(),
            };
            AdminError::failed(format!(
                "volume {:?} keeps its size: what it holds beyond {} cannot be discarded ({why}), and part of that may be \
                 zeros now; look at \"tier0 status\", and try again",
                record.name,
                SectorCount(sectors).bytes()
            ))
        })?;
        let resized = MetaRecord::VolumeResized { volume: record.number, sectors };
        self.core(*pool).metadata.commit(vec![resized]).await.map_err(AdminError::from)?;
        self.command(|reply| VolumesCommand::Resize { number, sectors, reply }).await.map(drop)
    }
}
