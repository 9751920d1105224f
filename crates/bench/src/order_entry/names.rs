//! Last names of the specification (clause 4.3.2.3).

/// Syllables of last names, by digit (clause 4.3.2.3).
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The last name of a number from 0 to 999.
pub(crate) fn last_name(number: u64) -> String {
    let digit = |divisor: u64| SYLLABLES[(number / divisor % 10) as usize];
    format!("{}{}{}", digit(100), digit(10), digit(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's own example: 371 is PRICALLYOUGHT.
    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }
}
