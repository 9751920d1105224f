//! Which of some names a misspelt one resembles: what an error message suggests.

/// How many names are suggested at most.
const NAMES_MAX: usize = 3;
/// The least similarity of a suggestion, of 1 for equal names.
const SIMILARITY_MIN: f64 = 0.75;

/// Those of `known` that resemble `name`, best first, at most three; names of equal similarity in alphabetical order.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score >= SIMILARITY_MIN)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(NAMES_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_comes_first() {
        assert_eq!(similar("cache.reed", ["cache.write", "cache.read"])[0], "cache.read");
        assert!(similar("xyz", ["cache.write", "cache.read"]).is_empty());
        assert_eq!(similar("disk1", ["disk4", "disk3", "disk2", "disk0"]), ["disk0", "disk2", "disk3"]);
    }
}
