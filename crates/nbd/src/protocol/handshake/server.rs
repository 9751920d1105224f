//! The server's side of the handshake.
//!
//! What cannot be framed or answered ends the connection; what is framed well but says nonsense gets
//! `REP_ERR_INVALID`, and the client may go on ("Termination of the session during option haggling").

use super::super::constants::{BASE_ALLOCATION, IHAVEOPT, INIT_PASSWD, handshake_flag, info, opt, rep};
use super::super::error::ProtocolError;
use super::super::export::{ExportDirectory, ExportInfo};
use super::super::limits::OPTIONS_MAX;
use super::super::transmission::BASE_ALLOCATION_ID;
use super::super::wire::{Cursor, Put, string};
use super::option::{InfoRequest, MetaContextRequest, RawOption};
use super::server_reply::Replies;

/// What both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Index of the chosen export in the directory.
    pub export: usize,
    /// Replies to reads are structured.
    pub structured_replies: bool,
    /// The client may ask for the block status (context `base:allocation`).
    pub block_status: bool,
}

/// Where the handshake stands after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// No whole message is there: receive more.
    NeedMore,
    /// One message is done: send what was written, then call again.
    Continue,
    /// The handshake is over: send what was written, then serve requests.
    Transmission(Session),
    /// The client gave up in good order: send what was written, then close.
    Aborted,
}

/// State of one connection's handshake.
#[derive(Debug, Default)]
pub struct ServerHandshake {
    client_flags: Option<u16>,
    options_seen: u32,
    structured_replies: bool,
    /// The name of the export whose block status the client selected: exports may come and go meanwhile.
    block_status_of: Option<String>,
}

impl ServerHandshake {
    /// What the server sends first: both magic numbers and its flags ("Newstyle negotiation").
    pub fn greeting() -> [u8; 18] {
        let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
        let mut greeting = [0; 18];
        greeting[..8].copy_from_slice(&INIT_PASSWD.to_be_bytes());
        greeting[8..16].copy_from_slice(&IHAVEOPT.to_be_bytes());
        greeting[16..].copy_from_slice(&flags.to_be_bytes());
        greeting
    }

    /// Handles the first message of `input`, if it is whole; appends the answer to `out`. Returns how many bytes
    /// of `input` are done with.
    ///
    /// # Errors
    /// Where the connection must be closed without a further word.
    pub fn advance<D: ExportDirectory + ?Sized>(
        &mut self,
        input: &[u8],
        exports: &D,
        out: &mut Vec<u8>,
    ) -> Result<(usize, ServerStep), ProtocolError> {
        let Some(flags) = self.client_flags else { return self.client_flags(input) };
        let Some(raw) = RawOption::parse(input)? else { return Ok((0, ServerStep::NeedMore)) };
        self.options_seen += 1;
        if self.options_seen > OPTIONS_MAX {
            return Err(ProtocolError::TooManyOptions);
        }
        if flags & handshake_flag::FIXED_NEWSTYLE == 0 && raw.option != opt::EXPORT_NAME {
            return Err(ProtocolError::OptionNeedsFixedNewstyle { option: raw.option });
        }
        let step = match raw.option {
            opt::EXPORT_NAME => self.export_name(raw.data, flags, exports, out)?,
            option => self.option(option, raw.data, exports, Replies { out, option }),
        };
        Ok((raw.message_bytes(), step))
    }

    /// 32 bits; anything but the two bits offered ends the session ("Client flags").
    fn client_flags(&mut self, input: &[u8]) -> Result<(usize, ServerStep), ProtocolError> {
        let Some(flags) = Cursor::new(input).u32() else { return Ok((0, ServerStep::NeedMore)) };
        let known = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
        let known = u16::try_from(flags).ok().filter(|flags| flags & !known == 0);
        self.client_flags = Some(known.ok_or(ProtocolError::UnknownClientFlags { flags })?);
        Ok((4, ServerStep::Continue))
    }

    /// `EXPORT_NAME` has no error reply: what it asks for is granted or the session ends.
    fn export_name<D: ExportDirectory + ?Sized>(
        &self,
        data: &[u8],
        client_flags: u16,
        exports: &D,
        out: &mut Vec<u8>,
    ) -> Result<ServerStep, ProtocolError> {
        let name = string(data).map_err(ProtocolError::BadExportName)?;
        let index =
            exports.find(name).ok_or_else(|| ProtocolError::UnknownExport { name: name.to_owned() })?;
        let export = exports.export(index);
        out.put_u64(export.size_bytes);
        out.put_u16(export.features.to_wire(self.structured_replies));
        if client_flags & handshake_flag::NO_ZEROES == 0 {
            out.put(&[0; 124]);
        }
        Ok(self.transmission(index, exports))
    }

    fn transmission<D: ExportDirectory + ?Sized>(&self, export: usize, exports: &D) -> ServerStep {
        // Contexts were selected for one export; another export goes without ("SET_META_CONTEXT").
        let block_status = self.block_status_of.as_ref() == Some(&exports.export(export).name);
        ServerStep::Transmission(Session {
            export,
            structured_replies: self.structured_replies,
            block_status,
        })
    }

    fn option<D: ExportDirectory + ?Sized>(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &D,
        mut replies: Replies<'_>,
    ) -> ServerStep {
        match option {
            opt::ABORT => {
                replies.ack();
                return ServerStep::Aborted;
            }
            opt::LIST if data.is_empty() => {
                (0..exports.count()).for_each(|index| replies.server(exports.export(index)));
                replies.ack();
            }
            opt::STRUCTURED_REPLY if data.is_empty() => {
                self.structured_replies = true;
                replies.ack();
            }
            opt::LIST | opt::STRUCTURED_REPLY => replies.error(rep::ERR_INVALID, "this option has no data"),
            opt::INFO | opt::GO => return self.info_or_go(data, exports, replies),
            opt::LIST_META_CONTEXT | opt::SET_META_CONTEXT => self.meta_context(data, exports, replies),
            // The mode without TLS ("NOTLS mode"): every other option works, this one does not.
            opt::STARTTLS => replies.error(rep::ERR_UNSUP, "this server does not support TLS"),
            opt::EXTENDED_HEADERS => replies.error(rep::ERR_UNSUP, "extended headers are not supported"),
            _ => replies.error(rep::ERR_UNSUP, "unknown option"),
        }
        ServerStep::Continue
    }

    fn info_or_go<D: ExportDirectory + ?Sized>(
        &mut self,
        data: &[u8],
        exports: &D,
        mut replies: Replies<'_>,
    ) -> ServerStep {
        let request = match InfoRequest::parse(data) {
            Ok(request) => request,
            Err(reason) => {
                replies.error(rep::ERR_INVALID, reason);
                return ServerStep::Continue;
            }
        };
        let Some(index) = exports.find(request.name) else {
            replies.error(rep::ERR_UNKNOWN, &format!("no export {:?}", request.name));
            return ServerStep::Continue;
        };
        self.describe(exports.export(index), &request, &mut replies);
        replies.ack();
        if replies.option == opt::GO { self.transmission(index, exports) } else { ServerStep::Continue }
    }

    /// `INFO_EXPORT` always; the block sizes always too, since a client that did not ask is better off knowing;
    /// name and description where asked for.
    fn describe(&self, export: &ExportInfo, request: &InfoRequest<'_>, replies: &mut Replies<'_>) {
        replies.info_export(export, self.structured_replies);
        replies.info_block_size(export);
        if request.wants_name {
            replies.info_text(info::NAME, &export.name);
        }
        if request.wants_description && !export.description.is_empty() {
            replies.info_text(info::DESCRIPTION, &export.description);
        }
    }

    fn meta_context<D: ExportDirectory + ?Sized>(
        &mut self,
        data: &[u8],
        exports: &D,
        mut replies: Replies<'_>,
    ) {
        let set = replies.option == opt::SET_META_CONTEXT;
        if set {
            // Every selection replaces the one before, a failed one too.
            self.block_status_of = None;
        }
        if !self.structured_replies {
            return replies.error(rep::ERR_INVALID, "negotiate structured replies first");
        }
        let request = match MetaContextRequest::parse(data) {
            Ok(request) => request,
            Err(reason) => return replies.error(rep::ERR_INVALID, reason),
        };
        let Some(index) = exports.find(request.name) else {
            return replies.error(rep::ERR_UNKNOWN, &format!("no export {:?}", request.name));
        };
        if set && request.any(|query| query == BASE_ALLOCATION) {
            self.block_status_of = Some(exports.export(index).name.clone());
            replies.base_allocation(BASE_ALLOCATION_ID);
        }
        // A list without queries means all contexts, and the bare namespace means all within it.
        let listed = |query: &str| query == BASE_ALLOCATION || query == "base:";
        if !set && (!request.has_queries() || request.any(listed)) {
            replies.base_allocation(0);
        }
        replies.ack();
    }
}
