//! Other people's programs: where they lie, and running them.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::ProgramError;

/// Where a program lies: in PATH, among the system's, or among PostgreSQL's.
pub fn find(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    places.extend(versions.map(|version| version.path().join("bin")));
    places.into_iter().map(|place| place.join(tool)).find(|path| path.is_file())
}

/// Fails unless all `tools`, each with the package that brings it, are installed.
pub fn need(tools: &[(&'static str, &'static str)]) -> Result<(), ProgramError> {
    match tools.iter().find(|(tool, _)| find(tool).is_none()) {
        Some(&(tool, package)) => Err(ProgramError::Missing { tool, package }),
        None => Ok(()),
    }
}

/// The command of an installed program, without input.
pub fn command(tool: &str) -> Command {
    // A program that has vanished since it was asked for fails to start, which is told as such.
    let mut command = Command::new(find(tool).unwrap_or_else(|| tool.into()));
    command.stdin(Stdio::null());
    command
}

/// Runs a program to its end and returns what it printed.
pub fn run(tool: &str, arguments: &[&str]) -> Result<String, ProgramError> {
    output(tool, command(tool).args(arguments))
}

/// Runs a command to its end and returns what it printed; fails with all its words where it fails.
pub fn output(name: &str, command: &mut Command) -> Result<String, ProgramError> {
    let output = command.output().map_err(ProgramError::system(format!("{name} cannot be started")))?;
    succeeded(name, &output)
}

/// What a program printed to stdout.
pub fn succeeded(name: &str, output: &Output) -> Result<String, ProgramError> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(out.into_owned());
    }
    Err(ProgramError::Failed(format!("{name} ended with {}: {} {}", output.status, out.trim(), err.trim())))
}
