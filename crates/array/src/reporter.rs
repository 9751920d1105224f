//! How a shard tells the control task of lost drives and wrong pages.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_control::message::control::{ControlMessage, Loss};
use tier0_integrity::IntegrityCounts;
use tier0_raid::io::{FailureReport, RepairEvent, RepairReport};
use tier0_world::IoError;
use tier0_world::sync::{MailSender, oneshot};

/// A shard's way to report lost drives.
#[derive(Clone)]
pub(crate) struct LossReporter {
    pub(crate) pool: usize,
    pub(crate) control: MailSender<ControlMessage>,
}

impl FailureReport for LossReporter {
    fn report(&self, member: usize, error: IoError) -> Pin<Box<dyn Future<Output = ()>>> {
        let (done, waiting) = oneshot::channel();
        self.control.send(ControlMessage::Loss(Loss { pool: self.pool, member, error, done }));
        Box::pin(async move {
            // The control task ends only with the array.
            let _ = waiting.await;
        })
    }
}

/// A shard's report of wrong pages: counted there, and told to the control task.
pub(crate) struct FoundReport {
    pub(crate) pool: usize,
    pub(crate) counts: Rc<IntegrityCounts>,
    pub(crate) control: MailSender<ControlMessage>,
}

impl RepairReport for FoundReport {
    fn report(&self, event: &RepairEvent) {
        self.counts.report(event);
        self.control.send(ControlMessage::PageError { pool: self.pool, event: *event });
    }

    fn table_lost(&self, slot: u64) {
        if self.counts.note_table_lost(slot) {
            self.control.send(ControlMessage::TableLost { pool: self.pool, slot });
        }
    }
}
