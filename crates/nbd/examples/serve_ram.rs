//! Serves a RAM drive on a unix socket until it is killed: `serve_ram SOCKET SIZE`, as in
//! `cargo run --release -p tier0-nbd --example serve_ram -- /tmp/ram.sock 1GiB`.

use tier0_drive::{DriveHandle, RamMedium};
use tier0_nbd::server::{ExportOptions, Server, ServerOptions};
use tier0_units::ByteCount;
use tier0_world::net::PeerAddress;
use tier0_world::{RealOptions, RealRuntime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(socket), Some(size)) = (arguments.next(), arguments.next()) else {
        return Err("give a socket's path and a size, as in /tmp/ram.sock 1GiB".into());
    };
    let runtime = RealRuntime::new(&RealOptions::default())?;
    let world = runtime.world().clone();
    let medium = RamMedium::new("ram", size.parse::<ByteCount>()?)?;
    let server = Server::new(&world, ServerOptions::default());
    server.add_export(ExportOptions::default(), DriveHandle::new(medium.open(&world)))?;
    server.listen(&PeerAddress::Unix(socket.into()))?;
    runtime.run(std::future::pending::<()>());
    Ok(())
}
