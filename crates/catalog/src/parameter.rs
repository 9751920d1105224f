//! One parameter: a value that never travels without its unit, its kind and its source.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A figure of the catalogue with everything a reader needs in order to trust or doubt it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter<T> {
    /// The figure, in [`unit`](Self::unit).
    pub value: T,
    /// The unit; loading refuses any but the one the field expects.
    pub unit: Unit,
    /// How the figure is known.
    pub kind: SourceKind,
    /// The document and page, the measurement, or the reasoning; never empty.
    pub source: String,
    /// The figures that it was fitted to, each as "STUDY.FIGURE"; none unless the kind says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitted_to: Vec<String>,
}

/// How a figure is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Stated by the maker or a standard; the source names the document, or the report that quotes it.
    Datasheet,
    /// Measured on the device or array; the source names the measurement.
    Measured,
    /// Chosen so that a study's figures come out; [`Parameter::fitted_to`] names them, and none of them may be a prediction.
    Fitted,
    /// None of these; the source gives the reasoning. Reports list these.
    Assumed,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            SourceKind::Datasheet => "datasheet",
            SourceKind::Measured => "measured",
            SourceKind::Fitted => "fitted",
            SourceKind::Assumed => "assumed",
        })
    }
}

/// Defines [`Unit`] with the spelling that files and tables use.
macro_rules! units {
    ($($(#[doc = $doc:literal])* $variant:ident = $text:literal,)*) => {
        /// The units of the catalogue. MB and GB are decimal (10^6, 10^9 bytes), KiB and MiB binary.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Unit {
            $($(#[doc = $doc])* #[serde(rename = $text)] $variant,)*
        }

        impl Unit {
            /// The spelling in files and tables.
            pub const fn as_str(self) -> &'static str {
                match self { $(Unit::$variant => $text,)* }
            }
        }
    };
}

units! {
    /// A pure number of things.
    Count = "count",
    /// A name or a phrase.
    Text = "text",
    /// True or false.
    Flag = "flag",
    /// Hundredths.
    Percent = "%",
    /// Bytes.
    Bytes = "B",
    /// 2^10 bytes.
    Kib = "KiB",
    /// 2^20 bytes.
    Mib = "MiB",
    /// 10^9 bytes.
    Gb = "GB",
    /// 10^15 bytes.
    Pb = "PB",
    /// 10^6 bytes per second.
    MbPerSecond = "MB/s",
    /// 10^9 line symbols per second.
    GigabaudPerSecond = "Gbaud",
    /// Microseconds.
    Us = "us",
    /// Milliseconds.
    Ms = "ms",
    /// Revolutions per minute.
    Rpm = "rpm",
    /// Operations per second.
    Iops = "IOPS",
    /// Metres.
    Metres = "m",
    /// Watts.
    Watts = "W",
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A value of any parameter, for tables and JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// A number; whole numbers print without a fraction.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name or a phrase.
    Text(String),
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Number(number) => f.pad(&number.to_string()),
            ParameterValue::Flag(flag) => f.pad(if *flag { "yes" } else { "no" }),
            ParameterValue::Text(text) => f.pad(text),
        }
    }
}

/// The types a parameter may have.
pub trait ValueType: Clone {
    /// The value for a table.
    fn to_value(&self) -> ParameterValue;
}

impl ValueType for f64 {
    fn to_value(&self) -> ParameterValue {
        ParameterValue::Number(*self)
    }
}

impl ValueType for u32 {
    fn to_value(&self) -> ParameterValue {
        ParameterValue::Number(f64::from(*self))
    }
}

impl ValueType for bool {
    fn to_value(&self) -> ParameterValue {
        ParameterValue::Flag(*self)
    }
}

impl ValueType for String {
    fn to_value(&self) -> ParameterValue {
        ParameterValue::Text(self.clone())
    }
}

/// One line of `tier0 catalog show`: a parameter with its name and its meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParameterRow {
    /// The field's name, as in the TOML.
    pub parameter: &'static str,
    /// The value in effect.
    pub value: ParameterValue,
    /// Its unit.
    pub unit: Unit,
    /// How it is known.
    pub kind: SourceKind,
    /// Document, measurement or reasoning.
    pub source: String,
    /// The figures that it was fitted to, each as "STUDY.FIGURE".
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fitted_to: Vec<String>,
    /// What the parameter means.
    pub meaning: &'static str,
}
