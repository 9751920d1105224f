//! The verifier against a small disk that does as it is told, and against one that does not.

use tier0_units::{Lba, SectorCount};
use tier0_world::Random;

use super::*;

/// Blocks of two sectors from sector 10 on.
const START: u64 = 10;
const BLOCK: u64 = 2;

fn verifier(width: usize, blocks: u64, fresh: bool) -> Verifier {
    let range = (Lba(START), SectorCount(blocks * BLOCK), SectorCount(BLOCK));
    Verifier::new(range, width, 77, fresh).expect("a small range")
}

/// A disk with a verifier over it; requests take effect at once.
struct Bench {
    verifier: Verifier,
    width: usize,
    disk: Vec<u8>,
}

impl Bench {
    fn new(width: usize, fresh: bool) -> Bench {
        Bench { verifier: verifier(width, 8, fresh), width, disk: vec![0; 16 * width] }
    }

    fn range(&self, block: u64, blocks: u64) -> std::ops::Range<usize> {
        let at = |block: u64| (block * BLOCK) as usize * self.width;
        at(block)..at(block + blocks)
    }

    fn write_to(&mut self, block: u64, blocks: u64, landed: Option<u64>) {
        let mut data = vec![0; self.range(block, blocks).len()];
        let mut ticket = WriteTicket::default();
        self.verifier.begin_write(Lba(START + block * BLOCK), &mut data, &mut ticket);
        if let Some(landed) = landed {
            let range = self.range(landed, blocks);
            self.disk[range].copy_from_slice(&data);
        }
        self.verifier.end_write(&ticket, true);
    }

    fn write(&mut self, block: u64, blocks: u64) {
        self.write_to(block, blocks, Some(block));
    }

    fn read(&mut self, block: u64, blocks: u64) -> Result<(), (Mismatch, u64)> {
        let mut ticket = ReadTicket::default();
        self.verifier.begin_read(Lba(START + block * BLOCK), SectorCount(blocks * BLOCK), &mut ticket);
        let data = self.disk[self.range(block, blocks)].to_vec();
        self.verifier.end_read(&ticket, &data)
    }

    fn found(&mut self, block: u64) -> Found {
        self.read(block, 1).expect_err("the block is wrong").0.found
    }
}

#[test]
fn what_was_written_is_found_at_any_width() {
    for width in [16, 24, 32, 512] {
        let mut bench = Bench::new(width, true);
        bench.write(0, 8);
        bench.write(3, 2);
        assert_eq!(bench.read(0, 8), Ok(()), "width {width}");
        assert_eq!(bench.read(4, 1), Ok(()), "width {width}");
    }
}

#[test]
fn each_planted_fault_is_named() {
    for width in [16, 32, 512] {
        let mut bench = Bench::new(width, true);
        bench.write(0, 8);
        bench.write_to(2, 1, None);
        assert_eq!(bench.found(2), Found::Stale { version: 1 }, "width {width}");
        bench.write_to(3, 1, Some(5));
        let misdirected = Found::Misdirected { lba: Lba(START + 3 * BLOCK), version: 2 };
        assert_eq!(bench.found(5), misdirected, "width {width}");
        bench.disk[bench.width - 1] ^= 0x10;
        assert_eq!(bench.found(0), Found::Corrupt { byte: width - 1 }, "width {width}");
        let range = bench.range(6, 1);
        bench.disk[range].fill(0);
        assert_eq!(bench.found(6), Found::Zeros, "width {width}");
        stamp(&mut bench.disk[7 * 2 * width..][..width], START + 7 * BLOCK, 9, 77);
        assert_eq!(bench.found(7), Found::Unissued { version: 9 }, "width {width}");
    }
}

#[test]
fn another_runs_data_is_told_apart() {
    let mut bench = Bench::new(512, true);
    bench.write(1, 1);
    stamp(&mut bench.disk[2 * 512..][..512], START + 2, 1, 78);
    assert_eq!(bench.found(1), Found::OtherSeed { lba: Lba(START + 2), version: 1, seed: 78 });
}

#[test]
fn a_mismatch_says_where_and_how_many() {
    let mut bench = Bench::new(512, true);
    bench.write(0, 4);
    bench.write_to(1, 2, None);
    let (mismatch, sectors) = bench.read(0, 4).expect_err("two blocks are stale");
    assert_eq!(sectors, 4);
    let text = mismatch.to_string();
    assert_eq!(
        text,
        "sector 12 (block at 12) must hold version 2 but holds version 1: lost write (stale data)"
    );
}

#[test]
fn unwritten_blocks_are_zeros_or_anything() {
    let mut fresh = Bench::new(512, true);
    assert_eq!(fresh.read(0, 8), Ok(()));
    fresh.disk[100] = 1;
    assert_eq!(fresh.found(0), Found::Corrupt { byte: 100 });
    let mut used = Bench::new(512, false);
    used.disk.fill(0xa5);
    assert_eq!(used.read(0, 8), Ok(()));
    used.write_to(0, 1, None);
    assert!(matches!(used.found(0), Found::Corrupt { .. }), "once written, it must be what was written");
}

#[test]
fn what_was_there_before_the_run_decides_nothing() {
    let mut used = Bench::new(512, false);
    let (mut data, mut ticket) = (vec![0; 2 * 512], WriteTicket::default());
    used.verifier.begin_write(Lba(START), &mut data, &mut ticket);
    used.verifier.end_write(&ticket, false);
    assert_eq!(used.read(0, 1), Ok(()), "what was there may be anything");
    used.disk[..2 * 512].copy_from_slice(&data);
    assert_eq!(used.read(0, 1), Ok(()), "the failed write has landed");
    used.disk.fill(0);
    assert_eq!(used.found(0), Found::Zeros, "once it was seen, it is there");
}

#[test]
fn the_sweep_visits_what_was_written() {
    let mut bench = Bench::new(16, true);
    bench.write(1, 3);
    bench.write(6, 1);
    let mut runs = Vec::new();
    let mut from = Lba(START);
    while let Some((lba, sectors)) = bench.verifier.next_written(from, SectorCount(4)) {
        runs.push(((lba.0 - START) / BLOCK, sectors.0 / BLOCK));
        from = lba + sectors;
    }
    assert_eq!(runs, [(1, 2), (3, 1), (6, 1)]);
}

#[test]
fn too_large_a_range_is_refused() {
    let range = (Lba(0), SectorCount(1 << 40), SectorCount(1));
    let error = Verifier::new(range, 512, 1, true).expect_err("4 TiB of versions");
    assert!(error.to_string().contains("4TiB"), "{error}");
}

/// A write under way on the honest disk: some of its sectors have landed, sector by sector in any order.
struct Flight {
    ticket: WriteTicket,
    block: u64,
    data: Vec<u8>,
    left: Vec<usize>,
}

/// Random overlapping reads and writes on a disk that keeps its promises and no more. Returns the first
/// complaint.
fn overlapping(seed: u64, lose_write: Option<u32>) -> Result<(), Mismatch> {
    const WIDTH: usize = 16;
    let mut random = Random::new(seed, 0);
    let mut bench = Bench::new(WIDTH, true);
    let mut writes: Vec<Flight> = Vec::new();
    let mut reads: Vec<(ReadTicket, u64, Vec<u8>, Vec<usize>)> = Vec::new();
    let mut begun = 0;
    for _ in 0..4000 {
        let (block, pick) = (random.below(7), random.below(6));
        match pick {
            0 if writes.len() < 4 => {
                let (mut data, mut ticket) = (vec![0; 4 * WIDTH], WriteTicket::default());
                bench.verifier.begin_write(Lba(START + block * BLOCK), &mut data, &mut ticket);
                begun += 1;
                let left = if lose_write == Some(begun) { Vec::new() } else { vec![0, 1, 2, 3] };
                writes.push(Flight { ticket, block, data, left });
            }
            1 if reads.len() < 4 => {
                let mut ticket = ReadTicket::default();
                bench.verifier.begin_read(Lba(START + block * BLOCK), SectorCount(4), &mut ticket);
                reads.push((ticket, block, vec![0; 4 * WIDTH], vec![0, 1, 2, 3]));
            }
            2 | 3 if !writes.is_empty() => {
                let index = random.below(writes.len() as u64) as usize;
                let flight = &mut writes[index];
                if flight.left.is_empty() {
                    bench.verifier.end_write(&writes.swap_remove(index).ticket, true);
                } else {
                    let sector = flight.left.swap_remove(random.below(flight.left.len() as u64) as usize);
                    let at = (flight.block * BLOCK) as usize * WIDTH + sector * WIDTH;
                    bench.disk[at..at + WIDTH].copy_from_slice(&flight.data[sector * WIDTH..][..WIDTH]);
                }
            }
            _ if !reads.is_empty() => {
                let index = random.below(reads.len() as u64) as usize;
                let (_, block, data, left) = &mut reads[index];
                if left.is_empty() {
                    let (ticket, _, data, _) = reads.swap_remove(index);
                    bench.verifier.end_read(&ticket, &data).map_err(|(mismatch, _)| mismatch)?;
                } else {
                    let sector = left.swap_remove(random.below(left.len() as u64) as usize);
                    let at = (*block * BLOCK) as usize * WIDTH + sector * WIDTH;
                    data[sector * WIDTH..][..WIDTH].copy_from_slice(&bench.disk[at..at + WIDTH]);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn an_honest_disk_is_never_blamed() {
    for seed in 0..300 {
        assert_eq!(overlapping(seed, None), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_single_lost_write_among_overlapping_ones_is_mostly_found() {
    // Some lost writes leave no trace: no user reads the block before it is written again, or a write that overlapped
    // in time might have landed later. The rest must be found.
    let found = (0..200).filter(|seed| overlapping(*seed, Some(30)).is_err()).count();
    assert!(found > 100, "{found} of 200 lost writes were found");
}
