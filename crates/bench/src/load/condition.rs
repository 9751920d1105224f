//! Something that always holds in a database, whatever ran and whenever it was killed.

/// A condition: a query of rows `(place, found, expected)`. It holds where `found` is `expected` in every row.
pub(crate) struct Condition {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// What holds.
    pub(crate) text: &'static str,
    /// What the numbers of a place are.
    pub(crate) place: &'static str,
    /// The rows: `place` an array, then two values to compare.
    pub(crate) sql: String,
}

impl Condition {
    /// The query of one row: places, wrong places, the first wrong one in words.
    pub(crate) fn query(&self) -> String {
        format!(
            "select count(*), count(*) filter (where found is distinct from expected), \
             min(array_to_string(place, '/') || ': ' || coalesce(found::text, 'none') || ' instead of ' || \
             coalesce(expected::text, 'none')) filter (where found is distinct from expected) \
             from ({}) as compared (place, found, expected)",
            self.sql
        )
    }
}
