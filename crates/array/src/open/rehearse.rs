//! What opening an array would say, as far as the labels of its drives tell; nothing is written.

use std::sync::Arc;

use tier0_drive::DriveHandle;
use tier0_pool::metadata::{Standing, Survey, survey};

use super::assemble::{check_label, open_media, take_pool, tell_others};
use super::{Medium, in_real_world};
use crate::{ArrayError, Description};

/// Reads the labels of the description's drives: what a start would warn of.
///
/// # Errors
/// Why a start would be refused.
pub fn rehearse(description: &Description) -> Result<Vec<String>, ArrayError> {
    let media: Vec<Arc<Medium>> = open_media(description)?;
    let wanted = description.clone();
    in_real_world(|world| async move {
        let drives: Vec<DriveHandle> =
            media.iter().map(|medium| medium.plain_drive(&world)).collect::<Result<_, _>>()?;
        let Survey { mut pools, others } = survey(drives).await;
        let mut warnings = Vec::new();
        tell_others(others, &mut warnings)?;
        for pool in &wanted.pools {
            let found = take_pool(&mut pools, &wanted, pool, &mut warnings)?;
            check_label(pool, &found)?;
            if found.members.iter().any(|member| member.standing == Standing::Missing) {
                let name = &pool.name;
                warnings.push(format!(
                    "labels do not tell whether pool {name:?} can do without the drives that are missing"
                ));
            }
        }
        Ok(warnings)
    })?
}
