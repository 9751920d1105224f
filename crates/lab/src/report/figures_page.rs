//! Figures of any kind as one HTML file: an answer, the most important numbers, charts, tables of texts.

use askama::Template;

use super::Provenance;
use super::chart::{Chart, swatch};
use crate::LabError;

/// A table of texts. What is right of the first column is a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiguresTable {
    /// Its heading.
    pub title: String,
    /// What a reader has to know about it; may be empty.
    pub note: String,
    /// The names of its columns.
    pub header: Vec<String>,
    /// Its rows, as long as the header.
    pub rows: Vec<Vec<String>>,
}

/// What a page shows, in this order.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Its heading.
    pub title: String,
    /// Sentences below it.
    pub answer: Vec<String>,
    /// Numbers that stand out, each with what it is.
    pub facts: Vec<(String, String)>,
    /// Charts.
    pub charts: Vec<Chart>,
    /// Tables.
    pub tables: Vec<FiguresTable>,
    /// Remarks at the end.
    pub remarks: Vec<String>,
}

/// The page, which needs nothing else.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn figures_html(figures: &Figures, provenance: &Provenance) -> Result<String, LabError> {
    Ok(Page { figures, provenance }.render()?)
}

#[derive(Template)]
#[template(path = "figures.html")]
struct Page<'a> {
    figures: &'a Figures,
    provenance: &'a Provenance,
}

impl Page<'_> {
    fn swatch(&self, place: &usize) -> String {
        swatch(*place)
    }

    fn is_number(&self, column: &usize) -> bool {
        *column > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_all_parts_are_there() {
        let figures = Figures {
            title: "a run".to_owned(),
            answer: vec!["x < y".to_owned()],
            facts: vec![("17".to_owned(), "per second".to_owned())],
            charts: Vec::new(),
            tables: vec![FiguresTable {
                title: "objects".to_owned(),
                note: String::new(),
                header: vec!["name".to_owned(), "reads".to_owned()],
                rows: vec![vec!["<b>".to_owned(), "4.2".to_owned()]],
            }],
            remarks: vec!["not measured".to_owned()],
        };
        let provenance = Provenance { command: "tier0".to_owned(), version: "1".to_owned(), commit: None };
        let page = figures_html(&figures, &provenance).expect("rendered");
        for part in [
            "a run",
            "x &#60; y",
            ">17<",
            "per second",
            "<h2>objects",
            "&#60;b&#62;",
            ">4.2<",
            "not measured",
        ] {
            assert!(page.contains(part), "{part} is missing: {page}");
        }
        assert!(!page.contains("<b>\""), "{page}");
    }
}
