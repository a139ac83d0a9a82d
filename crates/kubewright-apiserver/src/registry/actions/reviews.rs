//! Reviews: the calling user, access of users, owners of tokens.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    authn::{Authenticator, User},
    authz::{Access, Authorizer},
    registry::{
        Registry,
        call::{Answer, Call},
        json::{Json, list, meta, object, text},
        schematic,
        semantics::Manager,
        validation::Errors,
    },
    status::{About, Status},
};

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn refuse(errors: &Errors) -> Status {
    // Upstream leaves the kind out here.
    Status::invalid(About { group: "authorization.k8s.io", kind: "", name: "" }, errors)
}

impl Registry {
    pub(super) fn self_subject_review(&self, call: &Call<'_>) -> Answer {
        Answer::created(json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": self.now()}, "status": {"userInfo": user_info(call.user)},
        }))
    }

    /// Returns the metadata of a review with `managedFields`, which upstream records even here.
    fn tracked_metadata(&self, call: &Call<'_>, metadata: Value, spec: &Json) -> Value {
        let mut asked = Json::new();
        asked.insert("kind".into(), call.ty.kind.as_ref().into());
        asked.insert("apiVersion".into(), call.ty.api_version().into());
        asked.insert("metadata".into(), metadata);
        asked.insert("spec".into(), Value::Object(spec.clone()));
        schematic::canonicalise(call.ty, &mut asked);
        let now = self.now();
        let manager =
            Manager { name: call.options.field_manager.as_str().into(), subresource: "", now: &now };
        schematic::track(call.ty, None, &mut asked, &manager);
        asked.remove("metadata").unwrap_or_default()
    }

    pub(super) fn token_review(
        &self,
        authenticator: &Authenticator,
        call: &Call<'_>,
        body: &Json,
    ) -> Result<Answer, Status> {
        let spec = object(body, "spec");
        let token = spec.map(|s| text(s, "token")).unwrap_or_default();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let asked = spec.map(|s| list(s, "audiences")).unwrap_or_default();
        let mut audiences: Vec<&str> = asked.iter().filter_map(Value::as_str).collect();
        if audiences.is_empty() {
            audiences.push(authenticator.issuer().name());
        }
        let status = match authenticator.token_for(token, &audiences) {
            Some((user, audiences)) => {
                json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
            }
            None => json!({"user": {}, "error": token_error(authenticator, token, &audiences)}),
        };
        let metadata = self.tracked_metadata(call, json!({}), spec.unwrap_or(&Json::new()));
        Ok(reviewed(call, metadata, spec, status))
    }

    /// Answers the three access reviews: of the calling user, of another user, of another user in a namespace.
    pub(super) fn access_review(
        &self,
        authorizer: &Authorizer,
        call: &Call<'_>,
        body: &Json,
    ) -> Result<Answer, Status> {
        let empty = Json::new();
        let spec = object(body, "spec").unwrap_or(&empty);
        let mut errors = Errors::default();
        let own = call.ty.kind == "SelfSubjectAccessReview";
        let user = if own { call.user.clone() } else { reviewed_user(spec, &mut errors) };
        let (resource, path) = (object(spec, "resourceAttributes"), object(spec, "nonResourceAttributes"));
        if resource.is_some() == path.is_some() {
            let value =
                path.map_or(Value::Null, |p| json!({"Path": text(p, "path"), "Verb": text(p, "verb")}));
            errors.invalid(
                "spec",
                value,
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            );
        }
        let mut metadata = json!({});
        if call.ty.kind == "LocalSubjectAccessReview" {
            metadata["namespace"] = call.namespace.into();
            let namespace = text(meta(body), "namespace");
            if !namespace.is_empty() && namespace != call.namespace {
                return Err(Status::bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request",
                ));
            }
            let named = resource.map(|r| text(r, "namespace")).unwrap_or_default();
            if named != call.namespace {
                errors.invalid("spec.resourceAttributes.namespace", named, "must match metadata.namespace");
            }
        }
        if !errors.is_empty() {
            return Err(refuse(&errors));
        }
        let access = match (resource, path) {
            (Some(r), _) => Access {
                verb: text(r, "verb"),
                group: text(r, "group"),
                version: text(r, "version"),
                resource: text(r, "resource"),
                subresource: text(r, "subresource"),
                namespace: text(r, "namespace"),
                name: text(r, "name"),
                path: "",
            },
            (_, Some(p)) => Access { verb: text(p, "verb"), path: text(p, "path"), ..Access::default() },
            _ => Access::default(),
        };
        let decision = authorizer.decide(&user, &access);
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = decision.reason.into();
        }
        let metadata = self.tracked_metadata(call, metadata, spec);
        Ok(reviewed(call, metadata, Some(spec), status))
    }
}

/// Answers a review of the rules of the calling user.
pub(super) fn rules_review(authorizer: &Authorizer, call: &Call<'_>, body: &Json) -> Result<Answer, Status> {
    let namespace = object(body, "spec").map(|s| text(s, "namespace")).unwrap_or_default();
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let rules = authorizer.rules(call.user, namespace);
    let (paths, resources): (Vec<_>, Vec<_>) = rules.iter().partition(|r| !r.urls.is_empty());
    let values = |rules: Vec<&crate::authz::Rule>| -> Vec<Value> {
        rules.into_iter().map(crate::authz::Rule::to_value).collect()
    };
    let status =
        json!({"resourceRules": values(resources), "nonResourceRules": values(paths), "incomplete": false});
    Ok(reviewed(call, json!({}), None, status))
}

/// Returns the review with its status.
fn reviewed(call: &Call<'_>, metadata: Value, spec: Option<&Json>, status: Value) -> Answer {
    let mut review = Json::new();
    review.insert("kind".into(), call.ty.kind.as_ref().into());
    review.insert("apiVersion".into(), call.ty.api_version().into());
    review.insert("metadata".into(), metadata);
    review.insert("spec".into(), Value::Object(spec.cloned().unwrap_or_default()));
    review.insert("status".into(), status);
    schematic::canonicalise(call.ty, &mut review);
    Answer::created(Value::Object(review))
}

/// Returns why a token is refused. For a token of this issuer that names the audiences it is for.
fn token_error(authenticator: &Authenticator, token: &str, asked: &[&str]) -> String {
    const WHY: &str = "invalid bearer token";
    let shown =
        |audiences: &[&str]| audiences.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(" ");
    let claims = authenticator.issuer().claims(token);
    let Some(named) = claims.as_ref().and_then(|claims| claims["aud"].as_array()) else {
        return WHY.to_owned();
    };
    let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
    if named.iter().any(|one| asked.contains(one)) {
        return WHY.to_owned();
    }
    format!(
        "[{WHY}, token audiences [{}] is invalid for the target audiences [{}]]",
        shown(&named),
        shown(asked)
    )
}

fn reviewed_user(spec: &Json, errors: &mut Errors) -> User {
    let groups: Vec<String> =
        list(spec, "groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let name = text(spec, "user");
    if name.is_empty() && groups.is_empty() {
        errors.invalid("spec.user", name, "at least one of user or group must be specified");
    }
    User { name: name.to_owned(), uid: text(spec, "uid").to_owned(), groups, extra: BTreeMap::new() }
}
