//! Tells the program which commit it is built from, where git knows, so that reports can say it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(directory) = git(&["rev-parse", "--git-dir"]) else { return };
    // Every change of HEAD is appended to its log.
    let log = Path::new(&directory).join("logs").join("HEAD");
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    if let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) {
        println!("cargo::rustc-env=TIER0_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
