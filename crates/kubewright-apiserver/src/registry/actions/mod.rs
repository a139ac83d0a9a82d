//! Subresources with an implementation of their own, and reviews, which are answered and not stored.

mod binding;
mod eviction;
mod finalize;
mod kubelet;
mod reviews;
mod scale;
mod token;

use serde_json::Value;

pub(crate) use self::scale::{of as scale_of, scale_type, selector_text, with_replicas};

use super::{
    Registry,
    call::{Answer, Call},
    descriptor::Json,
};
use crate::{
    admission::{Attributes, Operation},
    authn::Authenticator,
    authz::Authorizer,
    status::Status,
};

/// The authenticator and the authorizer, for reviews and token requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccessControl<'a> {
    pub(crate) authenticator: &'a Authenticator,
    pub(crate) authorizer: &'a Authorizer,
}

impl Registry {
    /// Answers a POST to a resource that is not stored: reviews and bindings. `None` for all others.
    pub(crate) async fn review(
        &self,
        call: &Call<'_>,
        body: &Json,
        access: AccessControl<'_>,
    ) -> Option<Result<Answer, Status>> {
        Some(match (call.ty.group.as_ref(), call.ty.plural.as_ref()) {
            ("", "bindings") => {
                let bound = self.admitted(call, Operation::Create, body).await;
                match bound {
                    Ok(body) => self.bind(call, super::json::name(&body), &body).await,
                    Err(refusal) => Err(refusal),
                }
            }
            ("authentication.k8s.io", "selfsubjectreviews") => Ok(self.self_subject_review(call)),
            ("authentication.k8s.io", "tokenreviews") => self.token_review(access.authenticator, call, body),
            ("authorization.k8s.io", "selfsubjectrulesreviews") => {
                reviews::rules_review(access.authorizer, call, body)
            }
            ("authorization.k8s.io", _) => self.access_review(access.authorizer, call, body),
            _ => return None,
        })
    }

    /// Creates a subresource: POST to `binding`, `eviction`, `token`, `exec`, ….
    pub(crate) async fn create_subresource(
        &self,
        call: &Call<'_>,
        body: &Json,
        access: AccessControl<'_>,
    ) -> Result<Answer, Status> {
        let operation = match call.subresource {
            "exec" | "attach" | "portforward" | "proxy" => Operation::Connect,
            _ => Operation::Create,
        };
        let body = &self.admitted(call, operation, body).await?;
        match call.subresource {
            "binding" => {
                let named = super::json::name(body);
                if !named.is_empty() && named != call.name {
                    return Err(Status::bad_request("name in URL does not match name in Binding object"));
                }
                self.bind(call, call.name, body).await
            }
            "eviction" => self.evict(call, body).await,
            "token" => self.issue_token(access.authenticator.issuer(), call, body),
            "exec" | "attach" | "portforward" | "proxy" => self.connect(call),
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// Returns the body as the admission plugins leave it.
    async fn admitted(&self, call: &Call<'_>, operation: Operation, body: &Json) -> Result<Json, Status> {
        let mut attributes = Attributes::new(call, operation, body.clone(), None);
        call.admit(&mut attributes).await?;
        call.validate(&attributes).await?;
        Ok(attributes.into_object())
    }

    /// Answers a GET of a subresource that does not show the object itself. `None` for all others.
    pub(crate) fn get_subresource<'q>(
        &self,
        call: &Call<'_>,
        query: impl Iterator<Item = (&'q str, &'q str)>,
    ) -> Option<Result<Answer, Status>> {
        match call.subresource {
            "scale" => Some(
                self.find(call)
                    .and_then(|object| scale::of(call.ty, &call.ty.decode(&object)))
                    .map(Answer::value),
            ),
            "log" => Some(self.log(call, query)),
            "exec" | "attach" | "portforward" | "proxy" => Some(self.connect(call)),
            _ => None,
        }
    }
}

/// Returns `kind: Status, status: Success` with code 201, the answer of actions.
fn done() -> Result<Answer, Status> {
    let Answer::Value { code, mut value } = Answer::success(201, None) else {
        return Err(Status::internal("success is a value"));
    };
    if let Value::Object(map) = &mut value {
        map.insert("code".into(), 201.into());
    }
    Ok(Answer::Value { code, value })
}
