//! The header of a device part on its drive, and how the epoch is renewed.
//!
//! The owner keeps, for each device, the epoch under which its content counts. At each start it is renewed: the header
//! says that it counts under the old epoch and the next one, then the owner's metadata say the next one, then the
//! header does. A crash in between leaves a header that counts under what the metadata say. What is taken away and
//! comes back later has an epoch that the metadata do not have any more, provided that an epoch is never announced
//! twice.

use std::cell::Cell;
use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_journal::{LossReport, Region, Ring, RingError, Settings};
use tier0_units::{Lba, PAGE_SECTORS};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, World};
use uuid::Uuid;

use crate::cache::{FlashIdentity, FlashOptions, LocalFuture};
use crate::device::Device;
use crate::error::FlashError;
use crate::header::{self, Header, HeaderPlace};
use crate::load::{newest_that_counts, patiently};
use crate::patience::Fault;
use crate::place::{FlashPlace, HEADER_PAGES};
use crate::state::Mode;

/// The ring's identity: that of the part, and another one for each format, so that frames of an older one never count.
pub(crate) fn ring_id(id: Uuid, format: u64) -> Uuid {
    Uuid::from_u128(id.as_u128() ^ u128::from(format) << 64 ^ u128::from(format.rotate_left(32)))
}

/// Both copies of the log are on one drive, and nothing is kept of which of them count: the loss of one is the device's.
#[derive(Default)]
pub(crate) struct LogLoss(Cell<Option<IoError>>);

impl LogLoss {
    /// Whether both copies have all that was written.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.0.get().map_or(Ok(()), |error| Err(Fault::Drive(error)))
    }
}

impl LossReport for LogLoss {
    fn report(&self, _: usize, error: IoError) -> LocalFuture<'static, ()> {
        self.0.set(Some(error));
        Box::pin(async {})
    }
}

fn place_lba(place: &FlashPlace, number: u64) -> Lba {
    Lba(place.pieces[0].0 + number * PAGE_SECTORS)
}

/// What both places hold.
pub(crate) async fn read_places(place: &FlashPlace) -> Result<Vec<HeaderPlace>, IoError> {
    let mut found = Vec::new();
    let mut failure = None;
    for number in 0..HEADER_PAGES {
        let buf = BufMut::new(PAGE_SECTORS as u32, PayloadWidth::REAL);
        match place.drive.read(place_lba(place, number), buf).await {
            (Ok(()), buf) => found.push(header::decode(buf.as_slice())),
            (Err(error), _) => failure = Some(error),
        }
    }
    match failure {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// Writes a header to one place after the other; stable when it ends.
pub(crate) async fn write_places(place: &FlashPlace, header: &Header) -> Result<(), IoError> {
    let mut buf = BufMut::new(PAGE_SECTORS as u32, PayloadWidth::REAL);
    header::encode(header, buf.as_mut_slice());
    let buf = buf.freeze();
    for number in 0..HEADER_PAGES {
        write_stable(&place.drive, place_lba(place, number), buf.clone()).await?;
    }
    Ok(())
}

/// The header of a device part that nobody uses yet says that its content counts under `next` too, where it counts under `epoch`.
/// Afterwards the owner makes `next` durable in the pool's metadata, which was never announced before, not even in a start that
/// came to nothing. True where the part holds something that counts.
///
/// # Errors
/// When the drive failed, or did not answer for `patience`.
pub async fn announce_epoch(
    world: &World,
    place: &FlashPlace,
    identity: &FlashIdentity,
    (epoch, next): (u64, u64),
    options: &FlashOptions,
) -> Result<bool, FlashError> {
    place.check()?;
    if place.pieces.is_empty() {
        return Ok(false);
    }
    let patience = options.patience;
    let places = patiently(world, patience, read_places(place)).await?;
    let Ok(known) = newest_that_counts(places, identity, options.pages_per_slot, epoch) else {
        return Ok(false);
    };
    let generation = known.generation + 1;
    let header = Header { current: epoch, next: Some(next), generation, ..known };
    patiently(world, patience, write_places(place, &header)).await?;
    Ok(true)
}

async fn write_stable(drive: &DriveHandle, lba: Lba, buf: Buf) -> Result<(), IoError> {
    drive.write(lba, buf, drive.info().volatile_cache).await
}

impl Device {
    /// Makes the header say something else; stable when it ends.
    pub(crate) async fn relabel(self: &Rc<Self>, change: impl FnOnce(&mut Header)) -> Result<(), Fault> {
        let (place, header) = {
            let mut state = self.state.borrow_mut();
            if state.is_off() {
                return Err(Fault::Off);
            }
            let mut header = state.header.clone();
            header.generation += 1;
            header.budget = state.admission.budget.level(self.world.now());
            change(&mut header);
            // Whatever becomes of it, no other header has its generation.
            state.header.generation = header.generation;
            (state.place.clone(), header)
        };
        let written = header.clone();
        self.command(async move { write_places(&place, &written).await }).await?;
        self.state.borrow_mut().header = header;
        Ok(())
    }

    /// The header says that the content counts under the epoch alone under which it was opened, which is durable in the owner's
    /// metadata; then the device may be written to.
    pub(crate) async fn confirm(self: &Rc<Self>) -> Result<(), FlashError> {
        let result = match self.relabel(|_| ()).await {
            Ok(()) => self.open_log().await,
            Err(fault) => Err(fault),
        };
        result.map_err(|fault| self.give_up(fault))
    }

    /// What was struck out in memory is not on the device, so it must not count any more.
    fn give_up(self: &Rc<Self>, fault: Fault) -> FlashError {
        self.fail(&fault);
        fault.of(self.number)
    }

    /// Makes the log that was read at the opening ready for records.
    async fn open_log(self: &Rc<Self>) -> Result<(), Fault> {
        let (regions, id, log_end) = {
            let state = self.state.borrow();
            (state.shape.ring(&state.place), ring_id(self.id, state.header.format), state.log_end)
        };
        let (world, loss) = (self.world.clone(), self.log_loss.clone());
        let regions = regions.into_iter().map(Some).collect();
        let recover = async move { Ring::recover(&world, regions, id, Settings::default(), loss).await };
        let ring = self.command(recover).await?.ring;
        self.log_loss.check()?;
        if self.mode() != Mode::Waiting {
            return Err(Fault::Off);
        }
        if ring.stable().0 != log_end {
            // The drive lost what it showed when it was opened.
            return Err(Fault::Log(RingError::Damaged { from: ring.stable() }));
        }
        self.start(ring);
        Ok(())
    }
}

/// Makes an empty log.
pub(crate) async fn format_log(
    world: World,
    regions: Vec<Region>,
    id: Uuid,
    loss: Rc<LogLoss>,
) -> Result<Ring, RingError> {
    Ring::format(&world, regions, id, Settings::default(), loss).await
}
