//! How far a figure may be from the published one: `12%`, `2pt`, `0.5..1.5`, `>=97`, `<=3200`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// At most this share of the published figure away, in percent.
    Percent(f64),
    /// At most this many percentage points away.
    Points(f64),
    /// From the first to the second, both included.
    Range(f64, f64),
    /// At least.
    AtLeast(f64),
    /// At most.
    AtMost(f64),
}

/// A text that is no tolerance.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no tolerance; write \"12%\", \"2pt\", \"0.5..1.5\", \">=97\" or \"<=3200\"")]
pub struct UnknownTolerance(String);

impl Tolerance {
    /// Whether a value is inside; nothing where a published number is needed and there is none.
    pub fn admits(&self, value: f64, published: Option<f64>) -> Option<bool> {
        let away = published.map(|published| (value - published).abs());
        match *self {
            Tolerance::Percent(percent) => Some(away? <= published?.abs() * percent / 100.0),
            Tolerance::Points(points) => Some(away? <= points),
            Tolerance::Range(least, most) => Some((least..=most).contains(&value)),
            Tolerance::AtLeast(least) => Some(value >= least),
            Tolerance::AtMost(most) => Some(value <= most),
        }
    }

    /// How far a value is from what was published, with 1 at the tolerance's edge.
    ///
    /// A range is the width of a rounded figure ("4 ms" stands for 3.5 to 4.5): anything inside agrees with it equally
    /// well, so the distance there is zero. From the edge outward it is 1 and more: the distance from the nearer end, in
    /// halves of the range's width, is added. Bounds are taken likewise.
    pub fn distance(&self, value: f64, published: Option<f64>) -> Option<f64> {
        let share = |away: f64, allowed: f64| if allowed > 0.0 { away / allowed } else { away };
        let beyond = |outside: f64, unit: f64| if outside > 0.0 { 1.0 + share(outside, unit) } else { 0.0 };
        match *self {
            Tolerance::Percent(percent) => {
                let published = published?;
                Some(share((value - published).abs(), published.abs() * percent / 100.0))
            }
            Tolerance::Points(points) => Some(share((value - published?).abs(), points)),
            Tolerance::Range(least, most) => {
                Some(beyond((least - value).max(value - most), (most - least) / 2.0))
            }
            Tolerance::AtLeast(least) => Some(beyond(least - value, least.abs())),
            Tolerance::AtMost(most) => Some(beyond(value - most, most.abs())),
        }
    }
}

impl Tolerance {
    /// How far a value is from the published one, with 1 at the edge that lies its way: for pictures. Nothing where the
    /// published figure itself is at or beyond that edge.
    pub fn distance_from_published(&self, value: f64, published: f64) -> Option<f64> {
        let edge = match *self {
            Tolerance::Percent(percent) => published.abs() * percent / 100.0,
            Tolerance::Points(points) => points,
            Tolerance::Range(least, _) if value < published => published - least,
            Tolerance::Range(_, most) => most - published,
            Tolerance::AtLeast(least) => published - least,
            Tolerance::AtMost(most) => most - published,
        };
        (edge > 0.0).then(|| (value - published).abs() / edge)
    }
}

impl FromStr for Tolerance {
    type Err = UnknownTolerance;

    fn from_str(text: &str) -> Result<Tolerance, UnknownTolerance> {
        let unknown = || UnknownTolerance(text.to_owned());
        let number =
            |part: &str| part.trim().parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(unknown);
        let positive = |part: &str| number(part).and_then(|x| if x > 0.0 { Ok(x) } else { Err(unknown()) });
        let trimmed = text.trim();
        if let Some(percent) = trimmed.strip_suffix('%') {
            return positive(percent).map(Tolerance::Percent);
        }
        if let Some(points) = trimmed.strip_suffix("pt") {
            return positive(points).map(Tolerance::Points);
        }
        if let Some(least) = trimmed.strip_prefix(">=") {
            return number(least).map(Tolerance::AtLeast);
        }
        if let Some(most) = trimmed.strip_prefix("<=") {
            return number(most).map(Tolerance::AtMost);
        }
        let (least, most) = trimmed.split_once("..").ok_or_else(unknown)?;
        let (least, most) = (number(least)?, number(most)?);
        if least <= most { Ok(Tolerance::Range(least, most)) } else { Err(unknown()) }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Percent(percent) => write!(f, "{percent}%"),
            Tolerance::Points(points) => write!(f, "{points}pt"),
            Tolerance::Range(least, most) => write!(f, "{least}..{most}"),
            Tolerance::AtLeast(least) => write!(f, ">={least}"),
            Tolerance::AtMost(most) => write!(f, "<={most}"),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tolerance, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerance(text: &str) -> Tolerance {
        text.parse().expect(text)
    }

    #[test]
    fn every_form_reads_back() {
        for text in ["12%", "2pt", "0.5..1.5", "-5..0", ">=97", "<=3200", "3.5..4.5"] {
            assert_eq!(tolerance(text).to_string(), text);
        }
        for text in ["", "12", "%", "-3%", "0pt", "5..1", "..", "1..", ">97", "nan%"] {
            let refused = text.parse::<Tolerance>();
            assert_eq!(refused, Err(UnknownTolerance(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn edges_are_inside() {
        for (text, published, inside, outside) in [
            ("12%", Some(100.0), 88.0, 87.9),
            ("2pt", Some(93.0), 95.0, 95.1),
            ("0.5..1.5", Some(1.0), 0.5, 0.49),
            ("-5..0", None, 0.0, 0.1),
            (">=97", Some(100.0), 97.0, 96.9),
            ("<=3200", Some(3200.0), 3200.0, 3200.5),
        ] {
            assert_eq!(tolerance(text).admits(inside, published), Some(true), "{text}");
            assert_eq!(tolerance(text).admits(outside, published), Some(false), "{text}");
        }
        assert_eq!(tolerance("12%").admits(1.0, None), None);
    }

    #[test]
    fn distance_is_one_at_the_edge_and_nothing_within_a_rounded_figure() {
        let close = |a: Option<f64>, b: f64| (a.expect("a distance") - b).abs() < 1e-12;
        assert!(close(tolerance("10%").distance(110.0, Some(100.0)), 1.0));
        assert!(close(tolerance("10%").distance(95.0, Some(100.0)), 0.5));
        assert!(close(tolerance("2pt").distance(91.0, Some(93.0)), 1.0));
        assert!(close(tolerance("3.5..4.5").distance(4.4, Some(4.0)), 0.0));
        assert!(close(tolerance("3.5..4.5").distance(5.0, Some(4.0)), 2.0));
        assert!(close(tolerance(">=97").distance(98.0, None), 0.0));
        assert_eq!(tolerance("10%").distance(1.0, None), None);
    }
}
