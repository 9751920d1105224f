//! Both sides against each other, against arbitrary bytes, and against messages written by hand.

use proptest::prelude::*;

use super::super::constants::{opt, rep};
use super::super::export::{ExportInfo, Features};
use super::super::limits::{OPTION_BYTES_MAX, OPTIONS_MAX};
use super::super::wire::Put;
use super::super::{ProtocolError, StringFault};
use super::option::{info_request_data, meta_context_data, put_option};
use super::*;

fn exports() -> Vec<ExportInfo> {
    let mut gold = ExportInfo::new("gold", 1 << 30, 512);
    gold.description = "flash, mirrored".to_owned();
    let mut old = ExportInfo::new("old", 4096, 4096);
    old.features = Features { read_only: true, ..Features::default() };
    vec![gold, old]
}

/// A server past the greeting, with a client that agreed to `flags`.
fn server(flags: u32) -> ServerHandshake {
    let mut server = ServerHandshake::default();
    let step = server.advance(&flags.to_be_bytes(), &exports()[..], &mut Vec::new());
    assert_eq!(step, Ok((4, ServerStep::Continue)));
    server
}

/// The server's answer to one option: reply types with their data, and the step.
fn ask(server: &mut ServerHandshake, option: u32, data: &[u8]) -> (Vec<(u32, Vec<u8>)>, ServerStep) {
    let (mut input, mut out) = (Vec::new(), Vec::new());
    put_option(&mut input, option, data);
    let (taken, step) = server.advance(&input, &exports()[..], &mut out).expect("an answer");
    assert_eq!(taken, input.len());
    let mut replies = Vec::new();
    let mut rest = &out[..];
    while let Some(reply) = client_reply::RawReply::parse(rest, option).expect("well formed") {
        replies.push((reply.reply, reply.data.to_vec()));
        rest = &rest[reply.message_bytes()..];
    }
    assert!(rest.is_empty(), "nothing but whole replies");
    (replies, step)
}

fn kinds(replies: &[(u32, Vec<u8>)]) -> Vec<u32> {
    replies.iter().map(|(kind, _)| *kind).collect()
}

/// Runs both sides to their end; every transfer is cut into pieces of the given lengths, in turn.
fn negotiate(goal: ClientGoal, pieces: &[usize]) -> (ClientStep, Option<ServerStep>) {
    let exports = exports();
    let (mut server, mut client) = (ServerHandshake::default(), ClientHandshake::new(goal));
    let (mut to_client, mut to_server) = (ServerHandshake::greeting().to_vec(), Vec::new());
    let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
    let mut server_end = None;
    let mut pieces = pieces.iter().cycle().copied();
    let mut deliver = |from: &mut Vec<u8>, to: &mut Vec<u8>| {
        let count = pieces.next().expect("cycles").min(from.len());
        to.extend(from.drain(..count));
    };
    for _ in 0..100_000 {
        deliver(&mut to_client, &mut at_client);
        let (taken, client_step) = client.advance(&at_client, &mut to_server).expect("honest server");
        at_client.drain(..taken);
        deliver(&mut to_server, &mut at_server);
        if server_end.is_none() {
            let (taken, step) =
                server.advance(&at_server, &exports[..], &mut to_client).expect("honest client");
            at_server.drain(..taken);
            if !matches!(step, ServerStep::NeedMore | ServerStep::Continue) {
                server_end = Some(step);
            }
        }
        if !matches!(client_step, ClientStep::NeedMore | ClientStep::Continue) {
            return (client_step, server_end);
        }
    }
    panic!("no end");
}

fn go(export: &str, structured_replies: bool, block_status: bool) -> ClientGoal {
    ClientGoal::Go { export: export.to_owned(), structured_replies, block_status }
}

#[test]
fn both_sides_agree_on_an_export() {
    let (step, server) = negotiate(go("gold", true, true), &[1000]);
    let ClientStep::Ready(negotiated) = step else { panic!("{step:?}") };
    let mut gold = exports().remove(0);
    gold.features.dont_fragment = true;
    assert_eq!(negotiated.export, gold, "name, description, size, features and block sizes arrive");
    assert!(negotiated.structured_replies);
    assert!(negotiated.base_allocation.is_some());
    let session = Session { export: 0, structured_replies: true, block_status: true };
    assert_eq!(server, Some(ServerStep::Transmission(session)));
}

#[test]
fn a_plain_client_gets_plain_service() {
    let (step, server) = negotiate(go("old", false, false), &[7]);
    let ClientStep::Ready(negotiated) = step else { panic!("{step:?}") };
    assert_eq!(negotiated.export, exports()[1]);
    assert_eq!((negotiated.structured_replies, negotiated.base_allocation), (false, None));
    let session = Session { export: 1, structured_replies: false, block_status: false };
    assert_eq!(server, Some(ServerStep::Transmission(session)));
}

#[test]
fn an_unknown_export_is_refused_with_a_reason() {
    let (step, _) = negotiate(go("lead", true, true), &[100]);
    let ClientStep::Refused(refusal) = step else { panic!("{step:?}") };
    assert_eq!(refusal.to_string(), "server refuses: no such export: no export \"lead\"");
}

#[test]
fn a_list_names_every_export() {
    let (step, _) = negotiate(ClientGoal::List, &[3]);
    let ClientStep::Listed(listed) = step else { panic!("{step:?}") };
    let expected = exports()
        .into_iter()
        .map(|export| ListedExport { name: export.name, description: export.description });
    assert_eq!(listed, expected.collect::<Vec<_>>());
}

#[test]
fn export_name_is_answered_with_or_without_zeroes() {
    for (flags, length) in [(1, 8 + 2 + 124), (3, 8 + 2), (0, 8 + 2 + 124)] {
        let (mut input, mut out) = (Vec::new(), Vec::new());
        put_option(&mut input, opt::EXPORT_NAME, b"old");
        let step = server(flags).advance(&input, &exports()[..], &mut out);
        let session = Session { export: 1, structured_replies: false, block_status: false };
        assert_eq!(step, Ok((input.len(), ServerStep::Transmission(session))));
        assert_eq!(out.len(), length, "client flags {flags}");
        assert_eq!(out[..10], [0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0b11], "4096 bytes, flags and read-only");
    }
}

#[test]
fn a_client_falls_back_to_export_name() {
    let mut client = ClientHandshake::new(go("x", false, false));
    let mut out = Vec::new();
    let step = client.advance(&ServerHandshake::greeting(), &mut out);
    assert_eq!(step, Ok((18, ClientStep::Continue)));
    let mut unsupported = Vec::new();
    server_reply::Replies { out: &mut unsupported, option: opt::GO }.error(rep::ERR_UNSUP, "what?");
    out.clear();
    assert_eq!(client.advance(&unsupported, &mut out), Ok((unsupported.len(), ClientStep::Continue)));
    let mut expected = Vec::new();
    put_option(&mut expected, opt::EXPORT_NAME, b"x");
    assert_eq!(out, expected);
    let answer = [0, 0, 0, 0, 0, 0, 2, 0, 0, 1];
    let (taken, step) = client.advance(&answer, &mut out).expect("an answer");
    let ClientStep::Ready(negotiated) = step else { panic!("{step:?}") };
    assert_eq!((taken, negotiated.export.size_bytes), (10, 512));
}

#[test]
fn options_that_are_not_spoken_are_unsupported() {
    for option in [opt::STARTTLS, opt::EXTENDED_HEADERS, 4, 12, u32::MAX] {
        let (replies, step) = ask(&mut server(3), option, b"whatever");
        assert_eq!((kinds(&replies), step), (vec![rep::ERR_UNSUP], ServerStep::Continue), "option {option}");
    }
}

#[test]
fn abort_is_acknowledged() {
    let (replies, step) = ask(&mut server(3), opt::ABORT, &[]);
    assert_eq!((kinds(&replies), step), (vec![rep::ACK], ServerStep::Aborted));
}

#[test]
fn nonsense_in_a_good_frame_is_invalid_and_survivable() {
    let mut server = server(3);
    let cut_name = [0, 0, 0, 9, b'x'];
    let bad_count = [0, 0, 0, 1, b'x', 0, 2, 0, 0];
    let mut nul_name = info_request_data("gold");
    nul_name[5] = 0;
    let huge_name = [0xff; 8];
    for (option, data) in [
        (opt::LIST, &b"x"[..]),
        (opt::STRUCTURED_REPLY, b"x"),
        (opt::GO, b""),
        (opt::GO, &cut_name),
        (opt::GO, &bad_count),
        (opt::GO, &nul_name),
        (opt::INFO, &huge_name),
        (opt::SET_META_CONTEXT, &meta_context_data("gold", "base:allocation")),
    ] {
        let (replies, step) = ask(&mut server, option, data);
        assert_eq!(
            (kinds(&replies), step),
            (vec![rep::ERR_INVALID], ServerStep::Continue),
            "{option} {data:?}"
        );
    }
    assert_eq!(kinds(&ask(&mut server, opt::STRUCTURED_REPLY, &[]).0), [rep::ACK]);
    for data in [&huge_name[..], &meta_context_data("gold", "base:allocation")[..20], &[0; 9]] {
        let (replies, _) = ask(&mut server, opt::SET_META_CONTEXT, data);
        assert_eq!(kinds(&replies), [rep::ERR_INVALID], "{data:?}");
    }
    let (_, step) = ask(&mut server, opt::GO, &info_request_data("gold"));
    assert!(matches!(step, ServerStep::Transmission(_)), "still serves");
}

#[test]
fn meta_contexts_are_listed_selected_and_forgotten() {
    let mut server = server(3);
    ask(&mut server, opt::STRUCTURED_REPLY, &[]);
    let found = vec![rep::META_CONTEXT, rep::ACK];
    for (option, query, expected) in [
        (opt::LIST_META_CONTEXT, "base:", found.clone()),
        (opt::LIST_META_CONTEXT, "base:allocation", found.clone()),
        (opt::LIST_META_CONTEXT, "qemu:", vec![rep::ACK]),
        (opt::SET_META_CONTEXT, "base:", vec![rep::ACK]),
        (opt::SET_META_CONTEXT, "base:allocation", found.clone()),
    ] {
        let (replies, _) = ask(&mut server, option, &meta_context_data("gold", query));
        assert_eq!(kinds(&replies), expected, "{option} {query}");
    }
    let all = [&[0, 0, 0, 4][..], b"gold", &[0; 4]].concat();
    assert_eq!(kinds(&ask(&mut server, opt::LIST_META_CONTEXT, &all).0), found);
    let (replies, _) = ask(&mut server, opt::SET_META_CONTEXT, &meta_context_data("lead", "base:allocation"));
    assert_eq!(kinds(&replies), [rep::ERR_UNKNOWN]);
    let (_, step) = ask(&mut server, opt::GO, &info_request_data("gold"));
    let session = Session { export: 0, structured_replies: true, block_status: false };
    assert_eq!(step, ServerStep::Transmission(session), "a failed selection undoes the one before");
}

#[test]
fn contexts_selected_for_another_export_do_not_count() {
    let mut server = server(3);
    ask(&mut server, opt::STRUCTURED_REPLY, &[]);
    ask(&mut server, opt::SET_META_CONTEXT, &meta_context_data("gold", "base:allocation"));
    let (_, step) = ask(&mut server, opt::GO, &info_request_data("old"));
    let session = Session { export: 1, structured_replies: true, block_status: false };
    assert_eq!(step, ServerStep::Transmission(session));
}

#[test]
fn what_cannot_be_meant_well_ends_the_session() {
    let exports = exports();
    let fail = |server: &mut ServerHandshake, input: &[u8]| {
        server.advance(input, &exports[..], &mut Vec::new()).expect_err("an error")
    };
    let mut fresh = ServerHandshake::default();
    assert_eq!(fail(&mut fresh, &[0, 0, 0, 4]), ProtocolError::UnknownClientFlags { flags: 4 });
    let mut fresh = ServerHandshake::default();
    assert_eq!(fail(&mut fresh, b"GET "), ProtocolError::UnknownClientFlags { flags: 0x4745_5420 });
    assert!(matches!(fail(&mut server(3), b"GET / HT"), ProtocolError::BadOptionMagic { .. }));

    let mut long = Vec::new();
    put_option(&mut long, opt::GO, &[]);
    long.truncate(12);
    long.put_u32(OPTION_BYTES_MAX + 1);
    let too_long = ProtocolError::OptionTooLong { option: opt::GO, length: OPTION_BYTES_MAX + 1 };
    assert_eq!(fail(&mut server(3), &long), too_long, "before its data comes");

    let mut option = Vec::new();
    put_option(&mut option, opt::LIST, &[]);
    assert_eq!(fail(&mut server(2), &option), ProtocolError::OptionNeedsFixedNewstyle { option: opt::LIST });

    for (name, expected) in [
        (&b"lead"[..], ProtocolError::UnknownExport { name: "lead".to_owned() }),
        (b"\xff", ProtocolError::BadExportName(StringFault::NotUtf8)),
        (b"a\0b", ProtocolError::BadExportName(StringFault::HasNul)),
        (&[b'a'; 4097], ProtocolError::BadExportName(StringFault::TooLong)),
    ] {
        let mut option = Vec::new();
        put_option(&mut option, opt::EXPORT_NAME, name);
        assert_eq!(fail(&mut server(3), &option), expected);
    }

    let mut endless = server(3);
    for _ in 0..OPTIONS_MAX {
        ask(&mut endless, 99, &[]);
    }
    let mut option = Vec::new();
    put_option(&mut option, 99, &[]);
    assert_eq!(fail(&mut endless, &option), ProtocolError::TooManyOptions);
}

#[test]
fn a_client_refuses_servers_that_are_none() {
    let fail = |input: &[u8]| {
        ClientHandshake::new(ClientGoal::List).advance(input, &mut Vec::new()).expect_err("an error")
    };
    assert!(matches!(fail(b"SSH-2.0-"), ProtocolError::NotNbd { .. }));
    assert!(
        matches!(fail(b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53"), ProtocolError::NotNbd { .. }),
        "oldstyle"
    );
    assert_eq!(fail(b"NBDMAGICIHAVEOPT\x00\x00"), ProtocolError::NotFixedNewstyle);
}

#[test]
fn a_client_bounds_what_a_server_may_say() {
    let pending = |goal| {
        let mut client = ClientHandshake::new(goal);
        client.advance(&ServerHandshake::greeting(), &mut Vec::new()).expect("a greeting");
        client
    };
    let mut client = pending(go("", false, false));
    let mut block_sizes = Vec::new();
    let mut nonsense = ExportInfo::new("", 512, 1);
    nonsense.block_sizes.minimum = 3;
    server_reply::Replies { out: &mut block_sizes, option: opt::GO }.info_block_size(&nonsense);
    let error = client.advance(&block_sizes, &mut Vec::new()).expect_err("an error");
    assert!(matches!(error, ProtocolError::MalformedOptionReply { .. }), "{error}");

    let mut client = pending(go("", false, false));
    let mut name = Vec::new();
    server_reply::Replies { out: &mut name, option: opt::GO }.info_text(1, "x");
    let error = (0..1000).find_map(|_| client.advance(&name, &mut Vec::new()).err());
    assert_eq!(error, Some(ProtocolError::TooManyOptionReplies { option: opt::GO }));

    let mut client = pending(go("", false, false));
    let mut ack = Vec::new();
    server_reply::Replies { out: &mut ack, option: opt::GO }.ack();
    let error = client.advance(&ack, &mut Vec::new()).expect_err("no size was told");
    assert!(matches!(error, ProtocolError::MalformedOptionReply { .. }), "{error}");

    let mut client = pending(ClientGoal::List);
    let error = client.advance(&ack, &mut Vec::new()).expect_err("another option");
    assert_eq!(error, ProtocolError::ReplyToOtherOption { sent: opt::LIST, found: opt::GO });
}

proptest! {
    #[test]
    fn any_cuts_give_the_same_agreement(
        pieces in prop::collection::vec(1usize..60, 1..20),
        structured in any::<bool>(),
        status in any::<bool>(),
        name in prop::sample::select(vec!["gold", "old", "lead", ""]),
    ) {
        let whole = negotiate(go(name, structured, status), &[1 << 20]);
        prop_assert_eq!(negotiate(go(name, structured, status), &pieces).0, whole.0);
    }

    #[test]
    fn any_bytes_to_the_server_end_in_an_answer_or_an_error(
        options in prop::collection::vec((0u32..13, prop::collection::vec(any::<u8>(), 0..60)), 0..20),
        tail in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut input = vec![0, 0, 0, 3];
        options.iter().for_each(|(option, data)| put_option(&mut input, *option, data));
        input.extend(&tail);
        let (mut server, mut rest, mut out) = (ServerHandshake::default(), &input[..], Vec::new());
        while let Ok((taken, ServerStep::Continue)) = server.advance(rest, &exports()[..], &mut out) {
            prop_assert!(taken > 0, "every step consumes");
            rest = &rest[taken..];
        }
        prop_assert!(out.len() < 200 * (1 + options.len()), "answers are in proportion to what was asked");
    }

    #[test]
    fn any_bytes_to_the_client_end_in_an_answer_or_an_error(
        replies in prop::collection::vec((1u32..5, prop::collection::vec(any::<u8>(), 0..40)), 0..20),
        tail in prop::collection::vec(any::<u8>(), 0..100),
        list in any::<bool>(),
    ) {
        let (goal, option) = if list { (ClientGoal::List, opt::LIST) } else { (go("x", false, false), opt::GO) };
        let mut input = ServerHandshake::greeting().to_vec();
        for (kind, data) in &replies {
            input.put_u64(super::super::constants::OPTION_REPLY_MAGIC);
            input.put_u32(option);
            input.put_u32(*kind);
            input.put_u32(data.len() as u32);
            input.put(data);
        }
        input.extend(&tail);
        let (mut client, mut rest, mut out) = (ClientHandshake::new(goal), &input[..], Vec::new());
        while let Ok((taken, ClientStep::Continue)) = client.advance(rest, &mut out) {
            prop_assert!(taken > 0, "every step consumes");
            rest = &rest[taken..];
        }
    }
}
