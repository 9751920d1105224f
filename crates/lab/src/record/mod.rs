//! Records: one figure of a study each, beside what was published, as `--json` prints them.
//!
//! Invariants: a record has exactly the six fields `id`, `value`, `unit`, `role`, `published`, `error`; `error` is
//! present where value and published figure are both numbers and nowhere else; a withheld figure is published as
//! the text "withheld" and has no error.

mod straight_line;
mod tolerance;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use straight_line::StraightLine;
pub use tolerance::{Tolerance, UnknownTolerance};

/// The published text of a figure that is kept back.
pub const WITHHELD: &str = "withheld";

/// What a published figure may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Free parameters may be fitted to it.
    Calibration,
    /// It is never fitted to.
    Prediction,
    /// It is true by construction, or a quotient of figures that were fitted to: no evidence, whatever it says.
    Derived,
    /// Nothing was published to compare it with: a figure of the model, and no prediction that can be judged.
    Unpublished,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Calibration => "calibration",
            Role::Prediction => "prediction",
            Role::Derived => "derived",
            Role::Unpublished => "unpublished",
        })
    }
}

/// A number or a statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// A number, in the record's unit.
    Number(f64),
    /// A statement, such as an order.
    Text(String),
}

impl Figure {
    /// The number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Figure::Number(number) => Some(*number),
            Figure::Text(_) => None,
        }
    }

    /// Whether it stands for a figure that is kept back.
    pub fn is_withheld(&self) -> bool {
        matches!(self, Figure::Text(text) if text == WITHHELD)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Number(number) => f.pad(&format_number(*number)),
            Figure::Text(text) => f.pad(text),
        }
    }
}

/// A number with three or four significant digits, thousands separated.
pub fn format_number(number: f64) -> String {
    let decimals = match number.abs() {
        x if x >= 1000.0 || x == 0.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.map(|f| f.trim_end_matches('0')).filter(|f| !f.is_empty());
    let fraction = fraction.map_or(String::new(), |f| format!(".{f}"));
    format!("{sign}{grouped}{fraction}")
}

/// One figure of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The study, a dot, and the figure's name.
    pub id: String,
    /// What the lab found; nothing where the configuration has no such figure.
    pub value: Option<Figure>,
    /// The unit of value and published figure.
    pub unit: String,
    /// What the published figure was used for.
    pub role: Role,
    /// The published figure, where there is one.
    pub published: Option<Figure>,
    /// Value over published figure, less one; nothing unless both are numbers.
    pub error: Option<f64>,
    /// The least and the greatest value over assumptions of which nothing says which holds; nothing where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<[f64; 2]>,
    /// What a straight line through other published figures says; nothing where they allow none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub straight_line: Option<f64>,
}

impl Record {
    /// The record of a figure, its error worked out.
    pub fn new(
        id: String,
        value: Option<Figure>,
        unit: String,
        role: Role,
        published: Option<Figure>,
    ) -> Record {
        let number = |figure: &Option<Figure>| figure.as_ref().and_then(Figure::number);
        let error = match (number(&value), number(&published)) {
            (Some(value), Some(published)) if published != 0.0 => Some(value / published - 1.0),
            _ => None,
        };
        Record { id, value, unit, role, published, error, band: None, straight_line: None }
    }

    /// How it compares under a tolerance.
    pub fn judge(&self, tolerance: Option<&Tolerance>) -> Verdict {
        let (Some(value), Some(published)) = (&self.value, &self.published) else { return Verdict::Open };
        if published.is_withheld() {
            return Verdict::Open;
        }
        let within = match (value, tolerance) {
            (Figure::Number(value), Some(tolerance)) => match tolerance.admits(*value, published.number()) {
                Some(within) => within,
                None => return Verdict::Open,
            },
            (Figure::Text(value), _) => *published == Figure::Text(value.clone()),
            (Figure::Number(_), None) => return Verdict::Open,
        };
        if within { Verdict::Within } else { Verdict::Outside }
    }
}

/// How a record compares with what was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Inside the tolerance, or the same statement.
    Within,
    /// Outside of it.
    Outside,
    /// There is nothing to compare with.
    Open,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Within => "within",
            Verdict::Outside => "outside",
            Verdict::Open => "",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(value: Figure, published: Option<Figure>) -> Record {
        Record::new("s.x".into(), Some(value), "IOPS".into(), Role::Prediction, published)
    }

    #[test]
    fn json_has_the_six_fields_and_no_others() {
        let published = record(Figure::Number(4200.0), Some(Figure::Number(4000.0)));
        assert_eq!(
            serde_json::to_string(&published).expect("serialises"),
            r#"{"id":"s.x","value":4200.0,"unit":"IOPS","role":"prediction","published":4000.0,"error":0.050000000000000044}"#
        );
        let withheld = record(Figure::Number(1.0), Some(Figure::Text(WITHHELD.into())));
        let json = serde_json::to_string(&withheld).expect("serialises");
        assert!(json.ends_with(r#""published":"withheld","error":null}"#), "{json}");
        let unpublished = serde_json::to_string(&record(Figure::Number(1.0), None)).expect("serialises");
        assert!(unpublished.ends_with(r#""published":null,"error":null}"#), "{unpublished}");
    }

    #[test]
    fn verdicts_need_something_to_compare_with() {
        let tolerance: Tolerance = "10%".parse().expect("valid");
        let judge = |value: f64, published| record(Figure::Number(value), published).judge(Some(&tolerance));
        assert_eq!(judge(109.0, Some(Figure::Number(100.0))), Verdict::Within);
        assert_eq!(judge(111.0, Some(Figure::Number(100.0))), Verdict::Outside);
        assert_eq!(judge(111.0, Some(Figure::Text(WITHHELD.into()))), Verdict::Open);
        assert_eq!(judge(111.0, None), Verdict::Open);
        let text = |text: &str| Figure::Text(text.into());
        assert_eq!(record(text("a > b"), Some(text("a > b"))).judge(None), Verdict::Within);
        assert_eq!(record(text("a < b"), Some(text("a > b"))).judge(None), Verdict::Outside);
    }

    #[test]
    fn numbers_read_well() {
        for (number, text) in [
            (5037.4, "5,037"),
            (0.0, "0"),
            (75.97, "75.97"),
            (1_234_567.0, "1,234,567"),
            (0.5321, "0.532"),
            (2.0, "2"),
            (-3.5, "-3.5"),
            (120.04, "120"),
        ] {
            assert_eq!(format_number(number), text);
        }
    }
}
