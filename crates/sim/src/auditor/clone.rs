//! What a clone of a volume may hold: sector by sector what a read of the volume might have found that began and ended with
//! the cloning, and always the same of it.

use tier0_units::Lba;
use tier0_workload::verify::{Allowed, Holds};

use super::{Auditor, ReadTicket, address};

/// A clone of a volume that nothing was written to yet.
#[derive(Clone, Debug)]
pub struct CloneBook {
    /// The volume whose sectors it has.
    volume: usize,
    sectors: Vec<Sector>,
}

#[derive(Clone, Debug)]
struct Sector {
    allowed: Allowed<'static>,
    /// What was found, which stays.
    found: Option<Holds>,
}

impl Auditor {
    /// Cloning of a volume begins.
    pub fn begin_clone(&self, volume: usize) -> ReadTicket {
        self.begin_read(volume, Lba(0), self.sectors(volume))
    }

    /// It ends, or the array died in it.
    pub fn end_clone(&self, ticket: &ReadTicket) -> CloneBook {
        let book = &self.volumes[ticket.volume];
        let sector =
            |sector| Sector { allowed: book.allowed(&ticket.sectors, sector).into_owned(), found: None };
        CloneBook { volume: ticket.volume, sectors: ticket.sectors.units().map(sector).collect() }
    }
}

impl CloneBook {
    /// How many sectors it has.
    pub fn sectors(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// Judges what a sector of it holds in a run with this seed; what it should, where it does not.
    pub fn judge(&mut self, sector: u64, bytes: &[u8], seed: u64) -> Result<(), String> {
        let known = &mut self.sectors[sector as usize];
        let holds = Holds::of(bytes, seed);
        match known.found {
            Some(found) if found == holds => Ok(()),
            Some(found) => Err(format!("holds {holds:?}, and held {found:?} before")),
            None => match known.allowed.version_of(&holds, address(self.volume, sector)) {
                Some(_) => {
                    known.found = Some(holds);
                    Ok(())
                }
                None => Err(format!("holds {holds:?}, and volume {} held {}", self.volume, known.allowed)),
            },
        }
    }
}
