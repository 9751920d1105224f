//! A real database on a real array: PostgreSQL on ext4 on a loop device on nbdfuse on tier0's NBD export of a RAID 10
//! volume. Load, restart of everything, the same rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    Running, create, describe, directory, find, run, serve, skipped, succeeded, uri, wait_until,
};

const PROGRAMS: [&str; 9] =
    ["nbdfuse", "losetup", "mkfs.ext4", "mount", "umount", "runuser", "initdb", "pgbench", "pg_amcheck"];

/// The volume as a mounted file system.
struct Mounted {
    fuse: Option<Running>,
    fuse_directory: PathBuf,
    device: String,
    mount_point: PathBuf,
}

impl Mounted {
    fn new(directory: &Path, fresh: bool) -> Mounted {
        let (fuse_directory, mount_point) = (directory.join("fuse"), directory.join("mnt"));
        std::fs::create_dir_all(&fuse_directory).expect("a directory");
        std::fs::create_dir_all(&mount_point).expect("a directory");
        let mut nbdfuse = Command::new(find("nbdfuse").expect("installed"));
        nbdfuse.arg(fuse_directory.join("lun0")).arg(uri(directory));
        let fuse = Running::start(&mut nbdfuse, &directory.join("nbdfuse.log"));
        let file = fuse_directory.join("lun0");
        wait_until("nbdfuse mounting", || file.is_file());
        let device = run("losetup", &["--find", "--show", &file.display().to_string()]).trim().to_owned();
        let mounted = Mounted { fuse: Some(fuse), fuse_directory, device, mount_point };
        if fresh {
            run("mkfs.ext4", &["-q", &mounted.device]);
        }
        run("mount", &[&mounted.device, &mounted.mount_point.display().to_string()]);
        mounted
    }

    /// Unmounts everything in order; panics if anything refuses.
    fn unmount(mut self) {
        run("umount", &[&self.mount_point.display().to_string()]);
        run("losetup", &["--detach", &self.device]);
        run("umount", &[&self.fuse_directory.display().to_string()]);
        self.fuse.take().expect("mounted").ends();
    }
}

impl Drop for Mounted {
    /// After a failure: whatever is still mounted goes, so that the next run finds a clean machine.
    fn drop(&mut self) {
        if self.fuse.is_some() {
            let quietly = |program: &str, arguments: &[&str]| {
                let _ = Command::new(find(program).expect("installed")).args(arguments).output();
            };
            quietly("umount", &["--lazy", &self.mount_point.display().to_string()]);
            quietly("losetup", &["--detach", &self.device]);
            quietly("umount", &["--lazy", &self.fuse_directory.display().to_string()]);
        }
    }
}

/// A PostgreSQL cluster in a directory of the mounted volume.
struct Postgres {
    data: String,
    socket: String,
}

impl Postgres {
    fn of(mounted: &Mounted, directory: &Path) -> Postgres {
        let data = mounted.mount_point.join("data").display().to_string();
        Postgres { data, socket: directory.join("pg").display().to_string() }
    }

    /// Runs one of PostgreSQL's programs as its user.
    fn program(&self, program: &str, arguments: &[&str]) -> String {
        let path = find(program).expect("installed").display().to_string();
        let mut command = Command::new(find("runuser").expect("installed"));
        command.args(["-u", "postgres", "--", &path]).args(arguments).current_dir("/");
        succeeded(program, &command.output().expect("it starts"))
    }

    fn create(&self) {
        for directory in [&self.data, &self.socket] {
            std::fs::create_dir_all(directory).expect("a directory");
            run("chown", &["postgres", directory]);
        }
        self.program("initdb", &["--pgdata", &self.data, "--data-checksums", "--auth=trust", "--no-locale"]);
    }

    fn start(&self) {
        let log = format!("{}/log", self.socket);
        let options = format!("-c listen_addresses='' -c unix_socket_directories={}", self.socket);
        let arguments =
            ["--pgdata", &self.data, "--wait", "--timeout=60", "--log", &log, "--options", &options, "start"];
        self.program("pg_ctl", &arguments);
    }

    fn stop(&self) {
        self.program("pg_ctl", &["--pgdata", &self.data, "--wait", "--mode=fast", "stop"]);
    }

    fn query(&self, sql: &str) -> String {
        self.program(
            "psql",
            &["--host", &self.socket, "--tuples-only", "--no-align", "--command", sql, "postgres"],
        )
    }

    fn counts(&self) -> Vec<String> {
        let tables = ["accounts", "branches", "tellers", "history"];
        let mut counts: Vec<String> =
            tables.iter().map(|table| self.query(&format!("select count(*) from pgbench_{table}"))).collect();
        counts.push(self.query("select sum(abalance) from pgbench_accounts"));
        counts.push(self.query("select sum(delta) from pgbench_history"));
        counts
    }
}

#[test]
fn postgresql_keeps_its_rows_on_a_raid10_volume() {
    if skipped("postgresql_keeps_its_rows_on_a_raid10_volume", true, &PROGRAMS) {
        return;
    }
    let directory = directory();
    // PostgreSQL's user must be able to reach its socket and the mount point.
    for path in directory.path().ancestors().take_while(|path| path.starts_with(env!("CARGO_TARGET_TMPDIR")))
    {
        run("chmod", &["a+rx", &path.display().to_string()]);
    }
    let array = describe(directory.path(), "raid10", 4, 4, "400MiB");
    create(&array);

    let server = serve(&array);
    let mounted = Mounted::new(directory.path(), true);
    let postgres = Postgres::of(&mounted, directory.path());
    postgres.create();
    postgres.start();
    postgres.program(
        "pgbench",
        &["--host", &postgres.socket, "--initialize", "--scale=2", "--quiet", "postgres"],
    );
    let load = ["--host", &postgres.socket, "--client=4", "--transactions=250", "--no-vacuum", "postgres"];
    let report = postgres.program("pgbench", &load);
    assert!(report.contains("1000/1000"), "all transactions were processed:\n{report}");
    let before = postgres.counts();
    assert_eq!(before[0].trim(), "200000");
    assert_eq!(before[3].trim(), "1000");
    assert_eq!(before[4], before[5], "what the accounts hold is what the history says");
    postgres.stop();
    mounted.unmount();
    server.stop();

    let server = serve(&array);
    let mounted = Mounted::new(directory.path(), false);
    postgres.start();
    assert_eq!(postgres.counts(), before);
    postgres.query("create extension if not exists amcheck");
    postgres.program("pg_amcheck", &["--host", &postgres.socket, "--heapallindexed", "postgres"]);
    postgres.stop();
    mounted.unmount();
    server.stop();
}
