//! What is known of an array whose file is broken or gone: where its server is asked, and where its events lie.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{
    Description, PAUSE_TIMEOUT, SocketAccess, default_control, default_events, is_name, is_toml, listen,
    place_of, text_of,
};

/// What the name of a broken array file tells, and those of its fields that can be read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remnant {
    /// The array's name, where the file says it.
    pub name: Option<String>,
    /// The control socket.
    pub control: PathBuf,
    /// The file of events.
    pub events: PathBuf,
    /// Where the file says that the control socket is.
    stated_control: Option<PathBuf>,
    /// Where the file says that the events are.
    stated_events: Option<PathBuf>,
}

/// The fields that may be left.
#[derive(Default, Deserialize)]
struct LeftFile {
    #[serde(default)]
    array: LeftArray,
}

#[derive(Default, Deserialize)]
struct LeftArray {
    name: Option<String>,
    control: Option<PathBuf>,
    events: Option<PathBuf>,
}

impl Remnant {
    /// What is left of the array file at `file`; none where what lies beside it may be another array's.
    pub fn of(file: &Path) -> Option<Remnant> {
        let place = place_of(file).ok()?;
        if has_namesake(&place) {
            return None;
        }
        let directory = place.parent()?;
        let text = text_of(file).ok().flatten().unwrap_or_default();
        let LeftFile { array } = tier0_toml::read(&text).unwrap_or_default();
        let stated = |path: Option<PathBuf>| {
            path.filter(|path| !path.as_os_str().is_empty()).map(|path| directory.join(path))
        };
        let stated_control = stated(array.control).filter(|path| !listen::is_too_long(path));
        let stated_events = stated(array.events);
        Some(Remnant {
            name: array.name.filter(|name| is_name(name)),
            control: stated_control.clone().unwrap_or_else(|| default_control(file, &place)),
            events: stated_events.clone().unwrap_or_else(|| default_events(&place)),
            stated_control,
            stated_events,
        })
    }

    /// The array as far as the file says it, under the name by which its server knows it: without drives, pools and
    /// volumes.
    pub fn description(&self, name: &str) -> Description {
        Description {
            name: name.to_owned(),
            cores: None,
            memory: None,
            keep_awake: false,
            pause_timeout: PAUSE_TIMEOUT,
            witness: None,
            search: Vec::new(),
            drives: Vec::new(),
            pools: Vec::new(),
            volumes: Vec::new(),
            listen: Vec::new(),
            socket_access: SocketAccess::default(),
            control: self.stated_control.clone(),
            control_access: SocketAccess::default(),
            events: self.stated_events.clone(),
            warnings: Vec::new(),
        }
    }
}

/// Whether `a` lies beside `a.toml`, under either name: what lies beside them by default has one name.
fn has_namesake(file: &Path) -> bool {
    let other = match is_toml(file) {
        true => file.with_extension(""),
        false => file.with_added_extension("toml"),
    };
    let is_the_same = || {
        std::fs::canonicalize(file).is_ok_and(|own| std::fs::canonicalize(&other).is_ok_and(|it| it == own))
    };
    other.is_file() && !is_the_same()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_and_what_is_left_of_it_tell_where_its_server_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a.toml");
        let at = |name: &str| directory.path().join(name);
        let of = || Remnant::of(&file).expect("it is alone");
        assert_eq!((of().name, of().control, of().events), (None, at("a.control"), at("a.events")));
        std::fs::write(&file, "[array]\nname = \"db\"\ncontrol = \"c\"\nwrong = 1\n").expect("a file");
        assert_eq!((of().name, of().control, of().events), (Some("db".into()), at("c"), at("a.events")));
        std::fs::write(&file, "[array]\nname = \"db\"\ncontrol = \"c\n").expect("a file");
        assert_eq!((of().name, of().control), (None, at("a.control")));
    }

    /// The socket beside a file without an ending may be that of its namesake.
    #[test]
    fn what_may_be_that_of_another_file_is_not_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let (one, other) = (directory.path().join("a"), directory.path().join("a.toml"));
        std::fs::write(&other, "").expect("a file");
        assert_eq!(Remnant::of(&one), None);
        assert!(Remnant::of(&other).is_some());
        std::fs::write(&one, "").expect("a file");
        assert_eq!(Remnant::of(&other), None);
    }
}
