//! What an NBD client sends: the handshake, then requests with payload.
//!
//! Every input is read twice, once whole and once in pieces, as sockets deliver it: what the server answers and sees must
//! be the same.

use tier0_nbd::protocol::handshake::{ClientGoal, ClientHandshake, ClientStep, ServerHandshake, ServerStep};
use tier0_nbd::protocol::transmission::{Command, Request, RequestEvent, RequestKind, RequestStream};
use tier0_nbd::protocol::{Errno, ExportInfo};

use super::pieces::{Pieces, assert_progress};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "nbd-server",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 8192,
    inputs_in_tests: 4000,
    // What is noted of each event and of the answers to a list: an option of 16 bytes lists both exports, in 200 bytes,
    // and vectors double while they grow.
    memory_bytes_max: (256 << 10, 128),
};

/// The longest payload that the server takes here.
const PAYLOAD_BYTES_MAX: u32 = 1 << 20;

fn exports() -> [ExportInfo; 2] {
    let mut second = ExportInfo::new("second", 1 << 30, 4096);
    second.description = "another one".to_owned();
    second.features.read_only = true;
    [ExportInfo::new("lun0", 64 << 20, 512), second]
}

fn seeds() -> Vec<Vec<u8>> {
    let exports = exports();
    let go = |structured_replies, block_status| ClientGoal::Go {
        export: "lun0".to_owned(),
        structured_replies,
        block_status,
    };
    let mut with_requests = client_bytes(go(true, true), &exports);
    for (kind, offset, length) in [
        (RequestKind::Read, 0, 8192),
        (RequestKind::Write, 4096, 512),
        (RequestKind::Flush, 0, 0),
        (RequestKind::Trim, 1 << 20, 4096),
        (RequestKind::WriteZeroes, 0, 1 << 20),
        (RequestKind::BlockStatus, 0, 64 << 20),
        (RequestKind::Disconnect, 0, 0),
    ] {
        let request = Request::new(kind, offset ^ 77, offset, length);
        with_requests.extend(request.to_wire());
        with_requests.resize(with_requests.len() + if kind == RequestKind::Write { 512 } else { 0 }, 0xab);
    }
    vec![with_requests, client_bytes(go(false, false), &exports), client_bytes(ClientGoal::List, &exports)]
}

/// What a well-behaved client sends to reach its goal.
fn client_bytes(goal: ClientGoal, exports: &[ExportInfo]) -> Vec<u8> {
    let (mut client, mut server) = (ClientHandshake::new(goal), ServerHandshake::default());
    let mut to_client = ServerHandshake::greeting().to_vec();
    let (mut sent, mut unread) = (Vec::new(), 0);
    loop {
        let (used, step) = client.advance(&to_client, &mut sent).expect("an honest server");
        to_client.drain(..used);
        match step {
            ClientStep::Continue => {}
            ClientStep::NeedMore => {
                let (used, _) =
                    server.advance(&sent[unread..], exports, &mut to_client).expect("an honest client");
                unread += used;
            }
            ClientStep::Ready(_) | ClientStep::Listed(_) => return sent,
            ClientStep::Refused(refusal) => unreachable!("{refusal}"),
        }
    }
}

fn run(bytes: &[u8]) -> bool {
    let whole = serve(Pieces::whole(bytes));
    for pieces in Pieces::several(bytes) {
        let cut = serve(pieces);
        assert!(whole == cut, "it matters how the stream is cut: {whole:?} against {cut:?}");
    }
    matches!(whole.end.as_deref(), None | Some(ABORTED | DISCONNECTED))
}

/// The ends of a connection that are in order.
const ABORTED: &str = "aborted";
const DISCONNECTED: &str = "disconnected";

/// What the server made of a stream.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    answers: Vec<u8>,
    requests: Vec<(Request, Result<Command, Errno>)>,
    payload: Vec<u8>,
    /// Why the connection was closed.
    end: Option<String>,
}

fn serve(mut pieces: Pieces<'_>) -> Outcome {
    let exports = exports();
    let (mut handshake, mut outcome) = (ServerHandshake::default(), Outcome::default());
    let mut received = Vec::new();
    let session = loop {
        match handshake.advance(&received, &exports[..], &mut outcome.answers) {
            Ok((used, step)) => {
                assert_progress(used, received.len(), step == ServerStep::NeedMore);
                received.drain(..used);
                match step {
                    ServerStep::Continue => {}
                    ServerStep::Transmission(session) => break session,
                    ServerStep::Aborted => return outcome.ended(ABORTED),
                    ServerStep::NeedMore if !pieces.receive(&mut received) => return outcome,
                    ServerStep::NeedMore => {}
                }
            }
            Err(error) => return outcome.ended(error),
        }
    };
    let export = &exports[session.export];
    let mut stream = RequestStream::new(PAYLOAD_BYTES_MAX);
    loop {
        let mut input = &received[..];
        loop {
            match stream.next(&mut input) {
                Ok(None) => break,
                Ok(Some(RequestEvent::Disconnect)) => return outcome.ended(DISCONNECTED),
                Ok(Some(RequestEvent::Payload(payload))) => outcome.payload.extend_from_slice(payload),
                Ok(Some(RequestEvent::Request(request))) => {
                    let command =
                        Command::check(&request, export, session.structured_replies, session.block_status);
                    if let Ok(command) = command {
                        assert_within(&command, export);
                    }
                    outcome.requests.push((request, command));
                }
                Err(error) => return outcome.ended(error),
            }
        }
        let used = received.len() - input.len();
        received.drain(..used);
        if !pieces.receive(&mut received) {
            return outcome;
        }
    }
}

impl Outcome {
    fn ended(mut self, why: impl ToString) -> Outcome {
        self.end = Some(why.to_string());
        self
    }
}

/// What may run lies within the export.
fn assert_within(command: &Command, export: &ExportInfo) {
    let (offset, length) = match *command {
        Command::Flush => return,
        Command::Read { offset, length, .. }
        | Command::Write { offset, length, .. }
        | Command::Trim { offset, length, .. }
        | Command::WriteZeroes { offset, length, .. }
        | Command::Cache { offset, length }
        | Command::BlockStatus { offset, length, .. } => (offset, length),
    };
    assert!(offset + u64::from(length) <= export.size_bytes, "{command:?} leaves the export");
    if let Command::Read { .. } | Command::Write { .. } = command {
        assert!(length <= export.block_sizes.maximum, "{command:?} is too long");
    }
}
