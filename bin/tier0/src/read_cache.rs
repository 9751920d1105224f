//! How well a read cache works, in words.

use tier0_api::ReadCacheStatus;

/// `hit rate 93.1 % (read before 80.0 %, written 3.1 %, read ahead 10.0 %)`.
pub(crate) fn found(cache: &ReadCacheStatus) -> String {
    let share = |part: u64| part as f64 * 100.0 / cache.lookups().max(1) as f64;
    format!(
        "hit rate {:.1} % (read before {:.1} %, written {:.1} %, read ahead {:.1} %)",
        share(cache.hits()),
        share(cache.read_hits),
        share(cache.write_hits),
        share(cache.prefetch_hits)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_lookups() {
        let cache = ReadCacheStatus { read_hits: 1, write_hits: 2, misses: 5, ..ReadCacheStatus::default() };
        let told = "hit rate 37.5 % (read before 12.5 %, written 25.0 %, read ahead 0.0 %)";
        assert_eq!(found(&cache), told);
        assert!(found(&ReadCacheStatus::default()).starts_with("hit rate 0.0 %"));
    }
}
