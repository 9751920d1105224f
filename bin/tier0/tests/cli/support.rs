//! Running the program: commands to their end, and servers in the background.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The program.
pub(crate) fn tier0() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tier0"));
    command.stdin(Stdio::null()).env_remove("TIER0_LOG");
    command
}

/// What a command ended with.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs `tier0` with `arguments` to its end.
pub(crate) fn run(arguments: &[&str]) -> Ended {
    tier0().args(arguments).output().expect("the program starts").into()
}

/// The same, begun in `directory`.
pub(crate) fn run_in(directory: &Path, arguments: &[&str]) -> Ended {
    tier0().current_dir(directory).args(arguments).output().expect("the program starts").into()
}

/// Runs it as a user who may read and run everything, and write nothing that others have made.
pub(crate) fn run_as_nobody(arguments: &[&str]) -> Ended {
    let mut command = tier0();
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.args(arguments).output().expect("the program starts").into()
}

/// Has a file or directory no more than be read, by whomever.
pub(crate) fn let_be_read(path: &Path) {
    let mode = if path.is_dir() { 0o555 } else { 0o444 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Runs it, demands success and returns its stdout.
pub(crate) fn succeed(arguments: &[&str]) -> String {
    let ended = run(arguments);
    assert_eq!(ended.code, Some(0), "tier0 {}: {}", arguments.join(" "), ended.stderr);
    ended.stdout
}

/// The same with `--json`, read.
pub(crate) fn json(arguments: &[&str]) -> serde_json::Value {
    let text = succeed(&[arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// The status of an array as JSON, whatever it says.
pub(crate) fn status(array: &str) -> serde_json::Value {
    serde_json::from_str(&run(&["status", array, "--json"]).stdout).expect("JSON")
}

/// Runs it and demands `code` and one sentence on stderr, of a fact and a remedy, that holds all of `words`.
pub(crate) fn refuse(arguments: &[&str], code: i32, words: &[&str]) {
    let ended = run(arguments);
    let asked = arguments.join(" ");
    assert_eq!(ended.code, Some(code), "tier0 {asked}: {}", ended.stderr);
    assert_eq!(ended.stdout, "", "tier0 {asked} prints a result although it refuses");
    let complaints: Vec<&str> = ended.stderr.lines().filter(|line| !line.contains(" WARN ")).collect();
    let [complaint] = complaints[..] else { panic!("tier0 {asked} says one sentence: {}", ended.stderr) };
    assert!(complaint.starts_with("tier0: "), "tier0 {asked} does not say who speaks: {complaint}");
    assert!(complaint.contains("; "), "tier0 {asked} names no remedy: {complaint}");
    for word in words {
        assert!(complaint.contains(word), "tier0 {asked} does not say {word:?}: {complaint}");
    }
}

/// Waits until something is so, for half a minute at most.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it does not come to that: {what}");
}

/// A directory on a real file system.
pub(crate) fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

/// Writes a file.
pub(crate) fn file(directory: &Path, name: &str, content: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).expect("a file");
    path
}

/// An array file in `directory`: drives of 64 MiB beside it, one set over all of them, a volume `lun0` of 24 MiB.
pub(crate) fn array_file(directory: &Path, raid: &str, drives: usize) -> PathBuf {
    file(directory, "array.toml", &array_text(directory, raid, drives))
}

/// Its text.
pub(crate) fn array_text(directory: &Path, raid: &str, drives: usize) -> String {
    format!(
        "[array]\nname = \"test\"\n\n\
         [[drive]]\nname = \"d{{n}}\"\ncount = {drives}\npath = \"{}/d{{n}}.img\"\nsize = \"64MiB\"\n\n\
         [[pool]]\nname = \"pool0\"\nraid = \"{raid}\"\nset_size = {drives}\nstripe_unit = \"64KiB\"\n\n\
         [[volume]]\nname = \"lun0\"\nsize = \"24MiB\"\n",
        directory.display()
    )
}

/// Text of a path.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path of plain characters")
}

/// Everything in a directory, with a checksum of each file's content, to see that nothing was written.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let entries =
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let sum = |bytes: Vec<u8>| bytes.iter().fold(17, |sum: u64, byte| sum.rotate_left(5) ^ u64::from(*byte));
    entries.map(|path| (path.clone(), std::fs::read(&path).map_or(0, sum))).collect()
}

/// A command in the background; dropping it kills it.
pub(crate) struct Background(Child);

impl Background {
    /// Starts it with a pipe from its stdout.
    pub(crate) fn start(arguments: &[&str]) -> Background {
        let mut command = tier0();
        command.args(arguments).stdout(Stdio::piped());
        Background::of(command)
    }

    /// The same of a command, whose stdout is a pipe.
    pub(crate) fn of(mut command: Command) -> Background {
        Background(command.spawn().expect("the program starts"))
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    /// The same of a process that may have ended.
    pub(crate) fn signal_if_there(&self, signal: Signal) {
        // It is not waited for yet, so its number is no other's.
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }

    /// Whether it has a handler for a signal, as Linux tells.
    pub(crate) fn catches(&self, signal: Signal) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux tells");
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask");
        caught & 1 << (signal.as_raw() - 1) != 0
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Option<i32> {
        // Whatever it still prints must have room.
        let _ = std::io::copy(self.0.stdout.as_mut().expect("a pipe"), &mut std::io::sink());
        self.0.wait().expect("it ends").code()
    }

    /// What it prints up to and including the first line that `is_last`.
    pub(crate) fn read_until(&mut self, is_last: impl Fn(&str) -> bool) -> String {
        let mut reader = BufReader::new(self.0.stdout.as_mut().expect("a pipe"));
        let mut told = String::new();
        loop {
            let mut line = String::new();
            let read = reader.read_line(&mut line).expect("text");
            assert_ne!(read, 0, "it ended early, having said {told:?}");
            told += &line;
            if is_last(line.trim_end()) {
                return told;
            }
        }
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn interrupt(self) -> Option<i32> {
        self.signal(Signal::INT);
        self.end()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An array of two drives beside its file, which listens at a socket there; `search` is a line of its own, or empty.
pub(crate) fn plain(name: &str, search: &str) -> String {
    format!(
        "[array]\nname = \"{name}\"\n{search}[[drive]]\nname = \"d{{n}}\"\ncount = 2\npath = \"d{{n}}.img\"\n\
         size = \"64MiB\"\n[[pool]]\nname = \"pool0\"\nraid = \"raid1\"\n[[volume]]\nname = \"lun0\"\nsize = \"24MiB\"\n\
         [nbd]\nlisten = [\"unix:s\"]\n"
    )
}

/// The server of the array file in a directory, started there, once it serves.
pub(crate) fn served(at: &Path) -> Background {
    served_with(at, &[])
}

/// The same with options.
pub(crate) fn served_with(at: &Path, options: &[&str]) -> Background {
    let mut server = tier0();
    server.current_dir(at).args(["serve", "array.toml", "--json"]).args(options).stdout(Stdio::piped());
    let mut server = Background::of(server);
    server.read_until(|line| line == "}");
    server
}

/// An array served in the background.
pub(crate) struct Served {
    server: Background,
    /// The address of its first volume.
    pub(crate) uri: String,
}

impl Served {
    /// Serves it on a unix socket in `directory`, waiting until it listens.
    pub(crate) fn start(array: &Path, directory: &Path) -> Served {
        let socket = format!("unix:{}/s", text(directory));
        let mut server = Background::start(&["serve", text(array), "--json", "--listen", &socket]);
        let told = server.read_until(|line| line == "}");
        let json: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let uri = json["volumes"][0]["addresses"][0].as_str().expect("an address").to_owned();
        Served { server, uri }
    }

    /// Ends it, and demands that it ends well.
    pub(crate) fn stop(self) {
        assert_eq!(self.server.interrupt(), Some(0), "a server ends well at Ctrl-C");
    }

    /// Kills it.
    pub(crate) fn kill(self) {
        self.server.signal(Signal::KILL);
        self.server.end();
    }
}

/// A new array, served in a directory of its own.
pub(crate) struct Scene {
    served: Served,
    array: PathBuf,
    directory: TempDir,
}

impl Scene {
    /// An array as [`array_file`] describes it, created and served.
    pub(crate) fn of(raid: &str, drives: usize) -> Scene {
        let directory = directory();
        let array = array_file(directory.path(), raid, drives);
        succeed(&["create", text(&array)]);
        let served = Served::start(&array, directory.path());
        Scene { served, array, directory }
    }

    /// Its array file.
    pub(crate) fn array(&self) -> &str {
        text(&self.array)
    }

    /// The address of its volume.
    pub(crate) fn uri(&self) -> &str {
        &self.served.uri
    }

    /// Where its drives lie.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A file beside the array file.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// The status, whatever it says, and its exit code.
    pub(crate) fn status(&self) -> (serde_json::Value, Option<i32>) {
        let ended = run(&["status", self.array(), "--json"]);
        (serde_json::from_str(&ended.stdout).expect("JSON"), ended.code)
    }

    /// The status once `is_reached`.
    pub(crate) fn status_when(&self, is_reached: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        for _ in 0..600 {
            let (status, _) = self.status();
            if is_reached(&status) {
                return status;
            }
            #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("it does not come to that: {}", self.status().0)
    }

    /// The status once nothing is rebuilt any more.
    pub(crate) fn settled(&self) -> serde_json::Value {
        self.status_when(|status| status["pools"][0]["rebuild"].is_null())
    }

    /// Kills the server; what it leaves is there as long as the directory.
    pub(crate) fn kill(self) -> TempDir {
        self.served.kill();
        self.directory
    }

    /// Ends the server, and demands that it ends well.
    pub(crate) fn stop(self) {
        self.stop_and_keep();
    }

    /// The same; what it leaves is there as long as the directory.
    pub(crate) fn stop_and_keep(self) -> TempDir {
        self.served.stop();
        self.directory
    }
}
