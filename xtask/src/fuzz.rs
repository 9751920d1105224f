//! `cargo xtask fuzz`: coverage-guided fuzzing on the stable toolchain.
//!
//! The fuzzing program (`fuzz/`) is built into a directory of its own with LLVM's coverage instrumentation, which the stable
//! compiler takes as code generation flags, and libFuzzer around it. Inputs that are found to do harm go to
//! `fuzz/regressions/TARGET/`, where the ordinary tests replay them.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use clap::Args;

use crate::bench::table;
use crate::clock;
use crate::error::{BenchError, need};

/// What to do.
#[derive(Args)]
pub(crate) struct Options {
    /// Which targets [default: all]
    targets: Vec<String>,
    /// Seconds per target
    #[arg(long, value_name = "S", default_value_t = 60)]
    seconds: u32,
    /// What mutations are drawn from [default: chosen by libFuzzer]
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Show that the fault planted behind a length and a checksum is found, and do nothing else
    #[arg(long)]
    prove: bool,
}

/// The target with the planted fault.
const CANARY: &str = "canary";
/// Within so many inputs it must be found.
const CANARY_INPUTS_MAX: u32 = 1_000_000;
/// An input that takes longer, in seconds, hangs.
const HANG_SECONDS: u32 = 5;

/// What the compiler is asked for: counters on edges, a table of their places, and the operands of comparisons. The same as
/// cargo-fuzz asks for, without its sanitizer, which needs another toolchain.
const RUSTFLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebuginfo=line-tables-only",
];

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    need("c++", "g++")?;
    let workspace = workspace()?;
    let program = build(&workspace)?;
    let fuzzer = Fuzzer { program, workspace };
    if options.prove {
        return fuzzer.prove(options.seed);
    }
    let known = fuzzer.targets()?;
    if let Some(unknown) = options.targets.iter().find(|target| !known.contains(target)) {
        return Err(BenchError::Failed(format!(
            "there is no target {unknown}; there are {}",
            known.join(", ")
        )));
    }
    let chosen = if options.targets.is_empty() { known } else { options.targets.clone() };
    let mut rows = table(&["target", "inputs", "per s", "corpus", "edges", "seconds", "result"]);
    let mut faulty = Vec::new();
    for target in chosen {
        eprintln!("{target}");
        let outcome = fuzzer.fuzz(&target, options.seconds, options.seed)?;
        let result = if outcome.is_clean { "clean" } else { "FAULT" };
        let per_s = format!("{:.0}", outcome.inputs as f64 / outcome.seconds);
        let seconds = format!("{:.0}", outcome.seconds);
        let numbers = [outcome.inputs, outcome.corpus, outcome.edges].map(|number| number.to_string());
        let [inputs, corpus, edges] = numbers;
        rows.add_row([target.clone(), inputs, per_s, corpus, edges, seconds, result.to_owned()]);
        if !outcome.is_clean {
            faulty.push(target);
        }
    }
    println!("{}", rows.trim_fmt());
    if faulty.is_empty() {
        return Ok(());
    }
    Err(BenchError::Failed(format!(
        "at fault: {}; the inputs are in fuzz/regressions, and cargo test -p tier0-fuzz replays them",
        faulty.join(", ")
    )))
}

/// The directory of the workspace.
fn workspace() -> Result<PathBuf, BenchError> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = own.parent().filter(|path| path.join("fuzz").is_dir());
    workspace.map(Path::to_owned).ok_or_else(|| BenchError::Failed("the folder fuzz is missing".to_owned()))
}

/// Builds the fuzzing program with instrumentation, apart from other builds.
fn build(workspace: &Path) -> Result<PathBuf, BenchError> {
    let host = host()?;
    let target_directory = workspace.join("target/fuzz");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--quiet", "--release", "--package", "tier0-fuzz", "--features", "libfuzzer"])
        // With a target named, build scripts are spared the instrumentation, which they could not be linked with.
        .args(["--target", &host])
        .arg("--target-dir")
        .arg(&target_directory)
        .env("RUSTFLAGS", RUSTFLAGS.join(" "))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .status()
        .map_err(BenchError::system("cargo cannot be started"))?;
    if !status.success() {
        return Err(BenchError::Failed("the fuzzing program does not build; see cargo's words above".into()));
    }
    Ok(target_directory.join(host).join("release").join("tier0-fuzz"))
}

/// The compiler's own target triple.
fn host() -> Result<String, BenchError> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).arg("-vV").output().map_err(BenchError::system("rustc cannot be started"))?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = words.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| BenchError::Failed("rustc does not name its host".into()))
}

/// The fuzzing program, built.
struct Fuzzer {
    program: PathBuf,
    workspace: PathBuf,
}

/// What a run of libFuzzer brought.
struct Outcome {
    is_clean: bool,
    inputs: u64,
    corpus: u64,
    edges: u64,
    seconds: f64,
}

impl Fuzzer {
    fn command(&self, target: &str, seeds: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env("TIER0_FUZZ_TARGET", target).env("TIER0_FUZZ_SEEDS", seeds);
        command
    }

    /// The names of all targets.
    fn targets(&self) -> Result<Vec<String>, BenchError> {
        let output = Command::new(&self.program)
            .env("TIER0_FUZZ_LIST", "1")
            .output()
            .map_err(BenchError::system("the fuzzing program cannot be started"))?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    }

    /// Fuzzes one target for so many seconds. The corpus is kept from run to run.
    fn fuzz(&self, target: &str, seconds: u32, seed: u32) -> Result<Outcome, BenchError> {
        let corpus = make(self.workspace.join("target/fuzz/corpus").join(target))?;
        let regressions = self.workspace.join("fuzz/regressions").join(target);
        let exists = regressions.is_dir();
        make(regressions.clone())?;
        let mut command = self.command(target, &corpus);
        command.arg(format!("-max_total_time={seconds}")).arg(format!("-seed={seed}"));
        command.arg(format!("-artifact_prefix={}/", regressions.display()));
        let outcome = run_fuzzer(&mut command, &corpus, &self.workspace.join("target/fuzz"))?;
        if !exists && outcome.is_clean {
            // Only what was found is worth a folder; it is empty, so nothing is lost with it.
            let _ = std::fs::remove_dir(regressions);
        }
        Ok(outcome)
    }

    /// Finds the planted fault, from an empty corpus.
    fn prove(&self, seed: u32) -> Result<(), BenchError> {
        let directory = tempfile::tempdir().map_err(BenchError::system("no directory can be made"))?;
        let corpus = make(directory.path().join("corpus"))?;
        let mut command = self.command(CANARY, &corpus);
        command.arg(format!("-runs={CANARY_INPUTS_MAX}")).arg(format!("-seed={}", seed.max(1)));
        command.arg(format!("-artifact_prefix={}/", directory.path().display()));
        let outcome = run_fuzzer(&mut command, &corpus, directory.path())?;
        if outcome.is_clean {
            let inputs = outcome.inputs;
            return Err(BenchError::Failed(format!(
                "the planted fault was not found within {inputs} inputs"
            )));
        }
        println!("the planted fault was found after {} inputs, {:.1} s", outcome.inputs, outcome.seconds);
        Ok(())
    }
}

fn make(directory: PathBuf) -> Result<PathBuf, BenchError> {
    std::fs::create_dir_all(&directory)
        .map_err(BenchError::system(format!("{} cannot be made", directory.display())))?;
    Ok(directory)
}

/// Runs libFuzzer to its end. Its words go to a file, because there are many; where it found something, the last ones are
/// shown.
fn run_fuzzer(command: &mut Command, corpus: &Path, logs: &Path) -> Result<Outcome, BenchError> {
    let path = logs.join("log");
    let log = std::fs::File::create(&path).map_err(BenchError::system("no log can be made"))?;
    let twin = log.try_clone().map_err(BenchError::system("no descriptor is left"))?;
    command.arg(format!("-timeout={HANG_SECONDS}")).args(["-print_final_stats=1", "-use_value_profile=1"]);
    command.arg(corpus).stdout(log).stderr(twin);
    let began = clock::wall_s();
    let status = command.status().map_err(BenchError::system("the fuzzing program cannot be started"))?;
    let words = std::fs::read(&path).map_err(BenchError::system("the log cannot be read"))?;
    Ok(outcome(&String::from_utf8_lossy(&words), status, clock::wall_s() - began))
}

fn outcome(words: &str, status: ExitStatus, seconds: f64) -> Outcome {
    let mut progress = words.lines().filter(|line| line.starts_with('#'));
    let number = |text: Option<&str>| -> u64 {
        text.and_then(|text| text.split(['/', '\t', ' ']).next()?.parse().ok()).unwrap_or(0)
    };
    let last = progress.rfind(|line| line.contains("cov: ")).unwrap_or_default();
    let after = |mark: &str| last.split_once(mark).map(|(_, rest)| rest);
    if !status.success() {
        let told = |line: &&str| !line.starts_with('#') && !line.starts_with("    #");
        let lines: Vec<&str> = words.lines().filter(told).collect();
        lines[lines.len().saturating_sub(60)..].iter().for_each(|line| eprintln!("  {line}"));
    }
    let stat = words.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units: "));
    Outcome {
        is_clean: status.success(),
        inputs: number(stat.or_else(|| last.strip_prefix('#'))),
        corpus: number(after("corp: ")),
        edges: number(after("cov: ")),
        seconds,
    }
}
