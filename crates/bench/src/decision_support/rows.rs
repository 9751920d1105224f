//! The rows, from the crate `tpchgen`, which makes those of the specification's own generator, byte for byte.
//!
//! The generator keeps 300 MB of text in memory, which all connections share. Its rows have no seed.

use std::fmt::Display;
use std::io::Write;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::load::{Filled, Rows};

/// Pieces of a database of scale factor 1; one is about 100 MB of rows.
const PIECES_OF_FACTOR: f64 = 10.0;

/// A table of a piece, and in how many parts it is sent.
type Source = (&'static str, i32);

/// The tables that are alike at every scale.
const FIXED: [Source; 2] = [("region", 1), ("nation", 1)];
const OF_PIECE: [Source; 6] =
    [("supplier", 1), ("part", 2), ("customer", 2), ("partsupp", 6), ("orders", 10), ("lineitem", 30)];

/// Makes rows.
pub(crate) struct DecisionSupportRows {
    factor: f64,
}

/// Pieces of a scale factor: the fixed tables, then equal parts of the others.
pub(crate) fn pieces(factor: f64) -> i32 {
    1 + shares(factor)
}

fn shares(factor: f64) -> i32 {
    (factor * PIECES_OF_FACTOR).ceil().max(1.0) as i32
}

impl DecisionSupportRows {
    /// Those of a scale factor.
    pub(crate) fn new(factor: f64) -> DecisionSupportRows {
        DecisionSupportRows { factor }
    }
}

fn sources_of(piece: i32) -> &'static [Source] {
    match piece {
        0 => &FIXED,
        _ => &OF_PIECE,
    }
}

impl Rows for DecisionSupportRows {
    fn tables(&self, piece: i32) -> Vec<Filled> {
        let filled = |(table, parts): &Source| Filled {
            copy: format!("copy {table} from stdin with (delimiter '|')"),
            parts: *parts,
        };
        sources_of(piece).iter().map(filled).collect()
    }

    fn part(&mut self, piece: i32, table: usize, part: i32) -> Vec<u8> {
        let (table, parts) = sources_of(piece)[table];
        let factor = self.factor;
        // The generator counts from 1. It can begin at any of its parts.
        let (of, all) = match piece {
            0 => (1, 1),
            _ => ((piece - 1) * parts + part + 1, shares(factor) * parts),
        };
        match table {
            "region" => lines(RegionGenerator::new(factor, of, all)),
            "nation" => lines(NationGenerator::new(factor, of, all)),
            "supplier" => lines(SupplierGenerator::new(factor, of, all)),
            "part" => lines(PartGenerator::new(factor, of, all)),
            "customer" => lines(CustomerGenerator::new(factor, of, all)),
            "partsupp" => lines(PartSuppGenerator::new(factor, of, all)),
            "orders" => lines(OrderGenerator::new(factor, of, all)),
            "lineitem" => lines(LineItemGenerator::new(factor, of, all)),
            other => unreachable!("there is no table {other}"),
        }
    }
}

/// Rows as COPY takes them: the generator ends a row with another delimiter.
fn lines(rows: impl IntoIterator<Item: Display>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in rows {
        write!(bytes, "{row}").expect("memory takes it");
        let end = bytes.last_mut().expect("a row has fields");
        debug_assert_eq!(*end, b'|', "the generator ends rows with a delimiter");
        *end = b'\n';
    }
    bytes
}

/// Rows of tables that the specification counts (clause 4.2.5), for `check`.
pub(crate) fn counts(factor: f64) -> [(&'static str, i64); 7] {
    let scaled = |base: f64| (base * factor) as i64;
    [
        ("region", 5),
        ("nation", 25),
        ("supplier", scaled(10_000.0)),
        ("part", scaled(200_000.0)),
        ("customer", scaled(150_000.0)),
        ("partsupp", 4 * scaled(200_000.0)),
        ("orders", scaled(1_500_000.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(table: usize, factor: f64) -> Vec<String> {
        let mut rows = DecisionSupportRows::new(factor);
        let parts = OF_PIECE[table].1;
        let all = (1..pieces(factor)).flat_map(|piece| (0..parts).map(move |part| (piece, part)));
        let bytes: Vec<u8> = all.flat_map(|(piece, part)| rows.part(piece, table, part)).collect();
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }

    /// Also where a part has few rows or none, and the scale factor is no multiple of a piece.
    #[test]
    fn the_parts_of_a_table_are_all_its_rows() {
        for factor in [0.001, 0.01, 0.013] {
            for table in [0, 1, 2, 4] {
                let (name, _) = OF_PIECE[table];
                let expected = counts(factor).into_iter().find(|(own, _)| *own == name).expect("counted").1;
                let rows = rows_of(table, factor);
                assert_eq!(rows.len() as i64, expected, "{name} at {factor}");
                let keys: Vec<i64> = rows
                    .iter()
                    .map(|row| row.split('|').next().expect("a key").parse().expect("a number"))
                    .collect();
                assert!(keys.is_sorted_by(|a, b| a < b), "{name} at {factor} has no row twice");
            }
        }
    }

    #[test]
    fn rows_have_a_field_for_each_column() {
        let mut rows = DecisionSupportRows::new(0.01);
        for piece in [0, 1] {
            for (place, (name, _)) in sources_of(piece).iter().enumerate() {
                let table =
                    super::super::schema::TABLES.iter().find(|table| table.name == *name).expect("a table");
                let columns = table.columns.split(" not null").count() - 1;
                let text = String::from_utf8(rows.part(piece, place, 0)).expect("text");
                let row = text.lines().next().expect("a row");
                assert_eq!(row.split('|').count(), columns, "{name}: {row}");
            }
        }
    }
}
