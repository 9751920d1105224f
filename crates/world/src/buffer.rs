//! Block buffers: memory for whole sectors, as wide as the world says (see [`PayloadWidth`]).
//!
//! [`BufMut`] is exclusive and can be split at sector boundaries and joined again; [`Buf`] is shared and
//! read-only. Memory is aligned to 4096 bytes (O_DIRECT) and comes from a cache ([`crate::memory`]): once that is warm,
//! the data path asks the allocator for nothing but a reference count. A buffer of width zero holds nothing and costs
//! nothing.
//!
//! Fresh buffers hold arbitrary old data of this process: code that hands one out must have filled it.
//!
//! Instead of filling a buffer, a drive that has the data in memory may lend it ([`BufMut::borrow`]). Who then wants to
//! change the buffer gets a copy of his own.
//!
//! Where a world keeps no data, a buffer of data still says whether it is known to be zeros, so that what is done about
//! zeros is done there too. What must be found again (a log's heads, tables, maps) is in whole sectors in every world; a
//! buffer may begin with such sectors and go on with data that is not kept ([`BufMut::with_blank_rest`]). A drive gives
//! back zeros for what had no content.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::Block;
use crate::{Lender, PayloadWidth};

/// An exclusive buffer of whole sectors.
pub struct BufMut {
    block: Option<Arc<Block>>,
    /// Bytes in front of it in the block.
    offset: u32,
    sectors: u32,
    /// Sectors at its front that have `width` bytes each; the others have none.
    kept: u32,
    width: PayloadWidth,
    /// Known to be all zeros.
    zero: bool,
}

impl BufMut {
    /// A buffer for `sectors` sectors of `width` bytes; its content is arbitrary.
    pub fn new(sectors: u32, width: PayloadWidth) -> BufMut {
        BufMut::with_blank_rest(sectors, sectors, width)
    }

    /// A buffer for `sectors` sectors, of which only the first `kept` have `width` bytes, and the others none.
    pub fn with_blank_rest(kept: u32, sectors: u32, width: PayloadWidth) -> BufMut {
        assert!(kept <= sectors, "a buffer of {sectors} sectors has no {kept}");
        let bytes = kept as usize * width.bytes();
        assert!(bytes <= u32::MAX as usize, "a buffer has less than 4 GiB");
        let block = (bytes > 0).then(|| Arc::new(Block::new(bytes)));
        BufMut { block, offset: 0, sectors, kept, width, zero: false }
    }

    /// A buffer that is known to be all zeros.
    pub fn zeroed(sectors: u32, width: PayloadWidth) -> BufMut {
        let mut buf = BufMut::new(sectors, width);
        buf.set_zero();
        buf
    }

    /// Makes it all zeros, and known to be.
    pub fn set_zero(&mut self) {
        self.as_mut_slice().fill(0);
        self.zero = true;
    }

    /// A copy of buffers of one width, one after the other.
    pub fn concat<'a>(parts: impl Iterator<Item = &'a Buf> + Clone, width: PayloadWidth) -> BufMut {
        let sectors = parts.clone().map(Buf::sectors).sum();
        let mut all = BufMut::new(sectors, width);
        let mut rest = all.as_mut_slice();
        let mut zero = true;
        for part in parts {
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(part.as_slice().len());
            own.copy_from_slice(part.as_slice());
            rest = behind;
            zero &= part.is_known_zero();
        }
        assert!(rest.is_empty(), "buffers of one world have one width");
        all.zero = zero;
        all
    }

    /// What a world of `width` keeps of whole sectors: the first bytes of each.
    pub fn keep_of(bytes: &[u8], width: PayloadWidth) -> BufMut {
        let sectors = bytes.chunks_exact(PayloadWidth::REAL.bytes());
        let mut kept = BufMut::new(sectors.len() as u32, width);
        if width.bytes() > 0 {
            for (place, sector) in kept.as_mut_slice().chunks_exact_mut(width.bytes()).zip(sectors) {
                place.copy_from_slice(&sector[..width.bytes()]);
            }
        }
        kept
    }

    /// A buffer that holds `bytes`, whose length must be a multiple of the width.
    pub fn copy_from(bytes: &[u8], width: PayloadWidth) -> BufMut {
        let sectors = bytes.len() / width.bytes();
        assert_eq!(sectors * width.bytes(), bytes.len(), "a buffer holds whole sectors");
        let mut buf = BufMut::new(u32::try_from(sectors).expect("a buffer is at most 2^32 sectors"), width);
        buf.as_mut_slice().copy_from_slice(bytes);
        buf
    }

    /// Sectors it stands for.
    pub fn sectors(&self) -> u32 {
        self.sectors
    }

    /// Bytes per sector.
    pub fn width(&self) -> PayloadWidth {
        self.width
    }

    /// Whether no other buffer shares its allocation: it is no part of a split, or the last one.
    pub fn is_alone(&mut self) -> bool {
        self.block.as_mut().is_some_and(|block| Arc::get_mut(block).is_some())
    }

    /// Takes what lies at `memory` on loan instead of its own memory, whose content is lost. Panics unless it
    /// [is alone](BufMut::is_alone): parts that are to be joined again must stay neighbours.
    ///
    /// # Safety
    /// From `memory` on there are as many initialised bytes as the buffer holds, and they are neither changed nor freed
    /// until the lender takes the loan back.
    pub unsafe fn borrow(&mut self, memory: NonNull<u8>, lender: Arc<dyn Lender>, loan: u32) {
        let block =
            self.block.as_mut().and_then(Arc::get_mut).expect("only a buffer that is alone may borrow");
        *block = Block::on_loan(memory, lender, loan);
        self.offset = 0;
    }

    /// The bytes it holds: sectors times width, unless its rest is blank.
    pub fn as_slice(&self) -> &[u8] {
        let Some(block) = &self.block else { return &[] };
        // SAFETY: the range lies in the allocation by construction and is initialised (allocated zeroed, or lent so).
        // No other buffer covers it, since `split_to` hands out disjoint ranges and `freeze` consumes self, or it is on
        // loan and does not change.
        unsafe { std::slice::from_raw_parts(block.memory().as_ptr().add(self.offset as usize), self.bytes()) }
    }

    /// The bytes it holds, to be changed; a copy of them if they are on loan.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.zero = false;
        if self.block.as_ref().is_some_and(|block| block.is_on_loan()) {
            *self = BufMut::copy_from(self.as_slice(), self.width);
        }
        let Some(block) = &self.block else { return &mut [] };
        // SAFETY: as in `as_slice`; exclusive because self is borrowed exclusively, and what is on loan was left above.
        unsafe {
            let first = block.memory().as_ptr().add(self.offset as usize);
            std::slice::from_raw_parts_mut(first, self.bytes())
        }
    }

    /// Takes the first `sectors` sectors off as a buffer of their own; self keeps the rest.
    pub fn split_to(&mut self, sectors: u32) -> BufMut {
        assert!(sectors <= self.sectors, "cannot split {sectors} sectors off {}", self.sectors);
        let front = self.part(0, sectors);
        self.offset += front.bytes() as u32;
        self.sectors -= sectors;
        self.kept -= front.kept;
        front
    }

    /// Joins `back` to the end of self; the two must be neighbours of one split.
    pub fn join(&mut self, back: BufMut) {
        self.try_join(back).expect("only neighbours of one split can be joined");
    }

    /// Makes `back` the end of self: joined where the two are neighbours of one split, otherwise copied. They may be none
    /// where a drive was given up and has kept its part of the memory.
    pub fn append(&mut self, back: BufMut) {
        let Err(back) = self.try_join(back) else { return };
        assert_eq!(self.width, back.width, "buffers of one world have one width");
        let parts = [std::mem::take(self).freeze(), back.freeze()];
        *self = BufMut::concat(parts.iter(), parts[0].width());
    }

    /// Joins `back` to the end of self, or gives it back if the two are no neighbours of one split.
    pub fn try_join(&mut self, back: BufMut) -> Result<(), BufMut> {
        let neighbours = match (&self.block, &back.block) {
            (Some(a), Some(b)) => {
                let is_full = self.kept == self.sectors || back.kept == 0;
                is_full && Arc::ptr_eq(a, b) && self.offset as usize + self.bytes() == back.offset as usize
            }
            (a, b) => a.is_none() && b.is_none(),
        };
        if !neighbours || self.width != back.width {
            return Err(back);
        }
        let is_empty = self.sectors == 0;
        self.sectors += back.sectors;
        self.kept += back.kept;
        self.zero = (self.zero || is_empty) && (back.zero || back.sectors == 0);
        Ok(())
    }

    /// The `sectors` sectors from sector `first` on.
    fn part(&self, first: u32, sectors: u32) -> BufMut {
        let before = first.min(self.kept);
        let offset = self.offset + before * u32::from(self.width.0);
        let kept = sectors.min(self.kept - before);
        BufMut { block: self.block.clone(), offset, sectors, kept, width: self.width, zero: self.zero }
    }

    /// Makes it shared and read-only.
    pub fn freeze(self) -> Buf {
        Buf(self)
    }

    fn bytes(&self) -> usize {
        self.kept as usize * self.width.bytes()
    }
}

impl Default for BufMut {
    /// No sectors.
    fn default() -> BufMut {
        BufMut::new(0, PayloadWidth::NONE)
    }
}

impl fmt::Debug for BufMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufMut({} sectors of {} bytes)", self.sectors, self.width.bytes())
    }
}

/// A shared, read-only buffer of whole sectors; cloning it copies a reference.
pub struct Buf(BufMut);

impl Buf {
    /// Sectors it stands for.
    pub fn sectors(&self) -> u32 {
        self.0.sectors
    }

    /// Bytes per sector.
    pub fn width(&self) -> PayloadWidth {
        self.0.width
    }

    /// The bytes it holds: sectors times width, unless its rest is blank.
    pub fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Whether its maker said that it is all zeros. Where there are bytes they may be zeros without that.
    pub fn is_known_zero(&self) -> bool {
        self.0.zero
    }

    /// The bytes of each run of `sectors` sectors, the last one maybe shorter; no bytes where they are not kept.
    pub fn runs(&self, sectors: u32) -> impl Iterator<Item = &[u8]> {
        let bytes = sectors as usize * self.0.width.bytes();
        let mut rest = self.as_slice();
        (0..self.sectors().div_ceil(sectors)).map(move |_| {
            let (run, behind) = rest.split_at(bytes.min(rest.len()));
            rest = behind;
            run
        })
    }

    /// Bytes of the allocation that it keeps from being freed, alone or with others.
    pub fn allocation_bytes(&self) -> usize {
        self.0.block.as_ref().map_or(0, |block| block.bytes())
    }

    /// The `sectors` sectors from sector `first` on, sharing the memory.
    pub fn slice(&self, first: u32, sectors: u32) -> Buf {
        assert!(first + sectors <= self.0.sectors, "slice {first}+{sectors} of {} sectors", self.0.sectors);
        Buf(self.0.part(first, sectors))
    }

    /// Back to an exclusive buffer, where no other buffer shares the memory.
    pub fn try_into_mut(mut self) -> Result<BufMut, Buf> {
        let exclusive = self.0.block.as_mut().is_none_or(|block| Arc::get_mut(block).is_some());
        if exclusive { Ok(self.0) } else { Err(self) }
    }
}

impl Clone for Buf {
    fn clone(&self) -> Buf {
        self.slice(0, self.0.sectors)
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} sectors of {} bytes)", self.sectors(), self.width().bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn split_and_join_keep_the_bytes() {
        let mut all = BufMut::zeroed(4, PayloadWidth::REAL);
        let mut front = all.split_to(1);
        front.as_mut_slice().fill(1);
        all.as_mut_slice().fill(2);
        front.join(all);
        assert_eq!(front.sectors(), 4);
        assert_eq!((front.as_slice()[511], front.as_slice()[512]), (1, 2));
    }

    #[test]
    #[should_panic(expected = "neighbours")]
    fn strangers_cannot_be_joined() {
        let mut a = BufMut::new(1, PayloadWidth::REAL);
        a.join(BufMut::new(1, PayloadWidth::REAL));
    }

    #[test]
    fn frozen_slices_share_and_the_last_owner_may_thaw() {
        let mut buf = BufMut::zeroed(2, PayloadWidth::new(4));
        buf.as_mut_slice().copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let whole = buf.freeze();
        let second = whole.slice(1, 1);
        assert_eq!(second.as_slice(), [5, 6, 7, 8]);
        let whole = whole.try_into_mut().expect_err("the slice still shares it");
        drop(second);
        assert!(whole.try_into_mut().is_ok());
    }

    /// Lends what it was made with; counts what it has taken back.
    struct Owner {
        bytes: Vec<u8>,
        taken_back: AtomicU32,
    }

    impl Lender for Owner {
        fn take_back(&self, loan: u32) {
            assert_eq!(loan, 7);
            self.taken_back.fetch_add(1, Ordering::Relaxed);
        }

        fn loan_bytes(&self) -> usize {
            1 << 20
        }
    }

    #[test]
    fn what_is_on_loan_is_read_in_place_and_changed_in_a_copy() {
        let owner = Arc::new(Owner { bytes: vec![1, 2, 3, 4], taken_back: AtomicU32::new(0) });
        let address = NonNull::from(&owner.bytes[..]).cast::<u8>();
        let borrowed = || {
            let mut buf = BufMut::new(2, PayloadWidth::new(2));
            assert!(buf.is_alone());
            // SAFETY: nothing changes the owner's bytes, and the loan keeps the owner.
            unsafe { buf.borrow(address, owner.clone(), 7) };
            buf
        };

        let shared = borrowed().freeze();
        let second = shared.slice(1, 1);
        assert_eq!((second.as_slice(), second.allocation_bytes()), (&[3, 4][..], 1 << 20));
        drop(shared);
        assert_eq!(owner.taken_back.load(Ordering::Relaxed), 0, "a slice still refers to it");
        drop(second);
        assert_eq!(owner.taken_back.load(Ordering::Relaxed), 1);

        let mut changed = borrowed();
        assert_eq!(changed.as_slice().as_ptr(), address.as_ptr());
        changed.as_mut_slice()[0] = 9;
        assert_eq!((changed.as_slice(), &owner.bytes[..]), (&[9, 2, 3, 4][..], &[1, 2, 3, 4][..]));
        assert_eq!(owner.taken_back.load(Ordering::Relaxed), 2, "a copy needs no loan");

        let mut rest = borrowed();
        let mut front = rest.split_to(1);
        front.as_mut_slice()[1] = 9;
        front.append(rest);
        assert_eq!(front.as_slice(), [1, 9, 3, 4]);
    }

    #[test]
    #[should_panic(expected = "alone")]
    fn parts_of_a_split_do_not_borrow() {
        let mut rest = BufMut::new(2, PayloadWidth::new(2));
        let _front = rest.split_to(1);
        assert!(!rest.is_alone());
        let owner = Arc::new(Owner { bytes: vec![0; 4], taken_back: AtomicU32::new(0) });
        let address = NonNull::from(&owner.bytes[..]).cast::<u8>();
        // SAFETY: nothing changes the owner's bytes, and the loan keeps the owner.
        unsafe { rest.borrow(address, owner.clone(), 7) };
    }

    #[test]
    fn memory_is_aligned_and_comes_back_from_the_cache() {
        let first = BufMut::new(16, PayloadWidth::REAL);
        let address = first.as_slice().as_ptr() as usize;
        assert_eq!(address % crate::memory::ALIGNMENT, 0);
        drop(first);
        assert_eq!(BufMut::new(16, PayloadWidth::REAL).as_slice().as_ptr() as usize, address);
    }

    #[test]
    fn width_zero_holds_nothing() {
        let mut buf = BufMut::new(1 << 20, PayloadWidth::NONE);
        assert!(buf.as_mut_slice().is_empty());
        let front = buf.split_to(5);
        assert_eq!((front.sectors(), buf.sectors()), (5, (1 << 20) - 5));
    }
    #[test]
    fn strangers_are_copied_together() {
        let mut buf = BufMut::zeroed(3, PayloadWidth::new(2));
        buf.as_mut_slice().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
        let mut front = buf.split_to(1);
        drop(buf);
        front.append(BufMut::copy_from(&[7, 8, 9, 10], PayloadWidth::new(2)));
        assert_eq!(front.as_slice(), [1, 2, 7, 8, 9, 10]);
        let rest = front.split_to(2);
        let (mut joined, address) = (rest, front.as_slice().as_ptr());
        joined.append(front);
        assert_eq!(joined.as_slice()[4..].as_ptr(), address, "neighbours are joined where they are");
    }
}
