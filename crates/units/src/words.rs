//! Counts in sentences.

/// A count and what it counts, in the plural where that is due: `1 drive`, `2 drives`. The plural must end in `s`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(1, "drive"), "1 drive");
        assert_eq!(counted(0, "drive"), "0 drives");
        assert_eq!(counted(2, "free chunklet"), "2 free chunklets");
    }
}
