//! Curves of any kind as one HTML file.

use askama::Template;

use super::Provenance;
use super::chart::{Chart, swatch};
use crate::LabError;

/// A page with these charts; `description` says in a sentence or two what they are of.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn curves_html(
    title: &str,
    description: &str,
    charts: Vec<Chart>,
    provenance: &Provenance,
) -> Result<String, LabError> {
    Ok(Page { title, description, charts, provenance }.render()?)
}

#[derive(Template)]
#[template(path = "curves.html")]
struct Page<'a> {
    title: &'a str,
    description: &'a str,
    charts: Vec<Chart>,
    provenance: &'a Provenance,
}

impl Page<'_> {
    fn swatch(&self, place: &usize) -> String {
        swatch(*place)
    }
}
