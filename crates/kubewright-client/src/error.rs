//! What can go wrong between us and the API server, and how to ask an error what it was.
//!
//! [`ApiError`] is the error of the REST, dynamic and discovery clients. It names the operation and, where
//! the server refused, carries the [`Status`] it answered with. [`Refusal`] is the set of questions that
//! client-go's `apierrors` package answers (`IsNotFound`, `IsConflict`, …); it works on [`ApiError`] and on
//! the [`kube::Error`] that [`Api<K>`](kube::Api) returns, so one `if error.is_not_found()` serves both.
//!
//! # Pitfalls
//! - Bodies may be Secrets. No variant here carries one: what a body failed to be is told by its length,
//!   media type and the place of the fault, never by its text. The one text that does pass is
//!   `Status.message`.
//! - `kube::core::Status::is_not_found` and its sisters look at the reason alone in kube 5.0, so a plain-text
//!   404 of a proxy is not "not found" to them. [`Refusal`] falls back to the code as client-go does.

mod refusal;

use std::{error::Error as StdError, fmt};

use http::StatusCode;
use kube::core::Status;

pub use self::refusal::Refusal;
pub(crate) use self::refusal::{generic_status, set_retry_after};

/// Why an operation against the API server failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The server answered, and the answer is no.
    #[error("{operation}: {}", describe(.status))]
    Status {
        /// Verb and path, for example `GET /api/v1/nodes/n1`.
        operation: String,
        /// What the server said, or what its code means where it did not send a `Status`.
        status: Box<Status>,
    },
    /// The request could not be put together; nothing was sent.
    #[error("{operation}: not sent: {reason}")]
    Request {
        /// Verb and, as far as it is known, path.
        operation: String,
        /// What is wrong and how to put it right.
        reason: String,
    },
    /// No answer came.
    #[error("{operation}: no answer from the API server: {source}")]
    Transport {
        /// Verb and path.
        operation: String,
        /// What the transport reported.
        source: TransportFault,
    },
    /// The answer began and broke off.
    #[error("{operation}: the answer broke off after {received} bytes")]
    Interrupted {
        /// Verb and path.
        operation: String,
        /// How much had arrived.
        received: u64,
        /// What the transport reported, unless the stream just ended in the middle of an object.
        source: Option<TransportFault>,
    },
    /// The answer came whole and is not what was asked for.
    #[error("{operation}: the answer is not a {expected}: {fault}")]
    Decode {
        /// Verb and path.
        operation: String,
        /// The Rust type that was asked for.
        expected: &'static str,
        /// Where it went wrong.
        fault: DecodeFault,
    },
}

impl ApiError {
    /// The error of a body that is no `T`; it names the position and never the content.
    pub fn decode<T>(operation: &str, error: &serde_json::Error) -> Self {
        Self::Decode {
            operation: operation.to_owned(),
            expected: std::any::type_name::<T>(),
            fault: DecodeFault::from(error),
        }
    }

    /// The error of a request that got no answer.
    pub fn transport(operation: &str, error: kube::Error) -> Self {
        Self::Transport { operation: operation.to_owned(), source: TransportFault::from(error) }
    }
}

/// Where a document stopped being what was expected. Never its text: that may be a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeFault {
    what: String,
    line: usize,
    column: usize,
}

impl DecodeFault {
    /// The line of the fault, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column of the fault, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl From<&serde_json::Error> for DecodeFault {
    fn from(error: &serde_json::Error) -> Self {
        let what = match error.classify() {
            serde_json::error::Category::Io => "it could not be read".to_owned(),
            serde_json::error::Category::Syntax => "it is not valid JSON".to_owned(),
            serde_json::error::Category::Eof => "the JSON ends too early".to_owned(),
            serde_json::error::Category::Data => {
                // serde quotes the offending value in most messages. A missing field is named after our own
                // type, so that one message is safe to repeat, and it is the one that people need most.
                let text = error.to_string();
                match text.strip_prefix("missing field `").and_then(|rest| rest.split_once('`')) {
                    Some((field, _)) => format!("field {field:?} is missing"),
                    None => "a value has the wrong type or range".to_owned(),
                }
            }
        };
        Self { what, line: error.line(), column: error.column() }
    }
}

impl fmt::Display for DecodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}, column {})", self.what, self.line, self.column)
    }
}

/// What the transport reported, with credentials taken out.
///
/// kube's errors of credential plugins quote what the plugin printed, and that may be the token itself. Those
/// are replaced by a summary; every other error is kept as it is, reachable through
/// [`source`](std::error::Error::source).
#[derive(Debug)]
pub struct TransportFault {
    text: String,
    source: Option<kube::Error>,
}

impl From<kube::Error> for TransportFault {
    fn from(error: kube::Error) -> Self {
        match auth_error(&error) {
            Some(auth) => Self { text: summary(auth), source: None },
            None => Self { text: error.to_string(), source: Some(error) },
        }
    }
}

impl fmt::Display for TransportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for TransportFault {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // Our text is that of the error itself: its own source comes next.
        self.source.as_ref().and_then(StdError::source)
    }
}

/// The credential error inside a chain of errors, if there is one.
pub(crate) fn auth_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a kube::client::AuthError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(auth) = error.downcast_ref::<kube::client::AuthError>() {
            return Some(auth);
        }
        next = error.source();
    }
    None
}

/// What can be said of a credential error without repeating what a plugin printed.
pub(crate) fn summary(error: &kube::client::AuthError) -> String {
    use kube::client::AuthError as Auth;
    match error {
        Auth::AuthExecRun { out, .. } => {
            format!("the credential plugin failed ({}); run it by hand to see why", out.status)
        }
        Auth::AuthExecStart(error) => format!("the credential plugin could not be started: {error}"),
        Auth::AuthExecParse(_) | Auth::ParseTokenKey(_) | Auth::AuthExec(_) => {
            "the credential plugin printed something that is not a credential".to_owned()
        }
        Auth::ReadTokenFile(error, path) => {
            format!("the token file {} could not be read: {error}", path.display())
        }
        Auth::ExecPluginFailed => "the credential plugin answered without a status".to_owned(),
        Auth::MissingCommand => "the user's exec section names no command".to_owned(),
        Auth::InvalidBasicAuth(_) | Auth::InvalidBearerToken(_) => {
            "the credentials contain a character that no HTTP header may have".to_owned()
        }
        _ => "the credentials could not be refreshed".to_owned(),
    }
}

/// An error as a log may have it: without what a credential plugin printed.
pub fn plain_text(error: &kube::Error) -> String {
    auth_error(error).map_or_else(|| error.to_string(), summary)
}

/// A refusal in one line: what the server said, and the code behind it.
fn describe(status: &Status) -> String {
    let code = match StatusCode::from_u16(status.code) {
        Ok(code) => code.to_string(),
        Err(_) => status.code.to_string(),
    };
    match (status.message.is_empty(), status.reason.is_empty()) {
        (false, _) => format!("{} ({code})", status.message),
        (true, false) => format!("{} ({code})", status.reason),
        (true, true) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decode_fault_names_a_missing_field_and_never_a_value() {
        #[derive(Debug, serde::Deserialize)]
        struct Wanted {
            #[allow(dead_code)]
            count: u32,
        }
        let fault =
            |text: &str| DecodeFault::from(&serde_json::from_str::<Wanted>(text).unwrap_err()).to_string();
        assert!(fault("{}").contains("field \"count\" is missing"));
        assert!(fault(r#"{"count":"#).contains("ends too early"));
        for secret in
            [r#"{"count":"hunter2"}"#, r#"{"count":-777777}"#, "hunter2", "\"missing field `hunter2`\""]
        {
            let text = fault(secret);
            assert!(!text.contains("hunter2") && !text.contains("777777"), "{text}");
        }
    }

    #[test]
    fn what_a_credential_plugin_printed_is_not_repeated() {
        use std::os::unix::process::ExitStatusExt;
        let out = std::process::Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: b"token: hunter2".to_vec(),
            stderr: b"hunter2".to_vec(),
        };
        let auth = kube::client::AuthError::AuthExecRun {
            cmd: "plugin --secret hunter2".into(),
            out: Box::new(out),
        };
        let error = ApiError::transport("GET /api", kube::Error::Auth(auth));
        let text = format!("{error} {error:?} {:?}", error.source());
        assert!(!text.contains("hunter2") && !text.contains("104, 117, 110"), "{text}");
        assert!(text.contains("credential plugin failed"), "{text}");
    }
}
