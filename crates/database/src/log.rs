//! A database's log: commits wait until their records are written, and those that wait together are written together.

use std::cell::Cell;
use std::rc::Rc;

use tier0_block::BlockTarget;
use tier0_world::IoError;
use tier0_world::sync::Notify;

use crate::storage::Storage;

/// The log, in bytes from its beginning.
pub(crate) struct Log<T> {
    storage: Rc<Storage<T>>,
    block: u64,
    write_max: u64,
    /// Appended up to here.
    end: Cell<u64>,
    /// Written up to here.
    written: Cell<u64>,
    /// Some task waits for it to be written up to here.
    wanted: Cell<u64>,
    work: Notify,
    progress: Notify,
    error: Cell<Option<IoError>>,
}

impl<T: BlockTarget> Log<T> {
    pub(crate) fn new(storage: &Rc<Storage<T>>, block: u64, write_max: u64) -> Log<T> {
        Log {
            storage: storage.clone(),
            block,
            write_max: write_max / block * block,
            end: Cell::new(0),
            written: Cell::new(0),
            wanted: Cell::new(0),
            work: Notify::new(),
            progress: Notify::new(),
            error: Cell::new(None),
        }
    }

    /// Appends records; returns where they end.
    pub(crate) fn append(&self, bytes: u64) -> u64 {
        self.end.set(self.end.get() + bytes);
        self.end.get()
    }

    /// Bytes ever appended.
    pub(crate) fn appended(&self) -> u64 {
        self.end.get()
    }

    /// The log is written up to here.
    pub(crate) fn written(&self) -> u64 {
        self.written.get()
    }

    /// Waits until the log is written up to `position`.
    pub(crate) async fn until_written(&self, position: u64) -> Result<(), IoError> {
        while self.written.get() < position {
            if let Some(error) = self.error.get() {
                return Err(error);
            }
            self.wanted.set(self.wanted.get().max(position));
            self.work.notify_all();
            self.progress.wait().await;
        }
        Ok(())
    }

    /// Writes what is waited for, without end: each write takes all that has been appended meanwhile.
    pub(crate) async fn write(&self) {
        loop {
            if self.wanted.get() <= self.written.get() {
                self.work.wait().await;
                continue;
            }
            let begin = self.written.get();
            let end = self.end.get().min(begin + self.write_max);
            // A block that is not full is written again with what follows.
            let first = begin / self.block * self.block;
            let bytes = (end.next_multiple_of(self.block) - first).min(self.write_max + self.block);
            match self.storage.write_log(first, bytes).await {
                Ok(()) => self.written.set(end),
                Err(error) => self.error.set(Some(error)),
            }
            self.progress.notify_all();
            if self.error.get().is_some() {
                return;
            }
        }
    }
}
