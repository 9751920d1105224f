//! Times on the command line: a time of the calendar, or a duration from now.

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, civil, tz};

/// Now, by the calendar.
#[expect(clippy::disallowed_methods, reason = "the time of people, not the engine's")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// Reads a UTC time, or a duration, which `from_now` adds to now or takes from it; `None` if the text is neither.
pub(crate) fn moment(
    text: &str,
    from_now: impl FnOnce(Timestamp, SignedDuration) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Ok(civil) = text.parse::<civil::DateTime>() {
        return tz::TimeZone::UTC.to_timestamp(civil).ok();
    }
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    from_now(now(), duration.abs())
}
