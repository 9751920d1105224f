//! Reports of a study: a table for the terminal, and one HTML file that needs nothing else.
//!
//! | file | concept |
//! |---|---|
//! | `view` | what both show, as texts |
//! | `caches` | write caches and neighbours, as texts |
//! | `cases` | databases on arrays, as texts |
//! | `answer` | what both open with: the configurations by rank, and how far to trust that |
//! | `terminal` | tables |
//! | `html` | the page |
//! | `chart` | curves as inline SVG |
//! | `curves` | which curves a study's charts show |
//! | `curve_page` | a page of charts of any kind |
//! | `figures_page` | a page of figures, charts and tables of any kind |
//! | `ticks` | round numbers for axes |
//! | `strip` | a value in its range, as a small inline SVG |
//! | `matrix` | the grid as shaded tables |
//! | `sensitivity` | what assumptions do to figures, for a terminal |
//! | `timed` | a trace on a modelled array, for both |
//! | `whatif` | alternatives, for both |
//!
//! Calibration, prediction and what is derived stand apart in both; predictions alone are counted. Every parameter that is assumed or fitted is listed with its source.

mod answer;
mod caches;
mod cases;
mod chart;
mod curve_page;
mod curves;
mod figures_page;
mod html;
mod matrix;
mod replay;
mod sensitivity;
mod strip;
mod terminal;
mod ticks;
mod timed;
mod view;
mod whatif;

use std::collections::BTreeSet;

use tier0_catalog::{Catalog, LookupError, SourceKind};

use crate::case::Case;
use crate::study::Study;

pub use chart::{Chart, Series};
pub use curve_page::curves_html;
pub use figures_page::{Figures, FiguresTable, figures_html};
pub use html::html;
pub use replay::{ReplayTitle, replay_html};
pub use sensitivity::sensitivity;
pub use terminal::{profile, terminal};
pub use timed::{TimedTitle, timed_html, timed_terminal};
pub use whatif::{whatif_html, whatif_terminal};

/// What a report says of its own making.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The command that makes it again.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
}

/// A parameter of the catalogue that figures rest on.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogParameter {
    /// The entry.
    pub entry: String,
    /// The parameter.
    pub parameter: String,
    /// Its value with its unit; empty where it is more than a number.
    pub value: String,
    /// Where it is from.
    pub source: String,
    /// The figures that it was fitted to.
    pub fitted_to: Vec<String>,
}

/// The parameters of a kind of every array, link, drive, workload and engine that a study rests on.
///
/// # Errors
/// [`LookupError`] where the catalogue lacks one.
pub fn parameters_of_kind(study: &Study, kind: SourceKind) -> Result<Vec<CatalogParameter>, LookupError> {
    let catalog = Catalog::embedded();
    let mut entries: Vec<String> = Vec::new();
    for configuration in &study.configurations {
        let array = catalog.array(&configuration.setup.array)?;
        let link = array.parameters.front_end_link.value.clone();
        let setup = &configuration.setup;
        let drives = setup.set_groups().into_iter().map(|sets| sets.drive);
        let write_cache = setup.caches.write.map(|_| array.parameters.write_cache.value.clone());
        let flash = setup.caches.flash.as_ref().map(|flash| flash.drive.clone());
        let drives = drives.chain(write_cache).chain(flash);
        entries.extend([array.id.clone(), link].into_iter().chain(drives));
    }
    let cases: Vec<&Case> = study.cases.iter().map(|configuration| &configuration.case).collect();
    parameters(entries, &cases, kind)
}

/// The parameters of a kind of entries of the catalogue, and of all that databases rest on.
///
/// # Errors
/// [`LookupError`] where the catalogue lacks one.
pub(crate) fn parameters(
    mut entries: Vec<String>,
    cases: &[&Case],
    kind: SourceKind,
) -> Result<Vec<CatalogParameter>, LookupError> {
    let catalog = Catalog::embedded();
    entries.extend(cases.iter().flat_map(|case| case.entries()));
    let mut found: Vec<CatalogParameter> = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in entries.into_iter().filter(|entry| seen.insert(entry.clone())) {
        let rows = catalog.parameters_of_kind(&entry, kind)?;
        found.extend(rows.map(|row| CatalogParameter {
            entry: entry.clone(),
            parameter: row.parameter.to_owned(),
            value: format!("{} {}", row.value, row.unit),
            source: row.source,
            fitted_to: row.fitted_to,
        }));
    }
    let mut seen = BTreeSet::new();
    for (entry, parameter, of, source) in cases.iter().flat_map(|case| case.sources()) {
        if of == kind && seen.insert((entry.clone(), parameter.clone())) {
            found.push(CatalogParameter {
                entry,
                parameter,
                value: String::new(),
                source,
                fitted_to: Vec::new(),
            });
        }
    }
    Ok(found)
}
