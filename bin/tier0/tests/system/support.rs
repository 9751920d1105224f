//! What the system tests share: the program under test as a running server, and other people's programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tier0_torture::process::Running;
use tier0_torture::tools::find;
use tier0_torture::{clock, tools};

/// A directory for drives: on a real file system, not on tmpfs, so that O_DIRECT works as it does for users.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// The first of `programs` that is not installed, or that the test needs root; said once, so that a skipped test is
/// seen in the log.
pub(crate) fn skipped(test: &str, root: bool, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| find(program).is_none());
    let reason = match missing {
        Some(program) => format!("{program} is not installed"),
        None if root && !rustix::process::geteuid().is_root() => "it needs root".to_owned(),
        None => return false,
    };
    eprintln!("skipped {test}: {reason}");
    true
}

/// Runs a program and returns what it printed; panics with all of it where it fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    tools::run(program, arguments).unwrap_or_else(|error| panic!("{error}"))
}

/// What a program printed to stdout; panics with everything where it failed.
pub(crate) fn succeeded(what: &str, output: &Output) -> String {
    tools::succeeded(what, output).unwrap_or_else(|error| panic!("{error}"))
}

/// The program under test.
pub(crate) fn tier0(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tier0"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Waits until `ready`; panics after a minute, which nothing here takes.
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    clock::wait_until(what, 60, || Ok(ready())).unwrap_or_else(|error| panic!("{error}"));
}

/// Asks a server to end and waits until it has; panics unless it ends well and soon.
pub(crate) fn stop(server: Running) {
    server.stop().unwrap_or_else(|error| panic!("{error}"));
}

/// An array file with drives of 256 MiB in `directory` and one volume, served on a unix socket there.
pub(crate) fn describe(
    directory: &Path,
    raid: &str,
    drives: usize,
    set_size: usize,
    volume: &str,
) -> PathBuf {
    let at = directory.display();
    let text = format!(
        "[array]\nname = \"system\"\n\n\
         [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = \"{at}/d{{n}}.img\"\nsize = \"256MiB\"\n\n\
         [[pool]]\nname = \"pool0\"\nraid = \"{raid}\"\nset_size = {set_size}\n\n\
         [[volume]]\nname = \"lun0\"\nsize = \"{volume}\"\n\n\
         [nbd]\nlisten = [\"unix:{at}/nbd.sock\"]\n"
    );
    let path = directory.join("array.toml");
    std::fs::write(&path, text).expect("an array file");
    path
}

/// Creates the described array.
pub(crate) fn create(array: &Path) {
    create_by(array, &[]);
}

/// The same, with options.
pub(crate) fn create_by(array: &Path, options: &[&str]) {
    let path = array.display().to_string();
    let output = tier0(&[&["create", &path], options].concat()).output().expect("it starts");
    succeeded("tier0 create", &output);
}

/// Serves the described array, and returns when it can be connected to.
pub(crate) fn serve(array: &Path) -> Running {
    serve_with(array, &[])
}

/// [`serve`], with options.
pub(crate) fn serve_with(array: &Path, options: &[&str]) -> Running {
    let directory = array.parent().expect("an array file lies in a directory");
    let log = directory.join("serve.log");
    let path = array.display().to_string();
    let mut command = tier0(&[&["serve", &path], options].concat());
    let server = Running::start("tier0 serve", &mut command, &log).expect("it starts");
    let socket = directory.join("nbd.sock");
    wait_until("tier0 serve listening", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
    server
}

/// The address of the volume.
pub(crate) fn uri(directory: &Path) -> String {
    format!("nbd+unix:///lun0?socket={}/nbd.sock", directory.display())
}

/// Runs a verb on the array that must succeed.
pub(crate) fn verb(array: &Path, words: &[&str]) -> String {
    let path = array.display().to_string();
    let arguments = [&words[..2], &[&path], &words[2..]].concat();
    succeeded(&arguments.join(" "), &tier0(&arguments).output().expect("it starts"))
}

/// Runs a verb on the array that must fail; what it says.
pub(crate) fn refused(array: &Path, words: &[&str]) -> String {
    let path = array.display().to_string();
    let arguments = [&words[..2], &[&path], &words[2..]].concat();
    let output = tier0(&arguments).output().expect("it starts");
    assert!(!output.status.success(), "{arguments:?} succeeds");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
