//! Admission of the writes of one request.

use super::{Attributes, Chain, Context, Operation};
use crate::{authz::Authorizer, registry::Registry, status::Status};

/// The admission that the writes of a request pass: the plugins of the server, with what they may read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission<'a> {
    chain: &'a Chain,
    context: Context<'a>,
}

impl<'a> Admission<'a> {
    pub(crate) fn new(chain: &'a Chain, registry: &'a Registry, authorizer: &'a Authorizer) -> Self {
        let (random, quotas) = (registry.random(), registry.storage());
        Self { chain, context: Context { objects: registry, authorizer, random, quotas } }
    }

    /// Lets the mutating plugins change the object.
    pub(crate) async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        self.chain.admit(&self.context, attributes).await
    }

    /// Checks that the write does not extend the writer's rights, and lets the validating plugins refuse it.
    pub(crate) async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let writes = matches!(attributes.operation, Operation::Create | Operation::Update);
        if writes && attributes.call.subresource.is_empty() {
            self.context.authorizer.check_escalation(attributes.call, &attributes.object)?;
        }
        self.chain.validate(&self.context, attributes).await
    }

    /// Returns whether there are plugins that are not the server's own.
    pub(crate) fn has_custom_plugins(&self) -> bool {
        self.chain.has_custom_plugins()
    }
}
