//! NBD addresses as people write them.

use tier0_nbd::protocol::NbdUri;

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "nbd-uri",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 8192,
    inputs_in_tests: 4000,
    memory_bytes_max: (4096, 16),
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "nbd://example.com/disk",
        "nbd://example.com:10810/hello%20world",
        "nbd://[::1]:9/a",
        "nbd+unix:///lun0?socket=/run/tier0/db1.sock",
        "nbd+unix:///a%2Fb?socket=%2Ftmp%2Fs&",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}

fn run(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match text.parse::<NbdUri>() {
        Ok(uri) => {
            assert_eq!(uri.to_string().parse(), Ok(uri), "what is printed is read back");
            true
        }
        Err(error) => {
            // What is told to the user is made from the input too.
            std::hint::black_box(error.to_string());
            false
        }
    }
}
