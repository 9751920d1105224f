//! Tables of parameters: one declaration per field yields the typed struct, its partial twin for
//! calibrations, and the rules (unit, range, meaning) that loading enforces.
//!
//! Invariant: the rules and the struct cannot drift apart, since both come from the same line.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;

use crate::parameter::{Parameter, ParameterRow, ParameterValue, SourceKind, Unit, ValueType};

/// What loading demands of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRule {
    /// The field's name, as in the TOML.
    pub name: &'static str,
    /// The only unit accepted.
    pub unit: Unit,
    /// The range of sane numbers, in that unit; `None` for flags and texts.
    pub range: Option<RangeInclusive<f64>>,
    /// Whether an entry may leave it out.
    pub optional: bool,
    /// What the parameter means.
    pub meaning: &'static str,
}

/// A contradiction between the fields of one entry, or a field that breaks its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The field to mend.
    pub field: &'static str,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// A complete table of parameters with its partial twin.
pub trait ParameterSet: Clone + 'static {
    /// The same fields, each of them optional: a calibration or an entry based on another.
    type Overrides: Clone + Default + DeserializeOwned;

    /// The rules of all fields, in the order of declaration.
    fn rules() -> Vec<FieldRule>;

    /// The complete table, or the name of the first required field that is missing.
    fn complete(given: &Self::Overrides) -> Result<Self, &'static str>;

    /// This table with the given fields replaced.
    fn overridden(&self, given: &Self::Overrides) -> Self;

    /// All parameters present, in the order of declaration.
    fn rows(&self) -> Vec<ParameterRow>;

    /// Contradictions between fields.
    fn contradictions(&self) -> Vec<Inconsistency>;

    /// Every broken rule: units, ranges, empty sources, contradictions between fields.
    fn check(&self) -> Vec<Inconsistency> {
        let rules = Self::rules();
        let rows = self.rows();
        let mut found: Vec<Inconsistency> = rows
            .iter()
            .filter_map(|row| {
                let rule = rules.iter().find(|rule| rule.name == row.parameter)?;
                check_row(rule, row)
            })
            .collect();
        if found.is_empty() {
            found = self.contradictions();
        }
        found
    }
}

/// The first rule that a parameter breaks.
fn check_row(rule: &FieldRule, row: &ParameterRow) -> Option<Inconsistency> {
    let broken = |problem: String, remedy: String| Some(Inconsistency { field: rule.name, problem, remedy });
    if row.unit != rule.unit {
        return broken(
            format!("is given in \"{}\"", row.unit),
            format!("convert the value and write unit = \"{}\"", rule.unit),
        );
    }
    if row.source.trim().is_empty() {
        return broken(
            "has no source".into(),
            "name the document and page, the measurement, or the reasoning behind an assumption".into(),
        );
    }
    if (row.kind == SourceKind::Fitted) == row.fitted_to.is_empty() {
        return broken(
            format!(
                "is {} and {} fitted_to",
                row.kind,
                if row.fitted_to.is_empty() { "lacks" } else { "has" }
            ),
            "write kind = \"fitted\" and fitted_to = [\"STUDY.FIGURE\"] together, or neither".into(),
        );
    }
    if let Some(odd) = row.fitted_to.iter().find(|figure| !figure.contains('.')) {
        return broken(
            format!("was fitted to {odd:?}, which is not a figure of a study"),
            "name the study and its figure, such as \"cx4-oracle.read.efd6.iops\"".into(),
        );
    }
    if let (ParameterValue::Number(number), Some(range)) = (&row.value, &rule.range)
        && !range.contains(number)
    {
        return broken(
            format!("is {number} {}, outside {} to {}", row.unit, range.start(), range.end()),
            "check the value and its unit against the source".into(),
        );
    }
    None
}

/// A field of a parameter set: required (`Parameter<T>`) or optional (`Option<Parameter<T>>`).
pub trait Field: Clone {
    /// The type of the value.
    type Value: ValueType;
    /// Whether an entry may leave the field out.
    const OPTIONAL: bool;
    /// The field from what an entry gives, or nothing where a required field is missing.
    fn from_given(given: &Option<Parameter<Self::Value>>) -> Option<Self>;
    /// The parameter, where there is one.
    fn parameter(&self) -> Option<&Parameter<Self::Value>>;
}

impl<T: ValueType> Field for Parameter<T> {
    type Value = T;
    const OPTIONAL: bool = false;

    fn from_given(given: &Option<Parameter<T>>) -> Option<Self> {
        given.clone()
    }

    fn parameter(&self) -> Option<&Parameter<T>> {
        Some(self)
    }
}

impl<T: ValueType> Field for Option<Parameter<T>> {
    type Value = T;
    const OPTIONAL: bool = true;

    fn from_given(given: &Option<Parameter<T>>) -> Option<Self> {
        Some(given.clone())
    }

    fn parameter(&self) -> Option<&Parameter<T>> {
        self.as_ref()
    }
}

/// The row of one field, where it is present.
pub(crate) fn row<F: Field>(name: &'static str, meaning: &'static str, field: &F) -> Option<ParameterRow> {
    field.parameter().map(|parameter| ParameterRow {
        parameter: name,
        value: parameter.value.to_value(),
        unit: parameter.unit,
        kind: parameter.kind,
        source: parameter.source.clone(),
        fitted_to: parameter.fitted_to.clone(),
        meaning,
    })
}

/// Declares a parameter set: `name: Type, Unit, low..=high;` per field (no range for flags and texts).
macro_rules! parameter_set {
    (
        $(#[doc = $doc:literal])*
        $name:ident / $overrides:ident {
            $($(#[doc = $meaning:literal])* $field:ident: $type:ty, $unit:ident $(, $range:expr)?;)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $meaning])* pub $field: $type,)*
        }

        #[doc = concat!("The fields of [`", stringify!($name), "`], each optional.")]
        #[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $overrides {
            $(
                $(#[doc = $meaning])*
                pub $field: Option<$crate::parameter::Parameter<
                    <$type as $crate::parameter_set::Field>::Value,
                >>,
            )*
        }

        impl $crate::parameter_set::ParameterSet for $name {
            type Overrides = $overrides;

            fn rules() -> Vec<$crate::parameter_set::FieldRule> {
                vec![$($crate::parameter_set::FieldRule {
                    name: stringify!($field),
                    unit: $crate::parameter::Unit::$unit,
                    range: parameter_set!(@range $($range)?),
                    optional: <$type as $crate::parameter_set::Field>::OPTIONAL,
                    meaning: concat!($($meaning),*).trim_ascii_start(),
                },)*]
            }

            fn complete(given: &$overrides) -> Result<$name, &'static str> {
                Ok($name {
                    $($field: <$type as $crate::parameter_set::Field>::from_given(&given.$field)
                        .ok_or(stringify!($field))?,)*
                })
            }

            fn overridden(&self, given: &$overrides) -> $name {
                $name {
                    $($field: if given.$field.is_some() {
                        <$type as $crate::parameter_set::Field>::from_given(&given.$field)
                            .unwrap_or_else(|| self.$field.clone())
                    } else {
                        self.$field.clone()
                    },)*
                }
            }

            fn rows(&self) -> Vec<$crate::parameter::ParameterRow> {
                [$($crate::parameter_set::row(
                    stringify!($field),
                    concat!($($meaning),*).trim_ascii_start(),
                    &self.$field,
                ),)*].into_iter().flatten().collect()
            }

            fn contradictions(&self) -> Vec<$crate::parameter_set::Inconsistency> {
                self.find_contradictions()
            }
        }
    };
    (@range) => { None };
    (@range $range:expr) => { Some($range) };
}

pub(crate) use parameter_set;

/// Adds a contradiction where `holds` is false.
pub(crate) fn expect(
    found: &mut Vec<Inconsistency>,
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
    remedy: &str,
) {
    if !holds {
        found.push(Inconsistency { field, problem: problem(), remedy: remedy.into() });
    }
}
