//! A request and a reply as they travel: with the version of their sender.
//!
//! Each is one line of JSON. The keys of the envelope and of the request, or of the reply, are on one level:
//! `{"api":1,"array":"a","request":"status"}` and `{"api":1,"done":"..."}`. The reply of a server to a request of another
//! version is `{"api":1,"refused":"..."}`, which clients of all versions show as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{AdminReply, AdminRequest, ApiVersion};

/// A request, who sends it, and which array it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestEnvelope {
    /// The version that the client speaks.
    #[serde(default = "ApiVersion::unnamed")]
    pub api: ApiVersion,
    /// The name of the array that is meant. None: the one that is served.
    #[serde(default)]
    pub array: Option<String>,
    /// What is asked.
    #[serde(flatten)]
    pub request: AdminRequest,
}

/// A reply, and who sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplyEnvelope {
    /// The version that the server speaks.
    #[serde(default = "ApiVersion::unnamed")]
    pub api: ApiVersion,
    /// What it answers.
    #[serde(flatten)]
    pub reply: AdminReply,
}

/// What every version has of a message: enough to know which version it is, and whether it was refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnyEnvelope {
    /// The version of the sender.
    #[serde(default = "ApiVersion::unnamed")]
    pub api: ApiVersion,
    /// Why the request was refused, in a reply.
    #[serde(default)]
    pub refused: Option<String>,
}

/// Client and server speak different versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherVersion {
    /// What the client speaks.
    pub client: ApiVersion,
    /// What the server speaks.
    pub server: ApiVersion,
}

impl RequestEnvelope {
    /// A request of this program.
    pub fn new(array: Option<String>, request: AdminRequest) -> RequestEnvelope {
        RequestEnvelope { api: ApiVersion::CURRENT, array, request }
    }
}

impl ReplyEnvelope {
    /// A reply of this program.
    pub fn new(reply: AdminReply) -> ReplyEnvelope {
        ReplyEnvelope { api: ApiVersion::CURRENT, reply }
    }
}

impl fmt::Display for OtherVersion {
    /// The fact and the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherVersion { client, server } = self;
        let older = if client < server { "command" } else { "server" };
        write!(
            f,
            "the command speaks API version {client} and the server speaks API version {server}; use the tier0 program of \
             the server, or "
        )?;
        match older {
            "command" => write!(f, "install its version for the command"),
            _ => write!(f, "restart the server with this program"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_version_of_its_sender() {
        let request = RequestEnvelope::new(Some("a".into()), AdminRequest::Status);
        let text = serde_json::to_string(&request).expect("JSON");
        assert_eq!(text, r#"{"api":1,"array":"a","request":"status"}"#);
        assert_eq!(serde_json::from_str::<RequestEnvelope>(&text).expect("it reads back"), request);
        let reply = ReplyEnvelope::new(AdminReply::Done("done".into()));
        let text = serde_json::to_string(&reply).expect("JSON");
        assert_eq!(text, r#"{"api":1,"done":"done"}"#);
        assert_eq!(serde_json::from_str::<ReplyEnvelope>(&text).expect("it reads back"), reply);
    }

    /// A message of a version that has other requests or replies is not readable, and its version is.
    #[test]
    fn the_version_of_a_message_of_another_version_is_known() {
        let of = |text: &str| serde_json::from_str::<AnyEnvelope>(text).expect("JSON").api;
        assert_eq!(of(r#"{"array":"a","request":"status"}"#), ApiVersion::UNNAMED);
        assert_eq!(of(r#"{"api":7,"array":"a","request":"dance","steps":[1]}"#), ApiVersion(7));
        let refused: AnyEnvelope = serde_json::from_str(r#"{"api":7,"refused":"no"}"#).expect("JSON");
        assert_eq!(refused.refused.as_deref(), Some("no"));
    }

    #[test]
    fn both_versions_and_the_remedy_are_told() {
        let told = OtherVersion { client: ApiVersion(1), server: ApiVersion(2) }.to_string();
        assert!(
            told.contains("API version 1") && told.contains("API version 2") && told.contains("; use"),
            "{told}"
        );
        assert!(told.contains("for the command"), "{told}");
        let told = OtherVersion { client: ApiVersion(2), server: ApiVersion(1) }.to_string();
        assert!(told.contains("restart the server"), "{told}");
    }
}
