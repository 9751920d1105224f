//! What all lives of a run share: the drives, what is known of them and of the volumes, and what was done so far.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tier0_api::VolumePlace;
use tier0_drive::sim::PowerSwitch;
use tier0_world::{Random, World};

use crate::atlas::FaultAtlas;
use crate::auditor::Auditor;
use crate::config::SimConfig;
use crate::coverage::Coverage;
use crate::images::Images;
use crate::mishap::Mishaps;
use crate::scratch::known::Scratch;
use crate::shelf::Shelf;

/// What all lives of a run share.
pub(crate) struct Session {
    pub(crate) config: SimConfig,
    pub(crate) auditor: RefCell<Auditor>,
    pub(crate) atlas: RefCell<FaultAtlas>,
    pub(crate) shelf: RefCell<Shelf>,
    pub(crate) coverage: RefCell<Coverage>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) switch: PowerSwitch,
    pub(crate) mishaps: Mishaps,
    /// Drives that the array has called lost so far.
    pub(crate) known_lost: RefCell<BTreeSet<String>>,
    /// Drives that the atlas has counted as lost, and that are: one that was taken back may be lost again.
    pub(crate) counted_lost: RefCell<BTreeSet<String>>,
    pub(crate) images: Images,
    /// Nothing goes wrong for the time being.
    pub(crate) is_calm: Cell<bool>,
    /// The drive that an administrator has last had emptied.
    pub(crate) emptied: RefCell<Option<String>>,
    /// The drives that served when the array was last asked.
    pub(crate) active: RefCell<BTreeSet<String>>,
    /// Whether the array was asked where log and metadata lie when it had come to rest.
    pub(crate) places_known: Cell<bool>,
    /// By volume: where it is to lie, if that was acknowledged; nothing while it changes.
    pub(crate) volume_places: RefCell<BTreeMap<usize, VolumePlace>>,
    /// Drives that the administrator consents to start without.
    pub(crate) consents: RefCell<BTreeSet<String>>,
    /// Drives without which the array went on by consent: they may remember that they had given up the others first.
    pub(crate) parted: RefCell<BTreeSet<String>>,
    /// Stored data was damaged since the array was last scrubbed clean.
    pub(crate) damaged: Cell<bool>,
    /// A drive hangs, or hung, whose commands may still be waited for.
    pub(crate) hung: Cell<bool>,
    /// What was done to the array, for the reader of a failure.
    events: RefCell<Vec<String>>,
    /// Requests under way, to tell why nothing ends.
    outstanding: RefCell<BTreeMap<u64, String>>,
    requests: Cell<u64>,
    pub(crate) life: Cell<u64>,
}

impl Session {
    pub(crate) fn new(config: &SimConfig) -> Session {
        let shelf = Shelf::new(config);
        let volumes: Vec<_> = config
            .array
            .volumes
            .iter()
            .map(|volume| (volume.sectors, crate::config::acknowledges_stable(volume.write_cache)))
            .collect();
        Session {
            auditor: RefCell::new(Auditor::new(config.seed, &volumes)),
            atlas: RefCell::new(FaultAtlas::new(&config.array)),
            switch: shelf.switch().clone(),
            shelf: RefCell::new(shelf),
            coverage: RefCell::default(),
            scratch: RefCell::default(),
            mishaps: Mishaps::default(),
            known_lost: RefCell::default(),
            counted_lost: RefCell::default(),
            images: Images::default(),
            is_calm: Cell::default(),
            emptied: RefCell::default(),
            active: RefCell::default(),
            places_known: Cell::default(),
            volume_places: RefCell::default(),
            consents: RefCell::default(),
            parted: RefCell::default(),
            damaged: Cell::default(),
            hung: Cell::default(),
            events: RefCell::default(),
            outstanding: RefCell::default(),
            requests: Cell::default(),
            life: Cell::default(),
            config: config.clone(),
        }
    }

    pub(crate) fn count(&self, name: &'static str) {
        self.coverage.borrow_mut().count(name);
    }

    /// Notes something for the reader of a failure.
    pub(crate) fn note(&self, world: &World, what: impl Into<String>) {
        let line = format!("life {} at {}: {}", self.life.get(), world.now(), what.into());
        self.events.borrow_mut().push(line);
    }

    /// How much was noted.
    pub(crate) fn event_count(&self) -> usize {
        self.events.borrow().len()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.borrow().clone()
    }

    /// A random stream of this life.
    pub(crate) fn random(&self, name: u64) -> Random {
        Random::new(self.config.seed, (self.life.get() + 1) << 16 ^ name)
    }

    /// A request begins; it is under way as long as the answer lives.
    pub(crate) fn request(self: &Rc<Session>, what: impl FnOnce() -> String) -> Request {
        let id = self.requests.get() + 1;
        self.requests.set(id);
        self.outstanding.borrow_mut().insert(id, what());
        Request { session: self.clone(), id }
    }

    /// The array died: nothing is under way any more.
    pub(crate) fn forget_requests(&self) {
        self.outstanding.borrow_mut().clear();
    }

    /// What does not end.
    pub(crate) fn hanging(&self) -> String {
        let outstanding = self.outstanding.borrow();
        let first: Vec<&str> = outstanding.values().take(3).map(String::as_str).collect();
        format!("{} requests do not end: {}", outstanding.len(), first.join("; "))
    }
}

/// A request under way.
pub(crate) struct Request {
    session: Rc<Session>,
    id: u64,
}

impl Drop for Request {
    fn drop(&mut self) {
        self.session.outstanding.borrow_mut().remove(&self.id);
    }
}
