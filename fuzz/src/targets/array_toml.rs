//! The array file.

use tier0_description::Description;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "array-toml",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 16 << 10,
    inputs_in_tests: 4000,
    // The parser keeps some hundred bytes for each token; descriptions and error messages come on top.
    memory_bytes_max: (1 << 20, 1024),
};

fn seeds() -> Vec<Vec<u8>> {
    vec![
        br#"[array]
name = "db1"
cores = 2
search = ["/srv/drives"]

[[drive]]
name = "disk{n}"
count = 6
path = "/srv/drives/disk{n}.img"
size = "20GiB"

[[pool]]
name = "pool0"
drives = ["disk*"]
raid = "raid50"
set_size = 6
groups = 2
stripe_unit = "64KiB"
chunklet = "64MiB"
extent = "1MiB"
spare_drives = 0

[[volume]]
name = "data"
pool = "pool0"
size = "30GiB"

[nbd]
listen = ["unix:/run/tier0/db1.sock", "127.0.0.1:10809"]
allow_remote = false
"#
        .to_vec(),
        br#"array = { name = "m", cores = 1 }
drive = [{ name = "a", ram = "1GiB" }, { name = "b", ram = "1GiB" }]
pool = [{ name = "p", raid = "raid1" }]
volume = [{ name = "v", size = "4KiB" }]
"#
        .to_vec(),
    ]
}

fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match Description::parse(text, "array.toml") {
        Ok(_) => true,
        Err(error) => {
            std::hint::black_box(error.to_string());
            false
        }
    }
}
