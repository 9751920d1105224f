//! A write log that outlives the world: pages and intents in the order in which they became stable.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;

use tier0_integrity::{Intent, IntentLog, IntentPage, LogPlace};
use tier0_units::Nanos;
use tier0_world::{Buf, IoError, PayloadWidth, Random, World};

use super::page;

/// A page of an extent that was written: extent, page, mark.
pub(crate) type Written = (u32, u32, u64);

enum Content {
    Pages(Vec<Written>),
    Intent { header: Vec<u8>, buffers: Vec<Buf> },
}

struct Record {
    position: u64,
    content: Content,
    /// What it speaks of is stable in its place.
    done: bool,
}

/// The log.
#[derive(Default)]
pub(crate) struct TestLog {
    records: RefCell<VecDeque<Record>>,
    next: Cell<u64>,
}

impl TestLog {
    fn push(&self, content: Content) -> u64 {
        let position = self.next.get();
        self.next.set(position + 1);
        self.records.borrow_mut().push_back(Record { position, content, done: false });
        position
    }

    /// Pages are stable from now on; their places are this position and their numbers in order.
    pub(crate) fn append_pages(&self, pages: Vec<Written>) -> u64 {
        self.push(Content::Pages(pages))
    }

    /// Everything that the record at `position` said is in place; the ring gives up done records at its tail.
    pub(crate) fn done(&self, position: u64, release: bool) {
        let mut records = self.records.borrow_mut();
        for record in records.iter_mut() {
            let own = match &record.content {
                Content::Pages(_) => record.position == position,
                Content::Intent { header, buffers } => {
                    let intent = Intent::decode(header, buffers.clone()).expect("an intent");
                    let of = |(_, source): &(u32, IntentPage)| matches!(source, IntentPage::Log(place) if place.position == position);
                    intent.pages.iter().any(of)
                }
            };
            record.done |= own;
        }
        while release && records.front().is_some_and(|record| record.done) {
            records.pop_front();
        }
    }

    /// Everything is in place.
    pub(crate) fn clear(&self) {
        self.records.borrow_mut().clear();
    }

    /// The intents in order, each with the contents of its pages, as far as the log still has all of them.
    pub(crate) fn intents(&self) -> Vec<(Intent, Vec<Buf>)> {
        let records = self.records.borrow();
        let content = |place: &LogPlace| {
            let record = records.iter().find(|record| record.position == place.position)?;
            let Content::Pages(pages) = &record.content else { panic!("an intent speaks of pages") };
            Some(page(PayloadWidth::REAL, pages[place.page as usize].2))
        };
        let decode = |record: &Record| {
            let Content::Intent { header, buffers } = &record.content else { return None };
            let intent = Intent::decode(header, buffers.clone()).expect("what was encoded");
            let sources = intent.pages.iter().filter_map(|(_, source)| match source {
                IntentPage::Log(place) => Some(place),
                IntentPage::ZeroFill => None,
            });
            let pages: Option<Vec<Buf>> = sources.map(content).collect();
            pages.map(|pages| (intent, pages))
        };
        records.iter().filter_map(decode).collect()
    }

    /// The newest version of every page in the log, by extent and page.
    pub(crate) fn dirty(&self) -> BTreeMap<(u32, u32), (u64, LogPlace)> {
        let mut dirty = BTreeMap::new();
        for record in self.records.borrow().iter() {
            let Content::Pages(pages) = &record.content else { continue };
            for (n, (extent, page, mark)) in pages.iter().enumerate() {
                let place = LogPlace { position: record.position, page: n as u32 };
                dirty.insert((*extent, *page), (*mark, place));
            }
        }
        dirty
    }
}

/// The log in one world.
pub(crate) struct LogIn<'a> {
    pub(crate) log: &'a TestLog,
    pub(crate) world: World,
    pub(crate) random: RefCell<Random>,
}

impl IntentLog for LogIn<'_> {
    /// Some intents may be stable before the append ends, and a power cut may come in between.
    fn append(&self, intents: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>> {
        Box::pin(async move {
            let early = self.random.borrow_mut().below(intents.len() as u64 + 1) as usize;
            let time = Nanos::from_micros(1 + self.random.borrow_mut().below(300));
            for (n, intent) in intents.iter().enumerate() {
                if n == early {
                    self.world.sleep(time).await;
                }
                self.log.push(Content::Intent { header: intent.encode_header(), buffers: intent.buffers() });
            }
            Ok(())
        })
    }
}
