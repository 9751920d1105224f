//! What a search found, in words.

use super::{CandidateResult, SearchResult};
use crate::record::format_number;

/// A sentence for each candidate, the cheapest first.
pub fn found(result: &SearchResult) -> Vec<String> {
    let wanted = format!(
        "{} transactions per second at {} ms or less, on drives that are filled to {} % at most",
        format_number(result.tps_min),
        format_number(result.response_ms_max),
        format_number(result.fill_percent_max)
    );
    let by = if result.by_price { "cheapest" } else { "fewest drives" };
    let first = result.candidates.first().filter(|candidate| candidate.drives.is_some());
    let opening = match first {
        Some(first) => format!("{by} for {wanted}: {}", sentence(first)),
        None => format!("No candidate holds {wanted}."),
    };
    let rest = result.candidates.iter().skip(usize::from(first.is_some())).map(sentence);
    std::iter::once(capital(&opening)).chain(rest).collect()
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What came of a candidate.
fn sentence(candidate: &CandidateResult) -> String {
    let kind = format!("{} in {}", candidate.model, candidate.raid);
    let probe = candidate.drives.and_then(|drives| candidate.probe(drives));
    let Some(held) = probe else {
        return match candidate.probed.last() {
            Some(most) => format!(
                "{kind}: {} drives give {} tx/s at {} ms, and more were not tried; the limit is {}.",
                most.drives,
                format_number(most.tps),
                format_number(most.response_ms),
                most.limit
            ),
            None => format!("{kind}: nothing was tried."),
        };
    };
    let price = candidate.price.map_or(String::new(), |price| format!(", price {}", format_number(price)));
    let fewer = candidate.probed.iter().rev().find(|probed| probed.drives < held.drives);
    let is_close = held.is_close || fewer.is_some_and(|fewer| fewer.is_close);
    let doubt = if is_close { "; rates near the goal are not told apart by the simulation" } else { "" };
    let fewer = match fewer {
        Some(fewer) => format!(
            "fewer do not hold it: {} give {} at {} ms",
            fewer.drives,
            format_number(fewer.tps),
            format_number(fewer.response_ms)
        ),
        None => "fewer have no room, or are no whole set".to_owned(),
    };
    format!(
        "{} x {kind}: {} tx/s at {} ms, {} % full{price}; {fewer}{doubt}. The limit is {}.",
        held.drives,
        format_number(held.tps),
        format_number(held.response_ms),
        format_number(candidate.fill_percent.unwrap_or_default()),
        held.limit,
    )
}
