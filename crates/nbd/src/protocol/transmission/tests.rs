//! Requests and replies there and back, cut anywhere, made of anything, and against the rules.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::errno::Errno;
use super::super::error::ProtocolError;
use super::super::export::{BlockSizes, ExportInfo, Features};
use super::*;

/// Requests in flight, and what has come for them.
#[derive(Default)]
struct Table(BTreeMap<u64, PendingReply>);

impl InFlight for Table {
    fn pending(&mut self, cookie: u64) -> Option<&mut PendingReply> {
        self.0.get_mut(&cookie)
    }
}

impl Table {
    fn of(requests: &[Request]) -> Table {
        Table(requests.iter().map(|request| (request.cookie, PendingReply::new(request))).collect())
    }
}

/// What a client makes of a server's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Received {
    data: BTreeMap<u64, Vec<u8>>,
    extents: BTreeMap<u64, Vec<Extent>>,
    done: Vec<(u64, Option<Errno>)>,
}

impl Received {
    fn put(&mut self, cookie: u64, at: u32, bytes: &[u8]) {
        let data = self.data.entry(cookie).or_default();
        let end = at as usize + bytes.len();
        data.resize(end.max(data.len()), 0xee);
        data[at as usize..end].copy_from_slice(bytes);
    }

    fn note(&mut self, event: ReplyEvent<'_>) {
        match event {
            ReplyEvent::Data { cookie, at, bytes } => self.put(cookie, at, bytes),
            ReplyEvent::Zeroes { cookie, at, length } => self.put(cookie, at, &vec![0; length as usize]),
            ReplyEvent::Extent { cookie, extent } => self.extents.entry(cookie).or_default().push(extent),
            ReplyEvent::Done { cookie, error } => self.done.push((cookie, error)),
        }
    }
}

/// Feeds `bytes` in pieces of the given lengths, in turn, and collects what comes of it.
fn receive(
    requests: &[Request],
    structured: bool,
    bytes: &[u8],
    pieces: &[usize],
) -> Result<Received, ProtocolError> {
    let (mut table, mut stream) =
        (Table::of(requests), ReplyStream::new(structured, Some(BASE_ALLOCATION_ID)));
    let (mut received, mut held, mut rest) = (Received::default(), Vec::new(), bytes);
    let mut pieces = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(*pieces.next().expect("cycles")));
        rest = later;
        held.extend_from_slice(piece);
        let mut input = &held[..];
        while let Some(event) = stream.next(&mut input, &mut table)? {
            received.note(event);
            if let ReplyEvent::Done { cookie, .. } = event {
                table.0.remove(&cookie);
            }
        }
        held = input.to_vec();
    }
    Ok(received)
}

fn parse_requests(bytes: &[u8], pieces: &[usize]) -> Result<(Vec<Request>, Vec<u8>, bool), ProtocolError> {
    let mut stream = RequestStream::new(1 << 20);
    let (mut requests, mut payload, mut disconnected) = (Vec::new(), Vec::new(), false);
    let (mut held, mut rest) = (Vec::new(), bytes);
    let mut pieces = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(*pieces.next().expect("cycles")));
        rest = later;
        held.extend_from_slice(piece);
        let mut input = &held[..];
        while let Some(event) = stream.next(&mut input)? {
            match event {
                RequestEvent::Request(request) => requests.push(request),
                RequestEvent::Payload(bytes) => payload.extend_from_slice(bytes),
                RequestEvent::Disconnect => disconnected = true,
            }
        }
        held = input.to_vec();
        assert!(held.len() < REQUEST_BYTES, "what is carried over is less than a request");
    }
    Ok((requests, payload, disconnected))
}

#[test]
fn a_request_has_the_layout_of_the_specification() {
    let request = Request::new(RequestKind::Write, 0x0102_0304_0506_0708, 0x1000, 0x200).fua(true);
    let wire = request.to_wire();
    assert_eq!(wire[..8], [0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1]);
    assert_eq!(wire[8..16], [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(wire[16..], [0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0]);
    assert_eq!(Request::parse(&wire), Ok(Some(request)));
}

#[test]
fn hostile_requests_have_a_reason() {
    assert_eq!(
        parse_requests(b"GET / HTTP", &[99]),
        Err(ProtocolError::BadRequestMagic { found: 0x4745_5420 })
    );
    let long = Request::new(RequestKind::Write, 1, 0, (1 << 20) + 1).to_wire();
    assert_eq!(
        parse_requests(&long, &[99]),
        Err(ProtocolError::PayloadTooLong { length: (1 << 20) + 1, max: 1 << 20 })
    );
    let mut after = Request::new(RequestKind::Disconnect, 1, 0, 0).to_wire().to_vec();
    assert_eq!(parse_requests(&after, &[9]), Ok((vec![], vec![], true)));
    after.push(0);
    assert_eq!(parse_requests(&after, &[99]), Err(ProtocolError::BytesAfterDisconnect));
}

#[test]
fn payload_may_bypass_the_stream() {
    let mut stream = RequestStream::new(4096);
    let wire = Request::new(RequestKind::Write, 1, 0, 1000).to_wire();
    let mut input = &wire[..];
    assert!(matches!(stream.next(&mut input), Ok(Some(RequestEvent::Request(_)))));
    assert_eq!(stream.next(&mut input), Ok(None));
    stream.payload_received(990);
    assert_eq!(stream.payload_bytes_left(), 10);
    let mut input = &[7; 12][..];
    assert_eq!(stream.next(&mut input), Ok(Some(RequestEvent::Payload(&[7; 10]))));
    assert_eq!(input.len(), 2);
}

fn export() -> ExportInfo {
    let mut export = ExportInfo::new("x", 1 << 20, 512);
    export.block_sizes = BlockSizes { minimum: 512, preferred: 4096, maximum: 64 << 10 };
    export
}

#[test]
fn requests_are_held_to_the_export() {
    use RequestKind::*;
    const END: u64 = 1 << 20;
    let check =
        |kind, offset, length| Command::check(&Request::new(kind, 1, offset, length), &export(), true, true);
    assert_eq!(check(Read, 0, 4096), Ok(Command::Read { offset: 0, length: 4096, dont_fragment: false }));
    assert_eq!(
        check(Write, END - 512, 512),
        Ok(Command::Write { offset: END - 512, length: 512, fua: false })
    );
    assert_eq!(check(Flush, 0, 0), Ok(Command::Flush));
    for (kind, offset, length, errno, why) in [
        (Read, END, 512, Errno::Invalid, "past the end"),
        (Write, END, 512, Errno::NoSpace, "past the end"),
        (WriteZeroes, END - 512, 1024, Errno::NoSpace, "past the end"),
        (Trim, END - 512, 1024, Errno::Invalid, "past the end"),
        (Read, u64::MAX - 511, 512, Errno::Invalid, "overflow"),
        (Write, u64::MAX, u32::MAX, Errno::NoSpace, "overflow"),
        (Read, 1, 512, Errno::Invalid, "unaligned"),
        (Write, 0, 511, Errno::Invalid, "unaligned"),
        (Read, 0, (64 << 10) + 512, Errno::Invalid, "longer than the maximum"),
        (BlockStatus, 0, 0, Errno::Invalid, "empty"),
        (Flush, 0, 512, Errno::Invalid, "reserved fields"),
        (Flush, 512, 0, Errno::Invalid, "reserved fields"),
        (Cache, 0, 512, Errno::Invalid, "not offered"),
    ] {
        assert_eq!(check(kind, offset, length), Err(errno), "{kind:?}: {why}");
    }
    assert!(check(Trim, 0, END as u32).is_ok(), "only data is limited to the maximum");
    let unknown = Request { kind: 42, ..Request::new(Read, 1, 0, 512) };
    assert_eq!(Command::check(&unknown, &export(), true, true), Err(Errno::Invalid));
}

#[test]
fn flags_are_held_to_their_commands() {
    use RequestKind::*;
    let check = |request: Request, structured| Command::check(&request, &export(), structured, true);
    let request = |kind| Request::new(kind, 1, 0, 512);
    let df = Ok(Command::Read { offset: 0, length: 512, dont_fragment: true });
    assert_eq!(check(request(Read).dont_fragment(true), true), df);
    assert_eq!(check(request(Read).dont_fragment(true), false), Err(Errno::Invalid));
    assert_eq!(check(request(Write).dont_fragment(true), true), Err(Errno::Invalid));
    assert!(check(request(Read).fua(true), true).is_ok(), "FUA goes with every command");
    assert_eq!(check(request(WriteZeroes).fast_zero(true), true), Err(Errno::Invalid), "not offered");
    let zeroes = Command::WriteZeroes { offset: 0, length: 512, fua: true, may_unmap: false, fast: false };
    assert_eq!(check(request(WriteZeroes).no_hole(true).fua(true), true), Ok(zeroes));
    assert_eq!(check(request(Trim).no_hole(true), true), Err(Errno::Invalid));
    let status = Command::BlockStatus { offset: 0, length: 512, one_extent: true };
    assert_eq!(check(request(BlockStatus).one_extent(true), true), Ok(status));
    let unknown = Request { flags: 1 << 15, ..request(Read) };
    assert_eq!(check(unknown, true), Err(Errno::Invalid));
}

#[test]
fn what_an_export_does_not_offer_is_refused() {
    use RequestKind::*;
    let read_only = Features { read_only: true, ..Features::READ_WRITE };
    let plain = Features::default();
    for (features, kind, errno) in [
        (read_only, Write, Errno::NotPermitted),
        (read_only, Trim, Errno::NotPermitted),
        (read_only, WriteZeroes, Errno::NotPermitted),
        (plain, Flush, Errno::Invalid),
        (plain, Trim, Errno::Invalid),
        (plain, WriteZeroes, Errno::Invalid),
        (plain, BlockStatus, Errno::Invalid),
    ] {
        let export = ExportInfo { features, ..export() };
        let request = Request::new(kind, 1, 0, if kind == Flush { 0 } else { 512 });
        assert_eq!(Command::check(&request, &export, true, false), Err(errno), "{kind:?}");
    }
    let fua = Request::new(Write, 1, 0, 512).fua(true);
    let export = ExportInfo { features: plain, ..export() };
    assert_eq!(Command::check(&fua, &export, true, false), Err(Errno::Invalid));
}

#[test]
fn structured_replies_arrive() {
    let read = Request::new(RequestKind::Read, 1, 1000, 10);
    let status = Request::new(RequestKind::BlockStatus, 2, 0, 3000);
    let write = Request::new(RequestKind::Write, 3, 0, 512);
    let failed = Request::new(RequestKind::Read, 4, 0, 512);
    let empty = Request::new(RequestKind::Read, 5, 0, 0);
    let mut wire = Vec::new();
    put_hole(&mut wire, 1, 1004, 6, false);
    put_block_status(&mut wire, 2, BASE_ALLOCATION_ID, &[Extent::allocated(1000), Extent::unallocated(2000)]);
    put_data_header(&mut wire, 1, 1000, 4, true);
    wire.extend(b"abcd");
    put_simple(&mut wire, 3, Some(Errno::NoSpace));
    put_error_at(&mut wire, 4, Errno::Io, "chunklet 7 is gone", 256);
    put_done(&mut wire, 5);
    let received = receive(&[read, status, write, failed, empty], true, &wire, &[999]).expect("well formed");
    assert_eq!(received.data[&1], b"abcd\0\0\0\0\0\0");
    assert_eq!(received.extents[&2], [Extent::allocated(1000), Extent::unallocated(2000)]);
    let done = [(2, None), (1, None), (3, Some(Errno::NoSpace)), (4, Some(Errno::Io)), (5, None)];
    assert_eq!(received.done, done);
}

#[test]
fn headers_have_the_lengths_that_senders_count_on() {
    let mut wire = Vec::new();
    put_simple(&mut wire, 1, None);
    assert_eq!(wire.len(), SIMPLE_REPLY_BYTES);
    wire.clear();
    put_data_header(&mut wire, 1, 0, 512, true);
    assert_eq!(wire.len(), DATA_HEADER_BYTES);
}

#[test]
fn hostile_replies_have_a_reason() {
    let read = Request::new(RequestKind::Read, 1, 4096, 512);
    let write = Request::new(RequestKind::Write, 2, 0, 512);
    let status = Request::new(RequestKind::BlockStatus, 3, 0, 512);
    type Put<'a> = &'a dyn Fn(&mut Vec<u8>);
    let cases: [(&str, Put<'_>); 14] = [
        ("before the request", &|w| put_data_header(w, 1, 4095, 1, false)),
        ("beyond the request", &|w| put_data_header(w, 1, 4096, 513, true)),
        ("hole beyond the request", &|w| put_hole(w, 1, 4600, 512, true)),
        ("offset overflows", &|w| put_hole(w, 1, u64::MAX, 512, true)),
        ("data for a write", &|w| put_data_header(w, 2, 0, 1, true)),
        ("extents for a read", &|w| put_block_status(w, 1, BASE_ALLOCATION_ID, &[Extent::allocated(1)])),
        ("extents of another context", &|w| put_block_status(w, 3, 77, &[Extent::allocated(1)])),
        ("too long an extent", &|w| put_block_status(w, 3, BASE_ALLOCATION_ID, &[Extent::allocated(513)])),
        ("simple reply to a read", &|w| put_simple(w, 1, None)),
        ("reply to nobody", &|w| put_simple(w, 9, None)),
        ("no data at all", &|w| put_done(w, 1)),
        ("no extents at all", &|w| put_simple(w, 3, None)),
        ("the same hole twice", &|w| (0..2).for_each(|_| put_hole(w, 1, 4096, 512, false))),
        ("no magic number", &|w| w.extend([0; 20])),
    ];
    for (what, put) in cases {
        let mut wire = Vec::new();
        put(&mut wire);
        assert!(receive(&[read, write, status], true, &wire, &[999]).is_err(), "{what}");
    }
    let mut wire = Vec::new();
    put_done(&mut wire, 2);
    assert_eq!(
        receive(&[write], false, &wire, &[99]),
        Err(ProtocolError::ReplyNotNegotiated { cookie: 2 }),
        "structured though not negotiated"
    );
}

fn arbitrary_request() -> impl Strategy<Value = Request> {
    (0u16..9, any::<u64>(), any::<u64>(), 0u32..3000, 0u16..64)
        .prop_map(|(kind, cookie, offset, length, flags)| Request { flags, kind, cookie, offset, length })
        .prop_filter("a disconnect ends the stream", |request| request.kind != RequestKind::Disconnect as u16)
}

proptest! {
    #[test]
    fn requests_survive_any_cuts(
        requests in prop::collection::vec(arbitrary_request(), 0..20),
        pieces in prop::collection::vec(1usize..200, 1..10),
    ) {
        let (mut wire, mut payload) = (Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            wire.extend(request.to_wire());
            if request.kind == RequestKind::Write as u16 {
                let data = vec![index as u8; request.length as usize];
                wire.extend(&data);
                payload.extend(&data);
            }
        }
        prop_assert_eq!(parse_requests(&wire, &pieces), Ok((requests, payload, false)));
    }

    #[test]
    fn any_bytes_are_requests_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        good in prop::collection::vec(arbitrary_request(), 0..3),
        pieces in prop::collection::vec(1usize..50, 1..5),
    ) {
        let mut wire: Vec<u8> = good.iter().flat_map(Request::to_wire).collect();
        wire.extend(&bytes);
        let cut = parse_requests(&wire, &pieces);
        prop_assert_eq!(&cut, &parse_requests(&wire, &[usize::MAX]), "cuts do not matter");
        for request in cut.map(|(requests, ..)| requests).unwrap_or_default() {
            let _ = Command::check(&request, &export(), true, true);
        }
    }

    #[test]
    fn checked_commands_lie_within_the_export(request in arbitrary_request(), sectors in 0u64..(3 << 20) / 512) {
        let request = Request { offset: request.offset % (4 << 20), ..request };
        let export = ExportInfo { size_bytes: sectors * 512, ..export() };
        match Command::check(&request, &export, true, true) {
            Ok(Command::Flush) | Err(_) => {}
            Ok(_) => {
                prop_assert!(request.offset + u64::from(request.length) <= export.size_bytes);
                prop_assert!(request.offset.is_multiple_of(512) && request.length.is_multiple_of(512));
            }
        }
    }

    #[test]
    fn replies_survive_any_cuts(
        chunks in prop::collection::vec((any::<bool>(), 1u32..500), 1..8),
        pieces in prop::collection::vec(1usize..100, 1..10),
        simple in any::<bool>(),
    ) {
        let length = chunks.iter().map(|(_, length)| length).sum();
        let (read, write) =
            (Request::new(RequestKind::Read, 7, 512, length), Request::new(RequestKind::Write, 8, 0, 1));
        let (mut wire, mut expected) = (Vec::new(), Vec::new());
        if simple {
            put_simple(&mut wire, 7, None);
        }
        for (index, (hole, length)) in chunks.iter().enumerate() {
            let offset = 512 + expected.len() as u64;
            let data = vec![if *hole && !simple { 0 } else { index as u8 }; *length as usize];
            match (simple, hole) {
                (true, _) => {}
                (false, true) => put_hole(&mut wire, 7, offset, *length, false),
                (false, false) => put_data_header(&mut wire, 7, offset, *length, false),
            }
            if simple || !hole {
                wire.extend(&data);
            }
            expected.extend(data);
        }
        if !simple {
            put_done(&mut wire, 7);
        }
        put_simple(&mut wire, 8, Some(Errno::Io));
        let received = receive(&[read, write], !simple, &wire, &pieces).expect("well formed");
        prop_assert_eq!(&received.data[&7], &expected);
        prop_assert_eq!(received.done, vec![(7, None), (8, Some(Errno::Io))]);
    }

    #[test]
    fn any_bytes_are_replies_or_an_error(
        kind in any::<u16>(),
        length in 0u32..64,
        body in prop::collection::vec(any::<u8>(), 0..80),
        flags in 0u16..3,
        structured in any::<bool>(),
        pieces in prop::collection::vec(1usize..50, 1..5),
    ) {
        let requests = [
            Request::new(RequestKind::Read, 0, 0, 512),
            Request::new(RequestKind::BlockStatus, 1, 0, 512),
            Request::new(RequestKind::Trim, 2, 0, 512),
        ];
        for cookie in 0..3u64 {
            for kind in [kind, kind % 7, 0x8000 | (kind % 4)] {
                let mut wire = 0x668e_33ef_u32.to_be_bytes().to_vec();
                wire.extend(flags.to_be_bytes());
                wire.extend(kind.to_be_bytes());
                wire.extend(cookie.to_be_bytes());
                wire.extend(length.to_be_bytes());
                wire.extend(&body);
                let cut = receive(&requests, structured, &wire, &pieces);
                prop_assert_eq!(cut, receive(&requests, structured, &wire, &[usize::MAX]), "cuts do not matter");
            }
        }
    }
}
