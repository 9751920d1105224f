//! Copies of a mirror: the first that is what it must be is taken, and those that are wrong are written again with it.
//!
//! As in [`crate::io::heal`], everything here runs under the row's lock.

use tier0_world::Buf;

use crate::io::RaidIo;
use crate::io::expect::Expected;
use crate::io::grid::{Cell, Grid};
use crate::io::patience::Stake;
use crate::io::report::{PageFault, RepairSource};
use crate::layout::{Column, ColumnMask, PagePlace};

impl RaidIo {
    /// A page of a mirror, from the first copy that is what it must be; copies that were found wrong are repaired.
    /// Without one, what one of them holds, if any can be read.
    pub(crate) async fn best_copy(
        &self,
        grid: &mut Grid,
        place: PagePlace,
        expected: Expected,
        stake: Stake,
    ) -> Result<Buf, Option<Buf>> {
        let (found, wrong) = self.find_copy(grid, place, expected, stake).await;
        self.heal_copies(grid, place, found, wrong).await
    }

    /// Tells of the copies that are wrong, and repairs them with the one that was found. Where there is none, gives what some
    /// copy holds.
    pub(crate) async fn heal_copies(
        &self,
        grid: &mut Grid,
        place: PagePlace,
        found: Option<(Column, Buf)>,
        wrong: Vec<(Column, PageFault)>,
    ) -> Result<Buf, Option<Buf>> {
        let at = grid.at();
        let page = self.sets().layout(grid.at().set).page_of_set(at.row, place);
        let source = found.as_ref().map(|(copy, _)| RepairSource::Copy(*copy));
        for (copy, fault) in &wrong {
            self.report(grid, place.offset, *copy, Some(page), *fault, source);
        }
        let Some((_, right)) = found else {
            return Err(wrong.iter().find_map(|(copy, _)| grid.page(*copy, place.offset).cloned()));
        };
        for (copy, _) in wrong {
            grid.set(copy, place.offset, Cell::Page(right.clone()));
            self.repair_page(at.set, at.row, place.offset, copy, right.clone()).await;
        }
        Ok(right)
    }

    /// The first copy that is what it must be, and what is wrong with those before it. Where there is none, those that
    /// cannot be read are read again for as long as patience lasts.
    pub(crate) async fn find_copy(
        &self,
        grid: &mut Grid,
        place: PagePlace,
        expected: Expected,
        stake: Stake,
    ) -> (Option<(Column, Buf)>, Vec<(Column, PageFault)>) {
        let at = grid.at();
        let mut wait = self.wait(stake);
        loop {
            let copies = self.sets().layout(grid.at().set).copies(at.row, place.unit)
                - self.lost_columns(at.set, at.row);
            let (found, wrong) = self.look_for_copy(grid, place, copies, expected).await;
            let unreadable = grid.unreadable(copies, &[place.offset]);
            if found.is_some() || unreadable.is_empty() {
                wait.succeeded();
                return (found, wrong);
            }
            if !wait.again().await {
                return (found, wrong);
            }
            grid.read(self, unreadable).await;
        }
    }

    /// Copies that are in the grid come first: they cost nothing.
    async fn look_for_copy(
        &self,
        grid: &mut Grid,
        place: PagePlace,
        copies: ColumnMask,
        expected: Expected,
    ) -> (Option<(Column, Buf)>, Vec<(Column, PageFault)>) {
        let known =
            copies.iter().filter(|copy| grid.page(*copy, place.offset).is_some()).collect::<ColumnMask>();
        let mut wrong = Vec::new();
        for copy in known.iter().chain((copies - known).iter()) {
            self.read_live(grid, ColumnMask::only(copy), &[place.offset]).await;
            match grid.page(copy, place.offset) {
                None => wrong.push((copy, PageFault::Unreadable)),
                Some(content) if !expected.admits(content.as_slice()) => wrong.push((copy, PageFault::Rot)),
                Some(content) => return (Some((copy, content.clone())), wrong),
            }
        }
        (None, wrong)
    }
}
