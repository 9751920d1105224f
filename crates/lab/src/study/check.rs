//! From a study's file to a plan: ids resolved, configurations completed, roles separated.

use std::collections::BTreeSet;
use std::path::Path;

use tier0_catalog::{Catalog, DriveSpec, SourceKind};
use toml::{Spanned, Table, Value};

use super::error::Place;
use super::file::{
    AssumptionSection, File, ParameterSection, RecordSection, ValueSection, VarySection, case_tables,
};
use super::plan::{
    Assumption, CalibrationFigure, CaseConfiguration, CatalogValue, Configuration, Figures, FreeField,
    FreeParameter, GridPlan, Measure, Order, PredictionFigure, Variation,
};
use super::setup::{Setup, SetupPatch};
use super::{Study, StudyError, grid};
use crate::case::lay_over;
use crate::record::Role;

/// The most free parameters: each multiplies the measurements of a fit.
const PARAMETERS_MAX: usize = 3;

impl Study {
    /// An embedded study by its id, or a study from a file whose name ends in `.toml`.
    ///
    /// # Errors
    /// [`StudyError`] where there is none, or what is wrong with it.
    pub fn find(name: &str) -> Result<Study, StudyError> {
        if !name.ends_with(".toml") {
            return super::embedded(name);
        }
        let path = Path::new(name);
        let text = std::fs::read_to_string(path)
            .map_err(|source| StudyError::Unreadable { path: path.to_owned(), source })?;
        Study::parse(&text, name)
    }

    /// Reads a study from text; `name` stands for the file in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and what to do.
    pub fn parse(text: &str, name: &str) -> Result<Study, StudyError> {
        let place = Place { text, name };
        let file: File = tier0_toml::read(text).map_err(|misread| place.misread(misread))?;
        check(file, &place)
    }
}

fn check(file: File, place: &Place<'_>) -> Result<Study, StudyError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if file.id.get_ref().is_empty() || !file.id.get_ref().chars().all(plain) {
        return Err(place.wrong(file.id.span(), "id: use small letters, digits and '-'".into()));
    }
    let (grid, subjects, patches) = subjects(&file, place)?;
    let parameters = file.parameters.iter().map(|section| parameter(section, &subjects, place));
    let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
    if parameters.len() > PARAMETERS_MAX {
        let span = file.parameters[PARAMETERS_MAX].name.span();
        return Err(
            place.wrong(span, format!("there are more than {PARAMETERS_MAX} free parameters; drop some"))
        );
    }
    let figures = figures(&file.records, grid.as_ref(), &subjects, place)?;
    check_imported(&file, &subjects, &figures, place)?;
    if !parameters.is_empty() && figures.calibration.is_empty() {
        let span = file.parameters[0].name.span();
        return Err(place
            .wrong(span, "nothing has the role \"calibration\" to fit parameters to; add a record".into()));
    }
    let laid_over = LaidOver { base: &file.base.set, patches: &patches, subjects: &subjects };
    let assumptions = file.assumptions.iter().map(|section| assumption(section, &laid_over, place));
    let assumptions = assumptions.collect::<Result<Vec<_>, _>>()?;
    let study = Study {
        id: file.id.into_inner(),
        title: file.title,
        description: file.description,
        mechanism: file.mechanism,
        seed: file.seed,
        assumptions,
        configurations: subjects.configurations,
        cases: subjects.cases,
        grid,
        parameters,
        figures,
    };
    // The ends of a free field's range must be possible.
    for (number, section) in file.parameters.iter().enumerate() {
        for end in [section.least, section.most] {
            study.with_values([(number, end)]).map_err(|error| {
                place.wrong(section.field.span(), format!("parameter {:?}: {error}", section.name.get_ref()))
            })?;
        }
    }
    Ok(study)
}

/// What a study measures.
#[derive(Default)]
struct Subjects {
    configurations: Vec<Configuration>,
    cases: Vec<CaseConfiguration>,
}

impl Subjects {
    fn find(&self, id: &Spanned<String>, place: &Place<'_>) -> Result<usize, StudyError> {
        let loads = self.configurations.iter().map(|configuration| &configuration.id);
        let mut all = loads.chain(self.cases.iter().map(|case| &case.id));
        all.position(|known| known == id.get_ref()).ok_or_else(|| {
            let text = format!("there is no configuration {:?}; name one of this study", id.get_ref());
            place.wrong(id.span(), text)
        })
    }

    /// The places of ids, all of one kind, in the list of their kind; all of that kind where there are no ids.
    fn of_kind(
        &self,
        ids: Option<&Vec<Spanned<String>>>,
        are_cases: bool,
        place: &Place<'_>,
    ) -> Result<Vec<usize>, StudyError> {
        let loads = self.configurations.len();
        let Some(ids) = ids else {
            return Ok((0..if are_cases { self.cases.len() } else { loads }).collect());
        };
        let find = |id: &Spanned<String>| {
            let found = self.find(id, place)?;
            match (found.checked_sub(loads), are_cases) {
                (Some(case), true) => Ok(case),
                (None, false) => Ok(found),
                (Some(_), false) => {
                    let text = "is a database, and this changes loads; use database, host or system";
                    Err(place.wrong(id.span(), format!("configuration {:?} {text}", id.get_ref())))
                }
                (None, true) => {
                    let text = "is no database, and this changes databases; use set";
                    Err(place.wrong(id.span(), format!("configuration {:?} {text}", id.get_ref())))
                }
            }
        };
        ids.iter().map(find).collect()
    }
}

/// Configurations with the patches that made the loads.
struct LaidOver<'a> {
    base: &'a SetupPatch,
    patches: &'a [SetupPatch],
    subjects: &'a Subjects,
}

fn assumption(
    section: &AssumptionSection,
    laid_over: &LaidOver<'_>,
    place: &Place<'_>,
) -> Result<Assumption, StudyError> {
    let variations = section.vary.iter().map(|vary| {
        let found = variation(vary.get_ref(), laid_over, place);
        found.map_err(|fact| match fact {
            Fact::Placed(error) => error,
            Fact::Plain(fact) => {
                let text = format!("{}, varied to {:?}: {fact}", section.what, vary.get_ref().to);
                place.wrong(vary.span(), text)
            }
        })
    });
    let variations: Vec<Variation> = variations.collect::<Result<_, _>>()?;
    if *section.band.get_ref() && variations.is_empty() {
        let text = format!("{}: is a band of one value; add vary, or drop band", section.what);
        return Err(place.wrong(section.band.span(), text));
    }
    Ok(Assumption {
        what: section.what.clone(),
        value: section.value.clone(),
        source: section.source.clone(),
        variations,
        is_band: *section.band.get_ref(),
    })
}

/// What is wrong, with or without its place.
enum Fact {
    Placed(StudyError),
    Plain(String),
}

fn variation(section: &VarySection, laid_over: &LaidOver<'_>, place: &Place<'_>) -> Result<Variation, Fact> {
    let catalog = match (&section.entry, &section.parameter, section.value) {
        (None, None, None) => None,
        (Some(entry), Some(parameter), Some(value)) => {
            let varied = Catalog::built_in().varied(entry, parameter, value);
            varied.map_err(|error| Fact::Plain(error.to_string()))?;
            Some(CatalogValue { entry: entry.clone(), parameter: parameter.clone(), value })
        }
        _ => {
            let fact = "a number of the catalogue is varied with entry, parameter and value together";
            return Err(Fact::Plain(fact.to_owned()));
        }
    };
    let tables = case_tables!(section);
    let kinds = [section.set != SetupPatch::default(), !tables.is_empty(), catalog.is_some()];
    if kinds.iter().filter(|given| **given).count() != 1 {
        let fact = "give either set, or some of database, host, system, front_end and run, or entry, parameter and value";
        return Err(Fact::Plain(fact.to_owned()));
    }
    let [changes_setups, changes_cases, _] = kinds;
    let subjects = laid_over.subjects;
    let places =
        |are_cases| subjects.of_kind(section.configurations.as_ref(), are_cases, place).map_err(Fact::Placed);
    let (mut setups, mut cases) = (Vec::new(), Vec::new());
    if changes_setups {
        for at in places(false)? {
            let patch = laid_over.base.overlaid(&laid_over.patches[at]).overlaid(&section.set);
            setups.push((at, Setup::of(&patch).map_err(Fact::Plain)?));
        }
    }
    if changes_cases {
        for at in places(true)? {
            let case = subjects.cases[at].with_tables(&tables);
            cases.push((at, case.map_err(|error| Fact::Plain(error.to_string()))?));
        }
    }
    Ok(Variation { to: section.to.clone(), setups, cases, catalog })
}

/// The grid, everything that is measured, and what each load lays over the base.
type Laid = (Option<GridPlan>, Subjects, Vec<SetupPatch>);

fn subjects(file: &File, place: &Place<'_>) -> Result<Laid, StudyError> {
    let mut found = Subjects::default();
    let mut patches = Vec::new();
    let mut ids = BTreeSet::new();
    let mut new = |id: &str, span: &std::ops::Range<usize>| match ids.insert(id.to_owned()) {
        true => Ok(()),
        false => Err(place.wrong(span.clone(), format!("there are two configurations {id:?}; rename one"))),
    };
    let mut load = |id: &str, title: &str, patch: &SetupPatch, span: std::ops::Range<usize>| {
        let setup = Setup::of(&file.base.set.overlaid(patch));
        let setup =
            setup.map_err(|fact| place.wrong(span.clone(), format!("configuration {id:?} {fact}")))?;
        check_references(id, &setup, place, span)?;
        found.configurations.push(Configuration { id: id.to_owned(), title: title.to_owned(), setup });
        patches.push(patch.clone());
        Ok::<_, StudyError>(())
    };
    let mut plan = None;
    if let Some(section) = &file.grid {
        let span = section.axes.first().map_or(0..0, |axis| axis.title.span());
        let (grid, points) = grid::expand(section);
        for (id, title, patch) in &points {
            new(id, &span)?;
            load(id, title, patch, span.clone())?;
        }
        plan = Some(grid);
    }
    let base = case_tables!(file);
    for section in &file.configurations {
        let (id, span) = (section.id.get_ref(), section.id.span());
        new(id, &span)?;
        let tables = case_tables!(section);
        if tables.is_empty() {
            load(id, &section.title, &section.set, span)?;
            continue;
        }
        if section.set != SetupPatch::default() {
            let text = "gives set, which is for loads, and tables of a database; keep one of them";
            return Err(place.wrong(span, format!("configuration {id:?} {text}")));
        }
        let mut table = base.clone();
        lay_over(&mut table, &tables);
        let case = CaseConfiguration::of(id, &section.title, table);
        found.cases.push(case.map_err(|error| place.wrong(span, format!("configuration {error}")))?);
    }
    Ok((plan, found, patches))
}

fn check_references(
    id: &str,
    setup: &Setup,
    place: &Place<'_>,
    span: std::ops::Range<usize>,
) -> Result<(), StudyError> {
    let catalog = Catalog::built_in();
    let array = catalog.array(&setup.array).map(|_| ()).map_err(|unknown| unknown.to_string());
    let known =
        |drive: String| catalog.drive_by_reference(&drive).map(|_| ()).map_err(|unknown| unknown.to_string());
    let drives = setup.set_groups().into_iter().try_for_each(|sets| known(sets.drive));
    let flash =
        setup.caches.flash.as_ref().map_or(Ok(()), |flash| match catalog.drive_by_reference(&flash.drive) {
            Ok(DriveSpec::Flash(_)) => Ok(()),
            Ok(_) => {
                Err(format!("flash_cache_drive {:?} is no SSD; name one (tier0 catalog list)", flash.drive))
            }
            Err(unknown) => Err(unknown.to_string()),
        });
    array.and(drives).and(flash).map_err(|fact| place.wrong(span, format!("configuration {id:?}: {fact}")))
}

/// No figure that a parameter of the catalogue was fitted to may be a prediction.
fn check_imported(
    file: &File,
    subjects: &Subjects,
    figures: &Figures,
    place: &Place<'_>,
) -> Result<(), StudyError> {
    let catalog = Catalog::built_in();
    let of = |configuration: &Configuration| {
        let drives = configuration.setup.set_groups().into_iter().map(|sets| sets.drive);
        let flash = configuration.setup.caches.flash.as_ref().map(|flash| flash.drive.clone());
        drives.chain(flash).chain([configuration.setup.array.clone()]).collect::<Vec<String>>()
    };
    let mut entries: BTreeSet<String> = subjects.configurations.iter().flat_map(of).collect();
    entries.extend(subjects.cases.iter().flat_map(|case| case.case.entries()));
    let id = file.id.get_ref();
    for entry in entries {
        let fitted = catalog.parameters_of_kind(&entry, SourceKind::Fitted);
        let fitted = fitted.map_err(|unknown| place.wrong(file.id.span(), unknown.to_string()))?;
        for (row, figure) in
            fitted.flat_map(|row| row.fitted_to.clone().into_iter().map(move |to| (row.clone(), to)))
        {
            let own = figure.strip_prefix(id.as_str()).and_then(|rest| rest.strip_prefix('.'));
            // Under another name it is the same figure.
            let measure =
                figures.reported().find(|known| Some(known.id) == own).map(|known| known.measure.clone());
            let predicted = figures.prediction.iter().find(|known| Some(&known.measure) == measure.as_ref());
            if let Some(predicted) = predicted {
                let section = file.records.iter().find(|section| *section.id.get_ref() == predicted.id);
                let text = format!(
                    "record {:?} is no prediction: {} of {entry:?} was fitted to it; give it the role \"calibration\", or \
                     take another drive",
                    predicted.id, row.parameter
                );
                return Err(place.wrong(section.map_or(file.id.span(), |section| section.id.span()), text));
            }
        }
    }
    Ok(())
}

fn parameter(
    section: &ParameterSection,
    subjects: &Subjects,
    place: &Place<'_>,
) -> Result<FreeParameter, StudyError> {
    let name = section.name.get_ref();
    let ordered = section.least < section.most && (section.least..=section.most).contains(&section.start);
    if !ordered {
        let text = format!("parameter {name:?}: least, start and most must come in this order");
        return Err(place.wrong(section.name.span(), text));
    }
    let field = section.field.get_ref().clone();
    let are_cases = match &field {
        FreeField::Setup(_) => false,
        FreeField::Case(path) if path.contains('.') => true,
        FreeField::Case(unknown) => {
            let text = format!(
                "parameter {name:?}: there is no field {unknown:?}; use think_us, used_percent, write_cache_mib, or the path of \
                 a field of a database's tables, such as database.buffer"
            );
            return Err(place.wrong(section.field.span(), text));
        }
    };
    let places = subjects.of_kind(section.configurations.as_ref(), are_cases, place)?;
    Ok(FreeParameter {
        name: name.clone(),
        field,
        unit: section.unit.clone(),
        stands_for: section.stands_for.clone(),
        start: section.start,
        least: section.least,
        most: section.most,
        configurations: places,
    })
}

fn figures(
    records: &[RecordSection],
    grid: Option<&GridPlan>,
    subjects: &Subjects,
    place: &Place<'_>,
) -> Result<Figures, StudyError> {
    let mut figures = Figures::default();
    let mut ids = BTreeSet::new();
    for section in records {
        let id = section.id.get_ref();
        if !ids.insert(id.clone()) {
            return Err(place.wrong(section.id.span(), format!("there are two records {id:?}; rename one")));
        }
        let of_grid = grid.filter(|grid| grid.points.iter().any(|point| point.id == *id));
        let measure = match (&section.value, of_grid) {
            (Some(value), _) => measure(value, section, subjects, place)?,
            (None, Some(grid)) => Measure::Of(grid.metric, subjects.find(&section.id, place)?),
            (None, None) => {
                let text =
                    format!("record {id:?} is no point of the grid and says no value; add value = {{ … }}");
                return Err(place.wrong(section.id.span(), text));
            }
        };
        let unit = section.unit.clone().or_else(|| of_grid.map(|grid| grid.unit.clone())).unwrap_or_default();
        add(section, measure, unit, &mut figures, place)?;
    }
    let Some(grid) = grid else { return Ok(figures) };
    for point in grid.points.iter().filter(|point| !ids.contains(&point.id)) {
        let at = subjects.configurations.iter().position(|configuration| configuration.id == point.id);
        figures.unpublished.push(PredictionFigure {
            id: point.id.clone(),
            unit: grid.unit.clone(),
            measure: Measure::Of(grid.metric, at.expect("a point is a configuration")),
            published: None,
            tolerance: None,
            straight_line: None,
        });
    }
    Ok(figures)
}

/// Sorts a record into what may be fitted to and what may not.
fn add(
    section: &RecordSection,
    measure: Measure,
    unit: String,
    figures: &mut Figures,
    place: &Place<'_>,
) -> Result<(), StudyError> {
    let id = section.id.get_ref().clone();
    let tolerance = section.tolerance.as_ref().map(|tolerance| *tolerance.get_ref());
    let straight_line = section.straight_line.as_ref().map(|line| {
        let value = line.get_ref().value().filter(|_| section.role != Role::Calibration);
        value.ok_or_else(|| {
            let text = format!(
                "record {id:?}: a straight line belongs to a figure that is not fitted to, and goes through one or two published \
                 figures at different places, such as {{ over = \"drives\", through = [[6, 2400], [12, 4100]], at = 24 }}"
            );
            place.wrong(line.span(), text)
        })
    });
    let straight_line = straight_line.transpose()?;
    let unfitted = |id, unit, measure| {
        let published = section.published.clone();
        PredictionFigure { id, unit, measure, published, tolerance, straight_line }
    };
    // Without a published figure there is nothing that a prediction could be judged by.
    let role = match section.role {
        Role::Prediction if section.published.is_none() => Role::Unpublished,
        role => role,
    };
    match role {
        Role::Unpublished if section.published.is_some() => {
            let text =
                format!("record {id:?} is unpublished and gives what was published; make it a prediction");
            return Err(place.wrong(section.id.span(), text));
        }
        Role::Unpublished => figures.unpublished.push(unfitted(id, unit, measure)),
        Role::Prediction => figures.prediction.push(unfitted(id, unit, measure)),
        Role::Derived => figures.derived.push(unfitted(id, unit, measure)),
        Role::Calibration => {
            // A published statement ("above 80") needs a tolerance that says what agrees with it.
            let published = section.published.clone().filter(|published| {
                let agrees = tolerance.and_then(|tolerance| tolerance.admits(0.0, published.number()));
                !published.is_withheld() && agrees.is_some()
            });
            let (Some(published), Some(tolerance)) = (published, tolerance) else {
                let text = format!(
                    "record {id:?} is to calibrate and lacks a published number or a tolerance; add them, or a range such \
                     as \"80..100\" for a published statement"
                );
                return Err(place.wrong(section.id.span(), text));
            };
            if matches!(measure, Measure::Order(_)) {
                let text = format!(
                    "record {id:?} is an order, which nothing can be fitted to; make it a prediction"
                );
                return Err(place.wrong(section.id.span(), text));
            }
            figures.calibration.push(CalibrationFigure { id, unit, measure, published, tolerance });
        }
    }
    Ok(())
}

fn measure(
    value: &ValueSection,
    section: &RecordSection,
    subjects: &Subjects,
    place: &Place<'_>,
) -> Result<Measure, StudyError> {
    let find = |id: &Spanned<String>| {
        let found = subjects.find(id, place)?;
        let loads = subjects.configurations.len();
        let lacks = match found >= loads {
            true if value.per_drive => Some("is a database, which per_drive is not for; leave it out"),
            true if !value.metric.is_of_cases() => Some("is a database and has no such metric; use another"),
            false if !value.metric.is_of_loads() => {
                Some("is no database and has no such metric; use another")
            }
            _ => None,
        };
        match lacks {
            Some(fact) => Err(place.wrong(id.span(), format!("configuration {:?} {fact}", id.get_ref()))),
            None => Ok(found),
        }
    };
    match (&value.of, &value.over, &value.order) {
        (Some(of), None, None) if !value.per_drive && !value.change => {
            Ok(Measure::Of(value.metric, find(of)?))
        }
        (Some(of), Some(over), None) if value.per_drive && !value.change => {
            Ok(Measure::RatioPerDrive(value.metric, find(of)?, find(over)?))
        }
        (Some(of), Some(over), None) if value.change => {
            Ok(Measure::Change(value.metric, find(of)?, find(over)?))
        }
        (Some(of), Some(over), None) => Ok(Measure::Ratio(value.metric, find(of)?, find(over)?)),
        (None, None, Some(pairs)) if !pairs.is_empty() => {
            let pairs = pairs.iter().map(|[first, second]| Ok([find(first)?, find(second)?]));
            let pairs = pairs.collect::<Result<_, StudyError>>()?;
            Ok(Measure::Order(Order { metric: value.metric, pairs }))
        }
        _ => {
            let text = format!(
                "the value of record {:?} must give of, of and over (with per_drive or change), or order",
                section.id.get_ref()
            );
            Err(place.wrong(section.id.span(), text))
        }
    }
}
