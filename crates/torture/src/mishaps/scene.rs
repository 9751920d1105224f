//! The scene of a mishap: an array in a directory of its own, on files or loop devices, served by the real program.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::faulty::{Faulty, Manners};
use super::host::Host;
use crate::TortureError;
use crate::clock::{pause, wait_until, wall_s};
use crate::process::Running;
use crate::tools;

/// Bytes of a drive: small enough that a story takes seconds, large enough for log, metadata and a volume.
const DRIVE_MIB: u64 = 64;
/// The volume of a story.
const VOLUME_MIB: u64 = 16;
/// The longest that a verb or a start may take.
const VERB_SECONDS_MAX: u32 = 40;
/// How often status is asked.
const ASK: Duration = Duration::from_millis(50);

/// What drives are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Files.
    Files,
    /// Loop devices on files; they take root.
    Loop,
}

/// How stories are told.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The program.
    pub(crate) program: PathBuf,
    /// What drives are.
    pub(crate) media: Media,
    /// Whether the program does without io_uring.
    pub(crate) threads: bool,
}

/// What a verb said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Its exit code; none where a signal ended it.
    pub(crate) code: Option<i32>,
    /// stdout.
    pub(crate) out: String,
    /// stderr.
    pub(crate) err: String,
}

/// A scene.
pub(crate) struct Scene {
    /// Its directory.
    pub(crate) at: PathBuf,
    setting: Setting,
    drives: Vec<String>,
    faulty: BTreeMap<String, Faulty>,
    loops: BTreeMap<String, String>,
    server: Option<Running>,
    /// Who uses the volume `lun0`.
    pub(crate) host: Host,
}

impl Scene {
    /// In an empty directory.
    pub(crate) fn new(at: &Path, setting: Setting) -> Scene {
        let uri = uri(at, "lun0");
        Scene {
            at: at.to_owned(),
            setting,
            drives: Vec::new(),
            faulty: BTreeMap::new(),
            loops: BTreeMap::new(),
            server: None,
            host: Host::new(uri, VOLUME_MIB * 2048),
        }
    }

    /// Makes a drive that is not in the array yet.
    pub(crate) fn drive(&mut self, name: &str) -> Result<(), TortureError> {
        let image = self.image(name);
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(DRIVE_MIB << 20));
        made.map_err(TortureError::system(format!("{} cannot be made", image.display())))?;
        self.attach(name)?;
        self.drives.push(name.to_owned());
        Ok(())
    }

    /// Makes a drive that can be made to fail.
    pub(crate) fn faulty_drive(&mut self, name: &str, manners: Manners) -> Result<(), TortureError> {
        let image = self.image(name).with_extension("held");
        let made = std::fs::File::create(&image).and_then(|file| file.set_len(DRIVE_MIB << 20));
        made.map_err(TortureError::system(format!("{} cannot be made", image.display())))?;
        self.faulty.insert(name.to_owned(), Faulty::start(&image, &self.image(name), manners)?);
        self.attach(name)?;
        self.drives.push(name.to_owned());
        Ok(())
    }

    /// A drive that can be made to fail.
    pub(crate) fn faulty(&mut self, name: &str) -> &mut Faulty {
        self.faulty.get_mut(name).expect("the story has made it")
    }

    /// A faulty drive is pulled: commands that are under way and all later ones fail, and its path is gone.
    pub(crate) fn pull(&mut self, name: &str) {
        self.faulty(name).pull();
        if self.setting.media == Media::Loop {
            let _ = std::fs::remove_file(self.path(name));
        }
    }

    /// It is put back with what it held; a device has another number then.
    pub(crate) fn put_back(&mut self, name: &str) -> Result<(), TortureError> {
        self.faulty(name).put_back()?;
        self.attach_anew(name)
    }

    /// Gives a drive another set of manners while no server runs.
    pub(crate) fn misbehave(&mut self, name: &str, manners: Manners) -> Result<(), TortureError> {
        self.detach(name)?;
        self.faulty.remove(name);
        let (held, image) = (self.image(name).with_extension("held"), self.image(name));
        if !held.exists() {
            std::fs::rename(&image, &held).map_err(TortureError::system("the drive cannot be moved"))?;
        }
        self.faulty.insert(name.to_owned(), Faulty::start(&held, &image, manners)?);
        self.attach(name)
    }

    /// The file of a drive, or what its loop device is on.
    pub(crate) fn image(&self, name: &str) -> PathBuf {
        self.at.join(format!("{name}.img"))
    }

    /// What the array's file calls a drive.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match self.setting.media {
            Media::Files => self.image(name),
            Media::Loop => self.at.join(format!("{name}.dev")),
        }
    }

    fn attach(&mut self, name: &str) -> Result<(), TortureError> {
        if self.setting.media == Media::Files {
            return Ok(());
        }
        let image = self.image(name).display().to_string();
        let device =
            tools::run("losetup", &["--direct-io=on", "--find", "--show", &image])?.trim().to_owned();
        let linked = std::os::unix::fs::symlink(&device, self.path(name));
        self.loops.insert(name.to_owned(), device);
        linked.map_err(TortureError::system("a link to a device cannot be made"))
    }

    /// A drive is another device from now on; a server that has the old one open keeps what is left of it.
    fn attach_anew(&mut self, name: &str) -> Result<(), TortureError> {
        let dead = self.loops.remove(name);
        self.attach(name)?;
        match dead {
            Some(dead) => tools::run("losetup", &["--detach", &dead]).map(drop),
            None => Ok(()),
        }
    }

    fn detach(&mut self, name: &str) -> Result<(), TortureError> {
        let Some(device) = self.loops.remove(name) else { return Ok(()) };
        let _ = std::fs::remove_file(self.path(name));
        tools::run("losetup", &["--detach", &device])?;
        let backing = PathBuf::from(device.replace("/dev/", "/sys/block/")).join("loop/backing_file");
        wait_until("a free loop device", 10, || Ok(!backing.exists()))
    }

    /// A drive is not there at the next start.
    pub(crate) fn away(&mut self, name: &str) -> Result<(), TortureError> {
        self.detach(name)?;
        let image = self.image(name);
        std::fs::rename(&image, image.with_extension("away"))
            .map_err(TortureError::system("a drive cannot be taken away"))
    }

    /// It is there again.
    pub(crate) fn back(&mut self, name: &str) -> Result<(), TortureError> {
        let image = self.image(name);
        std::fs::rename(image.with_extension("away"), &image)
            .map_err(TortureError::system("a drive cannot be put back"))?;
        self.attach(name)
    }

    /// Keeps what a drive holds while no server runs.
    pub(crate) fn keep(&self, name: &str, copy: &str) -> Result<(), TortureError> {
        let kept = std::fs::copy(self.image(name), self.at.join(copy));
        kept.map(drop).map_err(TortureError::system("a drive cannot be copied"))
    }

    /// A copy that was kept lies in a drive's place from now on.
    pub(crate) fn put(&mut self, name: &str, copy: &str) -> Result<(), TortureError> {
        let image = self.image(name);
        if self.loops.contains_key(name) {
            let _ = std::fs::remove_file(self.path(name));
        }
        // A file of its own: a server that has the other one open keeps it.
        let put = std::fs::remove_file(&image).and_then(|()| std::fs::copy(self.at.join(copy), &image));
        put.map_err(TortureError::system("a copy cannot be put in a drive's place"))?;
        self.attach_anew(name)
    }

    /// The front of a drive is overwritten with zeros while it is not connected.
    pub(crate) fn overwrite_front(&mut self, name: &str, kib: u64) -> Result<(), TortureError> {
        self.away(name)?;
        overwrite(&self.image(name).with_extension("away"), kib)?;
        self.back(name)
    }

    /// The same while it serves.
    pub(crate) fn overwrite_serving_front(&self, name: &str, kib: u64) -> Result<(), TortureError> {
        overwrite(&self.image(name), kib)
    }

    /// Makes drives `d0` and so on.
    pub(crate) fn drives(&mut self, count: usize) -> Result<(), TortureError> {
        (0..count).try_for_each(|index| self.drive(&format!("d{index}")))
    }

    /// Writes the array's file with all drives that were made; `pool` is what `[[pool]]` holds beside its name, `more`
    /// follows at the end.
    pub(crate) fn describe(&self, pool: &str, more: &str) -> Result<(), TortureError> {
        self.describe_with(&self.drives, pool, more)
    }

    /// The same with these drives only.
    pub(crate) fn describe_with(
        &self,
        drives: &[String],
        pool: &str,
        more: &str,
    ) -> Result<(), TortureError> {
        let mut text = "[array]\nname = \"mishaps\"\ncores = 2\n\n".to_owned();
        for name in drives {
            let path = self.path(name);
            writeln!(text, "[[drive]]\nname = \"{name}\"\npath = \"{}\"\n", path.display())
                .expect("a text grows");
        }
        let at = self.at.display();
        write!(
            text,
            "[[pool]]\nname = \"pool0\"\n{pool}\n\n[[volume]]\nname = \"lun0\"\npool = \"pool0\"\n\
             size = \"{VOLUME_MIB}MiB\"\n\n{more}\n\n[nbd]\nlisten = [\"unix:{at}/nbd.sock\"]\n"
        )
        .expect("a text grows");
        self.write_file(&text)
    }

    /// The array's file.
    pub(crate) fn file(&self) -> PathBuf {
        self.at.join("array.toml")
    }

    /// Writes the array's file.
    pub(crate) fn write_file(&self, text: &str) -> Result<(), TortureError> {
        std::fs::write(self.file(), text).map_err(TortureError::system("the array's file cannot be written"))
    }

    /// The array's file with a text in place of another, which must be there.
    pub(crate) fn edit_file(&self, old: &str, new: &str) -> Result<(), TortureError> {
        let text = std::fs::read_to_string(self.file())
            .map_err(TortureError::system("the array's file cannot be read"))?;
        ensure(text.contains(old), || format!("the array's file has no {old:?}"))?;
        self.write_file(&text.replace(old, new))
    }

    /// Creates the array of drives `d0` and so on, and serves it.
    pub(crate) fn serving(&mut self, drives: usize, pool: &str) -> Result<(), TortureError> {
        self.drives(drives)?;
        self.create_and_serve(pool, "")
    }

    /// Creates the array of all drives that were made, and serves it.
    pub(crate) fn create_and_serve(&mut self, pool: &str, more: &str) -> Result<(), TortureError> {
        self.describe(pool, more)?;
        self.done(&["create", "@"])?;
        self.serve(&[])
    }

    /// Runs the program with `@` for the array's file.
    pub(crate) fn tier0(&self, words: &[&str]) -> Result<Said, TortureError> {
        self.said(&mut self.command(words))
    }

    /// A command of the program with `@` for the array's file.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.setting.program);
        for word in words {
            match *word {
                "@" => command.arg(self.file()),
                word => command.arg(word),
            };
        }
        command
    }

    /// Runs a command to its end; fails if that takes too long.
    pub(crate) fn said(&self, command: &mut Command) -> Result<Said, TortureError> {
        let (out, err) = (self.at.join("said.out"), self.at.join("said.err"));
        let create = |path: &Path| {
            std::fs::File::create(path).map_err(TortureError::system("a log cannot be written"))
        };
        command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?);
        let mut child = command.spawn().map_err(TortureError::system("tier0 cannot be started"))?;
        let mut status = None;
        let ended = wait_until("the end of tier0", VERB_SECONDS_MAX, || {
            status = child.try_wait().map_err(TortureError::system("tier0 cannot be waited for"))?;
            Ok(status.is_some())
        });
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        if let Err(error) = ended {
            let _ = child.kill();
            let _ = child.wait();
            return Err(TortureError::Failed(format!("{error}: {command:?}: {}", read(&err).trim())));
        }
        Ok(Said { code: status.and_then(|status| status.code()), out: read(&out), err: read(&err) })
    }

    /// Runs the program, which must succeed.
    pub(crate) fn done(&self, words: &[&str]) -> Result<String, TortureError> {
        let said = self.tier0(words)?;
        ensure(said.code == Some(0), || format!("{} ended with {}", words.join(" "), said.told()))?;
        Ok(said.out)
    }

    /// Runs the program, which must refuse and name each of `named`.
    pub(crate) fn refused(&self, words: &[&str], code: i32, named: &[&str]) -> Result<Said, TortureError> {
        let said = self.tier0(words)?;
        let what = words.join(" ");
        ensure(said.code == Some(code), || format!("{what} did not end with {code}: {}", said.told()))?;
        for name in named {
            ensure(said.err.contains(name), || format!("{what} does not name {name:?}: {}", said.told()))?;
        }
        Ok(said)
    }

    /// What a server is started with.
    fn serve_words<'a>(&self, flags: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["serve", "@"];
        words.extend(flags);
        words.extend(self.setting.threads.then_some("--no-io-uring"));
        words
    }

    /// A start that must be refused, naming each of `named`; no drive may have changed.
    pub(crate) fn refused_start(&mut self, flags: &[&str], named: &[&str]) -> Result<(), TortureError> {
        let before = self.prints()?;
        let began = wall_s();
        match self.serve(flags) {
            Ok(()) => {
                self.stop()?;
                return Err(TortureError::Failed(format!("serve {} is not refused", flags.join(" "))));
            }
            Err(error) if wall_s() - began > 35.0 => return Err(error),
            Err(_) => {}
        }
        let log = self.log();
        let words = log.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_owned();
        for name in named {
            ensure(words.contains(name), || format!("the refusal does not name {name:?}: {words}"))?;
        }
        let after = self.prints()?;
        let changed: Vec<&str> =
            before.iter().filter(|(name, print)| after[*name] != **print).map(|(name, _)| &**name).collect();
        ensure(changed.is_empty(), || format!("a refused start has written to {changed:?}: {words}"))
    }

    /// A sum of what each drive's file holds.
    fn prints(&self) -> Result<BTreeMap<String, String>, TortureError> {
        let mut prints = BTreeMap::new();
        for entry in std::fs::read_dir(&self.at).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            let held = path.with_extension("held").exists();
            if kind == "held" || kind == "away" || (kind == "img" && !held) {
                // Commands of a server that has just ended may still be under way, and have its lock until they are done.
                let quiet = File::open(&path).and_then(|file| file.lock_shared());
                quiet.map_err(TortureError::system("a drive cannot be waited for"))?;
                let sum = tools::run("md5sum", &[&path.display().to_string()])?;
                prints.insert(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), sum);
            }
        }
        Ok(prints)
    }

    /// Serves the array, and returns when hosts can connect.
    pub(crate) fn serve(&mut self, flags: &[&str]) -> Result<(), TortureError> {
        let command = self.command(&self.serve_words(flags));
        self.serve_by(command)
    }

    /// Serves the array by this command.
    pub(crate) fn serve_by(&mut self, mut command: Command) -> Result<(), TortureError> {
        self.launch(&mut command)?;
        self.listens()
    }

    /// Waits until hosts can connect to the server that was launched.
    pub(crate) fn listens(&mut self) -> Result<(), TortureError> {
        let (socket, log) = (self.at.join("nbd.sock"), self.at.join("serve.log"));
        let server = self.server.as_mut().expect("it was launched");
        let listens = wait_until("tier0 serve listening", VERB_SECONDS_MAX, || match server.status()? {
            Some(status) => {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().rev().find(|line| !line.is_empty()).unwrap_or_default().to_owned();
                Err(TortureError::Failed(format!("tier0 serve ended with {status}: {last}")))
            }
            None => Ok(greets(&socket)),
        });
        if listens.is_err() {
            self.server = None;
        }
        listens
    }

    /// Starts a server and waits for nothing.
    pub(crate) fn launch(&mut self, command: &mut Command) -> Result<(), TortureError> {
        let _ = std::fs::remove_file(self.at.join("serve.log"));
        self.server = Some(Running::start("tier0 serve", command, &self.at.join("serve.log"))?);
        Ok(())
    }

    /// The command that serves.
    pub(crate) fn serve_command(&self, flags: &[&str]) -> Command {
        self.command(&self.serve_words(flags))
    }

    /// What the server has said since its start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.at.join("serve.log")).unwrap_or_default()
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(server) = &self.server {
            server.signal(signal);
        }
    }

    /// Asks the server to end, which must go well.
    pub(crate) fn stop(&mut self) -> Result<(), TortureError> {
        self.signal(Signal::TERM);
        self.ends()
    }

    /// Waits until the server has ended well.
    pub(crate) fn ends(&mut self) -> Result<(), TortureError> {
        let status = self.server.take().ok_or_else(no_server)?.ends()?;
        ensure(status.success(), || format!("tier0 serve ended with {status}: {}", self.log().trim()))
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) -> Result<(), TortureError> {
        self.host.server_ends();
        self.server.take().ok_or_else(no_server)?.kill()
    }

    /// Whether the server runs.
    pub(crate) fn runs(&mut self) -> Result<bool, TortureError> {
        Ok(self.server.as_mut().expect("a server was started").status()?.is_none())
    }

    /// What `tier0 status` says, as JSON.
    pub(crate) fn status(&self) -> Result<Value, TortureError> {
        let said = self.tier0(&["status", "@", "--json"])?;
        serde_json::from_str(&said.out)
            .map_err(|_| TortureError::Failed(format!("tier0 status is no JSON: {}", said.told())))
    }

    /// Waits until the status of `pool0` is as `wanted` says.
    pub(crate) fn pool(
        &self,
        what: &str,
        seconds: u32,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value, TortureError> {
        let until = wall_s() + f64::from(seconds);
        loop {
            let status = self.status()?;
            if wanted(&status["pools"][0]) {
                return Ok(status);
            }
            if wall_s() > until {
                let summary = &status["summary"];
                return Err(TortureError::Failed(format!(
                    "{what} not within {seconds} s; status: {summary}"
                )));
            }
            pause(ASK);
        }
    }

    /// Waits until an event tells `what` of `thing`, by itself or among other drives.
    pub(crate) fn event(&self, thing: &str, what: &str, seconds: u32) -> Result<(), TortureError> {
        let is_it = |event: &Value| {
            event["thing"].as_str().is_some_and(|told| concerns(told, thing))
                && event["what"].as_str().is_some_and(|told| told.contains(what))
        };
        let until = wall_s() + f64::from(seconds);
        while !self.status()?["events"].as_array().is_some_and(|events| events.iter().any(is_it)) {
            if wall_s() > until {
                return Err(TortureError::Failed(format!(
                    "no event tells {what:?} of {thing} within {seconds} s"
                )));
            }
            pause(ASK);
        }
        Ok(())
    }

    /// Fails unless all drives of `pool0` are active, every set is whole and no drive lacks.
    pub(crate) fn whole(&self, drives: usize) -> Result<(), TortureError> {
        self.pool(&format!("{drives} active drives and whole sets"), 30, |pool| {
            let all = pool["drives"].as_array().map(Vec::as_slice).unwrap_or_default();
            all.len() == drives
                && all.iter().all(|drive| drive["state"] == "active")
                && pool["sets"]["degraded"] == 0
                && pool["sets"]["failed"] == 0
        })?;
        Ok(())
    }

    /// Everything acknowledged is there, now and after a kill and a start.
    pub(crate) fn nothing_lost(&mut self) -> Result<(), TortureError> {
        self.host.check()?;
        self.kill()?;
        self.serve(&[])?;
        self.host.check()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.faulty.values().for_each(|faulty| {
            // A server that waits for a hanging drive could not be killed.
            let _ = faulty.fail(false);
            let _ = faulty.hang(false);
        });
        if let Some(server) = &self.server {
            server.signal(Signal::CONT);
        }
        self.host.server_ends();
        self.server = None;
        for name in self.loops.keys().cloned().collect::<Vec<_>>() {
            let _ = self.detach(&name);
        }
    }
}

impl Said {
    /// On one line.
    pub(crate) fn told(&self) -> String {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        format!("{code}: {}", format!("{} {}", self.out.trim(), self.err.trim()).trim().replace('\n', " / "))
    }
}

/// Whether an event of `told` ("drive d0", "drives d0, d1") is one of `thing`.
fn concerns(told: &str, thing: &str) -> bool {
    let among = || {
        let (drive, all) = thing.strip_prefix("drive ").zip(told.strip_prefix("drives "))?;
        Some(all.split(", ").any(|one| one == drive))
    };
    told == thing || among() == Some(true)
}

fn no_server() -> TortureError {
    TortureError::Failed("no server runs".to_owned())
}

/// Whether a server greets: the socket of one that was killed takes connections until the kernel has let go of it.
fn greets(socket: &Path) -> bool {
    let mut greeting = [0; 8];
    UnixStream::connect(socket)
        .and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.read_exact(&mut greeting)
        })
        .is_ok_and(|()| &greeting == b"NBDMAGIC")
}

/// Overwrites the front of a file with zeros.
fn overwrite(image: &Path, kib: u64) -> Result<(), TortureError> {
    let file = std::fs::File::options().write(true).open(image);
    let done = file.and_then(|file| file.write_all_at(&vec![0; (kib << 10) as usize], 0));
    done.map_err(TortureError::system("a drive cannot be overwritten"))
}

/// The NBD address of a volume of the array in `at`.
pub(crate) fn uri(at: &Path, volume: &str) -> String {
    format!("nbd+unix:///{volume}?socket={}/nbd.sock", at.display())
}

/// Fails with `what` unless `holds`.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), TortureError> {
    if holds { Ok(()) } else { Err(TortureError::Failed(what())) }
}

/// The state of a drive of a pool.
pub(crate) fn drive_state<'a>(pool: &'a Value, name: &str) -> &'a str {
    let drives = pool["drives"].as_array().map(Vec::as_slice).unwrap_or_default();
    let drive = drives.iter().find(|drive| drive["name"] == name);
    drive.and_then(|drive| drive["state"].as_str()).unwrap_or("gone")
}
