//! Weights of volumes, changed while the array serves: first the metadata, then every shard.

use tier0_pool::{MetaRecord, WEIGHT_MAX, is_weight};

use super::Volumes;
use super::lifecycle::Meant;
use crate::admin::AdminError;
use crate::context::Done;
use crate::message::volumes::VolumesCommand;

impl Volumes {
    /// Changes the weight of a volume.
    pub(crate) async fn set_weight(&self, name: &str, weight: u32) -> Done {
        if !is_weight(weight) {
            return Err(AdminError::new(format!(
                "volume {name} cannot have weight {weight}; set weight to 1 to {WEIGHT_MAX}"
            )));
        }
        let _turn = self.turn.acquire(1).await;
        let Meant { pool, record, number } = self.volume_meant(name)?;
        let core = self.core(pool);
        let known = core.metadata.state().weight(record.number);
        let Some(weighed) = MetaRecord::weigh(record.number, known, Some(weight)) else {
            return Err(AdminError::unchanged(format!(
                "volume {name}: weight {known} already; nothing changed"
            )));
        };
        core.metadata.commit(vec![weighed]).await.map_err(AdminError::from)?;
        self.command(|reply| VolumesCommand::SetWeight { number, weight, reply }).await?;
        Ok(format!("volume {name}: weight {weight} from now on"))
    }
}
