//! A workload's objects at a scale, in an engine's pages: where each row lies.

use tier0_units::ByteCount;

use crate::engine::Engine;
use crate::workload::{Size, Workload};

/// How large a database is.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Units: warehouses, thousands of customers.
    pub units: f64,
    /// How many times as many rows the objects that grow have as at first: their history.
    pub grown: f64,
}

/// Pages of a database. They are numbered from 0, object by object.
#[derive(Clone, Debug)]
pub struct Layout {
    /// By object.
    pub objects: Vec<Placed>,
    /// Values of each dimension.
    pub sizes: Vec<u64>,
    /// Bytes of a page.
    pub page: ByteCount,
    /// All pages.
    pub pages: u64,
}

/// The pages of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// Its first page.
    pub first_page: u64,
    /// How many it has.
    pub pages: u64,
    /// Rows in a page.
    pub rows_per_page: u64,
    /// Values of its key.
    pub partitions: u64,
    /// Rows for each value of the key.
    pub rows: u64,
}

impl Placed {
    /// The page of a row of a partition, and whether it is the page's first row.
    pub fn page_of(&self, partition: u64, row: u64) -> (u64, bool) {
        let row = partition * self.rows + row % self.rows;
        (self.first_page + row / self.rows_per_page, row.is_multiple_of(self.rows_per_page))
    }
}

impl Layout {
    /// The objects of a workload at a scale.
    pub fn new(workload: &Workload, engine: &Engine, scale: &Scale) -> Layout {
        let size = |size: &Size| match size {
            Size::Fixed(count) => *count,
            Size::PerUnit(each) => (each * scale.units).round().max(1.0) as u64,
        };
        let sizes: Vec<u64> = workload.dimensions.iter().map(|dimension| size(&dimension.size)).collect();
        let mut pages = 0;
        let mut objects = Vec::new();
        for object in &workload.objects {
            let partitions = object.key.iter().map(|dimension| sizes[*dimension]).product::<u64>();
            let rows = match object.growth {
                Some(_) => (object.rows as f64 * scale.grown.max(1.0)) as u64,
                None => object.rows,
            };
            let rows_per_page = match object.index_of {
                Some(_) => engine.entries_per_page(object.row_bytes, object.is_filled_at_random),
                None => engine.rows_per_page(object.row_bytes),
            };
            let placed = Placed {
                first_page: pages,
                pages: (partitions * rows).div_ceil(rows_per_page),
                rows_per_page,
                partitions,
                rows,
            };
            pages += placed.pages;
            objects.push(placed);
        }
        Layout { objects, sizes, page: engine.page_bytes(), pages }
    }

    /// The object of a page.
    pub fn object_of(&self, page: u64) -> usize {
        self.objects.partition_point(|object| object.first_page <= page) - 1
    }

    /// Its size.
    pub fn bytes(&self) -> ByteCount {
        ByteCount(self.pages * self.page.0)
    }
}
