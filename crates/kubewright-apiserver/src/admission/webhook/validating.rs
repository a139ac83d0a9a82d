//! `ValidatingAdmissionWebhook`: servers that refuse.

use futures::future::{BoxFuture, join_all};

use super::{Webhooks, hook::Hook};
use crate::{
    admission::Context,
    admission::{Attributes, RemotePlugin, cache::Compiled, matching::is_exempt},
    status::Status,
};

/// The plugin.
#[derive(Debug)]
pub(crate) struct ValidatingAdmissionWebhook {
    webhooks: Webhooks,
    configurations: Compiled<Vec<Hook>>,
}

impl ValidatingAdmissionWebhook {
    /// Calls webhooks in the given way.
    pub(crate) fn new(webhooks: Webhooks) -> Self {
        let collection = "admissionregistration.k8s.io/validatingwebhookconfigurations";
        Self { webhooks, configurations: Compiled::new(collection, Hook::all) }
    }

    async fn ask_all(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let configurations = self.configurations.all(context);
        let mut asked = Vec::new();
        for hook in configurations.iter().flat_map(|hooks| hooks.iter()) {
            if let Some(ty) = hook.selects(context, attributes)? {
                asked.push((hook, ty));
            }
        }
        // All at once; of several refusals the one counts whose webhook comes first.
        let answers = asked.iter().map(|(hook, ty)| hook.ask(&self.webhooks, ty, context, attributes, false));
        for ((hook, _), answer) in asked.iter().zip(join_all(answers).await) {
            if let Err(trouble) = answer {
                hook.settle(trouble)?;
            }
        }
        Ok(())
    }
}

impl RemotePlugin for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    fn validate<'a>(
        &'a self,
        context: &'a Context<'_>,
        attributes: &'a Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        if is_exempt(attributes) {
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(self.ask_all(context, attributes))
    }
}
