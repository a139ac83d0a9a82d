//! The server said no: what it meant.

use std::time::Duration;

use http::StatusCode;
use kube::core::{
    Status,
    response::{StatusDetails, StatusSummary, reason},
};

use super::ApiError;

/// The questions one asks a refusal, as client-go's `apierrors` package has them.
///
/// ```
/// use kubewright::client::Refusal;
/// use kubewright::kube::{Error, core::Status};
///
/// let error = Error::Api(Status::failure("pods \"web\" not found", "NotFound").with_code(404).boxed());
/// assert!(error.is_not_found());
/// assert!(!error.is_conflict());
/// ```
pub trait Refusal {
    /// The server's answer, if there was one and it was a refusal.
    fn status(&self) -> Option<&Status>;

    /// The object, or the whole resource, does not exist (404).
    fn is_not_found(&self) -> bool {
        refused(self.status(), reason::NOT_FOUND, StatusCode::NOT_FOUND)
    }

    /// An object of this name exists already (409 on create).
    fn is_already_exists(&self) -> bool {
        // Two reasons share code 409, so the code alone says nothing.
        self.status().is_some_and(|status| status.reason == reason::ALREADY_EXISTS)
    }

    /// The object has changed since it was read, or another field manager owns the field (409).
    fn is_conflict(&self) -> bool {
        refused(self.status(), reason::CONFLICT, StatusCode::CONFLICT)
    }

    /// The resource version or continue token asked for is too old (410, reasons `Expired` and `Gone`).
    fn is_gone(&self) -> bool {
        refused(self.status(), reason::EXPIRED, StatusCode::GONE)
            || refused(self.status(), reason::GONE, StatusCode::GONE)
    }

    /// The object is not valid (422).
    fn is_invalid(&self) -> bool {
        refused(self.status(), reason::INVALID, StatusCode::UNPROCESSABLE_ENTITY)
    }

    /// The request makes no sense to the server (400).
    fn is_bad_request(&self) -> bool {
        refused(self.status(), reason::BAD_REQUEST, StatusCode::BAD_REQUEST)
    }

    /// The server does not know who we are (401).
    fn is_unauthorized(&self) -> bool {
        refused(self.status(), reason::UNAUTHORIZED, StatusCode::UNAUTHORIZED)
    }

    /// The server knows who we are and we may not (403).
    fn is_forbidden(&self) -> bool {
        refused(self.status(), reason::FORBIDDEN, StatusCode::FORBIDDEN)
    }

    /// The namespace is being deleted and accepts no new objects (403 with the cause `NamespaceTerminating`).
    fn is_namespace_terminating(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        details
            .is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"))
    }

    /// The server asks to be left alone for a while (429). See [`retry_after`](Self::retry_after).
    fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(|status| {
            status.reason == reason::TOO_MANY_REQUESTS || status.code == StatusCode::TOO_MANY_REQUESTS
        })
    }

    /// The server is there and cannot serve now (503).
    fn is_service_unavailable(&self) -> bool {
        refused(self.status(), reason::SERVICE_UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE)
    }

    /// The server gave up on time (504, reasons `Timeout` and `ServerTimeout`).
    fn is_timeout(&self) -> bool {
        refused(self.status(), reason::TIMEOUT, StatusCode::GATEWAY_TIMEOUT)
            || self.status().is_some_and(|status| status.reason == reason::SERVER_TIMEOUT)
    }

    /// How long the server asks us to wait before trying again.
    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

/// The reason matches, or the reason is none that we know and the code matches.
fn refused(status: Option<&Status>, wanted: &str, code: StatusCode) -> bool {
    status.is_some_and(|status| {
        status.reason == wanted || (!reason::is_known(&status.reason) && code == status.code)
    })
}

impl Refusal for ApiError {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Status { status, .. } => Some(status),
            _ => None,
        }
    }
}

impl Refusal for kube::Error {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Api(status) => Some(status),
            _ => None,
        }
    }
}

/// The `Status` for an answer that came without one, from its code alone.
pub(crate) fn generic_status(code: StatusCode, creating: bool, message: String) -> Status {
    let reason = match code {
        StatusCode::BAD_REQUEST => reason::BAD_REQUEST,
        StatusCode::UNAUTHORIZED => reason::UNAUTHORIZED,
        StatusCode::FORBIDDEN => reason::FORBIDDEN,
        StatusCode::NOT_FOUND => reason::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED => reason::METHOD_NOT_ALLOWED,
        StatusCode::NOT_ACCEPTABLE => reason::NOT_ACCEPTABLE,
        StatusCode::CONFLICT if creating => reason::ALREADY_EXISTS,
        StatusCode::CONFLICT => reason::CONFLICT,
        StatusCode::GONE => reason::GONE,
        StatusCode::PAYLOAD_TOO_LARGE => reason::REQUEST_ENTITY_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => reason::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::UNPROCESSABLE_ENTITY => reason::INVALID,
        StatusCode::TOO_MANY_REQUESTS => reason::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR => reason::INTERNAL_ERROR,
        StatusCode::SERVICE_UNAVAILABLE => reason::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT => reason::TIMEOUT,
        _ => reason::UNKNOWN,
    };
    Status {
        status: Some(StatusSummary::Failure),
        code: code.as_u16(),
        message,
        metadata: None,
        reason: reason.to_owned(),
        details: None,
    }
}

/// Notes the server's wish to be left alone, from the `Retry-After` header, where the body had none.
pub(crate) fn set_retry_after(status: &mut Status, seconds: u32) {
    let details = status.details.get_or_insert_with(|| StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    });
    if details.retry_after_seconds == 0 {
        details.retry_after_seconds = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, reason: &str) -> kube::Error {
        kube::Error::Api(Status::failure("no", reason).with_code(code).boxed())
    }

    #[test]
    fn the_code_counts_only_where_the_reason_is_none_that_we_know() {
        assert!(answer(404, "NotFound").is_not_found());
        assert!(answer(404, "").is_not_found());
        assert!(answer(404, "Failed to parse error data").is_not_found());
        assert!(!answer(404, "Forbidden").is_not_found());
    }

    #[test]
    fn a_409_is_a_conflict_or_a_name_taken_but_not_both() {
        assert!(answer(409, "Conflict").is_conflict());
        assert!(!answer(409, "Conflict").is_already_exists());
        assert!(answer(409, "AlreadyExists").is_already_exists());
        assert!(!answer(409, "AlreadyExists").is_conflict());
        assert!(answer(409, "").is_conflict());
    }

    #[test]
    fn expired_and_gone_are_both_gone() {
        for reason in ["Expired", "Gone", ""] {
            assert!(answer(410, reason).is_gone(), "{reason:?}");
        }
    }

    #[test]
    fn errors_without_an_answer_are_no_refusal() {
        let error = ApiError::Request { operation: "GET /".into(), reason: "no".into() };
        assert!(error.status().is_none());
        assert!(!error.is_not_found() && !error.is_conflict() && error.retry_after().is_none());
    }
}
