//! Commands that take long: told as slow after a sixth of the patience, arbitrated at its end.

use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::IoError;

use super::commands::Sent;
use super::{Inner, Verdict};

/// The shortest time between two looks.
const LOOK_MIN: Nanos = Nanos::from_millis(10);

impl Inner {
    /// Has a task look at the age of what is below, as long as there is anything.
    pub(super) fn watch(self: &Rc<Self>) {
        if !self.is_watched.replace(true) {
            self.world().spawn(self.clone().attend()).detach();
        }
    }

    async fn attend(self: Rc<Self>) {
        let slow = self.patience.slow();
        while let Some(oldest) = self.oldest() {
            let age = self.world().turned().saturating_sub(oldest);
            if age < slow {
                // Whatever came later is younger.
                self.trouble(|troubles| troubles.slow = false);
                self.world().sleep(slow.saturating_sub(age).max(LOOK_MIN)).await;
                continue;
            }
            self.tell_slow();
            if age >= self.patience.answer {
                if self.late().await == Verdict::Lost {
                    break;
                }
                self.world().sleep(self.patience.again).await;
            } else {
                let next = self.patience.answer.saturating_sub(age).min(slow);
                self.world().sleep(next.max(LOOK_MIN)).await;
            }
        }
        self.is_watched.set(false);
        self.trouble(|troubles| troubles.slow = false);
    }

    /// When the oldest command below came. One that is idle is forgotten when the drive has carried out a later one.
    fn oldest(&self) -> Option<Nanos> {
        let forgotten = |sent: &Sent| sent.is_idle() && sent.came < self.answered.get();
        let commands = self.commands.borrow();
        commands.iter().filter(|(_, sent)| !forgotten(sent)).map(|(_, sent)| sent.came).min()
    }

    fn tell_slow(&self) {
        let (now, slow) = (self.world().turned(), self.patience.slow());
        let mut told = Vec::new();
        for (_, sent) in self.commands.borrow_mut().iter_mut() {
            if !sent.is_slow && now.saturating_sub(sent.came) >= slow {
                sent.is_slow = true;
                told.push(format!("{} takes longer than {slow}", sent.describe()));
            }
        }
        told.into_iter().for_each(|sentence| self.health.count_slow(sentence));
        self.trouble(|troubles| troubles.slow = true);
    }

    /// Something is older than the longest patience.
    async fn late(self: &Rc<Self>) -> Verdict {
        if self.arbiter.borrow().is_none() {
            self.give_up_late(|_| true);
            return Verdict::Wait;
        }
        let verdict = self.ask(IoError::Timeout).await;
        if verdict == Verdict::Wait && self.health.refuses_reads().is_some() {
            self.give_up_late(Sent::is_read);
        }
        verdict
    }

    /// Answers those who wait for what is late; the drive may go on with it.
    fn give_up_late(&self, chosen: impl Fn(&Sent) -> bool) {
        let limit = self.world().turned().saturating_sub(self.patience.answer);
        let mut commands = self.commands.borrow_mut();
        let late = commands.iter_mut().filter(|(_, sent)| sent.came <= limit && chosen(sent));
        late.for_each(|(_, sent)| sent.give_up(self, IoError::Timeout));
    }
}
