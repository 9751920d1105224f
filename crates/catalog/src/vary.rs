//! The catalogue with one parameter of one entry at another value, to see what it matters.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::catalog::Catalog;
use crate::error::{LookupError, UnknownEntry};
use crate::load::Specs;
use crate::parameter::ParameterValue;
use crate::parameter_set::ParameterSet;
use crate::spec::{DATASHEET, Spec};

/// Why a parameter cannot be varied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaryError {
    /// There is no such entry or calibration.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The entry has no such number.
    #[error(
        "\"{entry}\" has no numeric parameter \"{parameter}\"; \"tier0 catalog show {entry}\" lists its parameters"
    )]
    Parameter {
        /// The entry.
        entry: String,
        /// What was to be varied.
        parameter: String,
    },
    /// The value breaks a rule.
    #[error("\"{entry}\", {parameter}: {problem}")]
    Value {
        /// The entry.
        entry: String,
        /// What was to be varied.
        parameter: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Catalog {
    /// This catalogue with one number of "id" or "id@calibration" changed; under a calibration, for that one alone.
    ///
    /// # Errors
    /// [`VaryError`] where there is no such number, or the value is out of its range.
    pub fn varied(&self, reference: &str, parameter: &str, value: f64) -> Result<Catalog, VaryError> {
        let (id, calibration) = match reference.split_once('@') {
            None => (reference, None),
            Some((id, calibration)) => (id, Some(calibration)),
        };
        let change = Change { id, calibration, parameter, value };
        let mut entries = self.entries().clone();
        let found = change.apply(&mut entries.disks)?
            || change.apply(&mut entries.flash)?
            || change.apply(&mut entries.nvram)?
            || change.apply(&mut entries.links)?
            || change.apply(&mut entries.arrays)?;
        match found {
            true => Ok(Catalog::from_entries(entries)),
            false => {
                let unknown: UnknownEntry = self.entry(id).expect_err("no kind has it");
                Err(LookupError::from(unknown).into())
            }
        }
    }
}

struct Change<'a> {
    id: &'a str,
    calibration: Option<&'a str>,
    parameter: &'a str,
    value: f64,
}

/// A parameter as a file gives it, under any name.
#[derive(Deserialize)]
struct Given<O> {
    given: O,
}

impl Change<'_> {
    /// Whether the entry is of this kind; it is changed then.
    fn apply<P: ParameterSet>(&self, specs: &mut Specs<P>) -> Result<bool, VaryError> {
        let Some(spec) = specs.get_mut(self.id) else { return Ok(false) };
        let effective = match self.calibration {
            None => spec.clone(),
            Some(calibration) => spec.calibrated(calibration).map_err(LookupError::from)?,
        };
        let parameters = self.changed(&effective.parameters)?;
        if let Some(broken) = parameters.check().into_iter().next() {
            return Err(self.wrong(format!("{} {}", broken.field, broken.problem)));
        }
        // What was in effect, changed, is the entry's own from here on.
        let replaced =
            Spec { own: parameters.clone(), parameters, calibration: DATASHEET.to_owned(), ..effective };
        *spec = match self.calibration.filter(|calibration| *calibration != DATASHEET) {
            None => replaced,
            Some(calibration) => {
                let mut replaced = replaced;
                let own = replaced.calibrations.get_mut(calibration).expect("it was looked up");
                own.overrides = P::Overrides::default();
                replaced
            }
        };
        Ok(true)
    }

    fn changed<P: ParameterSet>(&self, parameters: &P) -> Result<P, VaryError> {
        let unknown =
            || VaryError::Parameter { entry: self.id.to_owned(), parameter: self.parameter.to_owned() };
        let rows = parameters.rows();
        let row = rows.iter().find(|row| row.parameter == self.parameter).ok_or_else(unknown)?;
        if !matches!(row.value, ParameterValue::Number(_)) {
            return Err(unknown());
        }
        let text = format!(
            "[given]\n{} = {{ value = {}, unit = \"{}\", kind = \"assumed\", source = \"varied\" }}",
            self.parameter, self.value, row.unit
        );
        let given = read::<P::Overrides>(&text).map_err(|problem| self.wrong(problem))?;
        Ok(parameters.overridden(&given))
    }

    fn wrong(&self, problem: String) -> VaryError {
        VaryError::Value { entry: self.id.to_owned(), parameter: self.parameter.to_owned(), problem }
    }
}

fn read<O: DeserializeOwned>(text: &str) -> Result<O, String> {
    let given: Given<O> = tier0_toml::read(text).map_err(|misread| misread.fact)?;
    Ok(given.given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(catalog: &Catalog, reference: &str, parameter: &str) -> f64 {
        let rows = catalog.rows(reference).expect("it is there");
        let row = rows.iter().find(|row| row.parameter == parameter).expect("it has that");
        match row.value {
            ParameterValue::Number(number) => number,
            _ => panic!("{parameter} is no number"),
        }
    }

    #[test]
    fn one_number_changes_and_nothing_else() {
        let plain = Catalog::embedded();
        let varied = plain.varied("efd-73gb@cx4-oracle", "read_us", 33.0).expect("in range");
        assert_eq!(number(&varied, "efd-73gb@cx4-oracle", "read_us"), 33.0);
        let others = |catalog: &Catalog| {
            let mut rows = catalog.rows("efd-73gb@cx4-oracle").expect("it is there");
            rows.retain(|row| row.parameter != "read_us");
            rows
        };
        assert_eq!(others(&varied), others(&plain));
        assert_eq!(varied.rows("sas-15k-146gb-sff"), plain.rows("sas-15k-146gb-sff"));
        let whole = plain.varied("sas-15k-146gb-sff", "rpm", 14_000.0).expect("in range");
        assert_eq!(number(&whole, "sas-15k-146gb-sff", "rpm"), 14_000.0);
    }

    #[test]
    fn what_cannot_be_varied_is_said() {
        let catalog = Catalog::embedded();
        let text = |reference: &str, parameter: &str, value: f64| {
            catalog.varied(reference, parameter, value).expect_err("refused").to_string()
        };
        assert!(text("efd-74gb", "read_us", 1.0).contains("no entry \"efd-74gb\""));
        assert!(text("efd-73gb@nowhere", "read_us", 1.0).contains("no calibration"));
        assert!(text("efd-73gb", "colour", 1.0).contains("no numeric parameter \"colour\""));
        assert!(text("efd-73gb", "read_us", -1.0).contains("outside"));
        assert!(text("efd-73gb", "channels", 1.5).contains("channels"));
    }
}
