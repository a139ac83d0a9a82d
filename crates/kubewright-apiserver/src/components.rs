//! The components of a server, as requests pass them.

use std::sync::Arc;

use kubewright_core::Clock;

use crate::{
    admission::{Admission, Chain},
    authn::Authenticator,
    authz::Authorizer,
    registry::{ObjectReader, Registry, actions::AccessControl},
};

/// The components of a server. Each one knows those below it at most: authenticator, authorizer and admission read the
/// registry, and the registry knows none of them.
#[derive(Debug)]
pub(crate) struct Components {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) admission: Chain,
    pub(crate) registry: Arc<Registry>,
}

impl Components {
    /// Creates the components of an independent server that begins with the state of this one.
    pub(crate) fn fork(&self, clock: Clock) -> Self {
        let registry = Arc::new(self.registry.fork(clock));
        let objects = || Arc::clone(&registry) as Arc<dyn ObjectReader>;
        Self {
            authenticator: Arc::new(self.authenticator.fork(objects())),
            authorizer: Arc::new(self.authorizer.fork(objects())),
            admission: self.admission.clone(),
            registry,
        }
    }

    /// Returns the admission that the writes of a request pass.
    pub(crate) fn admission(&self) -> Admission<'_> {
        Admission::new(&self.admission, &self.registry, &self.authorizer)
    }

    /// Returns what reviews and token requests ask.
    pub(crate) fn access_control(&self) -> AccessControl<'_> {
        AccessControl { authenticator: &self.authenticator, authorizer: &self.authorizer }
    }
}
