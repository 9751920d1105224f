//! The guest: a Debian kernel with fio and the peers' tools in an initial file system, under qemu's software emulation, so that
//! it runs where nested virtualisation does not.
//!
//! It is made once, by debootstrap from the mirror that this machine uses, and kept in the build's directory. A job goes in as
//! a tar on a drive, what it prints comes out by virtio-serial. The guest has no network.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::super::write;
use crate::error::{BenchError, need};

const MAKE: &str = include_str!("guest/make.sh");
const INIT: &str = include_str!("guest/init.sh");
const JOB: &str = include_str!("guest/job.sh");

/// How long the guest may say nothing: the longest step is the fill of tier0's volume.
const SILENCE: Duration = Duration::from_secs(300);
/// The drive on which a job comes in is a whole number of these.
const JOB_BYTES: u64 = 1 << 20;
const MEMORY_MIB: u32 = 2048;

/// A kernel and an initial file system.
pub(super) struct Image {
    directory: PathBuf,
}

impl Image {
    /// The one that was made before, or a new one.
    pub(super) fn get(target: &Path) -> Result<Image, BenchError> {
        need("qemu-system-x86_64", "qemu-system-x86")?;
        let directory = target.join("hybrid-guest");
        let made_of = directory.join("made-of");
        let scripts = format!("{MAKE}{INIT}");
        let is_made = directory.join("initrd").is_file()
            && std::fs::read_to_string(&made_of).is_ok_and(|text| text == scripts);
        if !is_made {
            std::fs::create_dir_all(&directory)
                .map_err(BenchError::system(format!("{} cannot be made", directory.display())))?;
            make(&directory)?;
            write(&made_of, &scripts)?;
        }
        Ok(Image { directory })
    }

    /// Boots it with drives (serial numbers and addresses) and the job's settings; `directory` takes what it leaves behind.
    pub(super) fn boot(
        &self,
        directory: &Path,
        drives: &[(String, String)],
        settings: &str,
    ) -> Result<Guest, BenchError> {
        let job = pack(directory, settings)?;
        let console = directory.join("console.log");
        let mut command = Command::new("qemu-system-x86_64");
        command
            .args(["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"])
            .args([
                "-m",
                &MEMORY_MIB.to_string(),
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .arg("-kernel")
            .arg(self.directory.join("vmlinuz"))
            .arg("-initrd")
            .arg(self.directory.join("initrd"))
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .args(["-device", "virtio-serial-pci", "-chardev", "stdio,id=out,signal=off"])
            .args(["-device", "virtserialport,chardev=out,name=out"]);
        let job = ("job".to_owned(), job.display().to_string());
        for (serial, file) in drives.iter().chain([&job]) {
            command
                .args(["-drive", &format!("file={file},format=raw,if=none,cache=none,id={serial}")])
                .args(["-device", &format!("virtio-blk-pci,drive={serial},serial={serial}")]);
        }
        let words = std::fs::File::create(directory.join("qemu.log"));
        command.stderr(words.map_err(BenchError::system("qemu's words cannot be kept"))?);
        // Its stdin stays open: qemu takes its end for that of the way out too.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(BenchError::system("qemu-system-x86_64 cannot be started"))?;
        let lines = listen(&mut child);
        Ok(Guest { child, lines, console, last: VecDeque::new() })
    }
}

fn make(directory: &Path) -> Result<(), BenchError> {
    need("debootstrap", "debootstrap")?;
    need("cpio", "cpio")?;
    let (mirror, suite) = mirror()?;
    eprintln!("making the guest, once, from {suite} (some minutes)");
    write(&directory.join("make.sh"), MAKE)?;
    write(&directory.join("init.sh"), INIT)?;
    let mut command = Command::new("sh");
    command.arg(directory.join("make.sh")).arg(directory).args([mirror, suite]);
    let status = command.stdin(Stdio::null()).status().map_err(BenchError::system("sh cannot be started"))?;
    if status.success() {
        return Ok(());
    }
    Err(BenchError::Failed(format!(
        "the guest cannot be made, which takes root and a Debian mirror; see above and {}",
        directory.join("debootstrap.log").display()
    )))
}

/// The mirror that this machine's packages come from, and its suite.
fn mirror() -> Result<(String, String), BenchError> {
    let format = "$(ORIGIN) $(REPO_URI) $(CODENAME) $(COMPONENT)";
    let output =
        Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]).output();
    let output = output
        .map_err(BenchError::system("apt-get cannot be started; the guest is made of Debian's packages"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Debian", uri, suite, "main"] if !suite.contains('-') => {
                Some((uri.to_owned(), suite.to_owned()))
            }
            _ => None,
        }
    });
    found.ok_or_else(|| {
        BenchError::Failed(
            "apt knows no Debian mirror; add one to its sources and run \"apt-get update\"".into(),
        )
    })
}

/// The job and its settings as a tar of whole blocks.
fn pack(directory: &Path, settings: &str) -> Result<PathBuf, BenchError> {
    write(&directory.join("job.sh"), JOB)?;
    write(&directory.join("settings"), settings)?;
    let tar = directory.join("job.tar");
    let mut command = Command::new("tar");
    command.arg("-C").arg(directory).arg("-cf").arg(&tar).args(["job.sh", "settings"]);
    let packed = command.status().map_err(BenchError::system("tar cannot be started"))?.success();
    let file = std::fs::OpenOptions::new().write(true).open(&tar);
    let whole = file.and_then(|file| file.set_len(file.metadata()?.len().next_multiple_of(JOB_BYTES)));
    whole.map_err(BenchError::system(format!("{} cannot be made", tar.display())))?;
    if packed { Ok(tar) } else { Err(BenchError::Failed("the job cannot be packed with tar".into())) }
}

/// Reads what it prints, in a thread of its own: a guest that hangs must not hang the benchmark.
#[expect(clippy::disallowed_methods, reason = "a benchmark waits in the real world, outside of any engine")]
fn listen(child: &mut Child) -> Receiver<String> {
    let (sender, lines) = channel();
    let out = child.stdout.take().expect("its stdout is a pipe");
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A running guest; dropping it is a power cut.
pub(super) struct Guest {
    child: Child,
    lines: Receiver<String>,
    console: PathBuf,
    /// What it said last, for errors.
    last: VecDeque<String>,
}

impl Guest {
    /// Its next line.
    pub(super) fn line(&mut self) -> Result<String, BenchError> {
        match self.lines.recv_timeout(SILENCE) {
            Ok(line) => {
                self.last.push_back(line.clone());
                if self.last.len() > 8 {
                    self.last.pop_front();
                }
                Ok(line)
            }
            Err(RecvTimeoutError::Timeout) => Err(self.failed("hangs")),
            Err(RecvTimeoutError::Disconnected) => Err(self.failed("ended early")),
        }
    }

    /// The lines up to one that is `end`, without it; a job that ends before that is an error.
    pub(super) fn until(&mut self, end: &str) -> Result<Vec<String>, BenchError> {
        let mut lines = Vec::new();
        loop {
            let line = self.line()?;
            if line == end {
                return Ok(lines);
            }
            if line.starts_with("ended ") {
                return Err(self.failed(&format!("{line} before \"{end}\"")));
            }
            lines.push(line);
        }
    }

    fn failed(&mut self, fact: &str) -> BenchError {
        let console = std::fs::read_to_string(&self.console).unwrap_or_default();
        let from = console.len().saturating_sub(1500);
        let console = console.get(from..).unwrap_or_default();
        let said: Vec<&str> = self.last.iter().map(String::as_str).collect();
        BenchError::Failed(format!(
            "the guest {fact}; it said last: {}; its console: {console}",
            said.join(" | ")
        ))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself; both calls then fail, and nothing is left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
