//! Errors as clients receive them: `kind: Status`.
//!
//! Clients branch on `code`, `reason` and `details`, people read `message`; all four are built here only.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::registry::validation::Errors;

/// An error of the API, as clients receive it.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason; empty for errors that upstream does not classify.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// The object that the error is about.
    pub details: Option<Map<String, Value>>,
}

/// The object that an error is about: `details.{name,group,kind}`.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural resource, or the Kind in validation errors.
    pub kind: &'a str,
    /// The name of the object; empty for a collection.
    pub name: &'a str,
}

impl About<'_> {
    fn details(self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        details
    }

    /// Returns `deployments.apps`, or `pods` in the core group.
    pub fn qualified(self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

impl Status {
    /// Creates an error without details.
    pub fn plain(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), message: message.into(), details: None }
    }

    fn about(code: u16, reason: &'static str, about: About<'_>, message: String) -> Self {
        Self { code, reason: reason.into(), message, details: Some(about.details()) }
    }

    /// 400: the request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// 401: the credentials are not known.
    pub fn unauthorized() -> Self {
        Self::plain(401, "Unauthorized", "Unauthorized")
    }

    /// 403: the request is refused for a reason.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let subject = match (about.kind, about.name) {
            ("", _) => String::new(),
            (_, "") => format!("{} is ", about.qualified()),
            (_, name) => format!("{} {name:?} is ", about.qualified()),
        };
        Self::about(403, "Forbidden", about, format!("{subject}forbidden: {why}"))
    }

    /// 404: the object does not exist.
    pub fn not_found(about: About<'_>) -> Self {
        let message = format!("{} {:?} not found", about.qualified(), about.name);
        Self::about(404, "NotFound", about, message)
    }

    /// 404: the server has no such resource.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self { code: 404, reason: "NotFound".into(), message, details: Some(Map::new()) }
    }

    /// 405: the resource has no such verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource".to_owned();
        Self { code: 405, reason: "MethodNotAllowed".into(), message, details: Some(Map::new()) }
    }

    /// 405 of a resource that exists but does not do this.
    pub fn not_supported(about: About<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{}\"", about.qualified());
        Self::about(405, "MethodNotAllowed", About { name: "", ..about }, message)
    }

    /// 409: the name is taken.
    pub fn already_exists(about: About<'_>, prefix: &str) -> Self {
        let message = format!("{prefix}{} {:?} already exists", about.qualified(), about.name);
        Self::about(409, "AlreadyExists", about, message)
    }

    /// 409: another writer was faster, or a precondition does not hold.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::about(409, "Conflict", about, message)
    }

    /// 410: the history that was asked for is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// 422: the object breaks rules; `about.kind` is the Kind.
    pub(crate) fn invalid(about: About<'_>, errors: &Errors) -> Self {
        let text = errors.summary();
        let message = format!("{} {:?} is invalid: {text}", about.qualified(), about.name);
        Self::about(422, "Invalid", about, message).causes(errors.causes())
    }

    /// 500 without a reason, as upstream answers some errors.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    /// 500 with the reason `InternalError`.
    pub fn internal_error(why: impl std::fmt::Display) -> Self {
        let message = format!("Internal error occurred: {why}");
        Self::plain(500, "InternalError", message).causes(vec![json!({"message": why.to_string()})])
    }

    /// Adds `details.causes`.
    #[must_use]
    pub fn causes(mut self, causes: Vec<Value>) -> Self {
        if !causes.is_empty() {
            self.details.get_or_insert_default().insert("causes".into(), causes.into());
        }
        self
    }

    /// Adds `details.retryAfterSeconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().insert("retryAfterSeconds".into(), seconds.into());
        self
    }

    /// Adds empty details, where upstream has them.
    #[must_use]
    pub fn with_details(mut self) -> Self {
        self.details.get_or_insert_default();
        self
    }

    /// Returns the `Status` object.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("kind".into(), "Status".into());
        map.insert("apiVersion".into(), "v1".into());
        map.insert("metadata".into(), json!({}));
        map.insert("status".into(), "Failure".into());
        if !self.message.is_empty() {
            map.insert("message".into(), self.message.as_str().into());
        }
        if !self.reason.is_empty() {
            map.insert("reason".into(), self.reason.as_ref().into());
        }
        if let Some(details) = &self.details {
            map.insert("details".into(), Value::Object(details.clone()));
        }
        map.insert("code".into(), self.code.into());
        Value::Object(map)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} {})", self.message, self.code, self.reason)
    }
}

impl std::error::Error for Status {}
