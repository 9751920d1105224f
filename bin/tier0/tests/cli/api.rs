//! What the program prints and sends is what `docs/api` promises.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use crate::support::{Scene, json, run, succeed};

/// The schema in the documentation.
struct Schema(Value);

impl Schema {
    fn read() -> Schema {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/v1.schema.json");
        let text = std::fs::read_to_string(path).expect("the schema");
        Schema(serde_json::from_str(&text).expect("JSON"))
    }

    fn definition(&self, name: &str) -> &Value {
        let found = &self.0["$defs"][name];
        assert!(found.is_object(), "the schema has no {name}");
        found
    }

    /// Demands that a document is one of this name.
    fn check(&self, name: &str, document: &Value) {
        let mut faults = self.faults(self.definition(name), document, name);
        faults.extend(self.unknown_keys(&[self.definition(name)], document, name));
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    fn followed<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            Some(name) => self.definition(name),
            None => schema,
        }
    }

    /// What of a value the schema does not allow: the part of JSON Schema that schemars writes for our types.
    fn faults(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = self.followed(schema);
        let mut faults = Vec::new();
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if !types.is_empty() && !types.iter().any(|one| is_of_type(value, one)) {
            faults.push(format!("{at}: {value} is no {types:?}"));
        }
        if let Some(wanted) = schema.get("const").filter(|wanted| *wanted != value) {
            faults.push(format!("{at}: {value} is not {wanted}"));
        }
        if let Some(all) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
            faults.push(format!("{at}: {value} is none of {all:?}"));
        }
        for key in ["oneOf", "anyOf"] {
            let Some(ways) = schema[key].as_array() else { continue };
            let tried: Vec<Vec<String>> = ways.iter().map(|way| self.faults(way, value, at)).collect();
            if tried.iter().all(|faults| !faults.is_empty()) {
                let least = tried.into_iter().min_by_key(Vec::len).unwrap_or_default();
                faults.push(format!("{at}: nothing of {key} fits, the nearest because of {least:?}"));
            }
        }
        if let Value::Object(fields) = value {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let lacking = required.filter(|key| !fields.contains_key(*key));
            faults.extend(lacking.map(|key| format!("{at}: {key} is missing")));
            for (key, field) in fields {
                if let Some(of_field) = schema["properties"].get(key) {
                    faults.extend(self.faults(of_field, field, &format!("{at}.{key}")));
                }
            }
        }
        if let (Value::Array(items), Some(of_item)) = (value, schema.get("items")) {
            for (number, item) in items.iter().enumerate() {
                faults.extend(self.faults(of_item, item, &format!("{at}[{number}]")));
            }
        }
        faults
    }

    /// Keys that the schemas, which hold together, do not have. JSON Schema allows them; our types have none.
    fn unknown_keys(&self, schemas: &[&Value], value: &Value, at: &str) -> Vec<String> {
        let mut all: Vec<&Value> = schemas.iter().map(|schema| self.followed(schema)).collect();
        let mut seen = 0;
        while seen < all.len() {
            for key in ["oneOf", "anyOf", "allOf"] {
                all.extend(all[seen][key].as_array().into_iter().flatten().map(|way| self.followed(way)));
            }
            seen += 1;
        }
        match value {
            Value::Object(fields) => fields
                .iter()
                .flat_map(|(key, field)| {
                    let of_field: Vec<&Value> =
                        all.iter().filter_map(|schema| schema["properties"].get(key)).collect();
                    match of_field.is_empty() {
                        true => vec![format!("{at}: {key} is not in the schema")],
                        false => self.unknown_keys(&of_field, field, &format!("{at}.{key}")),
                    }
                })
                .collect(),
            Value::Array(items) => {
                let of_item: Vec<&Value> = all.iter().filter_map(|schema| schema.get("items")).collect();
                let unknown = |(number, item): (usize, &Value)| {
                    let known = if of_item.is_empty() { Vec::new() } else { of_item.clone() };
                    self.unknown_keys(&known, item, &format!("{at}[{number}]"))
                };
                items.iter().enumerate().filter(|_| !of_item.is_empty()).flat_map(unknown).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has a type {other}"),
    }
}

/// The reply to a line on the control socket.
fn asked(control: &Path, line: &str) -> Value {
    let mut stream = UnixStream::connect(control).expect("it listens");
    stream.write_all(format!("{line}\n").as_bytes()).expect("it is sent");
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply).expect("it answers");
    serde_json::from_str(&reply).expect("JSON")
}

#[test]
fn what_an_array_says_is_what_the_schema_promises() {
    let schema = Schema::read();
    let scene = Scene::of("raid5", 3);
    let array = scene.array();
    succeed(&["load", scene.uri(), "--read", "50", "--ios", "200", "--overwrite"]);
    let control = scene.at("array.control");
    for request in ["status", "io", "describe"] {
        let request = format!(r#"{{"api":1,"request":"{request}"}}"#);
        schema.check("RequestEnvelope", &serde_json::from_str(&request).expect("JSON"));
        let reply = asked(&control, &request);
        assert!(reply["refused"].is_null(), "{reply}");
        schema.check("ReplyEnvelope", &reply);
    }
    schema.check("Status", &json(&["status", array]));
    succeed(&["drive", "fail", array, "d1", "--yes"]);
    let failed = scene.status_when(|status| status["events"].to_string().contains("rebuild-lacks-space"));
    schema.check("Status", &failed);
    let finding = &failed["pools"][0]["findings"][0];
    assert_eq!(finding["id"], "sets-degraded", "{finding}");
    let (problem, what) = (&failed["pools"][0]["problems"][0], finding["what"].as_str().expect("a text"));
    assert!(problem.as_str().is_some_and(|problem| problem.starts_with(what)), "{problem}: {what}");
    let events = json(&["events", array]);
    let events = events.as_array().expect("events");
    events.iter().for_each(|event| schema.check("RecordedEvent", event));
    let drive = events.iter().find(|event| event["id"] == "drive-failed").expect("d1 has failed");
    assert_eq!(drive["subject"], serde_json::json!({ "kind": "drive", "name": "d1" }));
    assert_eq!(drive["thing"], "drive d1");
    scene.stop();
}

#[test]
fn a_client_of_another_version_is_told_both_versions_and_the_remedy() {
    let scene = Scene::of("raid1", 2);
    let control = scene.at("array.control");
    for (request, client) in
        [(r#"{"request":"status"}"#, "version 0"), (r#"{"api":2,"request":"dance"}"#, "version 2")]
    {
        let reply = asked(&control, request);
        let told = reply["refused"].as_str().unwrap_or_else(|| panic!("it is not refused: {reply}"));
        assert!(told.contains(client) && told.contains("version 1") && told.contains("; use"), "{told}");
    }
    scene.stop();
}

/// Switching a cache to the mode that it had was told as a change, and of clients that were not there.
#[test]
fn what_is_set_as_it_was_is_no_event() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    let changes = || {
        let events = json(&["events", array]);
        events.as_array().expect("events").iter().filter(|event| event["id"] == "request-done").count()
    };
    let set = |setting: &str| succeed(&["volume", "set", array, "lun0", setting]);
    let first = set("cache.write=volatile");
    assert!(first.contains("from now on") && !first.contains("client"), "no client is connected: {first}");
    assert_eq!(changes(), 1);
    assert!(set("cache.write=volatile").contains("volatile already; nothing changed"));
    assert!(succeed(&["pool", "set", array, "cache.read=on"]).contains("on already; nothing changed"));
    assert!(run(&["scrub", array, "--stop"]).stdout.contains("nothing to stop"));
    assert_eq!(changes(), 1);
    scene.stop();
}
