//! Admission: what is decided about a write beyond permission and validity.
//!
//! A [`Chain`] is a list of plugins. Each may change the object (`admit`) and then, after all have, refuse it
//! (`validate`). Plugins see the registry and may read it; they do not write.

mod limits;
mod namespace;
mod nodes;
mod pods;
mod podsecurity;
mod quota;

use std::sync::Arc;

use futures::future::BoxFuture;

pub use self::{
    limits::LimitRanger,
    namespace::NamespaceLifecycle,
    nodes::TaintNodes,
    pods::{DefaultTolerationSeconds, Priority, StorageProtection},
    podsecurity::PodSecurity,
    quota::ResourceQuota,
};
use crate::{
    registry::{
        Registry,
        call::Call,
        descriptor::{Descriptor, Json},
    },
    status::Status,
};

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object, or a changed subresource.
    Update,
    /// An object is to go.
    Delete,
    /// Something else on an object: binding, eviction, a token.
    Connect,
}

/// A write under admission.
#[derive(Debug)]
pub struct Attributes<'a> {
    /// The request.
    pub call: &'a Call<'a>,
    /// What is being done.
    pub operation: Operation,
    /// The object as it should be; empty for a deletion.
    pub object: Json,
    /// The object as it is.
    pub old: Option<&'a Json>,
}

impl<'a> Attributes<'a> {
    /// A write under admission.
    pub fn new(call: &'a Call<'a>, operation: Operation, object: Json, old: Option<&'a Json>) -> Self {
        Self { call, operation, object, old }
    }

    /// The type.
    pub fn ty(&self) -> &Descriptor {
        self.call.ty
    }

    /// Whether the write is about objects of a kind themselves, not about a subresource.
    pub fn is(&self, group: &str, plural: &str) -> bool {
        self.call.subresource.is_empty() && self.ty().group == group && self.ty().plural == plural
    }

    /// The object after admission.
    pub fn into_object(self) -> Json {
        self.object
    }

    /// 403 in the words of a plugin.
    pub fn forbid(&self, why: &str) -> Status {
        let name = if self.call.name.is_empty() {
            crate::registry::json::name(&self.object)
        } else {
            self.call.name
        };
        Status::forbidden(self.ty().about(name), why)
    }
}

/// One rule of admission.
pub trait Plugin: Send + Sync + 'static {
    /// The name, as `--enable-admission-plugins` writes it.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses the request.
    fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        let _ = (registry, attributes);
        Ok(())
    }

    /// Refuses what must not be stored.
    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        let _ = (registry, attributes);
        Ok(())
    }
}

/// A rule of admission that asks somebody outside of the process: webhooks.
pub trait RemotePlugin: Send + Sync + 'static {
    /// The name, as `--enable-admission-plugins` writes it.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses the request. Called after all plugins of the process have changed it.
    fn admit<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a mut Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Refuses what must not be stored. Called after all plugins of the process have let it pass.
    fn validate<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// The plugins of a server, in order.
#[derive(Clone, Default)]
pub struct Chain {
    plugins: Vec<Arc<dyn Plugin>>,
    remote: Vec<Arc<dyn RemotePlugin>>,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.plugins.iter().map(|p| p.name()).chain(self.remote.iter().map(|p| p.name()));
        f.debug_list().entries(names).finish()
    }
}

impl Chain {
    /// The plugins that are on by default.
    pub fn standard() -> Self {
        Self::default()
            .with(NamespaceLifecycle)
            .with(LimitRanger)
            .with(TaintNodes)
            .with(PodSecurity)
            .with(Priority)
            .with(DefaultTolerationSeconds)
            .with(StorageProtection)
            // Last, so that nothing is charged that another plugin refuses.
            .with(ResourceQuota)
    }

    /// Adds a plugin at the end.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin) -> Self {
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Adds a plugin that asks outside of the process.
    #[must_use]
    pub fn with_remote(mut self, plugin: impl RemotePlugin) -> Self {
        self.remote.push(Arc::new(plugin));
        self
    }

    /// Lets every plugin change the object.
    pub async fn admit(&self, registry: &Registry, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            plugin.admit(registry, attributes)?;
        }
        for plugin in &self.remote {
            plugin.admit(registry, attributes).await?;
        }
        Ok(())
    }

    /// Lets every plugin refuse the object.
    pub async fn validate(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
        for plugin in &self.plugins {
            plugin.validate(registry, attributes)?;
        }
        for plugin in &self.remote {
            plugin.validate(registry, attributes).await?;
        }
        Ok(())
    }
}
