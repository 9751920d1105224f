//! How far Fibre Channel reaches over a cable, by speed.

use super::{Case, Rule, Said, Subject, told, unknown};

/// Types of cable, in the order of the columns of [`REACH`].
const CABLES: [&str; 5] = ["OM1", "OM2", "OM3", "OM4", "OS1"];
/// Metres by speed in Gb/s; OM4 came with 8 Gb/s.
const REACH: [(f64, [Option<f64>; 5]); 5] = [
    (1.0, [Some(300.0), Some(500.0), Some(860.0), None, Some(10_000.0)]),
    (2.0, [Some(150.0), Some(300.0), Some(500.0), None, Some(10_000.0)]),
    (4.0, [Some(50.0), Some(150.0), Some(380.0), Some(400.0), Some(10_000.0)]),
    (8.0, [Some(21.0), Some(50.0), Some(150.0), Some(190.0), Some(10_000.0)]),
    (16.0, [Some(15.0), Some(35.0), Some(100.0), Some(125.0), Some(10_000.0)]),
];

pub(super) const RULE: Rule = Rule {
    id: "cable",
    subject: Subject::Layout,
    threshold: "the cable is longer than its type carries the speed",
    advice: "use a shorter or a better cable, or a lower speed",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let (Some(speed), Some(cable), Some(metres)) = (case.site.fc_gbit, &case.site.cable, case.site.cable_m)
    else {
        return unknown("the cable is not known (fc_gbit, cable and cable_m in --site)");
    };
    let cable = cable.to_ascii_uppercase();
    let row = REACH.iter().find(|(gbit, _)| *gbit == speed);
    let column = CABLES.iter().position(|name| *name == cable);
    let Some(reach) = row.zip(column).and_then(|((_, metres), at)| metres[at]) else {
        return unknown(format!(
            "the table has no reach of {speed:.0} Gb/s over {cable}; it has 1, 2, 4, 8 and 16 over OM1 to OM4 and OS1"
        ));
    };
    told(metres > reach, format!("{metres:.0} m of {cable} at {speed:.0} Gb/s; it reaches {reach:.0} m"))
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |metres: f64, cable: &str| {
            testing::of_site(
                &RULE,
                &Site {
                    fc_gbit: Some(8.0),
                    cable: Some(cable.to_owned()),
                    cable_m: Some(metres),
                    ..Site::default()
                },
            )
        };
        assert_eq!((of(200.0, "OM3"), of(100.0, "om3")), (Outcome::Fires, Outcome::Silent));
        assert_eq!(of(10.0, "copper"), Outcome::Unknown);
    }
}
