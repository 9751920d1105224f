//! The client's side of the handshake.
//!
//! One option is pending at any time, as the specification demands ("Fixed newstyle negotiation"). Structured
//! replies and block status are asked for where wanted and done without where refused. A server that does not
//! know `GO` gets `EXPORT_NAME`.

use thiserror::Error;

use super::super::constants::{BASE_ALLOCATION, IHAVEOPT, INIT_PASSWD, handshake_flag, opt, rep};
use super::super::error::ProtocolError;
use super::super::export::ExportInfo;
use super::super::limits::{INFO_REPLIES_MAX, LISTED_EXPORTS_MAX, STRING_BYTES_MAX};
use super::super::wire::{Cursor, Put};
use super::client_reply::{ExportFacts, RawReply};
use super::option::{info_request_data, meta_context_data, put_option};

/// What the client wants of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientGoal {
    /// To use an export.
    Go {
        /// Its name; empty for the default export.
        export: String,
        /// Ask for structured replies.
        structured_replies: bool,
        /// Ask for `base:allocation`; needs structured replies.
        block_status: bool,
    },
    /// To see the names of the exports.
    List,
}

/// What both sides agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// The export.
    pub export: ExportInfo,
    /// Replies to reads are structured.
    pub structured_replies: bool,
    /// Identifier of the context `base:allocation`, where it was selected.
    pub base_allocation: Option<u32>,
}

/// One line of a server's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedExport {
    /// Its name.
    pub name: String,
    /// What the server says about it; often empty.
    pub description: String,
}

/// A server's refusal.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("server refuses: {reason}{}{message}", if .message.is_empty() { "" } else { ": " })]
pub struct Refusal {
    /// What the reply type means.
    pub reason: &'static str,
    /// The server's own words; often empty.
    pub message: String,
}

/// Where the handshake stands after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// No whole message is there: receive more.
    NeedMore,
    /// One message is done: send what was written, then call again.
    Continue,
    /// The handshake is over: requests may be sent.
    Ready(Negotiated),
    /// The list asked for: send what was written, then close.
    Listed(Vec<ListedExport>),
    /// The server will not: send what was written, then close.
    Refused(Refusal),
}

#[derive(Debug)]
enum State {
    Greeting,
    /// An option is pending.
    Pending(u32),
    /// `EXPORT_NAME` was sent, whose answer has no header; true where zeroes follow it.
    ExportName {
        zeroes: bool,
    },
    Over,
}

/// State of one connection's handshake.
#[derive(Debug)]
pub struct ClientHandshake {
    goal: ClientGoal,
    state: State,
    no_zeroes: bool,
    structured_replies: bool,
    base_allocation: Option<u32>,
    facts: ExportFacts,
    listed: Vec<ListedExport>,
    info_replies: u32,
}

impl ClientHandshake {
    /// A handshake towards `goal`.
    ///
    /// # Panics
    /// Where the export's name is longer than [`STRING_BYTES_MAX`].
    pub fn new(goal: ClientGoal) -> ClientHandshake {
        if let ClientGoal::Go { export, .. } = &goal {
            assert!(export.len() <= STRING_BYTES_MAX, "export names have at most {STRING_BYTES_MAX} bytes");
        }
        ClientHandshake {
            goal,
            state: State::Greeting,
            no_zeroes: false,
            structured_replies: false,
            base_allocation: None,
            facts: ExportFacts::default(),
            listed: Vec::new(),
            info_replies: 0,
        }
    }

    /// Handles the first message of `input`, if it is whole; appends what is to be sent to `out`. Returns how
    /// many bytes of `input` are done with.
    ///
    /// # Errors
    /// Where the server breaks the protocol.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ClientStep), ProtocolError> {
        match self.state {
            State::Greeting => self.greeting(input, out),
            State::Pending(option) => match RawReply::parse(input, option)? {
                Some(reply) => Ok((reply.message_bytes(), self.reply(&reply, out)?)),
                None => Ok((0, ClientStep::NeedMore)),
            },
            State::ExportName { zeroes } => Ok(self.export_name_answer(input, zeroes)),
            State::Over => Ok((0, ClientStep::NeedMore)),
        }
    }

    fn greeting(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ClientStep), ProtocolError> {
        let mut cursor = Cursor::new(input);
        for magic in [INIT_PASSWD, IHAVEOPT] {
            let Some(found) = cursor.u64() else { return Ok((0, ClientStep::NeedMore)) };
            if found != magic {
                return Err(ProtocolError::NotNbd { found });
            }
        }
        let Some(flags) = cursor.u16() else { return Ok((0, ClientStep::NeedMore)) };
        if flags & handshake_flag::FIXED_NEWSTYLE == 0 {
            return Err(ProtocolError::NotFixedNewstyle);
        }
        self.no_zeroes = flags & handshake_flag::NO_ZEROES != 0;
        out.put_u32(u32::from(flags & (handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES)));
        match &self.goal {
            ClientGoal::List => self.send(out, opt::LIST, &[]),
            ClientGoal::Go { structured_replies: true, .. } => self.send(out, opt::STRUCTURED_REPLY, &[]),
            ClientGoal::Go { .. } => self.send_go(out),
        }
        Ok((18, ClientStep::Continue))
    }

    fn send(&mut self, out: &mut Vec<u8>, option: u32, data: &[u8]) {
        put_option(out, option, data);
        self.state = State::Pending(option);
    }

    fn send_go(&mut self, out: &mut Vec<u8>) {
        let data = info_request_data(self.export());
        self.send(out, opt::GO, &data);
    }

    fn export(&self) -> &str {
        match &self.goal {
            ClientGoal::Go { export, .. } => export,
            ClientGoal::List => "",
        }
    }

    /// Soft disconnect: says goodbye, does not wait for the answer.
    fn finish(&mut self, out: &mut Vec<u8>, step: ClientStep) -> ClientStep {
        put_option(out, opt::ABORT, &[]);
        self.state = State::Over;
        step
    }

    fn reply(&mut self, reply: &RawReply<'_>, out: &mut Vec<u8>) -> Result<ClientStep, ProtocolError> {
        match (reply.option, reply.reply) {
            (opt::STRUCTURED_REPLY, kind) => {
                self.structured_replies = kind == rep::ACK;
                self.after_structured_reply(out);
            }
            (opt::SET_META_CONTEXT, rep::META_CONTEXT) => self.context(reply)?,
            (opt::SET_META_CONTEXT, _) => self.send_go(out),
            (opt::GO, rep::INFO) => {
                self.count_reply(reply)?;
                reply.info(&mut self.facts)?;
            }
            (opt::GO, rep::ACK) => return self.ready(reply),
            (opt::GO, rep::ERR_UNSUP) => self.send_export_name(out),
            (opt::LIST, rep::SERVER) => self.listed(reply)?,
            (opt::LIST, rep::ACK) => {
                let listed = std::mem::take(&mut self.listed);
                return Ok(self.finish(out, ClientStep::Listed(listed)));
            }
            _ if reply.is_error() => {
                let refusal = Refusal { reason: refusal_reason(reply.reply), message: reply.message() };
                return Ok(self.finish(out, ClientStep::Refused(refusal)));
            }
            _ => return Err(reply.malformed("unexpected reply type")),
        }
        Ok(ClientStep::Continue)
    }

    fn after_structured_reply(&mut self, out: &mut Vec<u8>) {
        match &self.goal {
            ClientGoal::Go { export, block_status: true, .. } if self.structured_replies => {
                let data = meta_context_data(export, BASE_ALLOCATION);
                self.send(out, opt::SET_META_CONTEXT, &data);
            }
            _ => self.send_go(out),
        }
    }

    fn context(&mut self, reply: &RawReply<'_>) -> Result<(), ProtocolError> {
        self.count_reply(reply)?;
        let (id, name) = reply.meta_context()?;
        if name == BASE_ALLOCATION {
            self.base_allocation = Some(id);
        }
        Ok(())
    }

    fn listed(&mut self, reply: &RawReply<'_>) -> Result<(), ProtocolError> {
        if self.listed.len() == LISTED_EXPORTS_MAX {
            return Err(ProtocolError::TooManyOptionReplies { option: reply.option });
        }
        self.listed.push(reply.listed_export()?);
        Ok(())
    }

    fn count_reply(&mut self, reply: &RawReply<'_>) -> Result<(), ProtocolError> {
        self.info_replies += 1;
        if self.info_replies > INFO_REPLIES_MAX {
            return Err(ProtocolError::TooManyOptionReplies { option: reply.option });
        }
        Ok(())
    }

    fn ready(&mut self, reply: &RawReply<'_>) -> Result<ClientStep, ProtocolError> {
        if self.facts.size_and_flags.is_none() {
            return Err(reply.malformed("the export's size was never told"));
        }
        Ok(self.agreed())
    }

    /// The end, once the size is known.
    fn agreed(&mut self) -> ClientStep {
        self.state = State::Over;
        let facts = std::mem::take(&mut self.facts);
        let export = facts.into_export(self.export()).expect("the caller saw the size");
        ClientStep::Ready(Negotiated {
            export,
            structured_replies: self.structured_replies,
            base_allocation: self.base_allocation,
        })
    }

    fn send_export_name(&mut self, out: &mut Vec<u8>) {
        put_option(out, opt::EXPORT_NAME, self.export().as_bytes());
        self.state = State::ExportName { zeroes: !self.no_zeroes };
    }

    /// Size, flags, and 124 zeroes where they were not done without ("Newstyle negotiation").
    fn export_name_answer(&mut self, input: &[u8], zeroes: bool) -> (usize, ClientStep) {
        let message_bytes = if zeroes { 8 + 2 + 124 } else { 8 + 2 };
        let mut cursor = Cursor::new(input);
        let (Some(size), Some(flags), true) = (cursor.u64(), cursor.u16(), input.len() >= message_bytes)
        else {
            return (0, ClientStep::NeedMore);
        };
        self.facts.size_and_flags = Some((size, flags));
        (message_bytes, self.agreed())
    }
}

/// What an error reply means ("Option reply types").
fn refusal_reason(reply: u32) -> &'static str {
    match reply {
        rep::ERR_UNSUP => "the option is not supported",
        rep::ERR_POLICY => "forbidden by policy",
        rep::ERR_INVALID => "invalid request",
        rep::ERR_TLS_REQD => "TLS is required, which this client does not support",
        rep::ERR_UNKNOWN => "no such export",
        rep::ERR_SHUTDOWN => "the server is shutting down",
        rep::ERR_BLOCK_SIZE_REQD => "block size negotiation is required",
        _ => "unknown reason",
    }
}
