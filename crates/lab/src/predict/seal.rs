//! The seal of a prediction: a SHA-256 (FIPS 180-4) over everything else in its file.
//!
//! It shows that nothing was changed since. It does not show who made the prediction: who can write a file can seal it, so give the
//! hash away before the run.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The field that holds the seal.
pub(super) const FIELD: &str = "sha256";

/// The hash over a JSON object without its seal. Objects of `serde_json` have their fields in the order of names, and numbers are
/// written so that they are read as the same.
pub(super) fn hash(value: &Value) -> String {
    let mut open = value.clone();
    if let Some(fields) = open.as_object_mut() {
        fields.remove(FIELD);
    }
    let digest = Sha256::digest(open.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a JSON object has the seal that belongs to it.
pub(super) fn is_whole(value: &Value) -> bool {
    value.get(FIELD).and_then(Value::as_str).is_some_and(|seal| seal == hash(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_text_without_the_seal() {
        // sha256sum of {"a":1.5,"b":"x"}
        let sealed = "65fd242cae36459932b524820d2925d23153aa1a19e15f7b9c418cfecfe86674";
        let value = json!({ "b": "x", "a": 1.5 });
        assert_eq!(value.to_string(), "{\"a\":1.5,\"b\":\"x\"}");
        assert_eq!(hash(&value), sealed);
        let mut value = json!({ "b": "x", "a": 1.5, "sha256": sealed });
        assert!(is_whole(&value));
        value["a"] = json!(1.6);
        assert!(!is_whole(&value));
        assert!(!is_whole(&json!({ "a": 1.5 })), "without a seal");
        assert!(!is_whole(&json!([1])));
    }

    #[test]
    fn numbers_keep_their_seal_through_a_file() {
        let value = json!({ "figures": [0.1 + 0.2, 1.0 / 3.0, 1e-300, 5e15, 123_456_789.123_456_79] });
        let read: Value =
            serde_json::from_str(&serde_json::to_string_pretty(&value).expect("JSON")).expect("JSON");
        assert_eq!(hash(&read), hash(&value));
    }
}
