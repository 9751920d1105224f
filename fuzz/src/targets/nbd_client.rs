//! What an NBD server sends: the handshake, then replies to requests in flight.
//!
//! The first byte says what the client wants; the rest is the server's. It is read whole and in pieces, with the same
//! outcome.

use tier0_nbd::protocol::ExportInfo;
use tier0_nbd::protocol::handshake::{
    ClientGoal, ClientHandshake, ClientStep, Negotiated, ServerHandshake, ServerStep,
};
use tier0_nbd::protocol::transmission::{
    BASE_ALLOCATION_ID, Extent, InFlight, PendingReply, ReplyEvent, ReplyStream, Request, RequestKind,
    put_block_status, put_data_header, put_done, put_error_at, put_hole, put_simple,
};

use super::pieces::{Pieces, assert_progress};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "nbd-client",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 8192,
    inputs_in_tests: 4000,
    // A listed export takes 48 bytes and its texts in memory, and 28 bytes and its texts on the wire.
    memory_bytes_max: (256 << 10, 32),
};

/// Length of the requests in flight.
const REQUEST_BYTES: u32 = 4096;

/// The requests in flight: cookies are their places.
fn requests() -> [Request; 5] {
    use RequestKind::{BlockStatus, Flush, Read, Write};
    let request = |kind, cookie| Request::new(kind, cookie, cookie * 8192, REQUEST_BYTES);
    [request(Read, 0), request(Read, 1), request(Write, 2), request(BlockStatus, 3), request(Flush, 4)]
}

fn goal(choice: u8) -> ClientGoal {
    if choice.is_multiple_of(4) {
        return ClientGoal::List;
    }
    let (structured_replies, block_status) = (choice.is_multiple_of(2), choice % 4 == 2);
    ClientGoal::Go { export: "lun0".to_owned(), structured_replies, block_status }
}

fn seeds() -> Vec<Vec<u8>> {
    let exports = [ExportInfo::new("lun0", 64 << 20, 512), ExportInfo::new("second", 4096, 512)];
    let mut seeds: Vec<Vec<u8>> = (0..3).map(|choice| server_bytes(choice, &exports)).collect();
    // The second is the one without structured replies, the third the one with all there is.
    let data = [0x5a; REQUEST_BYTES as usize];
    let simple = &mut seeds[1];
    put_simple(simple, 0, None);
    simple.extend(data);
    put_simple(simple, 2, None);
    let structured = &mut seeds[2];
    put_data_header(structured, 0, 0, 1024, false);
    structured.extend(&data[..1024]);
    put_hole(structured, 0, 1024, REQUEST_BYTES - 1024, false);
    put_done(structured, 0);
    let extents = [Extent::allocated(1024), Extent::unallocated(3072)];
    put_block_status(structured, 3, BASE_ALLOCATION_ID, &extents);
    put_error_at(structured, 1, tier0_nbd::protocol::Errno::Io, "a drive is gone", 8192 + 512);
    put_done(structured, 4);
    seeds
}

/// What a well-behaved server sends.
fn server_bytes(choice: u8, exports: &[ExportInfo]) -> Vec<u8> {
    let (mut client, mut server) = (ClientHandshake::new(goal(choice)), ServerHandshake::default());
    let mut sent = vec![choice];
    sent.extend(ServerHandshake::greeting());
    let (mut unread, mut to_server) = (1, Vec::new());
    loop {
        let (used, step) = client.advance(&sent[unread..], &mut to_server).expect("an honest server");
        unread += used;
        if let ClientStep::Ready(_) | ClientStep::Listed(_) = step {
            return sent;
        }
        while let Ok((used, step)) = server.advance(&to_server, exports, &mut sent)
            && step != ServerStep::NeedMore
        {
            to_server.drain(..used);
            if let ServerStep::Transmission(_) | ServerStep::Aborted = step {
                break;
            }
        }
    }
}

fn run(bytes: &[u8]) -> bool {
    let Some((choice, bytes)) = bytes.split_first() else { return false };
    let whole = read(*choice, Pieces::whole(bytes));
    for pieces in Pieces::several(bytes) {
        let cut = read(*choice, pieces);
        assert!(whole == cut, "it matters how the stream is cut: {whole:?} against {cut:?}");
    }
    whole.reached_goal && whole.end.is_none()
}

/// What the client made of a stream.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    requests: Vec<u8>,
    reached_goal: bool,
    /// What the reads found, zeros where nothing came.
    data: Vec<u8>,
    extents: Vec<Extent>,
    done: Vec<(u64, String)>,
    end: Option<String>,
}

fn read(choice: u8, mut pieces: Pieces<'_>) -> Outcome {
    let mut outcome = Outcome { data: vec![0; 2 * REQUEST_BYTES as usize], ..Outcome::default() };
    let mut handshake = ClientHandshake::new(goal(choice));
    let mut received = Vec::new();
    let negotiated = loop {
        match handshake.advance(&received, &mut outcome.requests) {
            Ok((used, step)) => {
                assert_progress(used, received.len(), step == ClientStep::NeedMore);
                received.drain(..used);
                match step {
                    ClientStep::Continue => {}
                    ClientStep::Ready(negotiated) => break negotiated,
                    ClientStep::Listed(_) => {
                        outcome.reached_goal = true;
                        return outcome;
                    }
                    ClientStep::Refused(refusal) => return outcome.ended(refusal),
                    ClientStep::NeedMore if !pieces.receive(&mut received) => return outcome,
                    ClientStep::NeedMore => {}
                }
            }
            Err(error) => return outcome.ended(error),
        }
    };
    outcome.reached_goal = true;
    replies(&negotiated, received, pieces, outcome)
}

fn replies(
    negotiated: &Negotiated,
    mut received: Vec<u8>,
    mut pieces: Pieces<'_>,
    mut outcome: Outcome,
) -> Outcome {
    let mut stream = ReplyStream::new(negotiated.structured_replies, negotiated.base_allocation);
    let mut table = Table(requests().map(|request| Some(PendingReply::new(&request))));
    loop {
        let mut input = &received[..];
        loop {
            match stream.next(&mut input, &mut table) {
                Ok(None) => break,
                Ok(Some(event)) => outcome.note(&event, &mut table),
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

struct Table([Option<PendingReply>; 5]);

impl InFlight for Table {
    fn pending(&mut self, cookie: u64) -> Option<&mut PendingReply> {
        self.0.get_mut(usize::try_from(cookie).ok()?)?.as_mut()
    }
}

impl Outcome {
    fn ended(mut self, why: impl ToString) -> Outcome {
        self.end = Some(why.to_string());
        self
    }

    fn note(&mut self, event: &ReplyEvent<'_>, table: &mut Table) {
        match *event {
            ReplyEvent::Data { cookie, at, bytes } => {
                self.place(cookie, at, bytes.len()).copy_from_slice(bytes)
            }
            ReplyEvent::Zeroes { cookie, at, length } => self.place(cookie, at, length as usize).fill(0),
            ReplyEvent::Extent { cookie, extent } => {
                assert_eq!(cookie, 3, "only one request asked for extents");
                self.extents.push(extent);
            }
            ReplyEvent::Done { cookie, error } => {
                let pending = table.0[usize::try_from(cookie).expect("a cookie in flight")].take();
                assert!(pending.is_some(), "request {cookie} is done twice");
                self.done.push((cookie, format!("{error:?}")));
            }
        }
    }

    /// Where the data of a read goes; the stream has checked that it lies within the request.
    fn place(&mut self, cookie: u64, at: u32, length: usize) -> &mut [u8] {
        assert!(cookie < 2, "only two requests read");
        let first = (cookie as u32 * REQUEST_BYTES + at) as usize;
        assert!(at as usize + length <= REQUEST_BYTES as usize, "data past the end of its request");
        &mut self.data[first..first + length]
    }
}
