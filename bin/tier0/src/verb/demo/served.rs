//! An array that is served while something is done with it.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use tier0_array::open::OpenArray;
use tier0_description::Description;
use tier0_world::net::PeerAddress;
use tier0_world::real::Backend;

use crate::failure::Failure;
use crate::serving::Service;
use crate::signals::Signals;
use crate::sockets::Accesses;
use crate::troubles::Troubles;

/// How often to look whether the server has ended instead of listening.
const LOOK: Duration = Duration::from_millis(50);

/// What happens to the server once the work is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// It ends.
    End,
    /// It serves on until a signal comes. It ends where the work has failed.
    ServeOn,
}

/// Serves an array, does `work` with the addresses at which it listens, and waits until the server has ended. With
/// `control`, the administration's verbs are answered there.
///
/// # Errors
/// Those of the server and of the work. [`Failure::Interrupted`] where a signal came before the work was done.
pub(super) fn while_served<T>(
    array: &OpenArray,
    description: &Description,
    control: Option<PathBuf>,
    signals: &Signals,
    then: Then,
    work: impl FnOnce(&[PeerAddress]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (tell, told) = mpsc::channel();
    let service = Service::new(
        array,
        &description.listen,
        control,
        Accesses::of(description)?,
        signals.clone(),
        Troubles::of(&description.name),
        move |bound| {
            // Who asked has stopped listening where it has ended.
            let _ = tell.send(bound.to_vec());
        },
    );
    std::thread::scope(|scope| {
        let server = std::thread::Builder::new().name("tier0-server".into());
        let server = server.spawn_scoped(scope, || service.run(array, Backend::Auto)).map_err(|error| {
            Failure::Run(format!("cannot start a thread: {error}; raise the limit of processes"))
        })?;
        let done = match wait_for(&told, || server.is_finished()) {
            Some(bound) => work(&bound),
            None => Err(Failure::Interrupted),
        };
        if then == Then::End || done.is_err() {
            service.stop();
        }
        let served = server.join().expect("the server does not panic");
        match done {
            // A signal that ends the server takes it away from the work. What the server failed for is the cause.
            Err(Failure::Run(_) | Failure::Interrupted) if signals.raised() => {
                served.and(Err(Failure::Interrupted))
            }
            done => served.and(done),
        }
    })
}

/// What `told` brings, or nothing once `ended`.
fn wait_for<T>(told: &mpsc::Receiver<T>, ended: impl Fn() -> bool) -> Option<T> {
    loop {
        match told.recv_timeout(LOOK) {
            Ok(value) => return Some(value),
            Err(_) if ended() => return None,
            Err(_) => {}
        }
    }
}
