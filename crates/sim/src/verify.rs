//! All volumes read, and every sector checked.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_units::Lba;

use crate::client;
use crate::life::Life;
use crate::system::Running;

/// Sectors of one read that verifies.
const VERIFY_SECTORS: u64 = 128;
/// Reads under way while verifying.
const VERIFIERS: u64 = 4;

/// Reads `share` of every volume and checks it.
pub(crate) async fn verify<R: Running>(life: &Rc<Life<R>>, share: f64) -> Result<(), String> {
    let mut random = life.session.random(0x0e);
    let mut pieces = Vec::new();
    for volume in 0..life.volumes.len() {
        let sectors = life.session.auditor.borrow().sectors(volume);
        let starts = (0..sectors).step_by(VERIFY_SECTORS as usize);
        pieces.extend(
            starts
                .filter(|_| share >= 1.0 || random.chance(share))
                .map(|lba| (volume, Lba(lba), VERIFY_SECTORS.min(sectors - lba))),
        );
    }
    let pieces = Rc::new(RefCell::new(pieces));
    let workers = (0..VERIFIERS).map(|_| {
        let (life, pieces) = (life.clone(), pieces.clone());
        async move {
            loop {
                let piece = pieces.borrow_mut().pop();
                let Some((volume, lba, sectors)) = piece else { return Ok(()) };
                client::read(&life, volume, lba, sectors).await?;
            }
        }
    });
    join_all(workers.collect::<Vec<_>>()).await.into_iter().collect()
}
