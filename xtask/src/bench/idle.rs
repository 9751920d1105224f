//! `cargo xtask bench idle`: what an idle server costs, without a connection and with one that asks nothing.

use std::time::Duration;

use clap::Args;
use tier0_nbd::client::{Client, ClientOptions};
use tier0_nbd::protocol::NbdUri;
use tier0_units::Nanos;
use tier0_world::{RealOptions, RealRuntime};

use super::{judge_at_most, scratch, write};
use crate::error::BenchError;
use crate::server::{Address, Server, build_tier0, tier0};
use crate::{clock, machine};

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds to look at each state
    #[arg(long, default_value_t = 10)]
    seconds: u32,
}

/// The share of a core that is aimed at, in percent.
const PERCENT_MOST: f64 = 1.0;

/// Runs it and prints.
pub(crate) fn run(options: &Options) -> Result<(), BenchError> {
    let program = build_tier0()?;
    let directory = scratch()?;
    let (socket, array) = (directory.path().join("s"), directory.path().join("array.toml"));
    let text = format!(
        "[array]\nname = \"bench\"\n[[drive]]\nname = \"ram{{n}}\"\ncount = 4\nram = \"256MiB\"\n\
         [[pool]]\nname = \"pool0\"\nraid = \"raid10\"\nset_size = 4\n\
         [[volume]]\nname = \"lun0\"\nsize = \"256MiB\"\n[nbd]\nlisten = [\"unix:{}\"]\n",
        socket.display()
    );
    write(&array, &text)?;
    let server = tier0(&program, &array, &Address::Unix(socket))?;
    println!("{}", machine::describe());
    let time = Duration::from_secs(u64::from(options.seconds));
    tell("without a connection", percent(&server, || clock::pause(time))?);
    let uri: NbdUri = server.uri().parse().expect("the server's own address");
    let runtime = RealRuntime::new(&RealOptions::default())
        .map_err(BenchError::system("a real world cannot be opened"))?;
    let world = runtime.world().clone();
    let client = runtime.run({
        let world = world.clone();
        async move { Client::connect(&world, &uri, &ClientOptions::default()).await }
    });
    let client = client.map_err(|error| BenchError::Failed(error.to_string()))?;
    let idle = percent(&server, || {
        let wait = Nanos(time.as_nanos() as u64);
        runtime.run(async move { world.sleep(wait).await });
    })?;
    drop(client);
    tell("with an idle connection", idle);
    Ok(())
}

/// What `server` uses of a core while `wait` goes on.
fn percent(server: &Server, wait: impl FnOnce()) -> Result<f64, BenchError> {
    let (cpu, wall) = (server.cpu_s()?, clock::wall_s());
    wait();
    Ok((server.cpu_s()? - cpu) / (clock::wall_s() - wall) * 100.0)
}

fn tell(state: &str, percent: f64) {
    let judged = judge_at_most(percent, PERCENT_MOST);
    println!("{state}: {percent:.2} % of a core; aimed at: < {PERCENT_MOST} %: {judged}");
}
