//! Weights of volumes, set while the array serves, and what a restart, the array file and lists say of them.

use serde_json::{Value, json};

use crate::support::{Scene, Served, file, json, refuse, run, succeed, text};

/// The weight of the first volume, as status tells.
fn weight_of(array: &str) -> Value {
    json(&["status", array])["pools"][0]["volumes"][0]["weight"].clone()
}

#[test]
fn a_weight_is_set_while_the_array_serves_and_stays_so() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array();
    assert_eq!(weight_of(array), json!(10));
    assert!(!run(&["status", array]).stdout.contains("weight"), "as usual");
    assert!(!succeed(&["config", array]).contains("weight"), "as usual");
    let done = succeed(&["volume", "set", array, "lun0", "weight=50", "iops.max=900"]);
    assert!(done.contains("volume lun0: weight 50 from now on") && done.contains("900 IOPS"), "{done}");
    assert_eq!(weight_of(array), json!(50));
    assert!(run(&["status", array]).stdout.contains("weight"));
    assert!(succeed(&["config", array]).contains("weight = 50\n"));
    assert!(succeed(&["volume", "list", array]).contains("weight"));
    for wrong in ["weight=0", "weight=101", "weight=none", "weight=1.5"] {
        refuse(&["volume", "set", array, "lun0", wrong], 2, &["from 1 to 100", "weight=N"]);
    }
    let file_of = array.to_owned();
    let directory = scene.stop_and_keep();
    let array = file_of.as_str();
    assert_eq!(json(&["volume", "list", array])["volumes"][0]["weight"], json!(50));
    let served = Served::start(std::path::Path::new(array), directory.path());
    assert_eq!(weight_of(array), json!(50));
    served.stop();
}

/// What the array file says counts at each start, and that is told when something else is set.
#[test]
fn the_array_file_says_which_weight_there_is_at_a_start() {
    let scene = Scene::of("raid1", 2);
    let right = std::fs::read_to_string(scene.array()).expect("an array file");
    let says = right.replace("size = \"24MiB\"", "size = \"24MiB\"\nweight = 20");
    let array = file(scene.directory(), "array.toml", &says);
    let array = text(&array).to_owned();
    let told = succeed(&["check", &array]);
    assert!(told.contains("volume \"lun0\": weight 10 would change to 20 at the next start"), "{told}");
    let done = succeed(&["volume", "set", &array, "lun0", "weight=30"]).replace('\n', " ");
    assert!(done.contains("has weight 20 for volume \"lun0\""), "{done}");
    let wrong = says.replace("weight = 20", "weight = 0");
    let wrong = file(scene.directory(), "wrong.toml", &wrong);
    refuse(&["check", text(&wrong)], 2, &["volume.weight: 0 is no weight", "use 1 to 100"]);
    let directory = scene.stop_and_keep();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    assert_eq!(weight_of(&array), json!(20));
    served.stop();
}
