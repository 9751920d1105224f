//! Hosts of the catalogue: cores, and what a transaction and an I/O cost them (`catalog/hosts/*.toml`).
//!
//! The times follow from published results of tuned systems. A database that parses statements and serves clients over a network
//! needs two to five times as much; a measurement of one's own host is better.

use serde::Deserialize;
use thiserror::Error;
use tier0_catalog::{Parameter, SourceKind};

/// A host, in numbers that have sources.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostModel {
    /// Its name in cases.
    pub id: String,
    /// A line for titles.
    pub title: String,
    /// Cores of all processors.
    pub cores: Parameter<f64>,
    /// Processor time of an I/O, in microseconds.
    pub io_us: Parameter<f64>,
    /// Processor time of a transaction of the workload `brokerage`, mean of the mix, in milliseconds.
    pub brokerage_ms: Option<Parameter<f64>>,
    /// The same of `order-entry`.
    pub order_entry_ms: Option<Parameter<f64>>,
}

/// There is no such host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no host {id:?}; use one of {known}, or give cores, transaction_ms and io_us")]
pub struct UnknownHost {
    /// The name.
    pub id: String,
    /// Those that there are.
    pub known: String,
}

macro_rules! embedded {
    ($($file:literal,)*) => {
        /// The hosts that the program carries.
        const EMBEDDED: &[(&str, &str)] = &[$((
            concat!("catalog/hosts/", $file),
            include_str!(concat!("../../../catalog/hosts/", $file)),
        ),)*];
    };
}

embedded! {
    "xeon-e5-2690-2p.toml",
    "xeon-e7-2870-2p.toml",
    "xeon-x5680-2p.toml",
    "xeon-x5690-2p.toml",
    "xeon-x7350-4p.toml",
    "xeon-x7560-4p.toml",
}

impl HostModel {
    /// The host of a name.
    ///
    /// # Errors
    /// There is none.
    ///
    /// # Panics
    /// If an embedded file is wrong, which the tests exclude.
    pub fn find(id: &str) -> Result<HostModel, UnknownHost> {
        let read = |(file, text): &(&str, &str)| {
            tier0_toml::read(text).unwrap_or_else(|misread| panic!("{file}: {misread:?}"))
        };
        let hosts: Vec<HostModel> = EMBEDDED.iter().map(read).collect();
        let known = hosts.iter().map(|host| host.id.as_str()).collect::<Vec<_>>().join(", ");
        let found = hosts.into_iter().find(|host| host.id == id);
        found.ok_or_else(|| UnknownHost { id: id.to_owned(), known })
    }

    /// Milliseconds of a transaction of a workload, if the catalogue knows them.
    pub fn transaction_ms(&self, workload: &str) -> Option<f64> {
        let number = match workload {
            "brokerage" => &self.brokerage_ms,
            "order-entry" => &self.order_entry_ms,
            _ => &None,
        };
        number.as_ref().map(|number| number.value)
    }

    /// Where each number comes from: of what, how it is known, the source.
    pub fn sources(&self) -> Vec<(&'static str, SourceKind, &str)> {
        let of_workload = [("brokerage_ms", &self.brokerage_ms), ("order_entry_ms", &self.order_entry_ms)];
        let of_workload = of_workload.into_iter().filter_map(|(name, number)| Some((name, number.as_ref()?)));
        let all = [("cores", &self.cores), ("io_us", &self.io_us)].into_iter().chain(of_workload);
        all.map(|(name, number)| (name, number.kind, number.source.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_is_embedded_and_sound() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../catalog/hosts");
        assert_eq!(
            std::fs::read_dir(dir).expect("the catalogue is beside the crate").count(),
            EMBEDDED.len()
        );
        for (file, _) in EMBEDDED {
            let id = file.trim_start_matches("catalog/hosts/").trim_end_matches(".toml");
            let host = HostModel::find(id).expect("it is embedded under its name");
            assert!(host.cores.value >= 1.0 && host.io_us.value > 0.0, "{file}");
            assert!(
                host.transaction_ms("brokerage").or(host.transaction_ms("order-entry")) > Some(0.0),
                "{file}"
            );
            for (name, _, source) in host.sources() {
                assert!(source.len() >= 10, "{file}: {name} has no source");
            }
        }
    }

    #[test]
    fn an_unknown_host_names_those_there_are() {
        let text = HostModel::find("pentium").expect_err("there is none").to_string();
        assert!(text.contains("xeon-x5690-2p") && text.contains("give cores"), "{text}");
    }
}
