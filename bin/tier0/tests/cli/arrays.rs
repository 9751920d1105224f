//! `tier0 create` and `tier0 serve`.

use std::process::Stdio;

use crate::support::{
    Scene, Served, array_file, array_text, contents, directory, file, json, refuse, run, succeed, text, tier0,
};

#[test]
fn an_array_is_created_once_and_served_again() {
    let directory = directory();
    let array = array_file(directory.path(), "raid10", 4);
    let created = json(&["create", text(&array)]);
    assert_eq!(created["pools"][0]["raid"], "raid10");
    assert_eq!(created["volumes"][0]["size_bytes"], 24 << 20);
    let before = contents(directory.path());
    refuse(&["create", text(&array)], 2, &["d0", "pool0", "--force"]);
    assert_eq!(contents(directory.path()), before, "a refused create has written something");

    let served = Served::start(&array, directory.path());
    let write =
        ["load", &served.uri, "--read", "0", "--ios", "500", "--seed", "9", "--verify", "--overwrite"];
    succeed(&write);
    served.stop();
    let served = Served::start(&array, directory.path());
    let measured = json(&["load", &served.uri, "--ios", "500", "-d", "8"]);
    assert_eq!(measured["all"]["ios"], 500);
    served.stop();
    let before = contents(directory.path());
    refuse(&["create", text(&array), "--force"], 2, &["d0", "pool0", "lost", "--yes"]);
    assert_eq!(contents(directory.path()), before, "without consent something was written");
    succeed(&["create", text(&array), "--force", "--yes"]);
}

/// It was found out when the drives had been written to already, and `check` did not see it.
#[test]
fn a_busy_socket_is_named() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let socket = directory.path().join("busy");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let listen = format!("unix:{}", text(&socket));
    let before = contents(directory.path());
    refuse(&["serve", text(&array), "--listen", &listen], 2, &["busy", "in use", "another address"]);
    let plain = array_text(directory.path(), "raid0", 2);
    let named = |address: &str| {
        file(directory.path(), "array.toml", &format!("{plain}[nbd]\nlisten = [{address:?}]\n"))
    };
    refuse(&["check", text(&named(&listen))], 2, &["nbd.listen", "busy", "in use", "another address"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = port.local_addr().expect("an address").to_string();
    refuse(&["serve", text(&array), "--listen", &listen], 2, &[&listen, "in use"]);
    refuse(&["check", text(&named(&listen))], 2, &["nbd.listen", &listen, "in use", "another address"]);
    file(directory.path(), "array.toml", &plain);
    assert_eq!(contents(directory.path()), before, "a start that is refused has written something");
    assert!(socket.exists(), "another's socket was removed");
}

/// Sockets had whatever mode the process made files with, and no owner or group of their own.
#[test]
fn sockets_have_the_mode_that_the_file_says() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let fields = "\n[nbd]\nsocket_mode = \"0660\"\nlisten = [\"unix:nbd.sock\"]\n";
    let listen = format!("{}/nbd.sock", text(directory.path()));
    let written = array_text(directory.path(), "raid0", 2) + &fields.replace("nbd.sock", &listen);
    let array = file(directory.path(), "array.toml", &written);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    let mode = |name: &str| {
        let found = std::fs::metadata(directory.path().join(name)).expect("a socket");
        found.permissions().mode() & 0o777
    };
    assert_eq!((mode("s"), mode("array.control")), (0o660, 0o600));
    served.stop();
    for gone in ["s", "array.control"] {
        assert!(!directory.path().join(gone).exists(), "{gone} stays behind");
    }
    for (wrong, words) in [("\"0680\"", &["nbd.socket_mode", "0660"][..]), ("660", &["socket_mode"])] {
        let array = file(directory.path(), "wrong.toml", &written.replace("\"0660\"", wrong));
        refuse(&["check", text(&array)], 2, words);
    }
    let nobody = written.replace("socket_mode = \"0660\"", "socket_group = \"no-such-group\"");
    let array = file(directory.path(), "wrong.toml", &nobody);
    refuse(&["check", text(&array)], 2, &["nbd.socket_group", "no-such-group"]);
}

#[test]
fn a_control_socket_of_another_server_is_named() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let control = directory.path().join("array.control");
    let listener = std::os::unix::net::UnixListener::bind(&control).expect("a socket");
    refuse(&["serve", text(&array), "--listen", "127.0.0.1:0"], 2, &["array.control", "another server"]);
    assert!(control.exists(), "another's socket was removed");
    drop(listener);
    Served::start(&array, directory.path()).stop();
}

/// Of a drive that the array's own server held, without a control socket yet, everybody advised to start without it.
#[test]
fn a_server_that_cannot_be_asked_yet_is_told_as_one() {
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    // A socket without a listener lies in the place of its own, which it would make again.
    let dead = directory.path().join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).expect("a socket"));
    std::fs::rename(&dead, directory.path().join("array.control")).expect("a socket");
    let words = ["its server (process", "it is starting", "array.control", "wait for the server"];
    for verb in [&["check"][..], &["pool", "recover"], &["serve"]] {
        let asked = [verb, &[text(&array)]].concat();
        refuse(&asked, 2, &words);
        assert!(!run(&asked).stderr.contains("--without"), "{verb:?}");
    }
    refuse(&["status", text(&array)], 1, &words);
    // Of a copy of its file with another socket, one was advised to start without the drives that it serves.
    let own = std::fs::read_to_string(&array).expect("the array's file");
    let elsewhere = format!("[array]\ncontrol = {:?}", directory.path().join("other.control"));
    let other = file(directory.path(), "other.toml", &own.replacen("[array]", &elsewhere, 1));
    let words =
        ["d0.img", "in use by another process", "tier0 server", "array.toml", "array.control", "not missing"];
    for verb in ["check", "serve"] {
        let told = run(&[verb, text(&other)]);
        assert_eq!(told.code, Some(2), "{verb}: {}", told.stderr);
        assert!(words.iter().all(|word| told.stderr.contains(word)), "{verb}: {}", told.stderr);
        assert!(!told.stderr.contains("--without"), "{verb}: {}", told.stderr);
    }
    served.stop();
    // Another process that has a drive is no server.
    let drive = std::fs::File::open(directory.path().join("d1.img")).expect("a drive");
    drive.lock().expect("nobody has it");
    refuse(&["check", text(&array)], 2, &["d1.img", "in use by another process", "--without d1"]);
    refuse(&["serve", text(&array)], 2, &["d1.img", "in use by another process", "--without d1"]);
    // `create` said that it had failed while running.
    for force in [&[][..], &["--force", "--yes"]] {
        let asked = [&["create", text(&array)], force].concat();
        refuse(&asked, 2, &["d1.img", "in use by another process", "fuser"]);
    }
}

/// A copy of an array's file with another name in it deleted a volume of the array that was served.
#[test]
fn a_control_socket_serves_its_own_array_only() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    let own = std::fs::read_to_string(&array).expect("the array's file");
    let name = own.lines().find(|line| line.starts_with("name = ")).expect("the array has a name");
    let control = format!("name = \"other\"\ncontrol = {:?}", directory.path().join("array.control"));
    let other = file(directory.path(), "other.toml", &own.replacen(name, &control, 1));
    refuse(&["status", text(&other)], 2, &["other", "control socket"]);
    refuse(&["drive", "fail", text(&other), "d0", "--yes"], 2, &["other", "array.control"]);
    succeed(&["status", text(&array)]);
    served.stop();
}

/// The one that failed removed a drive's file which the other had locked, or was about to: an array without a drive.
#[test]
fn two_creations_at_once_make_one_whole_array_or_none() {
    for _ in 0..6 {
        let directory = directory();
        let array = array_file(directory.path(), "raid5", 3);
        let create = || {
            let mut command = tier0();
            command.args(["create", text(&array)]).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("it runs")
        };
        let both = [create(), create()];
        let done = both.map(|mut child| child.wait().expect("it ends").success());
        assert!(!(done[0] && done[1]), "both have created it");
        if done[0] || done[1] {
            let said = succeed(&["check", text(&array)]);
            assert!(!said.contains("missing"), "{said}");
            Served::start(&array, directory.path()).stop();
        }
    }
}

/// "checksums = false" did nothing.
#[test]
fn checksums_cannot_be_left_out() {
    let directory = directory();
    let without =
        array_text(directory.path(), "raid0", 2).replace("stripe_unit", "checksums = false\nstripe_unit");
    let array = file(directory.path(), "array.toml", &without);
    refuse(&["create", text(&array)], 2, &["checksums = false", "remove the field"]);
}

#[test]
fn a_drive_in_use_is_not_touched() {
    let directory = directory();
    let array = array_file(directory.path(), "raid0", 2);
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    // That the array is served says more than that its drives are in use.
    refuse(&["serve", text(&array), "--listen", "127.0.0.1:0"], 2, &["\"test\"", "already running"]);
    refuse(&["create", text(&array), "--force"], 2, &["\"test\"", "already running"]);
    let elsewhere =
        std::fs::read_to_string(&array).expect("a file").replace("[array]", "[array]\ncontrol = \"other\"");
    let other = file(directory.path(), "other.toml", &elsewhere);
    refuse(
        &["serve", text(&other), "--listen", "127.0.0.1:0"],
        2,
        &["d0.img", "in use", "the tier0 server", "array.toml"],
    );
    refuse(&["create", text(&other), "--force"], 2, &["d0.img", "in use"]);
    refuse(&["load", text(&directory.path().join("d0.img"))], 2, &["d0.img", "in use"]);
    // Files that were deleted under the server are not there any more, but it serves what they hold.
    for drive in ["d0.img", "d1.img"] {
        std::fs::remove_file(directory.path().join(drive)).expect("a drive file");
    }
    refuse(&["create", text(&array), "--force"], 2, &["\"test\"", "already running"]);
    refuse(&["create", text(&array)], 2, &["\"test\"", "already running"]);
    assert!(!directory.path().join("d0.img").exists(), "a refused create has made a drive file");
    served.stop();
}

#[test]
fn too_many_lost_drives_are_named() {
    for (raid, drives, lost) in [("raid0", 2, 1), ("raid5", 3, 2), ("raid6", 4, 3)] {
        let directory = directory();
        let array = array_file(directory.path(), raid, drives);
        succeed(&["create", text(&array)]);
        for drive in 0..lost {
            std::fs::remove_file(directory.path().join(format!("d{drive}.img"))).expect("a drive to lose");
        }
        let before = contents(directory.path());
        refuse(&["serve", text(&array)], 2, &["pool0", "\"d0\"", raid]);
        assert_eq!(contents(directory.path()), before, "a refused {raid} has written something");
    }
}

/// The documents said that new drive files are sparse.
#[test]
fn new_drive_files_have_their_space() {
    use std::os::unix::fs::MetadataExt;
    let directory = directory();
    let array = array_file(directory.path(), "raid1", 2);
    succeed(&["create", text(&array)]);
    for drive in ["d0.img", "d1.img"] {
        let about = std::fs::metadata(directory.path().join(drive)).expect("a drive");
        assert!(about.blocks() * 512 >= about.len(), "{drive} has {} blocks", about.blocks());
    }
}

/// That two of five drives held the log alone, and a RAID 5 set was of three, was to be found out from the space.
#[test]
fn create_says_which_drives_are_for_data_and_which_for_the_log() {
    let directory = directory();
    let at = directory.path();
    let named = array_text(at, "raid5", 5).replace("set_size = 5", "log_drives = [\"d3\", \"d4\"]");
    let told = succeed(&["create", text(&file(at, "array.toml", &named))]);
    assert!(
        told.contains("pool pool0: data in")
            && told.contains("sets of 3 drives on d0, d1, d2; a write log of"),
        "{told}"
    );
    assert!(told.contains(" on d3, d4, which hold nothing else\n"), "{told}");
    let both = named.replace("log_drives", "drives = [\"d*\"]\nlog_drives");
    let told = succeed(&["create", text(&file(at, "array.toml", &both)), "--force", "--yes"]);
    assert!(told.contains("sets of 5 drives on d0, d1, d2, d3, d4; a write log of"), "{told}");
    assert!(told.contains(" on d3, d4\n"), "{told}");
}

/// That a volume was larger than its pool, or a drive too small, was found by `create` alone.
#[test]
fn check_finds_what_create_would_refuse() {
    let directory = directory();
    let at = directory.path();
    let right = array_text(at, "raid1", 2);
    let volume = right.find("[[volume]]").expect("it has one");
    let large = format!("{}{}", &right[..volume], right[volume..].replacen("size = \"", "size = \"9", 1));
    let small = right.replacen("size = \"64MiB\"", "size = \"1MiB\"", 1);
    // It said "use a smaller chunklet", which does not work.
    let chunklet = right.replacen("raid = \"raid1\"", "raid = \"raid1\"\nchunklet = \"1MiB\"", 1);
    let nowhere = right.replacen("/d{n}.img", "/none/d{n}.img", 1);
    let refused = [
        (nowhere, "none/d0.img\": No such file"),
        (large, "volume \"lun0\""),
        (small, "drive \"d0\""),
        (chunklet, "increase pool.chunklet to 2MiB or more"),
    ];
    for (content, words) in refused {
        let array = file(at, "array.toml", &content);
        let before = contents(at);
        let told = ["tier0 create", "would refuse this file", words];
        refuse(&["check", text(&array)], 2, &told);
        assert_eq!(contents(at), before, "check has written something");
        refuse(&["create", text(&array)], 2, &[words]);
    }
    let array = file(at, "array.toml", &right);
    succeed(&["check", text(&array)]);
}

/// Of a file that `create` takes, neither the layout nor the capacity was told, and the exit code was that of a wrong file.
#[test]
fn check_is_a_dry_run_of_create() {
    let directory = directory();
    let at = directory.path();
    let plan =
        array_text(at, "raid5", 5).replace("set_size = 5", "set_size = 4\nspare_drives = 1\nlog = \"4MiB\"");
    let array = file(at, "array.toml", &plan);
    let before = contents(at);
    let told = succeed(&["check", text(&array)]);
    for words in [
        "the array does not exist yet; \"tier0 create",
        "files to be created: d0, d1, d2, d3, d4",
        "sets of 4 drives on d0, d1, d2, d3, d4, each with",
        "of spare space; a write log of 4MiB on d0, d1",
        "lun0",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let found = json(&["check", text(&array)]);
    assert_eq!((&found["state"], &found["refused"]), (&"not-created".into(), &false.into()), "{found}");
    assert_eq!(contents(at), before, "check has written something");
    let planned = &found["layout"]["pools"][0];
    let created = json(&["create", text(&array)]);
    for field in ["usable_bytes", "free_bytes", "promised_bytes", "overcommitted", "raid"] {
        assert_eq!(planned[field], created["pools"][0][field], "{field}");
    }
    assert_eq!(planned["volumes"][0]["size_bytes"], 24 << 20);
    assert_eq!(json(&["check", text(&array)])["state"], "not-served");
}

#[test]
fn check_tells_what_create_would_overwrite() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    std::fs::write(at.join("d1.img"), vec![1; 64 << 20]).expect("a drive that holds something");
    let before = contents(at);
    let told = run(&["check", text(&array)]);
    assert_eq!(told.code, Some(2), "{}", told.stderr);
    assert!(told.stdout.contains("would refuse") && told.stdout.contains("lun0"), "{}", told.stdout);
    assert!(
        told.stderr.contains("drive \"d1\" holds data") && told.stderr.contains("--force"),
        "{}",
        told.stderr
    );
    let found: serde_json::Value =
        serde_json::from_str(&run(&["check", text(&array), "--json"]).stdout).expect("JSON");
    assert_eq!(found["layout"]["overwrites"][0]["drive"], "d1", "{found}");
    assert_eq!(contents(at), before, "check has written something");
}

/// `check` refused files of modelled drives, of which nothing can be created.
#[test]
fn modelled_drives_are_laid_out_too() {
    let directory = directory();
    let plan = "[array]\nname = \"model\"\n[[drive]]\nname = \"d{n}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\n[[volume]]\nname = \"v\"\nsize = \"100GiB\"\n";
    let array = file(directory.path(), "model.toml", plan);
    let told = succeed(&["check", text(&array)]);
    assert!(told.contains("tier0 load") && told.contains("sets of 4 drives on d0, d1, d2, d3"), "{told}");
    let found = json(&["check", text(&array)]);
    assert_eq!(found["state"], "modelled");
    let usable = found["layout"]["pools"][0]["usable_bytes"].as_u64().expect("a size");
    assert!((200 << 30..300 << 30).contains(&usable), "two of four drives of 146 GB: {usable}");
    let memory = plan.replace("model = \"sas-15k-146gb-sff\"", "ram = \"64MiB\"").replace("100GiB", "24MiB");
    let found = json(&["check", text(&file(directory.path(), "memory.toml", &memory))]);
    assert_eq!(found["state"], "in-memory", "{found}");
}

/// A thin volume of 100 GiB on a few MiB was made without a word.
#[test]
fn overcommitment_is_told_when_it_is_made() {
    let directory = directory();
    let at = directory.path();
    let thin = array_text(at, "raid1", 2).replace("size = \"24MiB\"", "size = \"100GiB\"\nthin = true");
    let array = file(at, "array.toml", &thin);
    let is_told = |told: &str| told.contains("overcommitted") && told.contains("100GiB are promised");
    let checked = succeed(&["check", text(&array)]);
    assert!(is_told(&checked.replace("\n    ", " ")), "{checked}");
    assert_eq!(json(&["check", text(&array)])["layout"]["pools"][0]["overcommitted"], true);
    let created = run(&["create", text(&array), "--json"]);
    assert!(is_told(&created.stderr), "{}", created.stderr);
    let printed: serde_json::Value = serde_json::from_str(&created.stdout).expect("JSON");
    assert_eq!(printed["pools"][0]["overcommitted"], true);
    assert_eq!(printed["pools"][0]["promised_bytes"], 100_u64 << 30);
    let served = Served::start(&array, at);
    let create = ["volume", "create", text(&array), "more", "--size", "50GiB", "--thin", "--yes", "--json"];
    let made = run(&create);
    let told: serde_json::Value = serde_json::from_str(&made.stdout).expect("JSON");
    let note = told["notes"][0].as_str().expect("a note");
    assert!(note.contains("150GiB are promised"), "{note}");
    assert!(made.stderr.contains("150GiB are promised"), "{}", made.stderr);
    let status = run(&["status", text(&array)]).stdout;
    assert!(status.contains("150GiB are promised to volumes"), "{status}");
    served.stop();
    let thick = file(at, "thick.toml", &array_text(at, "raid1", 2).replace("/d{n}.img", "/t{n}.img"));
    assert!(!run(&["create", text(&thick)]).stderr.contains("overcommitted"));
}

/// A sparse file took writes until its file system was full, and it had not been told that it might.
#[test]
fn sparse_files_are_told() {
    let directory = directory();
    let at = directory.path();
    let array = array_file(at, "raid1", 2);
    let sparse = std::fs::File::create(at.join("d1.img")).expect("a file");
    sparse.set_len(64 << 20).expect("it is ours");
    drop(sparse);
    let told = run(&["create", text(&array)]);
    assert!(told.code == Some(0) && told.stderr.contains("drive d1 is a sparse file"), "{}", told.stderr);
    assert!(told.stderr.contains("fallocate"), "{}", told.stderr);
}

/// What kind of drive it is, the file says, or else the device; what joined as something stays that.
#[test]
fn a_drive_is_of_the_class_that_is_said() {
    let directory = directory();
    let said = |class: &str| {
        array_text(directory.path(), "raid1", 2).replacen(
            "size =",
            &format!("class = \"{class}\"\nsize ="),
            1,
        )
    };
    let array = file(directory.path(), "array.toml", &said("fast"));
    refuse(&["create", text(&array)], 2, &["drive.class", "\"fast\"", "\"flash\" or \"disk\""]);
    let array = file(directory.path(), "array.toml", &said("flash"));
    succeed(&["create", text(&array)]);
    let served = Served::start(&array, directory.path());
    let new = directory.path().join("n.img");
    for (name, class) in [("n", "disk"), ("m", "flash")] {
        let new = new.with_file_name(name);
        let add = ["drive", "add", text(&array), "--name", name, "--path", text(&new), "--size", "64MiB"];
        refuse(&[&add[..], &["--class", "ram"]].concat(), 2, &["\"ram\"", "\"flash\" or \"disk\""]);
        succeed(&[&add[..], &["--class", class]].concat());
    }
    let classes = |facts: &serde_json::Value| -> Vec<String> {
        let drives = facts["pools"][0]["drives"].as_array().expect("drives").clone();
        drives.iter().map(|drive| drive["class"].as_str().expect("a class").to_owned()).collect()
    };
    assert_eq!(classes(&json(&["config", text(&array)])), ["flash", "flash", "disk", "flash"]);
    // The server has it open still, and what is said of it now counts.
    succeed(&["drive", "remove", text(&array), "n", "--yes"]);
    let known = || classes(&json(&["config", text(&array)]));
    let has_left = (0..1000).any(|_| known().len() == 3);
    assert!(has_left, "{:?}", known());
    let new = new.with_file_name("n");
    let again = ["drive", "add", text(&array), "--name", "n", "--path", text(&new), "--class", "flash"];
    succeed(&[&again[..], &["--force", "--yes"]].concat());
    assert_eq!(known(), ["flash"; 4]);
    served.stop();
    let array = file(directory.path(), "array.toml", &said("disk"));
    let told = run(&["check", text(&array)]);
    let told = told.stdout;
    assert!(told.contains("class is flash, set when it was added, but the array file has disk"), "{told}");
}

/// The write log moves to drives that were added while hosts write, and lies there at the next start.
#[test]
fn the_write_log_moves_to_drives_that_were_added() {
    let scene = Scene::of("raid1", 2);
    let array = scene.array().to_owned();
    for name in ["n0", "n1"] {
        let path = scene.at(name);
        let size = ["--size", "64MiB", "--class", "flash"];
        succeed(&[&["drive", "add", &array, "--name", name, "--path", text(&path)], &size[..]].concat());
    }
    for (drives, words) in [
        ("n0", &["2 drives", "different"][..]),
        ("n0,n0", &["2 drives", "different"]),
        ("n0,none", &["\"none\"", "status"]),
    ] {
        refuse(&["pool", "log", &array, "--drives", drives], 2, words);
    }
    let write = ["--read", "0", "--ios", "2000", "--seed", "4", "--verify", "--overwrite"];
    let mut load = tier0();
    load.args(["load", scene.uri()]).args(write).stdout(Stdio::null());
    let load = load.spawn().expect("it starts");
    let told = succeed(&["pool", "log", &array, "--drives", "n0,n1"]);
    assert!(told.contains("to drives n0, n1"), "{told}");
    let log = |status: &serde_json::Value| status["pools"][0]["log"]["drives"].clone();
    scene.status_when(|status| log(status) == serde_json::json!(["n0", "n1"]));
    let loaded = load.wait_with_output().expect("it ends");
    assert!(loaded.status.success());
    let status = scene.settled();
    let holds = |name: &str| {
        let drives = status["pools"][0]["drives"].as_array().expect("drives");
        let drive = drives.iter().find(|drive| drive["name"] == name).expect("it is there").clone();
        [drive["holds_log"] == true, drive["holds_metadata"] == true]
    };
    assert_eq!([holds("n0"), holds("n1")], [[true, true]; 2], "metadata move to flash by themselves");
    assert!(!holds("d0")[0] && !holds("d1")[0]);
    let directory = scene.stop_and_keep();
    let served = Served::start(std::path::Path::new(&array), directory.path());
    assert_eq!(log(&json(&["status", &array])), serde_json::json!(["n0", "n1"]));
    served.stop();
}
