//! `AdmissionReview`: what is asked and what is answered.

use std::borrow::Cow;

use base64::Engine;
use serde_json::{Value, json};

use super::hook::Hook;
use crate::{
    admission::{Attributes, request::describe},
    registry::{
        descriptor::Descriptor,
        json::{Json, list, object, text},
    },
    status::Status,
};

/// The versions of reviews that there are.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// A question, and what the answer must name.
pub(super) struct Question {
    pub(super) body: Value,
    uid: String,
    version: &'static str,
    mutating: bool,
}

/// An answer that is in order.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) status: Json,
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
}

impl Question {
    /// Asks a webhook about a write that matched as `ty`, in the first version that it knows.
    pub(super) fn about(
        hook: &Hook,
        ty: &Descriptor,
        attributes: &Attributes<'_>,
        uid: String,
        mutating: bool,
    ) -> Result<Self, String> {
        let known = list(&hook.written, "admissionReviewVersions")
            .iter()
            .find_map(|version| VERSIONS.into_iter().find(|known| version == known));
        let version = known.ok_or("webhook does not accept known AdmissionReview versions (v1, v1beta1)")?;
        let mut request = Json::new();
        request.insert("uid".into(), uid.as_str().into());
        request.extend(describe(attributes, ty));
        request.insert("object".into(), attributes.object_as(ty));
        request.insert("oldObject".into(), attributes.old_as(ty));
        let api_version = format!("admission.k8s.io/{version}");
        let body = json!({"kind": "AdmissionReview", "apiVersion": api_version, "request": request});
        Ok(Self { body, uid, version, mutating })
    }

    /// Checks an answer; the error is what follows `received invalid webhook response: `.
    pub(super) fn verify(&self, review: &Value) -> Result<Answer, String> {
        let empty = Json::new();
        let review = review.as_object().unwrap_or(&empty);
        let response = object(review, "response").ok_or("webhook response was absent")?;
        let (patch, kind) = (text(response, "patch"), response.get("patchType").and_then(Value::as_str));
        if self.version == "v1" {
            self.verify_v1(review, response, patch, kind)?;
        }
        let patch = base64::engine::general_purpose::STANDARD
            .decode(if self.mutating { patch } else { "" })
            .map_err(|error| format!("response.patch is not base64: {error}"))?;
        // The first version did not look at the type of a patch.
        let kind = if self.version == "v1" { kind.unwrap_or_default() } else { "JSONPatch" };
        let texts = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Answer {
            allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or_default(),
            status: object(response, "status").cloned().unwrap_or_default(),
            patch,
            patch_type: kind.to_owned(),
            warnings: list(response, "warnings").iter().filter_map(texts).collect(),
        })
    }

    fn verify_v1(
        &self,
        review: &Json,
        response: &Json,
        patch: &str,
        kind: Option<&str>,
    ) -> Result<(), String> {
        let uid = text(response, "uid");
        if uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
        }
        let (api_version, found) = (text(review, "apiVersion"), text(review, "kind"));
        if (api_version, found) != ("admission.k8s.io/v1", "AdmissionReview") {
            let shown: Cow<'_, str> = match api_version {
                "" => "/".into(),
                version if version.contains('/') => version.into(),
                version => format!("/{version}").into(),
            };
            return Err(format!(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={found}"
            ));
        }
        match (self.mutating, patch, kind) {
            (_, "", None) => Ok(()),
            (true, "", Some(_)) => Err("webhook returned response.patchType but not response.patch".into()),
            (true, _, None) => Err("webhook returned response.patch but not response.patchType".into()),
            (true, _, Some("")) => Err("webhook returned invalid response.patchType of \"\"".into()),
            (true, _, Some(_)) => Ok(()),
            (false, "", Some(_)) => Err("validating webhook may not return response.patchType".into()),
            (false, ..) => Err("validating webhook may not return response.patch".into()),
        }
    }
}

/// The refusal of a webhook, in its own words.
pub(super) fn rejection(hook: &str, status: &Json) -> Status {
    let denied = format!("admission webhook {hook:?} denied the request");
    let reason = text(status, "reason");
    let message = match (text(status, "message"), reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    let code = status.get("code").and_then(Value::as_u64).unwrap_or_default();
    let code = u16::try_from(code).ok().filter(|code| (400..600).contains(code)).unwrap_or(400);
    let mut out = Status::plain(code, reason.to_owned(), message);
    out.details = object(status, "details").cloned();
    out
}
