//! What the system tests share: the program under test as a running server, and other people's programs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

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

/// Where a program lies: in PATH, among the system's, or among PostgreSQL's.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    places.extend(versions.map(|version| version.path().join("bin")));
    places.into_iter().map(|place| place.join(program)).find(|path| path.is_file())
}

/// Runs a program and returns what it printed; panics with all of it where it fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let path = find(program).unwrap_or_else(|| panic!("{program} is not installed"));
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).output().expect("it starts");
    succeeded(&format!("{program} {}", arguments.join(" ")), &output)
}

/// What a program printed to stdout; panics with everything where it failed.
pub(crate) fn succeeded(what: &str, output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what} ended with {}:\n{out}\n{err}", output.status);
    out.into_owned()
}

/// The program under test.
pub(crate) fn tier0(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tier0"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Waits until `ready`; panics after a minute, which nothing here takes.
#[expect(clippy::disallowed_methods, reason = "tests of whole programs live on the wall clock")]
pub(crate) fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !ready() {
        assert!(Instant::now() < deadline, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process that is ended with the test.
pub(crate) struct Running(Child);

impl Running {
    /// Starts it; what it prints goes to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Running {
        let log = std::fs::File::options().create(true).append(true).open(log).expect("a log file");
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        Running(command.spawn().expect("it starts"))
    }

    /// Asks it to end by SIGTERM and waits until it has; panics unless it ends well and soon.
    pub(crate) fn stop(self) {
        let id = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
        let status = self.ends();
        assert!(status.success(), "it ended with {status}");
    }

    /// Waits until it ends by itself.
    pub(crate) fn ends(mut self) -> ExitStatus {
        let mut status = None;
        wait_until("its end", || {
            status = self.0.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
    let output = tier0(&["create", &array.display().to_string()]).output().expect("it starts");
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
    let server = Running::start(&mut tier0(&[&["serve", &path], options].concat()), &log);
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
