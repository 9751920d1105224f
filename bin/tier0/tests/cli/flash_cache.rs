//! The flash cache of a pool: it comes with the array or later, is warm after a kill, and goes.

use std::path::Path;

use serde_json::Value;

use crate::support::{Served, directory, file, json, refuse, status, succeed, text};

/// Mirrors on disks, and flash drives for the cache, of which `fields` of the pool tell.
fn array_of(directory: &Path, fields: &str) -> String {
    let at = directory.display();
    format!(
        r#"
[array]
name = "lab"
cores = 2
memory = "64MiB"

[[drive]]
name = "disk{{n}}"
count = 2
path = "{at}/disk{{n}}.img"
size = "128MiB"
class = "disk"

[[drive]]
name = "ssd{{n}}"
count = 2
path = "{at}/ssd{{n}}.img"
size = "64MiB"
class = "flash"

[[pool]]
name = "pool0"
drives = ["disk*"]
log_drives = ["ssd*"]
log = "16MiB"
raid = "raid1"
set_size = 2
chunklet = "4MiB"
{fields}

[[volume]]
name = "lun0"
size = "48MiB"
"#
    )
}

fn read(uri: &str, passes: &str) {
    succeed(&["load", uri, "--read", "100", "--block", "8KiB", "--ios", passes]);
}

fn cache_of(status: &Value) -> &Value {
    &status["pools"][0]["flash_cache"]
}

fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come to that");
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number and not {value}"))
}

#[test]
fn what_was_read_is_found_on_flash_after_a_kill() {
    let directory = directory();
    let text_of = array_of(directory.path(), "flash_cache = \"64MiB\"\nflash_cache_drives = [\"ssd*\"]");
    let array = file(directory.path(), "array.toml", &text_of);
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    succeed(&["load", &served.uri, "--read", "0", "--block", "64KiB", "--ios", "768", "--overwrite"]);
    succeed(&["volume", "set", array, "lun0", "cache.write=off"]);
    read(&served.uri, "12000");
    wait_until(|| number(&cache_of(&json(&["status", array]))["bytes"]) > 24 << 20);
    served.kill();
    let served = Served::start(Path::new(array), directory.path());
    let status = json(&["status", array]);
    assert!(number(&cache_of(&status)["loaded_lines"]) > 100, "{}", cache_of(&status));
    read(&served.uri, "2000");
    let status = json(&["status", array]);
    let (hits, misses) = (number(&cache_of(&status)["hits"]), number(&cache_of(&status)["misses"]));
    assert!(hits > misses && hits > 1000, "{hits} found of {}", hits + misses);
    let told = succeed(&["status", array]);
    assert!(told.contains("flash cache:") && told.contains("ssd0, ssd1"), "{told}");
    let config = succeed(&["config", array]);
    assert!(config.contains("flash_cache = \"64MiB\""), "{config}");
    served.stop();
}

#[test]
fn it_comes_grows_shrinks_and_goes_while_the_array_serves() {
    let directory = directory();
    let array = file(directory.path(), "array.toml", &array_of(directory.path(), ""));
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    assert!(cache_of(&json(&["status", array])).is_null());
    refuse(&["pool", "flash-cache", array, "16MiB", "--drives", "disk0"], 2, &["\"disk0\"", "--class flash"]);
    refuse(&["pool", "flash-cache", array, "16MiB", "--drives", "none"], 2, &["\"none\"", "tier0 status"]);
    refuse(&["pool", "flash-cache", array, "1GiB"], 2, &["\"ssd0\" lacks", "--drives"]);
    let done = succeed(&["pool", "flash-cache", array, "16MiB", "--drives", "ssd0"]);
    assert!(done.contains("flash cache of pool pool0 is now 16MiB on drive ssd0"), "{done}");
    succeed(&["load", &served.uri, "--read", "50", "--block", "8KiB", "--ios", "4000", "--overwrite"]);
    for (size, drives) in
        [("32MiB", "ssd0,ssd1"), ("40MiB", "ssd0,ssd1"), ("8MiB", "ssd0,ssd1"), ("24MiB", "ssd1")]
    {
        let done = succeed(&["pool", "flash-cache", array, size, "--drives", drives]);
        assert!(done.contains(&format!("is now {size} on")), "{done}");
        succeed(&["load", &served.uri, "--read", "70", "--block", "8KiB", "--ios", "2000", "--overwrite"]);
    }
    succeed(&["pool", "flash-cache", array, "0"]);
    // Made for little, it cannot use so much more: then it is made anew.
    succeed(&["pool", "flash-cache", array, "4MiB", "--drives", "ssd1"]);
    let done = succeed(&["pool", "flash-cache", array, "32MiB", "--drives", "ssd1"]);
    assert!(done.contains("is now 32MiB on drive ssd1, emptied on drive ssd1"), "{done}");
    let room = |status: &Value| number(&cache_of(status)["room_bytes"]);
    let grown = room(&json(&["status", array]));
    assert!(grown > 30 << 20, "{grown} bytes can be used");
    // What is refused takes nothing away.
    let big = directory.path().join("big.img");
    std::fs::File::create(&big).and_then(|big| big.set_len(100 << 30)).expect("sparse files are there");
    succeed(&["drive", "add", array, "--name", "big", "--path", text(&big), "--class", "flash"]);
    refuse(&["pool", "flash-cache", array, "64GiB", "--drives", "big"], 2, &["its tables need", "memory"]);
    assert_eq!(room(&json(&["status", array])), grown);
    let done = succeed(&["pool", "flash-cache", array, "0"]);
    assert!(done.contains("flash cache of pool pool0 removed"), "{done}");
    assert!(cache_of(&json(&["status", array])).is_null());
    served.stop();
}

/// What a pool that was put together again holds may be older than what its flash cache does.
#[test]
fn a_recovered_pool_believes_no_flash_cache() {
    let directory = directory();
    let text_of = array_of(directory.path(), "flash_cache = \"32MiB\"\nflash_cache_drives = [\"ssd*\"]");
    let array = file(directory.path(), "array.toml", &text_of);
    let array = text(&array);
    succeed(&["create", array]);
    let served = Served::start(Path::new(array), directory.path());
    succeed(&["drive", "fail", array, "disk1", "--yes"]);
    succeed(&["load", &served.uri, "--read", "0", "--block", "64KiB", "--ios", "768", "--overwrite"]);
    succeed(&["volume", "set", array, "lun0", "cache.write=off"]);
    read(&served.uri, "12000");
    wait_until(|| number(&cache_of(&status(array))["bytes"]) > 16 << 20);
    served.stop();
    std::fs::remove_file(directory.path().join("disk0.img")).expect("it is there");
    refuse(&["serve", array], 2, &["tier0 pool recover"]);
    succeed(&["pool", "recover", array, "--accept-loss", "--yes"]);
    let served = Served::start(Path::new(array), directory.path());
    assert_eq!(number(&cache_of(&status(array))["loaded_lines"]), 0);
    served.stop();
}

/// `create` took a flash cache of which no shard could use its part, and the server complained once per shard.
#[test]
fn a_flash_cache_too_small_for_the_cores_is_refused() {
    let directory = directory();
    let fields = "flash_cache = \"16MiB\"";
    let many = array_of(directory.path(), fields).replace("cores = 2", "cores = 16");
    let array = file(directory.path(), "array.toml", &many);
    let words = ["16 cores", "chunklets of 4MiB", "pool.chunklet to 8MiB", "array.cores"];
    refuse(&["check", text(&array)], 2, &words);
    refuse(&["create", text(&array)], 2, &words);
    let large = many.replace("chunklet = \"4MiB\"", "chunklet = \"8MiB\"");
    succeed(&["check", text(&file(directory.path(), "array.toml", &large))]);
}
