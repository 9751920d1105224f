//! The array while it lives, as everybody has it who uses or troubles it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tier0_world::World;
use tier0_world::sync::{Notify, Semaphore};

use crate::session::Session;
use crate::shelf::Whereabouts;
use crate::system::{Running, Status};

/// The array while it lives.
pub(crate) struct Life<R: Running> {
    pub(crate) session: Rc<Session>,
    pub(crate) world: World,
    pub(crate) running: R,
    pub(crate) volumes: Vec<R::Volume>,
    /// Whoever makes, changes and deletes the volumes that come later has it.
    pub(crate) scratch_turn: Semaphore,
    /// Operations that users have begun.
    begun: Cell<u64>,
    /// The users are done.
    pub(crate) done: Cell<bool>,
    /// The first thing that broke.
    broken: RefCell<Option<String>>,
    bell: Notify,
}

impl<R: Running> Life<R> {
    /// It was opened, and is not used yet.
    pub(crate) fn new(session: &Rc<Session>, world: &World, running: R, volumes: Vec<R::Volume>) -> Life<R> {
        Life {
            session: session.clone(),
            world: world.clone(),
            running,
            volumes,
            scratch_turn: Semaphore::new(1),
            begun: Cell::default(),
            done: Cell::default(),
            broken: RefCell::default(),
            bell: Notify::new(),
        }
    }

    /// Something broke: the run ends.
    pub(crate) fn break_off(&self, sentence: String) {
        self.broken.borrow_mut().get_or_insert(sentence);
        self.bell.notify_all();
    }

    /// Waits until something has broken.
    pub(crate) async fn wait_broken(&self) -> String {
        loop {
            if let Some(sentence) = self.broken.borrow().clone() {
                return sentence;
            }
            self.bell.wait().await;
        }
    }

    /// Whether a user may begin one more operation.
    pub(crate) fn begin_operation(&self) -> bool {
        self.begun.set(self.begun.get() + 1);
        self.begun.get() <= self.session.config.load.operations
    }

    /// The system's status, which also teaches the atlas.
    pub(crate) async fn status(&self) -> Status {
        let status = self.running.status().await;
        self.session.atlas.borrow_mut().learn(&status);
        self.session.active.replace(status.active.iter().cloned().collect());
        self.session.known_lost.borrow_mut().extend(status.lost.iter().cloned());
        let mut counted = self.session.counted_lost.borrow_mut();
        counted.retain(|name| status.lost.contains(name));
        for name in &status.lost {
            if counted.insert(name.clone()) {
                self.session.atlas.borrow_mut().mark(name);
            }
        }
        drop(counted);
        let mut shelf = self.session.shelf.borrow_mut();
        for name in shelf.names(Whereabouts::Gone) {
            if status.lost.contains(&name) {
                shelf.put(&name, Whereabouts::Out);
            }
        }
        drop(shelf);
        status
    }
}
