//! The server as its owner sees it.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use tier0_block::BlockTarget;
use tier0_stats::IoStats;
use tier0_target::{Connection, ConnectionCounts, Ended, ExportOptions, Protocol, Target, User};
use tier0_world::World;
use tier0_world::net::{PeerAddress, Socket};

use super::connection;
use super::error::ServerError;
use super::exports::describe;
use super::options::ServerOptions;

/// A target that speaks NBD; clones share it.
pub struct Server<T> {
    target: Target<T>,
    protocol: Rc<Nbd>,
}

struct Nbd {
    options: ServerOptions,
}

impl<T: BlockTarget + 'static> Protocol<T> for Nbd {
    fn serve(&self, connection: Connection<T>) -> Pin<Box<dyn Future<Output = Ended>>> {
        Box::pin(connection::serve(connection, self.options.clone()))
    }
}

impl<T> Clone for Server<T> {
    fn clone(&self) -> Server<T> {
        Server { target: self.target.clone(), protocol: self.protocol.clone() }
    }
}

impl<T: BlockTarget + 'static> Server<T> {
    /// A server without exports that listens nowhere yet.
    ///
    /// # Panics
    /// Where the options contradict each other: a reserve below one piece, or a pool below one payload.
    pub fn new(world: &World, options: ServerOptions) -> Server<T> {
        options.assert_sensible();
        Server { target: Target::new(world, options.target.clone()), protocol: Rc::new(Nbd { options }) }
    }

    /// Offers `target` under a name, from now on.
    ///
    /// # Errors
    /// Where the name is taken, or NBD cannot tell of it.
    pub fn add_export(&self, options: ExportOptions, target: T) -> Result<(), ServerError> {
        self.check(&options, &target)?;
        Ok(self.target.add_export(options, target)?)
    }

    /// Offers `target` under a name, in the place of what is offered under it, if anything is. Clients that are connected
    /// keep what they have been told.
    ///
    /// # Errors
    /// Where NBD cannot tell of it.
    pub fn replace_export(&self, options: ExportOptions, target: T) -> Result<(), ServerError> {
        self.check(&options, &target)?;
        self.target.replace_export(options, target);
        Ok(())
    }

    /// Offers `target` under the name of `options`, and no more under the name `from`. Clients that use that export stay
    /// connected; one whose handshake still goes on with the old name is sent away.
    ///
    /// # Errors
    /// Where NBD cannot tell of it.
    pub fn rename_export(&self, from: &str, options: ExportOptions, target: T) -> Result<(), ServerError> {
        self.check(&options, &target)?;
        self.target.rename_export(from, options, target);
        Ok(())
    }

    fn check(&self, options: &ExportOptions, target: &T) -> Result<(), ServerError> {
        describe(options, target, self.protocol.options.payload_bytes_max).map(|_| ())
    }

    /// Connections that use an export.
    pub fn users_of(&self, name: &str) -> usize {
        self.target.users_of(name)
    }

    /// Connections that use an export, by their numbers.
    pub fn users(&self) -> Vec<User> {
        self.target.users()
    }

    /// By export: what connections asked of it that have ended.
    pub fn ended_users(&self) -> Vec<(String, IoStats)> {
        self.target.ended_users()
    }

    /// Withdraws an export and waits until no connection uses it.
    pub async fn withdraw(&self, name: &str) {
        self.target.withdraw(name).await;
    }

    /// Withdraws an export: its connections answer what is in flight and close. False if there is none.
    pub fn remove_export(&self, name: &str) -> bool {
        self.target.remove_export(name)
    }

    /// The exports' names.
    pub fn export_names(&self) -> Vec<String> {
        self.target.export_names()
    }

    /// How many connections there are and have been, for any thread.
    pub fn counts(&self) -> &Arc<ConnectionCounts> {
        self.target.counts()
    }

    /// Has it told there when connections are closed for want of places, a sentence at most twice in ten seconds.
    pub fn tell_of_crowding(&self, listener: impl Fn(String) + 'static) {
        self.target.tell_of_crowding(listener);
    }

    /// Connections that are open.
    pub fn connection_count(&self) -> usize {
        self.target.connection_count()
    }

    /// Listens on `address` and serves who connects. Returns where it listens, with the port that the system chose
    /// where port 0 was asked for.
    ///
    /// # Errors
    /// Where it cannot be listened on.
    pub fn listen(&self, address: &PeerAddress) -> Result<PeerAddress, ServerError> {
        Ok(self.target.listen(address, &self.protocol)?)
    }

    /// Listens on `address` and hands who connects to `take`, which may serve it here or give it to a server in
    /// another thread. Returns where it listens.
    ///
    /// # Errors
    /// Where it cannot be listened on.
    pub fn listen_for(
        &self,
        address: &PeerAddress,
        take: impl Fn(Socket) + 'static,
    ) -> Result<PeerAddress, ServerError> {
        Ok(self.target.listen_for(address, take)?)
    }

    /// Serves a connected socket in a task of its own.
    pub fn serve(&self, socket: Socket) {
        self.target.serve(socket, &self.protocol);
    }

    /// Stops listening, lets every connection answer what is in flight, and closes it.
    pub async fn shut_down(&self) {
        self.target.shut_down().await;
    }
}
