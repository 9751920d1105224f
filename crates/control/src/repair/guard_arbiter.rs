//! What guards of drives ask the control task: whether a drive is lost, and whether one that was away is still itself.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;

use futures_util::future::{Either, select};
use tier0_drive::DriveHandle;
use tier0_drive::guard::{Arbiter, Guard, Verdict};
use tier0_pool::metadata::Seen;
use tier0_units::Nanos;
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

use crate::message::control::ControlMessage;

/// How long a drive may take for its superblock before it does not answer.
const PROBE_LIMIT: Nanos = Nanos::from_secs(2);

/// Asks the control task about one member of a pool.
pub struct MemberArbiter {
    pool: usize,
    member: usize,
    control: MailSender<ControlMessage>,
}

impl MemberArbiter {
    /// From now on the control task decides whether this member is lost. A drive without a guard has no arbiter.
    pub fn appoint(drive: &DriveHandle, pool: usize, member: usize, control: &MailSender<ControlMessage>) {
        if let Some(guard) = drive.guard() {
            guard.obey(Rc::new(MemberArbiter { pool, member, control: control.clone() }));
        }
    }
}

impl Arbiter for MemberArbiter {
    fn arbitrate(&self, error: IoError) -> Pin<Box<dyn Future<Output = Verdict>>> {
        let (reply, verdict) = oneshot::channel();
        self.control.send(ControlMessage::Arbitrate { pool: self.pool, member: self.member, error, reply });
        // The control task ends only with the array; nothing is decided any more then.
        Box::pin(async move { verdict.await.unwrap_or(Verdict::Wait) })
    }

    fn recognise(&self, drive: DriveHandle) -> Pin<Box<dyn Future<Output = Result<(), String>>>> {
        let (pool, member, control) = (self.pool, self.member, self.control.clone());
        Box::pin(async move {
            let seen = look(&drive).await?;
            let (reply, answer) = oneshot::channel();
            control.send(ControlMessage::Recognise { pool, member, seen, reply });
            answer.await.unwrap_or_else(|_| Err("the array is ending".to_owned()))
        })
    }
}

/// Reads who a drive is, past its guard, within [`PROBE_LIMIT`].
///
/// # Errors
/// The sentence that says why it cannot be read.
pub(crate) async fn look(drive: &DriveHandle) -> Result<Seen, String> {
    let bare = drive.guard().map_or(drive, Guard::bare);
    let limit = pin!(bare.world().sleep(PROBE_LIMIT));
    match select(pin!(Seen::read(bare)), limit).await {
        Either::Left((seen, _)) => seen,
        Either::Right(_) => Err(format!("drive {:?} does not answer", bare.info().name)),
    }
}
