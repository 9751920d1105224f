//! What a file must say, and what it must not name twice.

use tier0_description::{Description, DescriptionError};

#[test]
fn processors_are_kept_awake_where_the_file_says_so() {
    let text = |line: &str| {
        format!(
            "[array]\nname = \"a\"\n{line}\n[[drive]]\nname = \"r\"\nram = \"1MiB\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid0\"\n"
        )
    };
    let kept = |line: &str| Description::parse(&text(line), "test.toml").map(|array| array.keep_awake);
    assert!(!kept("").expect("correct"));
    assert!(kept("keep_awake = true").expect("correct"));
    let error = kept("keep_awake = \"never\"").expect_err("that is neither").to_string();
    assert!(error.contains("line 3") && error.contains("true or false"), "{error}");
}

/// A file of events that is large is moved to `.old`, and would have been moved over a drive.
#[test]
fn events_are_not_moved_over_what_else_the_array_has() {
    let directory = tempfile::tempdir().expect("a directory");
    let read = |name: &str, array: &str, drive: &str| {
        let text = format!(
            "[array]\nname = \"a\"\n{array}\n[[drive]]\nname = \"d\"\npath = \"{drive}\"\nsize = \"64MiB\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid0\"\n"
        );
        let file = directory.path().join(name);
        std::fs::write(&file, text).expect("written");
        Description::read(&file)
    };
    let refused = [
        ("a.toml", "events = \"told\"", "told.old", "a drive"),
        ("a.toml", "", "a.events.old", "a drive"),
        ("told.old", "events = \"told\"\ncontrol = \"c\"", "d0", "the array file"),
        ("a.toml", "events = \"told\"\ncontrol = \"told.old\"", "d0", "array.control"),
        ("a.toml", "events = \"told\"\nwitness = \"told.old\"", "d0", "array.witness"),
    ];
    for (name, array, drive, named) in refused {
        let error = read(name, array, drive).expect_err("the server would move its events there");
        let DescriptionError::MovedEvents { path, what } = &error else { panic!("{error}") };
        assert_eq!((path.extension().and_then(|end| end.to_str()), *what), (Some("old"), named));
        assert!(error.to_string().contains("the events are rotated to"), "{error}");
    }
    // What is no socket, no witness or no file of events, an administrator is told to take away.
    for named in ["events", "witness", "control"] {
        let error = read("a.toml", &format!("{named} = \"d0\""), "d0").expect_err("it is a drive");
        let DescriptionError::Taken { field, what, .. } = &error else { panic!("{error}") };
        assert_eq!((*field, *what), (&*format!("array.{named}"), "a drive"));
    }
    let error = read("a.toml", "[nbd]\nlisten = [\"unix:d0\"]", "d0").expect_err("it is a drive");
    assert!(error.to_string().contains("nbd.listen"), "{error}");
    read("a.toml", "events = \"told\"\ncontrol = \"c\"", "told.older").expect("nothing is in the way");
}

#[test]
fn caches_are_as_the_file_says_or_as_they_are() {
    let read = |pool: &str, volume: &str| {
        let text = format!(
            "[array]\nname = \"a\"\n[[drive]]\nname = \"d\"\npath = \"d\"\n\
             [[pool]]\nname = \"p\"\nraid = \"raid0\"\n{pool}\n\
             [[volume]]\nname = \"v\"\nsize = \"1MiB\"\n{volume}\n"
        );
        Description::parse(&text, "test.toml")
    };
    let caches = |pool: &str, volume: &str| {
        let array = read(pool, volume).expect("correct");
        let (pool, volume) = (&array.pools[0], &array.volumes[0]);
        [pool.read_cache, pool.write_cache, volume.read_cache]
    };
    assert_eq!(caches("", ""), [None; 3]);
    let all = caches("read_cache = true\nwrite_cache = false", "read_cache = false");
    assert_eq!(all, [Some(true), Some(false), Some(false)]);
    for (pool, volume) in [("write_cache = \"durable\"", ""), ("", "read_cache = \"on\"")] {
        let error = read(pool, volume).expect_err("it is on or off").to_string();
        assert!(error.contains("true or false"), "{error}");
    }
}
