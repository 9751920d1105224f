//! A MariaDB server in a directory: made, started, asked, stopped. It listens on a unix socket only.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::ProgramError;
use crate::clock::wait_until;
use crate::process::Running;
use crate::tools::{command, output, run, succeeded};

/// The programs that this takes, with the package that brings them.
pub const TOOLS: [(&str, &str); 4] = [
    ("mariadbd", "mariadb-server-core"),
    ("mariadb-install-db", "mariadb-server-core"),
    ("my_print_defaults", "mariadb-client-core"),
    ("mariadb", "mariadb-client-core"),
];

/// The longest that a start may take.
const START_SECONDS_MAX: u32 = 60;

/// What the server is told: little memory, so that it reads its files, and no page cache below it.
const SETTINGS: [&str; 6] = [
    "--skip-networking",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=8M",
    "--innodb-log-file-size=16M",
    "--innodb-flush-method=O_DIRECT",
    "--innodb-doublewrite=OFF",
];

/// A server's directory.
pub struct MariaDb {
    data: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    user: String,
}

impl MariaDb {
    /// The server whose data, socket and log lie in `directory`.
    pub fn of(directory: &Path) -> Result<MariaDb, ProgramError> {
        // It runs as the user who starts it; of root it wants to hear so.
        let user = run("id", &["--user", "--name"])?.trim().to_owned();
        let at = |name: &str| directory.join(name);
        Ok(MariaDb { data: at("mariadb"), socket: at("mariadb.sock"), log: at("mariadb.log"), user })
    }

    /// Makes it.
    pub fn create(&self) -> Result<(), ProgramError> {
        let mut install = command("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        install.args([format!("--user={}", self.user), format!("--datadir={}", self.data.display())]);
        output("mariadb-install-db", &mut install)?;
        Ok(())
    }

    /// Starts it with further options, and waits until it answers.
    pub fn start(&self, options: &[&str]) -> Result<Running, ProgramError> {
        let mut server = command("mariadbd");
        server.args(["--no-defaults".to_owned(), format!("--user={}", self.user)]);
        server.args([
            format!("--datadir={}", self.data.display()),
            format!("--socket={}", self.socket.display()),
            format!("--pid-file={}", self.data.join("pid").display()),
        ]);
        server.args(SETTINGS).args(options);
        let mut process = Running::start("mariadbd", &mut server, &self.log)?;
        wait_until("MariaDB accepting connections", START_SECONDS_MAX, || {
            if let Some(status) = process.status()? {
                let told = format!("mariadbd ended with {status}; see {}", self.log.display());
                return Err(ProgramError::Failed(told));
            }
            Ok(self.query("select 1").is_ok())
        })?;
        Ok(process)
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What statements answer, one row a line.
    pub fn query(&self, sql: &str) -> Result<String, ProgramError> {
        let mut client = command("mariadb");
        client.args(["--no-defaults", "--user=root", "--skip-column-names", "--batch"]);
        client.arg(format!("--socket={}", self.socket.display()));
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let system = || ProgramError::system("mariadb cannot be started".to_owned());
        let mut client = client.spawn().map_err(system())?;
        if let Some(mut input) = client.stdin.take() {
            // A client that fails before it has read all says why itself.
            let _ = input.write_all(sql.as_bytes());
        }
        Ok(succeeded("mariadb", &client.wait_with_output().map_err(system())?)?.trim().to_owned())
    }
}
