//! What a figure was measured on.

use std::process::Command;

/// One line: processor, cores, memory, kernel, commit.
pub(crate) fn describe() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("unknown".to_owned(), |(_, value)| value.trim().into())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory_kib: u64 =
        field(&read("/proc/meminfo"), "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    format!(
        "{}, {cores} cores, {} GiB, Linux {}, commit {}",
        field(&read("/proc/cpuinfo"), "model name"),
        memory_kib >> 20,
        read("/proc/sys/kernel/osrelease").trim(),
        commit().as_deref().unwrap_or("unknown")
    )
}

/// The commit, with `+` where the files differ from it; nothing where git does not know.
pub(crate) fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    Some(if changed { format!("{commit}+") } else { commit })
}
