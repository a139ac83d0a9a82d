//! What only one subresource does, and resources that are questions rather than objects.

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
    status::Status,
};

impl Registry {
    /// POST to a resource that stores nothing: reviews and bindings. `None` when the resource stores.
    pub async fn ask(&self, call: &Call<'_>, body: &Json) -> Option<Result<Answer, Status>> {
        Some(match (call.ty.group.as_ref(), call.ty.plural.as_ref()) {
            ("", "bindings") => {
                let bound = self.admitted(call, Operation::Create, body).await;
                match bound {
                    Ok(body) => self.bind(call, super::json::name(&body), &body).await,
                    Err(refusal) => Err(refusal),
                }
            }
            ("authentication.k8s.io", "selfsubjectreviews") => Ok(self.who_am_i(call)),
            ("authentication.k8s.io", "tokenreviews") => self.token_review(call, body),
            ("authorization.k8s.io", "selfsubjectrulesreviews") => self.rules_review(call, body),
            ("authorization.k8s.io", _) => self.access_review(call, body),
            _ => return None,
        })
    }

    /// POST to a subresource.
    pub async fn act(&self, call: &Call<'_>, body: &Json) -> Result<Answer, Status> {
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
            "token" => self.issue_token(call, body),
            "exec" | "attach" | "portforward" | "proxy" => self.connect(call),
            _ => Err(Status::method_not_allowed()),
        }
    }

    /// What admission makes of something that is done to an object.
    async fn admitted(&self, call: &Call<'_>, operation: Operation, body: &Json) -> Result<Json, Status> {
        let mut attributes = Attributes::new(call, operation, body.clone(), None);
        self.admission.admit(self, &mut attributes).await?;
        self.admission.validate(self, &attributes).await?;
        Ok(attributes.into_object())
    }

    /// GET of a subresource that is not the object itself. `None` when it is.
    pub fn inspect<'q>(
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

/// `kind: Status, status: Success` with its code, as actions answer.
fn done() -> Result<Answer, Status> {
    let Answer::Value { code, mut value } = Answer::success(201, None) else {
        return Err(Status::internal("success is a value"));
    };
    if let Value::Object(map) = &mut value {
        map.insert("code".into(), 201.into());
    }
    Ok(Answer::Value { code, value })
}
