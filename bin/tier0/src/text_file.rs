//! Text files that users name: read whole, and no longer than such files are.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::failure::Failure;

/// The longest file. A plan of 200,000 objects has 60 MB.
const BYTES_MAX: u64 = 64 << 20;

/// The text of a file.
///
/// # Errors
/// One that cannot be read, is no text or is longer than 64 MiB, as a wrong input.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let wrong = |fact: String| Failure::Input(format!("cannot read {}: {fact}", path.display()));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| wrong(format!("{error}; check that it exists and may be read")))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(wrong("it has more than 64 MiB, so it is not such a file; name another".to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is no text (UTF-8); name another".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_no_text_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "text").expect("a file");
        assert_eq!(read(&path).expect("it is text"), "text");
        std::fs::write(&path, [0xff_u8]).expect("a file");
        let told = |path: &Path| read(path).expect_err("it is wrong").text().unwrap_or_default();
        assert!(told(&path).contains("no text"));
        assert!(told(Path::new("/dev/zero")).contains("more than 64 MiB"));
        assert!(told(&directory.path().join("none")).contains("check that it exists"));
    }
}
