//! `cargo xtask threads`: code that crosses threads under loom, and its ordinary tests under ThreadSanitizer.

use std::process::Command;

use crate::error::BenchError;

/// The toolchain that has the sanitizer.
const NIGHTLY: &str = "nightly-x86_64-unknown-linux-gnu";
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Parts of std, which is not instrumented: the test harness's channels, and the end of scoped threads.
const SUPPRESSIONS: &str = "race:test::run_test\nrace:test::event::CompletedTest\nrace:scoped::ScopeData\n";

/// Runs them; fails if one does.
pub(crate) fn run() -> Result<(), BenchError> {
    for package in ["tier0-world", "tier0-raid"] {
        let mut models = cargo();
        models.env("RUSTFLAGS", "--cfg tier0_loom").env("RUST_BACKTRACE", "0");
        if package == "tier0-raid" {
            // Its models take no time, and what they need is built for them alone.
            models.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        }
        models.args(["test", "--target-dir", "target/threads", "--package", package, "--lib", "models::"]);
        end(&mut models, "a model fails")?;
    }
    let installed = Command::new("rustup").args(["run", NIGHTLY, "rustc", "-V"]).output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!("skipped: ThreadSanitizer needs the toolchain {NIGHTLY}, which is not installed");
        return Ok(());
    }
    let mut sanitized = Command::new("rustup");
    sanitized.args(["run", NIGHTLY, "cargo", "test", "--target", TARGET, "--target-dir", "target/tsan"]);
    // One test at a time runs without the channels of the harness, which is not instrumented.
    sanitized.args([
        "--package",
        "tier0-world",
        "--package",
        "tier0-raid",
        "--lib",
        "--",
        "--test-threads=1",
    ]);
    sanitized.env_remove("RUSTC").env_remove("CARGO");
    let suppressions = std::path::absolute("target/tsan.supp")
        .and_then(|path| std::fs::write(&path, SUPPRESSIONS).map(|()| path))
        .map_err(BenchError::system("target/tsan.supp cannot be written"))?;
    sanitized.env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()));
    sanitized.env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer");
    end(&mut sanitized, "ThreadSanitizer has found something")
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn end(command: &mut Command, failure: &str) -> Result<(), BenchError> {
    let status = command.status().map_err(BenchError::system("cargo cannot be run"))?;
    if status.success() { Ok(()) } else { Err(BenchError::Failed(format!("{failure}; see above"))) }
}
