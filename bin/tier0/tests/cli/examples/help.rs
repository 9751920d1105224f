//! The examples of `--help`, of every verb.

use std::collections::BTreeMap;

use crate::support::succeed;

/// By verb, as in `drive add`; the program's own are those of the verb without a name. Verbs that share their examples
/// with their group have none of their own.
pub(super) fn examples() -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    gather(&[], &[], &mut found);
    found
}

fn gather(verb: &[&str], of_group: &[String], found: &mut BTreeMap<String, Vec<String>>) {
    let help = succeed(&[verb, &["--help"]].concat());
    let own = examples_of(&help);
    assert!(!own.is_empty(), "{verb:?} has no examples: {help}");
    for inner in verbs_of(&help) {
        gather(&[verb, &[inner]].concat(), &own, found);
    }
    if own != of_group {
        found.insert(verb.join(" "), own);
    }
}

/// The lines after "Examples:" that are commands.
fn examples_of(help: &str) -> Vec<String> {
    let after = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let section = after.take_while(|line| !line.is_empty());
    section.filter_map(|line| line.strip_prefix("  tier0")).map(|rest| format!("tier0{rest}")).collect()
}

fn verbs_of(help: &str) -> Vec<&str> {
    let after = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let section = after.take_while(|line| !line.is_empty());
    let named = section.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help").collect()
}
