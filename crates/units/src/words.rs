//! Counts in sentences.

/// A count and what it counts, in the plural where that is due: `1 drive`, `2 drives`. The plural must end in `s`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Things by their names: `drive d0`, `drives d0, d1`.
pub fn named<N: AsRef<str>>(noun: &str, names: &[N]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    format!("{noun}{plural} {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "drive"), "1 drive");
        assert_eq!(counted(0, "drive"), "0 drives");
        assert_eq!(named("drive", &["d0"]), "drive d0");
        assert_eq!(named("drive", &["d0", "d1"]), "drives d0, d1");
        assert_eq!(counted(2, "free chunklet"), "2 free chunklets");
    }
}
