//! Ports carry 100 MB/s for each Gb/s of Fibre Channel; four of 8 Gb/s carry 3,200 MB/s and no more.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

/// Nominal MB/s of Fibre Channel for each Gb/s, all generations.
const MB_S_OF_GBIT: f64 = 100.0;
/// From here on ports queue.
const NEAR: f64 = 0.80;

pub(super) const RULE: Rule = Rule {
    id: "ports",
    subject: Subject::Layout,
    threshold: "the measured bytes per second are more than 80 % of what the ports carry",
    advice: "add ports or faster ones before flash makes the load larger",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let (Some(speed), Some(ports)) = (case.site.fc_gbit, case.site.ports) else {
        return unknown("the ports are not known (fc_gbit and ports in --site)");
    };
    let bytes: Vec<f64> = case.evidence.devices.iter().filter_map(|device| device.bytes_s).collect();
    let of_objects = || {
        let bytes: f64 = case.objects.iter().filter_map(|object| object.counts.bytes()).sum();
        case.evidence.seconds.filter(|_| bytes > 0.0).map(|seconds| bytes / seconds)
    };
    let Some(bytes_s) = (!bytes.is_empty()).then(|| bytes.iter().sum::<f64>()).or_else(of_objects) else {
        return unknown("bytes per second were not measured");
    };
    let carried = ports * speed * MB_S_OF_GBIT * 1e6;
    if carried <= 0.0 {
        return unknown("fc_gbit or ports in --site is 0; give what is in use");
    }
    told(
        bytes_s > NEAR * carried,
        format!("{:.0} MB/s are {} of {:.0} MB/s", bytes_s / 1e6, percent(bytes_s / carried), carried / 1e6),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let of = |ports: Option<f64>| {
            let mut device = testing::device(&[1.0; 3], &[3e9; 3]);
            device.bytes_s = Some(3e9);
            let evidence = Evidence { devices: vec![device], ..Evidence::default() };
            let site = Site { fc_gbit: Some(8.0), ports, ..Site::default() };
            testing::with(&RULE, &evidence, &site, None)
        };
        assert_eq!(
            (of(Some(4.0)), of(Some(8.0)), of(None)),
            (Outcome::Fires, Outcome::Silent, Outcome::Unknown)
        );
    }
}
