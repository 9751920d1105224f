//! The write hole: a power cut between the columns of a row, a drive that is missing afterwards, and the replay of what
//! was logged.

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, on_each_shape};
use tier0_raid::io::{Expect, Expected, Rest};
use tier0_raid::layout::{Column, Row};
use tier0_units::Lba;
use tier0_world::{Buf, IoError, Random};

/// What the log would hold of one write of a row.
struct Intent {
    row: Row,
    pages: RowPages,
    data: Vec<(u64, Buf)>,
    parity: Vec<(Column, Lba, Buf)>,
    rest: Rest,
}

impl Intent {
    /// Prepares a write, logs it, and does not carry it out.
    async fn log(farm: &Farm, row: Row, pages: RowPages, random: &mut Random) -> Intent {
        let (data, rest) = (farm.buffers(&pages, random), farm.rest(row));
        let prepared = farm.io.prepare(SET, row, &data, rest, &*farm.table).await.expect("prepared");
        let parity = prepared.parity().map(|(column, lba, buf)| (column, lba, buf.clone())).collect();
        Intent { row, pages, data, parity, rest }
    }

    /// Does an arbitrary part of the write, sector by sector.
    async fn tear(&self, farm: &Farm, random: &mut Random) {
        let layout = farm.layout;
        let lost = farm.io.lost_columns(SET, self.row);
        let zeros = vec![0; PAGE_BYTES];
        for page in 0..layout.row_pages() {
            let place = layout.page_place(page);
            let given = self.data.iter().find_map(|(first, buf)| {
                let n = page.checked_sub(*first as usize)?;
                buf.as_slice().chunks(PAGE_BYTES).nth(n)
            });
            let whole_row = self.rest == Rest::Zeros && layout.parities() > 0;
            if let Some(new) = given.or(whole_row.then_some(&zeros)) {
                for column in layout.copies(self.row, place.unit) - lost {
                    tear_page(farm, column, self.row, place.offset, new, random).await;
                }
            }
        }
        for (column, lba, buf) in &self.parity {
            let offset = ((lba.0 - layout.page_column_lba(self.row, 0).0) / 8) as usize;
            for (n, new) in buf.as_slice().chunks(PAGE_BYTES).enumerate() {
                tear_page(farm, *column, self.row, offset + n, new, random).await;
            }
        }
    }

    async fn replay(&self, farm: &Farm) -> Result<(), IoError> {
        let written = farm.io.replay_row(SET, self.row, &self.data, &self.parity, self.rest).await?;
        farm.accept(self.row, &self.pages);
        drop(written);
        Ok(())
    }
}

async fn tear_page(farm: &Farm, column: Column, row: Row, offset: usize, new: &[u8], random: &mut Random) {
    let mut stored = farm.stored(column, row, offset).await;
    let share = [0.0, 0.5, 1.0][random.below(3) as usize];
    for (old, new) in stored.chunks_mut(PAGE_BYTES / 8).zip(new.chunks(PAGE_BYTES / 8)) {
        if random.chance(share) {
            old.copy_from_slice(new);
        }
    }
    farm.plant(column, row, offset, &stored).await;
}

/// Tears writes, loses drives, replays unless told otherwise, and says how many pages are wrong afterwards.
async fn tear_and_lose(farm: &Farm, replay: bool, random: &mut Random) -> usize {
    farm.fill_with_noise(random).await;
    for loss in 0..farm.layout.tolerated_failures() {
        farm.live(40, random).await;
        // Each row once, and some again: intents of one row are replayed in their order.
        let mut intents = Vec::new();
        for row in farm.all_rows() {
            let pages = farm.some_pages(random).into_iter().filter(|(_, bytes)| bytes.is_some()).collect();
            let intent = Intent::log(farm, row, pages, random).await;
            intent.tear(farm, random).await;
            intents.push(intent);
        }
        let victim = Column((loss * 2 + 1) as u8 % farm.layout.columns() as u8);
        farm.lose(victim);
        if replay {
            for intent in &intents {
                intent.replay(farm).await.expect("replayed");
            }
            // A second power cut during the replay: it starts over.
            for intent in &intents {
                intent.tear(farm, random).await;
            }
            for intent in &intents {
                intent.replay(farm).await.expect("replayed");
            }
            farm.check_all().await;
            farm.check_redundancy().await;
        } else {
            return wrong_pages(farm, &intents).await;
        }
    }
    0
}

/// Pages that were not being written and that cannot be read any more.
async fn wrong_pages(farm: &Farm, intents: &[Intent]) -> usize {
    let mut wrong = 0;
    for intent in intents {
        for page in (0..farm.row_pages()).filter(|page| !intent.pages.contains_key(page)) {
            let page = intent.row.0 * farm.row_pages() + page;
            if matches!(farm.table.expect(SET, page), Expected::Crc(_)) {
                let buf = farm.world.buffer(8);
                let read = farm.io.read_verified(SET, Lba(page * 8), buf, &*farm.table).await;
                wrong += usize::from(read.0.is_err());
            }
        }
    }
    wrong
}

#[test]
fn a_torn_row_is_whole_after_replay_though_a_drive_is_missing() {
    for seed in 0..4 {
        on_each_shape(seed, |farm, mut random| async move {
            assert_eq!(tear_and_lose(&farm, true, &mut random).await, 0);
        });
    }
}

#[test]
fn without_replay_the_hole_is_there() {
    on_each_shape(1, |farm, mut random| async move {
        let wrong = tear_and_lose(&farm, false, &mut random).await;
        // Mirrors have no hole: a page that is not written is not touched.
        assert_eq!(wrong > 0, farm.layout.parities() > 0, "{wrong} pages");
    });
}

#[test]
fn the_parity_to_log_is_what_the_row_gets() {
    on_each_shape(2, |farm, mut random| async move {
        for _ in 0..50 {
            let row = Row(random.below(8));
            let pages: RowPages =
                farm.some_pages(&mut random).into_iter().filter(|(_, bytes)| bytes.is_some()).collect();
            if pages.is_empty() {
                continue;
            }
            let intent = Intent::log(&farm, row, pages.clone(), &mut random).await;
            assert_eq!(intent.parity.is_empty(), farm.layout.parities() == 0);
            farm.destage(row, &pages, &mut random).await.expect("written");
            for (column, lba, buf) in &intent.parity {
                let offset = ((lba.0 - farm.layout.page_column_lba(row, 0).0) / 8) as usize;
                for (n, page) in buf.as_slice().chunks(PAGE_BYTES).enumerate() {
                    assert_eq!(farm.stored(*column, row, offset + n).await, page);
                }
            }
        }
        farm.check_redundancy().await;
    });
}
