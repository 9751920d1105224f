//! A whole load: its streams, its warm-up, its limits.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use tier0_units::Nanos;

use super::{RunLimits, SpecError, StreamSpec};
use crate::stats::SteadyCriterion;

/// How written data is checked when it is read back.
///
/// Over data that an earlier verified run left, use another seed: a lost write would uncover the very same
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct VerifySpec {
    /// Blocks that this run has not written yet must read as zeros, as on a fresh volume.
    pub fresh: bool,
    /// Once the run is over, every block that it wrote is read and checked.
    pub sweep: bool,
}

/// A load. In TOML, `[stream]` for one stream or `[[stream]]` for several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Streams that run side by side, at least one.
    #[serde(rename = "stream", deserialize_with = "one_or_many")]
    pub streams: Vec<StreamSpec>,
    /// The seed of every random draw. The same seed, load and target give the same requests.
    #[serde(default = "LoadSpec::seed_default")]
    pub seed: u64,
    /// The seed of where the pieces of zipf and of a scattered hot-cold lie; `seed` where absent. A load that goes on
    /// with other requests keeps its hot set by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_seed: Option<u64>,
    /// Time before the measurement begins.
    #[serde(default, with = "super::duration")]
    pub warm_up: Nanos,
    /// With it, the measurement waits further until the target is in a steady state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyCriterion>,
    /// What ends the run.
    #[serde(default)]
    pub limits: RunLimits,
    /// The length of one row of the report's series.
    #[serde(default = "LoadSpec::interval_default", with = "super::duration")]
    pub interval: Nanos,
    /// With it, data is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifySpec>,
}

impl LoadSpec {
    /// A load of one stream, measured from the first request until a limit.
    pub fn single(stream: StreamSpec, limits: RunLimits) -> LoadSpec {
        LoadSpec {
            streams: vec![stream],
            seed: LoadSpec::seed_default(),
            placement_seed: None,
            warm_up: Nanos::ZERO,
            steady: None,
            limits,
            interval: LoadSpec::interval_default(),
            verify: None,
        }
    }

    fn seed_default() -> u64 {
        1
    }

    fn interval_default() -> Nanos {
        Nanos::from_secs(1)
    }

    /// Checks everything that can be checked without a target.
    ///
    /// # Errors
    /// The first [`SpecError`] found, in the order of the fields.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.streams.is_empty() {
            return Err(SpecError::NoStream);
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if self.streams[..index].iter().any(|earlier| earlier.name == stream.name) {
                return Err(SpecError::NameTwice(stream.name.clone()));
            }
            stream.validate()?;
        }
        if let Some(steady) = &self.steady {
            steady.validate()?;
        }
        self.limits.validate(self.interval)
    }
}

/// Reads one table or a list of tables, keeping the errors of the table itself.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StreamSpec>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<StreamSpec>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a [stream] table or a list of [[stream]] tables")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            StreamSpec::deserialize(MapAccessDeserializer::new(map)).map(|stream| vec![stream])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }

    deserializer.deserialize_any(OneOrMany)
}

#[cfg(test)]
mod tests {
    use tier0_units::ByteCount;

    use super::*;
    use crate::spec::{Arrival, OpenLoop, Pattern, Portion};

    const MIXED: &str = r#"
        seed = 7
        placement_seed = 3
        warm_up = "5s"
        interval = "500ms"

        [limits]
        time = "2min"
        precision_percent = 1.0

        [steady]
        rounds = 5

        [verify]
        fresh = true

        [[stream]]
        name = "oltp"
        block = "8KiB:70 64KiB:30"
        read_percent = 60
        pattern = "zipf:0.99"
        length = "40%"
        arrival = { closed_loop = { users = 32, think_time = "exponential:10ms" } }

        [[stream]]
        name = "scan"
        pattern = "sequential"
        arrival = { open_loop = { rate_iops = 500.0 } }
    "#;

    #[test]
    fn reads_toml_and_survives_json() {
        let spec: LoadSpec = toml::from_str(MIXED).expect("valid TOML");
        assert_eq!(spec.validate(), Ok(()));
        assert_eq!(spec.streams[0].length, Some(Portion::Percent(40.0)));
        assert_eq!(spec.streams[0].pattern, Pattern::Zipf { theta: 0.99 });
        assert_eq!(spec.streams[1].arrival, Arrival::OpenLoop(OpenLoop::at(500.0)));
        let json = serde_json::to_string(&spec).expect("serialises");
        assert_eq!(serde_json::from_str::<LoadSpec>(&json).expect("reads back"), spec);
        let text = toml::to_string(&spec).expect("serialises");
        assert_eq!(toml::from_str::<LoadSpec>(&text).expect("reads back"), spec);
    }

    #[test]
    fn one_stream_needs_no_list() {
        let spec: LoadSpec = toml::from_str("[stream]\nblock = \"64KiB\"").expect("valid TOML");
        assert_eq!(spec.streams[0].block.size_max(), ByteCount::kib(64));
        assert_eq!(spec.validate(), Ok(()));
    }

    #[test]
    fn a_misspelt_field_is_named() {
        let error =
            toml::from_str::<LoadSpec>("[stream]\nreads = 70").expect_err("no such field").to_string();
        assert!(error.contains("reads") && error.contains("read_percent"), "{error}");
        let error =
            toml::from_str::<LoadSpec>("[stream]\npattern = \"zpf\"").expect_err("no pattern").to_string();
        assert!(error.contains("hot-cold:80/20"), "{error}");
    }

    #[test]
    fn every_wrong_field_has_its_error() {
        let base = LoadSpec::single(StreamSpec::default(), RunLimits::default());
        let error = |change: &dyn Fn(&mut LoadSpec)| {
            let mut spec = base.clone();
            change(&mut spec);
            spec.validate().expect_err("the change makes it invalid").to_string()
        };
        let stream = |change: &dyn Fn(&mut StreamSpec)| error(&|spec| change(&mut spec.streams[0]));
        for (text, names) in [
            (error(&|spec| spec.streams.clear()), "no stream"),
            (error(&|spec| spec.streams.push(StreamSpec::default())), "two streams are named"),
            (error(&|spec| spec.limits.time = None), "the run has no limit"),
            (error(&|spec| spec.limits.ios = Some(0)), "limit ios is zero"),
            (error(&|spec| spec.limits.precision_percent = Some(f64::NAN)), "precision_percent"),
            (error(&|spec| spec.interval = Nanos(1)), "intervals are too many"),
            (error(&|spec| spec.interval = Nanos(0)), "intervals are too many"),
            (stream(&|s| s.read_percent = 101.0), "read_percent is 101"),
            (stream(&|s| s.block = "1000".parse().expect("a size")), "a size in block"),
            (stream(&|s| s.block = "8KiB:0".parse().expect("a mix")), "sum of weights"),
            (stream(&|s| s.alignment = Some(ByteCount(100))), "alignment"),
            (stream(&|s| s.scatter = Some(ByteCount(0))), "scatter"),
            (stream(&|s| s.pattern = Pattern::Zipf { theta: 0.0 }), "zipf"),
            (
                stream(&|s| s.pattern = Pattern::HotCold { access_percent: 80.0, space_percent: 0.0 }),
                "space of hot-cold",
            ),
            (stream(&|s| s.arrival = Arrival::users(0)), "users is 0"),
            (stream(&|s| s.arrival = Arrival::OpenLoop(OpenLoop::at(f64::NAN))), "rate_iops is NaN"),
        ] {
            assert!(text.contains(names), "{text:?} does not name {names:?}");
        }
    }
}
