//! The sweep: once the load is over, every block that it wrote is read and checked.

use std::cell::Cell;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_units::{Lba, SectorCount};
use tier0_world::Task;

use super::bell::yield_now;
use super::shared::Shared;
use crate::draw::IoKind;
use crate::verify::ReadTicket;

/// Reads of the sweep under way at once.
const SWEEPERS: usize = 16;
/// The longest read of the sweep, in sectors: 1 MiB.
const READ_SECTORS_MAX: SectorCount = SectorCount(2048);

/// How far a sweep is.
pub(super) struct Sweep {
    next: Cell<Lba>,
    running: Cell<usize>,
}

impl Sweep {
    /// Starts it. When it is over, the bell rings.
    pub(super) fn start<T: BlockTarget + 'static>(shared: &Rc<Shared<T>>) -> (Rc<Sweep>, Vec<Task<()>>) {
        let sweep = Sweep { next: Cell::default(), running: Cell::new(SWEEPERS) };
        let sweep = Rc::new(sweep);
        let sweeper = |_| shared.world.spawn(sweep_on(shared.clone(), sweep.clone()));
        let tasks = (0..SWEEPERS).map(sweeper).collect();
        (sweep, tasks)
    }

    pub(super) fn is_over(&self) -> bool {
        self.running.get() == 0
    }
}

async fn sweep_on<T: BlockTarget>(shared: Rc<Shared<T>>, sweep: Rc<Sweep>) {
    let verifier = shared.verifier.as_ref().expect("a sweep needs a verifier");
    let mut ticket = ReadTicket::default();
    while !shared.stopped.get() {
        let found = verifier.borrow().next_written(sweep.next.get(), READ_SECTORS_MAX);
        let Some((lba, sectors)) = found else { break };
        sweep.next.set(lba + sectors);
        verifier.borrow().begin_read(lba, sectors, &mut ticket);
        let buf = shared.checked_buffer(sectors.0 as u32);
        let (result, buf) = shared.target.read(lba, buf).await;
        match result {
            Ok(()) => {
                shared.check(&ticket, &buf);
                let blocks = sectors.0 / verifier.borrow().block_sectors().0;
                shared.meter.borrow_mut().verify.blocks_swept += blocks;
            }
            Err(error) => shared.failed(IoKind::Read, || {
                format!("read of {sectors} sectors at sector {lba} while checking: {error}")
            }),
        }
        yield_now().await;
    }
    sweep.running.set(sweep.running.get() - 1);
    if sweep.is_over() {
        shared.bell.ring();
    }
}
