//! Each mishap that an array must survive, on the real program: drives that fail for a moment, halves that ran alone,
//! refused starts, operators' mistakes.
//!
//! | module | concept |
//! |---|---|
//! | `scene` | an array in a directory of its own, its drives, its server, its verbs |
//! | `faulty` | drives that fail, hang, are pulled and put back, from outside |
//! | `host` | a host that verifies what it was promised while the story goes on |
//! | `stories` | the mishaps, one function each |
//!
//! A story fails where something acknowledged is lost, where the program does not say what is wrong, or where it takes
//! longer than it may. Stories that need a program which is not installed, or root, are skipped and say so.

mod faulty;
mod host;
mod scene;
mod stories;

use std::path::PathBuf;

pub use scene::Media;

use crate::clock::wall_s;
use crate::{TortureError, tools};
use scene::{Scene, Setting};
use stories::{Needs, STORIES, Story};

/// Which mishaps, and on what.
#[derive(Clone, Debug)]
pub struct Mishaps {
    /// The program under test.
    pub program: PathBuf,
    /// Where the arrays' directories are made; not a tmpfs, so that O_DIRECT works as it does for users.
    pub directory: PathBuf,
    /// Only stories whose name contains this.
    pub only: Option<String>,
    /// Only stories that take a few seconds.
    pub short: bool,
    /// What drives are.
    pub media: Media,
    /// Whether the program does without io_uring.
    pub threads: bool,
}

/// How a story went.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its name: `starts/log-drives-away`.
    pub name: &'static str,
    /// How many seconds it took.
    pub seconds: f64,
    /// How it ended.
    pub ended: Ended,
}

/// How a story ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// It needs something that is not here.
    Skipped(String),
    /// Otherwise; what was seen.
    Badly(String),
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.ended {
            Ended::Well => write!(f, "ok      {:<40} {:>6.1} s", self.name, self.seconds),
            Ended::Skipped(why) => write!(f, "skipped {:<40} {why}", self.name),
            Ended::Badly(what) => write!(f, "FAILED  {:<40} {:>6.1} s  {what}", self.name, self.seconds),
        }
    }
}

/// The names of all stories.
pub fn names() -> Vec<&'static str> {
    STORIES.iter().map(|story| story.name).collect()
}

/// Tells the stories one after the other; `tell` hears of each as it ends.
///
/// # Errors
/// Where no directory can be made.
pub fn mishaps(plan: &Mishaps, tell: &mut dyn FnMut(&Told)) -> Result<Vec<Told>, TortureError> {
    let chosen = STORIES.iter().filter(|story| {
        plan.only.as_ref().is_none_or(|only| story.name.contains(only.as_str()))
            && (story.short || !plan.short)
    });
    let mut all = Vec::new();
    for story in chosen {
        let told = one(plan, story)?;
        tell(&told);
        all.push(told);
    }
    Ok(all)
}

fn one(plan: &Mishaps, story: &Story) -> Result<Told, TortureError> {
    let began = wall_s();
    let ended = match missing(plan, story) {
        Some(why) => Ended::Skipped(why),
        None => {
            let directory = tempfile::tempdir_in(&plan.directory)
                .map_err(TortureError::system(format!("{} cannot be written", plan.directory.display())))?;
            let setting = Setting { program: plan.program.clone(), media: plan.media, threads: plan.threads };
            let mut scene = Scene::new(directory.path(), setting);
            match (story.tell)(&mut scene) {
                Ok(()) => Ended::Well,
                Err(error) => Ended::Badly(error.to_string().replace('\n', " / ")),
            }
        }
    };
    Ok(Told { name: story.name, seconds: wall_s() - began, ended })
}

/// What a story needs and does not find.
fn missing(plan: &Mishaps, story: &Story) -> Option<String> {
    let faulty: &[(&str, &str)] = &[("nbdkit", "nbdkit"), ("nbdfuse", "libnbd-bin")];
    let (tools, root) = match story.needs {
        Needs::Nothing => (&[][..], false),
        Needs::Faulty => (faulty, false),
        Needs::Root => (&[("losetup", "util-linux"), ("mkfs.ext4", "e2fsprogs")][..], true),
    };
    if let Some((tool, package)) = tools.iter().find(|(tool, _)| tools::find(tool).is_none()) {
        return Some(format!("{tool} is not installed; install {package}"));
    }
    let root = root || plan.media == Media::Loop;
    (root && !rustix::process::geteuid().is_root()).then(|| "it needs root".to_owned())
}
