//! Drives that fail or hang for a while, beneath their guards.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::FutureExt;
use tier0_array::engine::{Engine, StartOptions, start};
use tier0_drive::{Command, Drive, DriveHandle, DriveInfo};
use tier0_units::Nanos;
use tier0_world::{Completion, IoError, World};

use super::{Drives, Life, live};

/// What is wrong with a drive; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Trouble {
    error: Rc<Cell<Option<IoError>>>,
    /// Only writes to sectors from here on fail.
    writes_from: Rc<Cell<Option<u64>>>,
    hangs: Rc<Cell<bool>>,
    held: Rc<RefCell<Vec<(Command, Completion)>>>,
}

impl Trouble {
    /// Every command fails with this, or none any more.
    pub(crate) fn fail(&self, error: Option<IoError>) {
        self.writes_from.set(None);
        self.error.set(error);
    }

    /// Every write fails with this.
    pub(crate) fn fail_writes(&self, error: IoError) {
        self.fail_writes_from(0, error);
    }

    /// Every write to a sector from `sector` on fails with this.
    pub(crate) fn fail_writes_from(&self, sector: u64, error: IoError) {
        self.writes_from.set(Some(sector));
        self.error.set(Some(error));
    }

    /// Nothing is answered.
    pub(crate) fn hang(&self) {
        self.hangs.set(true);
    }
}

struct Troubled {
    drive: DriveHandle,
    trouble: Trouble,
}

impl Troubled {
    /// Answers what has hung.
    fn answer(&self) {
        for (command, completion) in self.trouble.held.take() {
            self.submit(command, completion);
        }
    }
}

impl Drive for Troubled {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        if self.trouble.hangs.get() {
            self.trouble.held.borrow_mut().push((command, completion));
            return;
        }
        let fails = match self.trouble.writes_from.get() {
            Some(from) => matches!(command, Command::Write { lba, .. } if lba.0 >= from),
            None => true,
        };
        match self.trouble.error.get().filter(|_| fails) {
            Some(error) => command.refuse(error, completion),
            None => self.drive.submit(command, completion),
        }
    }
}

/// The troubles of an array's drives.
#[derive(Clone)]
pub(crate) struct Troubles {
    pub(crate) of: Vec<Trouble>,
    drives: Vec<Rc<Troubled>>,
}

impl Troubles {
    /// A drive, as one that was away is taken back.
    pub(crate) fn handle(&self, drive: usize) -> DriveHandle {
        DriveHandle::from_rc(self.drives[drive].clone())
    }

    /// A drive that hung answers again, what it was asked meanwhile included.
    pub(crate) fn answer(&self, drive: usize) {
        self.of[drive].hangs.set(false);
        self.drives[drive].answer();
    }
}

impl Drives {
    /// A life of the array on drives that can be given trouble; they have power until its end.
    pub(crate) fn troubled_life<F: Future<Output = T> + 'static, T: 'static>(
        &self,
        seed: u64,
        life: impl FnOnce(World, Engine, Troubles) -> F + 'static,
    ) -> T {
        let life: Life<(World, Engine, Troubles), T> =
            Box::new(|(world, engine, troubles)| Box::pin(life(world, engine, troubles)));
        let started = |(world, handles, troubles): (World, Vec<DriveHandle>, Troubles)| {
            let started = async move {
                let engine = start(&world, handles, &StartOptions::default()).await.expect("started");
                life((world, engine, troubles)).await
            };
            started.boxed_local()
        };
        self.on_troubled_life(seed, Box::new(started))
    }

    /// The same where nothing is started yet.
    pub(crate) fn on_troubled<F: Future<Output = T> + 'static, T: 'static>(
        &self,
        seed: u64,
        life: impl FnOnce(World, Vec<DriveHandle>, Troubles) -> F + 'static,
    ) -> T {
        self.on_troubled_life(
            seed,
            Box::new(|(world, handles, troubles)| Box::pin(life(world, handles, troubles))),
        )
    }

    fn on_troubled_life<T: 'static>(
        &self,
        seed: u64,
        life: Life<(World, Vec<DriveHandle>, Troubles), T>,
    ) -> T {
        let drives = self.clone();
        let result = live(seed, |world| async move {
            let troubled = |drive| Rc::new(Troubled { drive, trouble: Trouble::default() });
            let all: Vec<Rc<Troubled>> = drives.open(&world).into_iter().map(troubled).collect();
            let of = all.iter().map(|drive| drive.trouble.clone()).collect();
            let handles = all.iter().map(|drive| DriveHandle::from_rc(drive.clone())).collect();
            life((world, handles, Troubles { of, drives: all })).await
        });
        self.cut();
        result
    }
}

/// Sleeps in steps until something is so, at most so long; whether it became so.
pub(crate) async fn within(world: &World, limit: Nanos, mut is_so: impl AsyncFnMut() -> bool) -> bool {
    let end = world.now() + limit;
    while world.now() < end {
        if is_so().await {
            return true;
        }
        world.sleep(Nanos::from_millis(500)).await;
    }
    is_so().await
}
