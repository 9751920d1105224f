//! Group commit: records that wait become frames, frames go to all copies.
//!
//! Frames are cut by a task of their own, not by the append, so that all records that come in one turn of the executor
//! share a frame; records that come while frames are under way gather for the next one.

use std::rc::Rc;

use tier0_world::{Buf, PlantedBug, planted};

use crate::append::Record;
use crate::frame::{self, Link};
use crate::region::BLOCK_SECTORS;
use crate::ring::Core;
use crate::state::Cut;

impl Core {
    /// Makes sure that the queues are looked at soon.
    pub(crate) fn schedule_pump(self: &Rc<Self>) {
        if self.pump_scheduled.replace(true) {
            return;
        }
        let core = self.clone();
        self.world
            .spawn(async move {
                core.pump_scheduled.set(false);
                core.pump();
            })
            .detach();
    }

    fn pump(self: &Rc<Self>) {
        while let Some((sequence, block, buf)) = self.next_frame() {
            let core = self.clone();
            self.world.spawn(async move { core.commit(sequence, block, buf).await }).detach();
        }
        self.persist_if_due();
    }

    /// Cuts a frame, if records wait and there is room.
    fn next_frame(&self) -> Option<(u64, u64, Buf)> {
        let mut state = self.state.borrow_mut();
        if state.failed.is_some() || state.in_flight.len() >= self.settings.frames_in_flight_max {
            return None;
        }
        let cut = state.cut(self.settings.frame_sectors_max / u64::from(BLOCK_SECTORS))?;
        let link = Link {
            ring: self.id,
            incarnation: state.incarnation,
            sequence: cut.sequence,
            block: cut.block,
            first: cut.first,
            previous: cut.previous,
            tail: state.released,
            stable: state.stable_sequence(),
        };
        let (buf, checksum) = self.encode(&link, &cut);
        state.launch(cut, checksum);
        Some((link.sequence, link.block, buf))
    }

    fn encode(&self, link: &Link, cut: &Cut) -> (Buf, u64) {
        let kept: u64 = cut.records.iter().map(Record::kept_blocks).sum();
        let mut buf = frame::buffer(cut.extent, kept);
        let checksum = frame::encode(link, cut.extent, cut.records.iter(), buf.as_mut_slice());
        (buf.freeze(), checksum)
    }

    async fn commit(self: Rc<Self>, sequence: u64, block: u64, buf: Buf) {
        let blocks = self.blocks;
        self.on_every_copy(|region| {
            let (core, buf) = (self.clone(), buf.clone());
            async move {
                let written = region.write(blocks, block, buf, !planted(PlantedBug::TrustWriteOrder)).await;
                if planted(PlantedBug::AckBeforeMirror) && written.is_ok() {
                    core.state.borrow_mut().settle(sequence);
                }
                written
            }
        })
        .await;
        self.state.borrow_mut().settle(sequence);
        self.changed.notify_all();
        self.schedule_pump();
    }
}
