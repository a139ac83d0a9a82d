//! `MutatingAdmissionWebhook`: servers that change.

use futures::future::BoxFuture;
use serde_json::Value;

use super::{
    Webhooks,
    hook::{Hook, Trouble},
    review::Answer,
};
use crate::{
    admission::Context,
    admission::{Attributes, RemotePlugin, cache::Compiled, matching::is_exempt, policy::with_defaults},
    patch::json as json_patch,
    registry::{
        descriptor::{Descriptor, Json},
        json::{meta, text},
    },
    status::Status,
};

const NAME: &str = "MutatingAdmissionWebhook";

/// The plugin.
#[derive(Debug)]
pub(crate) struct MutatingAdmissionWebhook {
    webhooks: Webhooks,
    configurations: Compiled<Vec<Hook>>,
}

impl MutatingAdmissionWebhook {
    /// Calls webhooks in the given way.
    pub(crate) fn new(webhooks: Webhooks) -> Self {
        let collection = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
        Self { webhooks, configurations: Compiled::new(collection, Hook::all) }
    }

    async fn ask_each(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        let configurations = self.configurations.all(context);
        if configurations.is_empty() {
            return Ok(());
        }
        attributes.show_managers();
        let again = attributes.rounds.again;
        if again && attributes.rounds.of(NAME).left.as_ref().is_some_and(|left| *left != attributes.object) {
            attributes.rounds.of(NAME).object_changed();
        }
        for hook in configurations.iter().flat_map(|hooks| hooks.iter()) {
            let Some(ty) = hook.selects(context, attributes)? else { continue };
            // A webhook that was not called in the first round is not called in the second.
            if again && !attributes.rounds.of(NAME).is_asked_again(&hook.key) {
                continue;
            }
            let asked = hook.ask(&self.webhooks, &ty, context, attributes, true).await;
            let changed = asked.and_then(|answer| change(hook, &answer, &ty, attributes));
            if let Ok(true) = changed {
                attributes.rounds.of(NAME).object_changed();
                attributes.rounds.wanted = true;
            }
            if text(&hook.written, "reinvocationPolicy") == "IfNeeded" {
                attributes.rounds.of(NAME).invoked(hook.key.clone());
            }
            if let Err(trouble) = changed {
                hook.settle(trouble)?;
            }
        }
        attributes.rounds.of(NAME).left = Some(attributes.object.clone());
        Ok(())
    }
}

/// Applies the patch of an answer; whether it changed anything.
fn change(
    hook: &Hook,
    answer: &Answer,
    ty: &Descriptor,
    attributes: &mut Attributes<'_>,
) -> Result<bool, Trouble> {
    if answer.patch.is_empty() {
        return Ok(false);
    }
    let patch: Value = serde_json::from_slice(&answer.patch)
        .map_err(|why| Trouble::Calling(format!("received undecodable patch in webhook response: {why}")))?;
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(false);
    }
    let internal = |why: String| Trouble::Refused(Status::internal_error(why));
    let Value::Object(before) = attributes.object_as(ty) else {
        return Err(internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name()
        )));
    };
    if answer.patch_type != "JSONPatch" {
        return Err(Trouble::Calling(format!("unsupported patch type {:?}", answer.patch_type)));
    }
    let patched = json_patch::apply(Value::Object(before.clone()), &patch);
    let Value::Object(patched) = patched.map_err(|why| internal(why.to_string()))? else {
        return Err(internal("the patch leaves no object".to_owned()));
    };
    let patched = complete(ty, patched, attributes).map_err(|status| internal(status.message))?;
    if patched == before {
        return Ok(false);
    }
    let managers = meta(&attributes.object).get("managedFields").cloned().unwrap_or_default();
    attributes.rounds.managers.get_or_insert(managers);
    attributes.take_back(ty, patched);
    Ok(true)
}

/// The object as its type has it, with defaults; what is no object of the type itself is left as it is.
fn complete(ty: &Descriptor, object: Json, attributes: &Attributes<'_>) -> Result<Json, Status> {
    let own = match ty.subresource(attributes.call.subresource) {
        None => true,
        Some(sub) => sub.kind == ty.kind,
    };
    if own { with_defaults(ty, &object) } else { Ok(object) }
}

impl RemotePlugin for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn admit<'a>(
        &'a self,
        context: &'a Context<'_>,
        attributes: &'a mut Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if is_exempt(attributes) {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(self.ask_each(context, attributes))
    }
}
