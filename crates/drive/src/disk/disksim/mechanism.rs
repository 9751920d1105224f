//! The `dm_mech_g1` block, and the seek curve's file.
//!
//! The seek equations: *linear* and *curve* go through single-cylinder, average and full-stroke times (E. Lee,
//! "Performance Modeling and Analysis of Disk Arrays", 1993); *hpl* is Ruemmler and Wilkes's (IEEE Computer, March
//! 1994): a root below a distance, a line above; *hplplus10* gives the first ten distances apart (Worthington,
//! Ganger, Patt, CSE-TR-194-94); *extracted* is a measured table.

use std::path::PathBuf;

use tier0_units::Nanos;

use super::super::{MechanismParameters, ParameterError, Rotation, SeekCurve};
use super::syntax::{Block, Value};
use super::{DiskSimError, Problem};

/// Measured points: distance in cylinders, milliseconds.
type SeekTable = Vec<(u32, f64)>;

/// Reads the mechanism from a `dm_disk` block. `seek_file` reads the table that the block refers to.
pub(super) fn read(
    model: &Block,
    cylinders: u32,
    seek_file: impl Fn(&str) -> Result<(PathBuf, SeekTable), DiskSimError>,
    in_model: impl Fn(Problem) -> DiskSimError,
) -> Result<MechanismParameters, DiskSimError> {
    let mechanics = match model.entry("Mechanical Model").map(|entry| &entry.value) {
        Some(Value::Block(block)) => block,
        _ => model,
    };
    let rotation = rotation(mechanics).map_err(&in_model)?;
    let settle_ms = mechanics.number_or("Add. write settling delay", 0.0).map_err(&in_model)?;
    let switch_ms = mechanics.number_or("Head switch time", 0.0).map_err(&in_model)?;
    let rpm = mechanics.number("Rotation speed (in rpms)").map_err(&in_model)?;
    let seek_read = match mechanics.word("Seek type") {
        Some(("extracted", _)) | None => {
            let file = mechanics.word("Full seek curve").map_or("", |(file, _)| file);
            let (path, points) = seek_file(file)?;
            let wrong = |source| DiskSimError::Parameter { file: path.display().to_string(), source };
            SeekCurve::from_points(&points, cylinders).map_err(wrong)?
        }
        Some((kind, line)) => equation(mechanics, kind, line, cylinders).map_err(&in_model)?,
    };
    let seek_write = seek_read.plus_ms(settle_ms);
    // A switch longer than a second is no switch; it must fit 32 bits of nanoseconds.
    let switch = |ms: f64| Nanos::from_millis_f64(ms.clamp(0.0, 1_000.0));
    Ok(MechanismParameters {
        rpm,
        seek_read,
        seek_write,
        head_switch_read: switch(switch_ms),
        head_switch_write: switch(switch_ms + settle_ms),
        rotation,
    })
}

fn rotation(mechanics: &Block) -> Result<Rotation, Problem> {
    match mechanics.word("Access time type") {
        None | Some(("trackSwitchPlusRotation", _)) => Ok(Rotation::Exact),
        Some(("averageRotation", _)) => Ok(Rotation::Average),
        Some((other, line)) => {
            let text = format!(
                "access time type {other:?} is not modelled; use trackSwitchPlusRotation or averageRotation"
            );
            Err(Problem::new(line, text))
        }
    }
}

/// The curves given by an equation.
fn equation(mechanics: &Block, kind: &str, line: usize, cylinders: u32) -> Result<SeekCurve, Problem> {
    let curve = |equation: &dyn Fn(f64) -> f64| Ok(SeekCurve::from_equation(cylinders, equation));
    match kind {
        "constant" => {
            let ms = mechanics.number("Constant seek time")?;
            curve(&|_| ms)
        }
        "linear" => curve(&line_through(three_points(mechanics)?, cylinders)),
        "curve" => {
            let points @ (single, average, full) = three_points(mechanics)?;
            let count = f64::from(cylinders);
            let root = (-10.0 * single + 15.0 * average - 5.0 * full) / (3.0 * count.sqrt());
            let slope = (7.0 * single - 15.0 * average + 8.0 * full) / (3.0 * count);
            if root < 0.0 || slope < 0.0 {
                return curve(&line_through(points, cylinders));
            }
            curve(&|d| root * (d - 1.0).sqrt() + slope * (d - 1.0) + single)
        }
        "hpl" => {
            let (division, [root0, root1, line0, line1], single) = hpl(mechanics, line)?;
            curve(&|d| match single {
                Some(single) if d == 1.0 => single,
                _ if d < division => root0 + root1 * d.sqrt(),
                _ => line0 + line1 * d,
            })
        }
        "hplplus10" => {
            let (division, [root0, root1, line0, line1], _) = hpl(mechanics, line)?;
            let first = mechanics.numbers("First ten seek times")?;
            if first.len() < 10 {
                return Err(Problem::new(line, "seek type hplplus10 needs ten \"First ten seek times\""));
            }
            curve(&|d| match first.get(d as usize - 1) {
                Some(&(_, ms)) if d <= 10.0 => ms,
                _ if d < division => root0 + root1 * d.sqrt(),
                _ => line0 + line1 * d,
            })
        }
        _ => {
            let known = "extracted, constant, linear, curve, hpl or hplplus10";
            Err(Problem::new(line, format!("seek type {kind:?} is not known; it must be {known}")))
        }
    }
}

fn three_points(mechanics: &Block) -> Result<(f64, f64, f64), Problem> {
    let single = mechanics.number("Single cylinder seek time")?;
    let average = mechanics.number("Average seek time")?;
    Ok((single, average, mechanics.number("Full strobe seek time")?))
}

/// Straight from one cylinder to a third of the disk, and on to all of it.
fn line_through((single, average, full): (f64, f64, f64), cylinders: u32) -> impl Fn(f64) -> f64 {
    let (count, third) = (f64::from(cylinders), f64::from(cylinders) / 3.0);
    move |d| {
        if d <= third {
            single + (average - single) * (d - 1.0) / third
        } else {
            average + (full - average) * (d - third) / (count - third)
        }
    }
}

/// The distance that divides, the four coefficients, and the seek to the next cylinder where it stands apart.
fn hpl(mechanics: &Block, line: usize) -> Result<(f64, [f64; 4], Option<f64>), Problem> {
    let values = mechanics.numbers("HPL seek equation values")?;
    match values[..] {
        [(_, v1), (_, v2), (_, v3), (_, v4), (_, v5), (_, v6), ..] => {
            Ok((v1, [v2, v3, v4, v5], (v6 >= 0.0).then_some(v6)))
        }
        _ => Err(Problem::new(line, "this seek type needs six \"HPL seek equation values\"")),
    }
}

/// Reads a seek curve's file: a heading, then `distance, milliseconds` (and maybe a deviation) on each line.
pub(super) fn parse_seek_points(text: &str) -> Result<SeekTable, Problem> {
    let mut points: SeekTable = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default().trim();
        if !content.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let mut fields = content.split([',', ' ', '\t']).filter(|field| !field.is_empty());
        let distance = fields.next().and_then(|field| field.parse::<u32>().ok());
        let ms = fields.next().and_then(|field| field.parse::<f64>().ok());
        let (Some(distance), Some(ms)) = (distance, ms) else {
            let text = "a seek must be given as \"distance in cylinders, milliseconds\"";
            return Err(Problem::new(index + 1, text));
        };
        match points.last() {
            Some(&(last, _)) if last >= distance => {
                return Err(Problem::new(index + 1, "seek distances must ascend"));
            }
            // Not moving takes no time.
            _ if distance == 0 => {}
            _ => points.push((distance, ms)),
        }
    }
    if points.is_empty() {
        return Err(Problem::new(1, ParameterError::SeekCurve.to_string()));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::super::syntax;
    use super::*;

    fn curve(text: &str) -> Result<SeekCurve, DiskSimError> {
        let block = syntax::parse(text).unwrap();
        let file = |_: &str| Ok((PathBuf::new(), vec![(1, 1.0), (2, 2.0)]));
        let fail = |problem: Problem| problem.in_file(std::path::Path::new("model"));
        read(&block, 1_001, file, fail).map(|mechanism| mechanism.seek_read)
    }

    fn ms(curve: &SeekCurve, distance: u32) -> f64 {
        f64::from(curve.nanos(distance)) / 1e6
    }

    #[test]
    fn reads_a_seek_file_in_its_variants() {
        let text = "Seek distances measured: 3\n1,\t0.83100\n2, 1.00300, 0.01\n 10 2.5 # far\n\n";
        assert_eq!(parse_seek_points(text), Ok(vec![(1, 0.831), (2, 1.003), (10, 2.5)]));
        assert_eq!(parse_seek_points("1, x").unwrap_err().line, 1);
        assert_eq!(parse_seek_points("2, 1\n1, 1").unwrap_err().line, 2);
        assert!(parse_seek_points("nothing").is_err());
    }

    #[test]
    fn the_equations_of_the_literature() {
        let rpm = "Rotation speed (in rpms) = 6000,";
        let points =
            "Single cylinder seek time = 1.0, Average seek time = 6.0, Full strobe seek time = 12.0,";
        let linear = curve(&format!("{rpm} {points} Seek type = linear")).unwrap();
        assert!((ms(&linear, 334) - 6.0).abs() < 0.05 && (ms(&linear, 1_000) - 12.0).abs() < 0.05);
        let lee = curve(&format!("{rpm} {points} Seek type = curve")).unwrap();
        // (-10 + 90 - 60) / (3 √1001) = 0.2107 and (7 - 90 + 96) / 3003 = 0.004329; at 101: 1 + 2.107 + 0.4329.
        assert!((ms(&lee, 1) - 1.0).abs() < 1e-5 && (ms(&lee, 101) - 3.540).abs() < 0.001);
        let values = "HPL seek equation values = [ 400, 3.0, 0.2, 6.0, 0.005, -1 ],";
        let hpl = curve(&format!("{rpm} {values} Seek type = hpl")).unwrap();
        assert!((ms(&hpl, 1) - 3.2).abs() < 1e-5 && (ms(&hpl, 100) - 5.0).abs() < 1e-5);
        assert!((ms(&hpl, 400) - 8.0).abs() < 1e-5);
        let ten = "First ten seek times = [ 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0 ],";
        let plus = curve(&format!("{rpm} {values} {ten} Seek type = hplplus10")).unwrap();
        assert!((ms(&plus, 10) - 2.0).abs() < 1e-5 && (ms(&plus, 100) - 5.0).abs() < 1e-5);
        assert!(curve(&format!("{rpm} {values} Seek type = hplplus10")).is_err());
        assert!(curve(&format!("{rpm} Seek type = warp")).is_err());
        assert!(
            (ms(&curve(&format!("{rpm} Constant seek time = 4, Seek type = constant")).unwrap(), 9) - 4.0)
                .abs()
                < 1e-5
        );
    }
}
