//! `cargo xtask features`: whether every package alone asks for the third-party features of the whole workspace, so that no
//! selection of packages compiles its dependencies a second time. `tier0-features` has what is missing otherwise.

use std::collections::BTreeSet;
use std::process::Command;

use crate::error::BenchError;

/// Compares them; fails if a package has features that the workspace does not have, and names them.
pub(crate) fn run() -> Result<(), BenchError> {
    let all = third_party(&["--workspace"])?;
    let packages = packages()?;
    let mut differs = false;
    for package in &packages {
        for feature in third_party(&["--package", package])?.difference(&all) {
            println!("{package} has {feature}");
            differs = true;
        }
    }
    match differs {
        false => {
            println!("{} packages have the third-party features of the workspace", packages.len());
            Ok(())
        }
        true => Err(BenchError::Failed(
            "the workspace has other features of these dependencies; name those in crates/features/Cargo.toml".to_owned(),
        )),
    }
}

/// The packages of the workspace.
fn packages() -> Result<Vec<String>, BenchError> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"])?;
    let metadata: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| BenchError::Failed(format!("cargo metadata cannot be read: {error}")))?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect())
}

/// What a selection of packages compiles of other projects, tests included: name, version and features.
fn third_party(selection: &[&str]) -> Result<BTreeSet<String>, BenchError> {
    let tree = ["tree", "--locked", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p} {f}"];
    let text = cargo(&[&tree, selection].concat())?;
    // Those of the workspace have paths; what was printed before has a mark.
    let others = text.lines().filter(|line| !line.contains(" (/"));
    Ok(others.map(|line| line.trim_end_matches(" (*)").trim_end().to_owned()).collect())
}

fn cargo(arguments: &[&str]) -> Result<String, BenchError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).output();
    let output = output.map_err(BenchError::system("cargo cannot be run"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(BenchError::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
