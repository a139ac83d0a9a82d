//! `serviceaccounts/token`: issues a token of an account, with an expiry and optionally bound to an object.

use kubewright_core::ObjectKey;
use serde_json::{Value, json};

use crate::{
    authn::service_account::Issuer,
    registry::{
        Registry,
        call::{Answer, Call},
        json::{Json, list, meta, object, text},
        validation::Errors,
    },
    status::{About, Status},
};

const DEFAULT_SECONDS: i64 = 3600;
const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;

impl Registry {
    pub(super) fn issue_token(
        &self,
        issuer: &Issuer,
        call: &Call<'_>,
        request: &Json,
    ) -> Result<Answer, Status> {
        let empty = Json::new();
        let spec = object(request, "spec").unwrap_or(&empty);
        let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_SECONDS);
        let account = self.find(call)?;
        let mut errors = Errors::default();
        if seconds < LEAST_SECONDS {
            errors.invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration less than 10 minutes",
            );
        }
        if seconds > MOST_SECONDS {
            errors.invalid(
                "spec.expirationSeconds",
                seconds,
                "may not specify a duration larger than 2^32 seconds",
            );
        }
        if !errors.is_empty() {
            let about = About { group: "authentication.k8s.io", kind: "TokenRequest", name: "" };
            return Err(Status::invalid(about, &errors));
        }
        let named = text(meta(request), "name");
        if !named.is_empty() && named != call.name {
            errors.invalid("metadata.name", named, "must match the service account name if specified");
            let about = About { group: "authentication.k8s.io", kind: "TokenRequest", name: call.name };
            return Err(Status::invalid(about, &errors));
        }
        let mut private = json!({
            "namespace": call.namespace,
            "serviceaccount": {"name": call.name, "uid": account.meta.uid.as_ref()},
        });
        if let Some(bound) = object(spec, "boundObjectRef") {
            let (key, reference) = self.bound(call, bound)?;
            private[key] = reference;
        }
        let now = self.clock.now();
        let until = now + jiff::SignedDuration::from_secs(seconds);
        let mut audiences = list(spec, "audiences").to_vec();
        if audiences.is_empty() {
            audiences.push(issuer.name().into());
        }
        let claims = json!({
            "aud": audiences, "exp": until.as_second(), "iat": now.as_second(), "nbf": now.as_second(),
            "iss": issuer.name(), "jti": self.random.uuid(), "kubernetes.io": private,
            "sub": format!("system:serviceaccount:{}:{}", call.namespace, call.name),
        });
        let token = issuer.sign(&claims).ok_or_else(|| Status::internal("the token could not be signed"))?;
        let mut answered = json!({"audiences": audiences, "expirationSeconds": seconds});
        answered["boundObjectRef"] = spec.get("boundObjectRef").cloned().unwrap_or_default();
        Ok(Answer::created(json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": call.name, "namespace": call.namespace, "uid": account.meta.uid.as_ref(),
                "creationTimestamp": crate::clock::seconds(now),
                "managedFields": [managed(call, spec, &crate::clock::seconds(now))],
            },
            "spec": answered,
            "status": {"token": token, "expirationTimestamp": crate::clock::seconds(until)},
        })))
    }

    /// Returns the claim of the object that a token is bound to, which must exist.
    fn bound(&self, call: &Call<'_>, bound: &Json) -> Result<(&'static str, Value), Status> {
        let (key, plural) = match (text(bound, "apiVersion"), text(bound, "kind")) {
            ("v1", "Pod") => ("pod", "pods"),
            ("v1", "Secret") => ("secret", "secrets"),
            ("v1", "Node") => ("node", "nodes"),
            (version, kind) => {
                return Err(Status::bad_request(format!(
                    "cannot bind token to object of type {version}, Kind={kind}"
                )));
            }
        };
        let name = text(bound, "name");
        let place = if plural == "nodes" {
            ObjectKey::cluster(name)
        } else {
            ObjectKey::namespaced(call.namespace, name)
        };
        let found = self.storage.get(plural, &place);
        let found = found.ok_or_else(|| Status::not_found(About { group: "", kind: plural, name }))?;
        let uid = text(bound, "uid");
        if !uid.is_empty() && uid != found.meta.uid.as_ref() {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might \
                 have been deleted and then recreated"
            );
            return Err(Status::conflict(About { group: "", kind: text(bound, "kind"), name }, &why));
        }
        Ok((key, json!({"name": name, "uid": found.meta.uid.as_ref()})))
    }
}

/// Returns the `managedFields` entry of a token request, which upstream records although it is never stored.
fn managed(call: &Call<'_>, spec: &Json, now: &str) -> Value {
    let mut fields = json!({"f:expirationSeconds": {}});
    if !list(spec, "audiences").is_empty() {
        fields["f:audiences"] = json!({});
    }
    for key in object(spec, "boundObjectRef").into_iter().flat_map(Json::keys) {
        fields["f:boundObjectRef"][format!("f:{key}")] = json!({});
    }
    json!({
        "manager": call.options.field_manager, "operation": "Update",
        "apiVersion": "authentication.k8s.io/v1", "time": now,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}, "subresource": "token",
    })
}
