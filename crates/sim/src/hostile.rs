//! Clients that behave badly: they ask and do not listen, say half of what they announce, and vanish.
//!
//! They read, or begin writes of which never as much comes as the smallest piece has, so no sectors change.

use tier0_nbd::client::{ClientOptions, enter};
use tier0_nbd::protocol::NbdUri;
use tier0_nbd::protocol::transmission::{Request, RequestKind};
use tier0_units::Nanos;
use tier0_world::net::Socket;
use tier0_world::{Gather, Random, World};

use crate::config::{log_uniform, pick};

/// How many come, one after the other.
const CALLERS: usize = 20;
/// Less than the smallest piece of a write.
const HALF_BYTES_MAX: u64 = 4_000;

/// Has a client that behaves badly come to `uri` now and then.
pub(crate) fn bother(world: &World, uri: NbdUri) {
    let calling = {
        let world = world.clone();
        async move {
            let mut random = world.random(0xbad);
            for _ in 0..CALLERS {
                world.sleep(Nanos(log_uniform(100_000, 100_000_000, &mut random))).await;
                let (words, stays) =
                    (draw_words(&mut random), log_uniform(10_000, 60_000_000_000, &mut random));
                let visitor = visit(world.clone(), uri.clone(), words, Nanos(stays));
                world.spawn(visitor).detach();
            }
        }
    };
    world.spawn(calling).detach();
}

/// Many reads, half a write, or half a request.
fn draw_words(random: &mut Random) -> Vec<u8> {
    // Replies are all the same to a client that does not listen.
    let request = |kind, length| Request::new(kind, 4, 0, length).to_wire();
    match pick(&[0, 1, 2], random) {
        0 => request(RequestKind::Read, 64 << 10).repeat(log_uniform(1, 500, random) as usize),
        1 => {
            let payload = random.below(HALF_BYTES_MAX) as usize;
            let mut words = request(RequestKind::Write, 64 << 10).to_vec();
            words.resize(words.len() + payload, 0x25);
            words
        }
        _ => {
            let words = request(RequestKind::Read, 512);
            words[..random.below(words.len() as u64) as usize].to_vec()
        }
    }
}

/// Connects, says `words`, stays for a while without listening and goes. Whatever fails on the way ends the visit.
async fn visit(world: World, uri: NbdUri, words: Vec<u8>, stays: Nanos) {
    let Ok((socket, ..)) = enter(&world, &uri, &ClientOptions::default()).await else { return };
    say(&socket, &words).await;
    world.sleep(stays).await;
}

async fn say(socket: &Socket, words: &[u8]) {
    let mut gather = Box::new(Gather::new());
    gather.push_header(words);
    // The connection may be dead, and then nothing matters.
    let _ = socket.send(gather).await;
}
