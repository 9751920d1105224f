//! What examples find: a directory with the files that they name, and perhaps an array that is served.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::support::{directory, file, run, succeed, text};

/// How far things are when an example begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// There are files.
    Described,
    /// The array of `array.toml` is created and not served.
    Created,
    /// It is served.
    Served,
    /// Its drive d1 is lost.
    WithoutD1,
    /// Drives were added that hold nothing yet.
    WithNewDrives,
}

impl Stage {
    /// The stage that a document names.
    pub(super) fn named(name: &str) -> Stage {
        match name {
            "created" => Stage::Created,
            "served" => Stage::Served,
            "d1 is lost" => Stage::WithoutD1,
            other => panic!("there is no scene {other:?}"),
        }
    }
}

const ARRAY: &str = "[array]\nname = \"db1\"\ncores = 1\n\
    [[drive]]\nname = \"d{n}\"\ncount = 4\npath = \"d{n}.img\"\nsize = \"64MiB\"\n\
    [[pool]]\nname = \"pool0\"\nraid = \"raid1\"\nset_size = 2\n\
    [[volume]]\nname = \"lun0\"\nsize = \"32MiB\"\n\
    [nbd]\nlisten = [\"unix:tier0.sock\", \"127.0.0.1:0\"]\n";

const MODELLED: &str = "[array]\nname = \"disks\"\n\
    [[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
    [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = 4\n\
    [[volume]]\nname = \"lun0\"\nsize = \"200GB\"\n";

const LOAD: &str = "limits = { time = \"1s\" }\n[stream]\nread_percent = 70\n";

const DRIVE: &str =
    "[disk.mine]\nname = \"our own disk\"\ndescription = \"measured here\"\nbased_on = \"nl-7k2\"\n";

/// Reports of databases.
const REPORTS: [(&str, &str); 5] = [
    ("now.toml", include_str!("../../../../../studies/advise-example/now.toml")),
    ("before.csv", include_str!("../../../../../studies/advise-example/before.csv")),
    ("after.csv", include_str!("../../../../../studies/advise-example/after.csv")),
    ("perfmon.csv", include_str!("../../../../../studies/advise-example/perfmon.csv")),
    ("shop.jsonl", include_str!("../../../../../crates/advisor/tests/it/samples/postgres.jsonl")),
];

/// A line of a block trace.
fn traced(number: u64) -> String {
    let (time, offset) = (128_166_372_000_000_000 + number * 10_000, number % 150 * 8192);
    format!("{time},host,0,Read,{offset},8192,100\n")
}

/// A directory, and what runs in it; what runs is ended at the end.
pub(super) struct Scene {
    directory: TempDir,
    server: Option<Server>,
}

struct Server {
    shell: Child,
    /// What it says after it has started.
    told: BufReader<ChildStdout>,
    /// The volume's address over TCP.
    address: String,
}

impl Scene {
    /// Sets it.
    pub(super) fn set(stage: Stage) -> Scene {
        let directory = directory();
        let at = directory.path();
        let array = file(at, "array.toml", ARRAY);
        file(at, "modelled.toml", MODELLED);
        file(at, "oltp.toml", LOAD);
        file(at, "volume.csv", &(0..500).map(traced).collect::<String>());
        file(at, "mine.txt", "0.5 vol0 8 4096 W\n1.5 vol0 8 4096 R\n2.5 vol1 16 4096 R\n");
        file(
            at,
            "volume.iolog",
            "fio version 2 iolog\nf add\nf open\nf read 0 8192\nf write 4096 4096\nf close\n",
        );
        file(at, "blocks.bin", &"\0\0\0\u{1}\0\0\0\u{2}".repeat(100));
        for (name, content) in REPORTS {
            file(at, name, content);
        }
        let mine = at.join("my-drives");
        std::fs::create_dir(&mine).expect("a directory");
        file(&mine, "drives.toml", DRIVE);
        std::fs::File::create(at.join("disk.img")).and_then(|file| file.set_len(16 << 20)).expect("a file");
        let mut scene = Scene { directory, server: None };
        if stage != Stage::Described {
            scene.run("tier0 create array.toml", "the scene");
        }
        if ![Stage::Described, Stage::Created].contains(&stage) {
            scene.run("tier0 serve array.toml", "the scene");
        }
        if stage == Stage::WithNewDrives {
            for name in ["d4", "d5"] {
                let add = format!("tier0 drive add array.toml --name {name} --path {name}.img --size 64MiB");
                scene.run(&add, "the scene");
            }
        }
        if stage == Stage::WithoutD1 {
            succeed(&["drive", "fail", text(&array), "d1", "--yes"]);
        }
        scene
    }

    /// Runs a line as a shell does, and demands that it works. A server stays until the next one or the end of the scene.
    pub(super) fn run(&mut self, line: &str, place: &str) {
        let line = self.here(line);
        if line.contains("| jq") && Command::new("jq").arg("--version").output().is_err() {
            return eprintln!("skipped, because jq is missing: {line}");
        }
        if line.contains("tier0 serve") {
            self.server = None;
            self.server = Some(Server::start(shell(self.directory.path(), &line), place, &line));
            return;
        }
        if line.starts_with("tier0 drive") {
            self.wait_for_rebuild();
        }
        if line.starts_with("tier0 scrub") && line.contains("--rate") {
            self.wait_while(|pool| pool["scrub"]["running"] == true);
        }
        // The last resort is for an array that no server serves.
        let was_served = line.starts_with("tier0 pool recover") && self.server.take().is_some();
        let ended = shell(self.directory.path(), &line).output().expect("a shell");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        // What status ends with is the array's health.
        let health = line.starts_with("tier0 status") && [Some(4), Some(5)].contains(&ended.status.code());
        assert!(ended.status.success() || health, "{place}: {line}: {}: {stderr}", ended.status);
        let missing = stderr.contains("not found");
        assert!(!missing, "{place}: {line}: {stderr}");
        if was_served {
            self.run("tier0 serve array.toml", place);
        }
    }

    /// Drives leave one after the other, as the documents say; where nothing can be rebuilt, there is nothing to wait for.
    fn wait_for_rebuild(&self) {
        self.wait_while(|pool| !pool["rebuild"].is_null());
    }

    fn wait_while(&self, is_so: impl Fn(&serde_json::Value) -> bool) {
        let array = self.directory.path().join("array.toml");
        for _ in 0..100 {
            let told = run(&["status", text(&array), "--json"]).stdout;
            let status: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            if !is_so(&status["pools"][0]) {
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What a line says of the outer world, of this scene: the server's port, which others may have; and loads that
    /// would take their time end early.
    fn here(&self, line: &str) -> String {
        let address = self.server.as_ref().map_or("nbd://localhost/lun0", |server| &server.address);
        let mut line =
            line.replace("nbd://localhost/lun0", address).replace("127.0.0.1:10809", "127.0.0.1:0");
        line = line.replace("--time 30s", "--time 1s").replace("--warm-up 10s", "--warm-up 100ms");
        let is_limited = ["--time", "--ios", "--bytes", "--load"].iter().any(|limit| line.contains(limit));
        if line.starts_with("tier0 load") && !is_limited {
            line.push_str(" --time 500ms");
        }
        line
    }
}

fn shell(at: &Path, line: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_tier0")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(at).env("PATH", format!("{}:{path}", program.display()));
    shell.env("HOME", at).env_remove("TIER0_LOG").stdin(Stdio::null()).process_group(0);
    shell
}

impl Server {
    fn start(mut command: Command, place: &str, line: &str) -> Server {
        let mut shell = command.stdout(Stdio::piped()).spawn().expect("a shell");
        let mut told = BufReader::new(shell.stdout.take().expect("a pipe"));
        let mut said = String::new();
        while !said.ends_with("Press Ctrl-C to stop.\n") && !said.ends_with("\n}\n") {
            let read = told.read_line(&mut said).expect("text");
            assert_ne!(read, 0, "{place}: {line} ends early, having said {said:?}");
        }
        let words = said.split(|c: char| c.is_whitespace() || c == '"');
        let address = words.into_iter().find(|word| word.starts_with("nbd://"));
        Server { shell, told, address: address.unwrap_or("nbd://localhost/lun0").to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The shell may have become the server, or have started it. A server that ended has closed its pipe.
        let _ = kill_process_group(Pid::from_child(&self.shell), Signal::TERM);
        let _ = self.shell.wait();
        let _ = std::io::copy(&mut self.told, &mut std::io::sink());
    }
}
