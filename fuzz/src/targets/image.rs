//! Drives as inputs: what lies in their blocks of 4 KiB, without the zeros.
//!
//! An input is a list of blocks: the number (2 bytes), how many bytes are kept (2 bytes), the bytes; the rest of the block is
//! zeros. Every input stands for some drives. The numbers go through all drives, one after the other.

use std::collections::BTreeMap;

use tier0_block::BlockTarget;
use tier0_drive::{DriveHandle, StoreDrive};
use tier0_units::{Lba, SectorCount};
use tier0_world::{BufMut, PayloadWidth, VirtualRuntime, World};

use super::checksum::{crc32c, crc64, put_u32, put_u64, u32_at, u64_at};

pub(crate) const BLOCK_BYTES: usize = 4096;
const BLOCK_SECTORS: u64 = 8;

/// Some drives of one size, sparse.
pub(crate) struct Image {
    drive_blocks: u16,
    drives: u16,
    blocks: BTreeMap<u16, Vec<u8>>,
}

impl Image {
    /// Reads an input.
    pub(crate) fn of(input: &[u8], drives: u16, drive_blocks: u16) -> Image {
        let mut image = Image { drive_blocks, drives, blocks: BTreeMap::new() };
        let mut rest = input;
        while let [a, b, c, d, more @ ..] = rest {
            let number = u16::from_le_bytes([*a, *b]) % (drives * drive_blocks);
            let length = usize::from(u16::from_le_bytes([*c, *d])).min(BLOCK_BYTES).min(more.len());
            let (kept, behind) = more.split_at(length);
            let mut block = kept.to_vec();
            block.resize(BLOCK_BYTES, 0);
            image.blocks.insert(number, block);
            rest = behind;
        }
        image
    }

    /// The input that stands for these drives.
    pub(crate) fn to_input(&self) -> Vec<u8> {
        let mut input = Vec::new();
        for (number, block) in &self.blocks {
            let kept = block.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if kept > 0 {
                input.extend(number.to_le_bytes());
                input.extend((kept as u16).to_le_bytes());
                input.extend(&block[..kept]);
            }
        }
        input
    }

    /// Runs `work` on the drives, in a world of its own.
    pub(crate) fn run<R: 'static, F: Future<Output = R> + 'static>(
        &self,
        work: impl FnOnce(World, Vec<DriveHandle>) -> F + 'static,
    ) -> R {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let drives = self.drives(&world);
        let blocks = self.blocks.clone();
        let drive_blocks = self.drive_blocks;
        runtime.run(async move {
            for (number, block) in &blocks {
                let place = Lba(u64::from(number % drive_blocks) * BLOCK_SECTORS);
                let data = BufMut::copy_from(block, PayloadWidth::REAL).freeze();
                let drive: &DriveHandle = &drives[usize::from(number / drive_blocks)];
                drive.write(place, data, true).await.expect("a store takes everything");
            }
            work(world, drives).await
        })
    }

    fn drives(&self, world: &World) -> Vec<DriveHandle> {
        let sectors = SectorCount(u64::from(self.drive_blocks) * BLOCK_SECTORS);
        let drive = |number| DriveHandle::new(StoreDrive::new(world, &format!("d{number}"), sectors));
        (0..self.drives).map(drive).collect()
    }

    /// What some drives hold.
    pub(crate) async fn taken(drives: &[DriveHandle]) -> Image {
        let drive_blocks = (BlockTarget::info(&drives[0]).sectors.0 / BLOCK_SECTORS) as u16;
        let mut image = Image { drive_blocks, drives: drives.len() as u16, blocks: BTreeMap::new() };
        for (number, drive) in drives.iter().enumerate() {
            for block in 0..drive_blocks {
                let buf = drive.world().buffer(BLOCK_SECTORS as u32);
                let (result, buf) = drive.read(Lba(u64::from(block) * BLOCK_SECTORS), buf).await;
                result.expect("a store gives everything");
                if buf.as_slice().iter().any(|byte| *byte != 0) {
                    image.blocks.insert(number as u16 * drive_blocks + block, buf.as_slice().to_vec());
                }
            }
        }
        image
    }

    /// Makes everything that begins like a structure of tier0 pass its checksums.
    pub(crate) fn repair(&mut self) {
        self.repair_pages();
        let mut previous = None;
        for number in self.blocks.keys().copied().collect::<Vec<u16>>() {
            match self.blocks[&number].first_chunk() {
                Some(b"tier0sb\0") => self.repair_superblock(number),
                Some(b"tier0cp\0") => self.repair_checkpoint(number),
                Some(b"tier0rh\0") => {
                    previous = None;
                    self.repair_ring_header(number);
                }
                Some(b"tier0rf\0") => previous = self.repair_frame(number, previous).or(previous),
                _ => {}
            }
        }
    }

    /// `count` blocks from `first` on, as one.
    fn take(&self, first: u16, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count * BLOCK_BYTES);
        for number in (usize::from(first)..).take(count) {
            match u16::try_from(number).ok().and_then(|number| self.blocks.get(&number)) {
                Some(block) => bytes.extend_from_slice(block),
                None => bytes.resize(bytes.len() + BLOCK_BYTES, 0),
            }
        }
        bytes
    }

    fn put(&mut self, first: u16, bytes: &[u8]) {
        let last = self.drives * self.drive_blocks;
        for (number, block) in (first..last).zip(bytes.chunks(BLOCK_BYTES)) {
            self.blocks.insert(number, block.to_vec());
        }
    }

    /// Checksums of pages of a map, over bytes 8–4095, in the page and in the roots that name it (`checkpoint`): whatever block
    /// begins with a number that a root has is one.
    fn repair_pages(&mut self) {
        const ROOT_BLOCKS: u16 = 17;
        let is_root = |block: &Vec<u8>| block.starts_with(b"tier0cp\0");
        let roots: Vec<u16> =
            self.blocks.iter().filter(|(_, block)| is_root(block)).map(|(number, _)| *number).collect();
        for number in self.blocks.keys().copied().collect::<Vec<u16>>() {
            let block = &self.blocks[&number];
            let (old, new) = (u64_at(block, 0).to_le_bytes(), crc64(&[&block[8..]]).to_le_bytes());
            if old == [0; 8] || block.starts_with(b"tier0") || old == new {
                continue;
            }
            for root in &roots {
                let mut body = self.take(*root, usize::from(ROOT_BLOCKS));
                let Some(at) = body.windows(8).position(|bytes| bytes == old) else { continue };
                if at / BLOCK_BYTES != (at + 7) / BLOCK_BYTES {
                    continue;
                }
                body[at..at + 8].copy_from_slice(&new);
                self.put(
                    root + at as u16 / BLOCK_BYTES as u16,
                    &body[at / BLOCK_BYTES * BLOCK_BYTES..][..BLOCK_BYTES],
                );
                if let Some(block) = self.blocks.get_mut(&number) {
                    block[..8].copy_from_slice(&new);
                }
            }
        }
    }

    /// Checksum over bytes 0–39 and the body (`metadata::superblock`).
    fn repair_superblock(&mut self, number: u16) {
        let body = (u32_at(&self.blocks[&number], 12) as usize).min(4 * BLOCK_BYTES);
        let mut bytes = self.take(number, (48 + body).div_ceil(BLOCK_BYTES));
        put_u32(&mut bytes, 12, body as u32);
        let checksum = crc64(&[&bytes[..40], &bytes[48..48 + body]]);
        put_u64(&mut bytes, 40, checksum);
        self.put(number, &bytes);
    }

    /// Checksum over bytes 0–103 (`journal::header`).
    fn repair_ring_header(&mut self, number: u16) {
        let mut bytes = self.take(number, 1);
        let checksum = crc64(&[&bytes[..104]]);
        put_u64(&mut bytes, 104, checksum);
        self.put(number, &bytes);
    }

    /// Checksums of the pages and of the frame, chained to the frame before (`journal::frame`); the frame's checksum.
    fn repair_frame(&mut self, number: u16, previous: Option<u64>) -> Option<u64> {
        const FIXED_BYTES: usize = 104;
        let fixed = &self.blocks[&number];
        let (header, records) = (u32_at(fixed, 12) as usize, u32_at(fixed, 88) as usize);
        let pages = u32_at(fixed, 92) as usize;
        if !(FIXED_BYTES..=8 * BLOCK_BYTES).contains(&header) || pages > 64 || records > 1024 {
            return None;
        }
        let section = header.div_ceil(BLOCK_BYTES);
        let mut bytes = self.take(number, section + pages);
        let checksums = FIXED_BYTES + 8 * records;
        for page in 0..pages {
            let start = (section + page) * BLOCK_BYTES;
            let checksum = crc32c(&bytes[start..start + BLOCK_BYTES]);
            if checksums + 4 * page + 4 <= header {
                put_u32(&mut bytes, checksums + 4 * page, checksum);
            }
        }
        if let Some(previous) = previous {
            put_u64(&mut bytes, 64, previous);
        }
        let checksum = crc64(&[&bytes[..96], &bytes[FIXED_BYTES..header]]);
        put_u64(&mut bytes, 96, checksum);
        self.put(number, &bytes);
        Some(checksum)
    }

    /// The header's checksum over bytes 0–95, then each piece's front and checksum (`checkpoint`).
    fn repair_checkpoint(&mut self, number: u16) {
        const PIECE_BYTES: usize = 64 << 10;
        const FRONT_BYTES: usize = 24;
        let body = (u64_at(&self.blocks[&number], 64) as usize).min(PIECE_BYTES - FRONT_BYTES);
        let mut bytes = self.take(number, 1 + (FRONT_BYTES + body).div_ceil(BLOCK_BYTES));
        put_u64(&mut bytes, 64, body as u64);
        let checksum = crc64(&[&bytes[..96]]);
        put_u64(&mut bytes, 96, checksum);
        let generation = u64_at(&bytes, 32);
        let piece = &mut bytes[BLOCK_BYTES..];
        put_u64(piece, 8, generation);
        put_u32(piece, 16, 0);
        put_u32(piece, 20, body as u32);
        let checksum = crc64(&[&piece[8..FRONT_BYTES + body]]);
        put_u64(piece, 0, checksum);
        self.put(number, &bytes);
    }
}
