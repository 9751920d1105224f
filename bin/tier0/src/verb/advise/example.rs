//! The example that ships: two samples of an SQL Server, its Perfmon, a site file, and its array with modelled drives.

use std::path::Path;

use crate::failure::Failure;
use crate::output::print;

const FILES: [(&str, &str); 5] = [
    ("before.csv", include_str!("../../../../../studies/advise-example/before.csv")),
    ("after.csv", include_str!("../../../../../studies/advise-example/after.csv")),
    ("perfmon.csv", include_str!("../../../../../studies/advise-example/perfmon.csv")),
    ("now.toml", include_str!("../../../../../studies/advise-example/now.toml")),
    ("site.toml", include_str!("../../../../../studies/advise-example/site.toml")),
];

/// Writes it into a directory, which must not have files of these names.
pub(super) fn write(directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    let cannot = |error: std::io::Error| {
        Failure::Input(format!("cannot write the example to {shown}: {error}; name a new directory"))
    };
    std::fs::create_dir_all(directory).map_err(cannot)?;
    for (name, _) in FILES {
        if directory.join(name).exists() {
            return Err(Failure::Input(format!("{shown} has a file {name} already; name a new directory")));
        }
    }
    for (name, text) in FILES {
        std::fs::write(directory.join(name), text).map_err(cannot)?;
    }
    print(&format!(
        "The example is in {shown}. Go there, and try:\n\
         tier0 advise before.csv after.csv perfmon.csv --site site.toml --flash 400GB\n"
    ))
}
