//! A replay as one HTML file: curves over sizes, and the caches that were asked about.

use askama::Template;
use tier0_units::ByteCount;

use super::Provenance;
use super::chart::{Chart, Series, swatch};
use crate::LabError;
use crate::record::format_number;
use crate::replay::{CurvePoint, EXACT_BLOCKS, Replayed, Tried};

/// What a replay is of.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayTitle {
    /// The trace.
    pub trace: String,
    /// What is in it, in a sentence.
    pub description: String,
    /// Bytes of a block.
    pub block_bytes: u64,
}

/// The report.
///
/// # Errors
/// [`LabError::Render`] where the page cannot be rendered.
pub fn replay_html(
    replayed: &Replayed,
    title: &ReplayTitle,
    provenance: &Provenance,
) -> Result<String, LabError> {
    let page = Page {
        title,
        provenance,
        chart: chart(&replayed.curve),
        exact_blocks: format_number(EXACT_BLOCKS as f64),
        tried: replayed.tried.iter().map(|tried| TriedLine::of(tried, title.block_bytes)).collect(),
        points: replayed.curve.iter().map(PointLine::of).collect(),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "replay.html")]
struct Page<'a> {
    title: &'a ReplayTitle,
    provenance: &'a Provenance,
    chart: Chart,
    exact_blocks: String,
    tried: Vec<TriedLine>,
    points: Vec<PointLine>,
}

impl Page<'_> {
    fn swatch(&self, place: &usize) -> String {
        swatch(*place)
    }
}

struct TriedLine {
    policy: &'static str,
    blocks: String,
    size: String,
    missed: String,
    missed_bytes: String,
    written: String,
}

impl TriedLine {
    fn of(tried: &Tried, block_bytes: u64) -> TriedLine {
        TriedLine {
            policy: tried.policy,
            blocks: format_number(tried.blocks as f64),
            size: ByteCount(block_bytes.saturating_mul(tried.blocks as u64)).to_string(),
            missed: percent(tried.served.miss_ratio),
            missed_bytes: percent(tried.served.byte_miss_ratio),
            written: ByteCount(tried.served.written_bytes).to_string(),
        }
    }
}

struct PointLine {
    policy: &'static str,
    blocks: String,
    missed: String,
    half_width: String,
    sampled: String,
}

impl PointLine {
    fn of(point: &CurvePoint) -> PointLine {
        let sampled = &point.sampled;
        PointLine {
            policy: point.policy,
            blocks: format_number(point.blocks as f64),
            missed: percent(sampled.miss_ratio),
            half_width: if sampled.half_width > 0.0 { percent(sampled.half_width) } else { String::new() },
            sampled: percent(sampled.sampled_share),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

fn chart(points: &[CurvePoint]) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    for point in points {
        let at = (point.blocks as f64, point.sampled.miss_ratio * 100.0);
        match series.iter_mut().find(|known| known.label == point.policy) {
            Some(known) => known.points.push(at),
            None => series.push(Series {
                label: point.policy.to_owned(),
                points: vec![at],
                result: None,
                published: None,
            }),
        }
    }
    Chart {
        title: "Misses over size".to_owned(),
        x_label: "blocks".to_owned(),
        x_is_logarithmic: true,
        y_label: "missed blocks (%)".to_owned(),
        limit: None,
        series,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use tier0_policy::PolicyKind;

    use super::*;
    use crate::replay::{Plan, Requests, Writes, replay};

    #[test]
    fn a_page_has_a_curve_for_each_policy_and_the_optimum() {
        let mut requests = Requests::new(4096, Writes::Allocate);
        (0..1000).for_each(|n| requests.read(0, n * n % 97, 1).expect("room"));
        let plan = Plan {
            policies: PolicyKind::ALL.to_vec(),
            sizes: vec![10],
            flash_writes_per_day: Some(3.0),
            curve_points: NonZeroUsize::new(5),
            threads: NonZeroUsize::MIN,
        };
        let replayed = replay(&requests, &plan, |_, _| ());
        let title =
            ReplayTitle { trace: "a < b".into(), description: "1,000 requests".into(), block_bytes: 4096 };
        let provenance = Provenance { command: "tier0 …".into(), version: "1".into(), commit: None };
        let page = replay_html(&replayed, &title, &provenance).expect("it can be rendered");
        for text in ["<h1>a &#60; b</h1>", "lru</li>", "adaptive</li>", "optimum</li>", "40KiB"] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }
}
