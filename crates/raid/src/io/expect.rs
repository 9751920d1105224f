//! What a page must be: the seam between redundancy, which can say what a page could be, and checksums, which say what
//! it is.

use std::ops::Range;

use tier0_world::{PlantedBug, planted};

use crate::checksum::page_checksum;
use crate::parity::is_zero;
use crate::set::SetIndex;

/// What is known of a page's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing: whatever the drives hold is right.
    Unknown,
    /// The page reads as zeros. In a row that was written the drives hold zeros there too, in a row of which nothing is
    /// stored anything.
    Zero,
    /// The page reads as zeros, and the drives still hold what it was before it became that: parity counts it.
    GivenUp,
    /// Its [`page_checksum`].
    Crc(u32),
}

/// Knows what pages must be.
///
/// The answer must change together with what the drives hold: the writer of pages brings it up to date before it drops
/// the row's lock ([`crate::io::Written`]).
pub trait Expect {
    /// What is known of page `page` of a set's data: the page's address in sectors, divided by
    /// [`tier0_units::PAGE_SECTORS`].
    fn expect(&self, set: SetIndex, page: u64) -> Expected;

    /// Whether all of these pages read as zeros. It is asked before they are read: who knows the answer without looking
    /// at each page can use the time to have at hand what they must be.
    fn all_zero(&self, set: SetIndex, mut pages: Range<u64>) -> bool {
        pages.all(|page| self.expect(set, page).reads_as_zeros())
    }
}

/// Nothing is known of any page: for arrays without checksums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked;

impl Expect for Unchecked {
    fn expect(&self, _: SetIndex, _: u64) -> Expected {
        Expected::Unknown
    }
}

impl Expected {
    /// Whether nothing is stored of the page.
    #[inline]
    pub fn reads_as_zeros(self) -> bool {
        matches!(self, Expected::Zero | Expected::GivenUp)
    }

    /// Whether a page with this content can be what is expected.
    #[inline]
    pub(crate) fn admits(self, bytes: &[u8]) -> bool {
        match self {
            Expected::Unknown | Expected::Zero | Expected::GivenUp => true,
            Expected::Crc(expected) => page_checksum(bytes) == expected,
        }
    }

    /// Whether a parity that says that a page which is missed had this content can be right. In a row that was written the
    /// drives hold zeros where nothing is stored; a parity that says something else has rotted, or counts what a drive
    /// holds there that lied about a write.
    #[inline]
    pub(crate) fn admits_recovered(self, bytes: &[u8]) -> bool {
        match self {
            Expected::Zero => is_zero(bytes),
            _ => self.admits(bytes),
        }
    }

    /// Whether a difference to this content may go into a parity. What a page held that is given up is no longer known,
    /// so it cannot be told whether it has rotted: zeros may be what a drive holds that has forgotten it.
    #[inline]
    pub(crate) fn vouches_for(self, bytes: &[u8]) -> bool {
        match self {
            Expected::Zero => is_zero(bytes),
            Expected::GivenUp => planted(PlantedBug::TrustGivenUpPage) && is_zero(bytes),
            _ => self.admits(bytes),
        }
    }
}
