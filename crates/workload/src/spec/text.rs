//! Values that are one word both on the command line and in TOML: their serde is their text.

use tier0_units::ByteCount;

/// A size that reads back exactly; `ByteCount` itself rounds what no unit divides.
pub(crate) fn exact_bytes(bytes: ByteCount) -> String {
    let text = bytes.to_string();
    if text.parse() == Ok(bytes) { text } else { format!("{}B", bytes.0) }
}

/// Implements `Serialize` by `Display` and `Deserialize` by `FromStr`, so that one grammar and one error
/// message serve the command line, TOML and JSON.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use serde_as_text;
