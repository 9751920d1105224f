//! A chart of curves as inline SVG: axes with units, gridlines, a line for a limit, marks for results and published
//! figures.
//!
//! Colours are the page's classes, so that light and dark follow the reader. Series differ in the shape of their marks
//! too.

use std::fmt::Write as _;

use super::ticks::{label, powers, ticks};

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// Points by ascending first coordinate of the load, not necessarily of x.
    pub points: Vec<(f64, f64)>,
    /// The point that is the result, where one is.
    pub result: Option<(f64, f64)>,
    /// The published figure, where there is one.
    pub published: Option<(f64, f64)>,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// What is below the horizontal axis, unit included.
    pub x_label: String,
    /// Whether the horizontal axis is by powers of ten; then all its values are above 0.
    pub x_is_logarithmic: bool,
    /// What is beside the vertical axis, unit included.
    pub y_label: String,
    /// Where a limit is drawn, and its text.
    pub limit: Option<(f64, String)>,
    /// The curves, at most [`SERIES_MAX`] of which have a look of their own.
    pub series: Vec<Series>,
}

/// Looks there are.
pub(super) const SERIES_MAX: usize = 6;
/// The picture: small, so that its text stays readable on a phone.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;

/// From figures to places in the picture.
struct Frame {
    x_is_logarithmic: bool,
    x_least: f64,
    x_most: f64,
    y_most: f64,
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        let share = match self.x_is_logarithmic {
            true => (value / self.x_least).ln() / (self.x_most / self.x_least).ln(),
            false => value / self.x_most,
        };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.y_most * (HEIGHT - TOP - BOTTOM)
    }
}

impl Chart {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let all = || {
            self.series
                .iter()
                .flat_map(|s| s.points.iter().chain(s.result.as_ref()).chain(s.published.as_ref()))
        };
        let y_wanted = match self.limit {
            // Beyond the limit a curve only has to show where it goes.
            Some((limit, _)) => limit * 1.25,
            None => all().map(|point| point.1).fold(0.0, f64::max),
        };
        let x_most = all().map(|point| point.0).fold(0.0, f64::max);
        let x_ticks = match self.x_is_logarithmic {
            true => powers(all().map(|point| point.0).fold(x_most, f64::min), x_most),
            false => ticks(x_most, 5),
        };
        let y_ticks = ticks(y_wanted, 5);
        let last = |ticks: &[f64]| ticks.last().copied().unwrap_or(1.0);
        let frame = Frame {
            x_is_logarithmic: self.x_is_logarithmic,
            x_least: x_ticks.first().copied().unwrap_or(1.0),
            x_most: last(&x_ticks),
            y_most: last(&y_ticks),
        };
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(&format!("{}: {} over {}", self.title, self.y_label, self.x_label))
        );
        self.draw_axes(&mut svg, &frame, &x_ticks, &y_ticks);
        for (number, series) in self.series.iter().enumerate() {
            draw_series(&mut svg, &frame, series, number % SERIES_MAX);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame, x_ticks: &[f64], y_ticks: &[f64]) {
        let (left, right) = (LEFT, frame.x(frame.x_most));
        let (top, bottom) = (frame.y(frame.y_most), frame.y(0.0));
        for tick in y_ticks {
            let y = frame.y(*tick);
            line(svg, "grid", (left, y), (right, y));
            text(svg, "tick", "end", (left - 6.0, y + 4.0), &label(*tick));
        }
        for tick in x_ticks {
            let x = frame.x(*tick);
            line(svg, "grid", (x, top), (x, bottom));
            text(svg, "tick", "middle", (x, bottom + 17.0), &label(*tick));
        }
        line(svg, "axis", (left, bottom), (right, bottom));
        text(svg, "label", "middle", ((left + right) / 2.0, HEIGHT - 8.0), &self.x_label);
        let (x, y) = (13.0, (top + bottom) / 2.0);
        let _ = write!(
            svg,
            "<text class=\"label\" text-anchor=\"middle\" transform=\"translate({x} {y:.1}) rotate(-90)\">{}</text>",
            escape(&self.y_label)
        );
        if let Some((limit, words)) = &self.limit {
            let y = frame.y(*limit);
            line(svg, "limit", (left, y), (right, y));
            text(svg, "tick", "start", (left + 5.0, y - 5.0), words);
        }
    }
}

fn draw_series(svg: &mut String, frame: &Frame, series: &Series, look: usize) {
    // A curve that leaves the picture is cut where it does.
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in &series.points {
        let (mut at, outside) = ((*x, *y), *y > frame.y_most);
        if outside {
            let Some((x0, y0)) = before else { continue };
            let share = (frame.y_most - y0) / (y - y0);
            at = (x0 + (x - x0) * share, frame.y_most);
        }
        let verb = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{:.1} {:.1}", frame.x(at.0), frame.y(at.1));
        if outside {
            break;
        }
        mark(svg, look, (frame.x(at.0), frame.y(at.1)), 2.6, "dot");
        before = Some(at);
    }
    let _ = write!(svg, "<path class=\"line s{look}\" d=\"{path}\"/>");
    if let Some((x, y)) = series.result {
        mark(svg, look, (frame.x(x), frame.y(y)), 5.0, "dot");
    }
    if let Some((x, y)) = series.published {
        let (x, y) = (frame.x(x), frame.y(y));
        let _ = write!(
            svg,
            "<path class=\"published\" d=\"M{:.1} {:.1}l5 5m0 -5l-5 5\"><title>published: {}</title></path>",
            x - 2.5,
            y - 2.5,
            escape(&series.label)
        );
    }
}

/// A mark of a series: disk, square, triangle or diamond.
fn mark(svg: &mut String, look: usize, (x, y): (f64, f64), r: f64, class: &str) {
    let shape = match look % 4 {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", x - r, d = 2.0 * r),
        1 => format!("M{:.1} {:.1}h{d:.1}v{d:.1}h-{d:.1}z", x - r * 0.9, y - r * 0.9, d = r * 1.8),
        2 => format!("M{x:.1} {:.1}l{:.1} {:.1}h-{:.1}z", y - r * 1.15, r * 1.15, r * 2.0, r * 2.3),
        _ => format!("M{x:.1} {:.1}l{r} {r}l-{r} {r}l-{r} -{r}z", y - r),
    };
    let _ = write!(svg, "<path class=\"{class} s{look}\" d=\"{shape}\"/>");
}

/// A series' mark alone, for a legend.
pub(super) fn swatch(number: usize) -> String {
    let mut svg = "<svg class=\"swatch\" viewBox=\"0 0 26 12\" aria-hidden=\"true\">".to_owned();
    let look = number % SERIES_MAX;
    let _ = write!(svg, "<path class=\"line s{look}\" d=\"M1 6H25\"/>");
    mark(&mut svg, look, (13.0, 6.0), 4.0, "dot");
    svg.push_str("</svg>");
    svg
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = write!(
        svg,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, class: &str, anchor: &str, (x, y): (f64, f64), words: &str) {
    let _ = write!(
        svg,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
        escape(words)
    );
}

/// Text as XML takes it.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        Chart {
            title: "a < b".into(),
            x_label: "IOPS".into(),
            x_is_logarithmic: false,
            y_label: "ms".into(),
            limit: Some((20.0, "20 ms".into())),
            series: vec![Series {
                label: "8 KiB & more".into(),
                points: vec![(1000.0, 5.0), (4000.0, 15.0), (5000.0, 35.0)],
                result: Some((4250.0, 20.0)),
                published: Some((4400.0, 20.0)),
            }],
        }
    }

    #[test]
    fn curves_end_at_the_edge_of_the_picture() {
        let svg = chart().svg();
        // Up to 25 ms: half of the last stretch, at 4,500 of 5,000.
        let x = LEFT + 0.9 * (WIDTH - LEFT - RIGHT);
        assert!(svg.contains(&format!("L{x:.1} {TOP:.1}\"")), "{svg}");
        assert!(svg.contains("class=\"limit\"") && svg.contains("class=\"published\""));
    }

    #[test]
    fn texts_are_escaped() {
        let svg = chart().svg();
        assert!(svg.contains("a &lt; b") && svg.contains("8 KiB &amp; more"));
        assert!(!svg.contains("a < b"));
    }
}
