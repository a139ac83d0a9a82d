//! One webhook of a configuration: whom it is about, and how it is asked.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    Webhooks,
    review::{Answer, Question, rejection},
};
use crate::{
    admission::Context,
    admission::{
        Attributes,
        conditions::{Conditions, Inputs},
        matching::{namespace_selected, object_selected, rules_match},
    },
    registry::{
        descriptor::{Descriptor, Json},
        json::{list, name, object, objects, text},
    },
    status::Status,
};

/// Default time-out of webhooks in seconds.
const DEFAULT_LIMIT: u64 = 10;

/// One webhook of a configuration.
#[derive(Debug)]
pub(super) struct Hook {
    /// `configuration/name/position`.
    pub(super) key: String,
    pub(super) written: Json,
    conditions: Conditions,
}

/// The failure of a call of a webhook.
pub(super) enum Trouble {
    /// The webhook cannot be called, or its response is invalid: the failure policy decides.
    Calling(String),
    /// The write is refused, whatever the failure policy.
    Refused(Status),
}

impl Hook {
    /// The webhooks of a configuration, in order.
    pub(super) fn all(configuration: &Json) -> Vec<Self> {
        let one = |(n, written): (usize, &Json)| Self {
            key: format!("{}/{}/{n}", name(configuration), text(written, "name")),
            conditions: Conditions::compile(written, false),
            written: written.clone(),
        };
        objects(configuration, "webhooks").enumerate().map(one).collect()
    }

    pub(super) fn name(&self) -> &str {
        text(&self.written, "name")
    }

    fn ignores_failures(&self) -> bool {
        text(&self.written, "failurePolicy") == "Ignore"
    }

    /// The type as which a write is to be shown to this webhook; `None` when it is not asked.
    pub(super) fn selects(
        &self,
        context: &Context<'_>,
        attributes: &Attributes<'_>,
    ) -> Result<Option<Arc<Descriptor>>, Status> {
        let in_namespace = namespace_selected(&self.written, context, attributes);
        let is_object = object_selected(&self.written, attributes);
        if matches!(in_namespace, Ok(false)) || matches!(is_object, Ok(false)) {
            return Ok(None);
        }
        let policy = text(&self.written, "matchPolicy");
        let Some(ty) = rules_match(list(&self.written, "rules"), policy, context, attributes) else {
            return Ok(None);
        };
        in_namespace?;
        is_object?;
        if self.conditions.is_empty() {
            return Ok(Some(ty));
        }
        let inputs = Inputs::of(attributes, &ty);
        match self.conditions.hold(&inputs, context, attributes, self.ignores_failures()) {
            Ok(true) => Ok(Some(ty)),
            Ok(false) => Ok(None),
            Err(why) => Err(Status::forbidden(attributes.ty().about(attributes.name()), &why)),
        }
    }

    /// Asks; a refusal of the webhook is an error.
    pub(super) async fn ask(
        &self,
        webhooks: &Webhooks,
        ty: &Descriptor,
        context: &Context<'_>,
        attributes: &Attributes<'_>,
        mutating: bool,
    ) -> Result<Answer, Trouble> {
        if attributes.dry_run && !matches!(text(&self.written, "sideEffects"), "None" | "NoneOnDryRun") {
            let why = format!("admission webhook {:?} does not support dry run", self.name());
            return Err(Trouble::Refused(Status::bad_request(why)));
        }
        let question = Question::about(self, ty, attributes, context.random().uuid(), mutating)
            .map_err(|why| Trouble::Calling(format!("could not create admission objects: {why}")))?;
        let limit = self.written.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_LIMIT);
        let empty = Json::new();
        let config = object(&self.written, "clientConfig").unwrap_or(&empty);
        let review = webhooks
            .post(context.objects, config, Duration::from_secs(limit), &question.body)
            .await
            .map_err(Trouble::Calling)?;
        let answer = question
            .verify(&review)
            .map_err(|why| Trouble::Calling(format!("received invalid webhook response: {why}")))?;
        for warning in &answer.warnings {
            attributes.call.warn(warning.as_str());
        }
        if !answer.allowed {
            return Err(Trouble::Refused(rejection(self.name(), &answer.status)));
        }
        Ok(answer)
    }

    /// Applies the failure policy to a failed call.
    pub(super) fn settle(&self, trouble: Trouble) -> Result<(), Status> {
        match trouble {
            Trouble::Refused(status) => Err(status),
            Trouble::Calling(why) => {
                let why = format!("failed calling webhook {:?}: {why}", self.name());
                if self.ignores_failures() {
                    tracing::warn!(webhook = self.name(), why, "failing open");
                    return Ok(());
                }
                Err(Status::internal_error(why))
            }
        }
    }
}
