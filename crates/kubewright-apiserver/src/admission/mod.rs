//! Admission: what is decided about a write beyond permission and validity.
//!
//! A [`Chain`] is a list of plugins. Each may change the object (`admit`) and then, after all have, refuse it
//! (`validate`). Plugins see the registry and may read it; they do not write.
//!
//! - A rule of your own: implement [`Plugin`] and add it with [`Chain::with`].
//! - Somebody outside of the process has to be asked: [`RemotePlugin`].
//! - Rules that users of the cluster bring: [`policy`] (expressions) and [`webhook`] (servers).
//!
//! ```
//! use kubewright_apiserver::{ApiServer, admission::{Attributes, Chain, Plugin}, registry::Registry, status::Status};
//!
//! /// No configuration without an owner.
//! struct Owned;
//!
//! impl Plugin for Owned {
//!     fn name(&self) -> &'static str {
//!         "Owned"
//!     }
//!
//!     fn validate(&self, _: &Registry, attributes: &Attributes<'_>) -> Result<(), Status> {
//!         if attributes.is("", "configmaps") && attributes.object["metadata"]["labels"]["owner"].is_null() {
//!             return Err(attributes.forbid("a label `owner` is required"));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kube::api::{Api, PostParams};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! let server = ApiServer::builder().admission(Chain::standard().with(Owned)).in_process()?;
//! let maps = Api::<ConfigMap>::default_namespaced(server.client());
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("a".into());
//! let refusal = maps.create(&PostParams::default(), &map).await.unwrap_err();
//! assert!(refusal.to_string().contains("configmaps \"a\" is forbidden: a label `owner` is required"));
//! # Ok(()) }
//! ```

mod attributes;
mod cache;
mod certificates;
mod chain;
mod classes;
mod conditions;
mod limits;
mod matching;
mod namespace;
mod nodes;
mod optional;
mod owners;
mod pods;
mod podsecurity;
pub mod policy;
mod quota;
mod request;
mod security_profiles;
mod service_accounts;
pub mod webhook;

use futures::future::BoxFuture;

pub use self::{
    attributes::{Attributes, Operation},
    certificates::{CertificateApproval, CertificateSigning, CertificateSubject},
    chain::{Chain, UnknownPlugin},
    classes::{ClaimResize, DefaultIngressClass, DefaultStorageClass, RuntimeClass},
    limits::LimitRanger,
    namespace::NamespaceLifecycle,
    nodes::TaintNodes,
    optional::{
        AlwaysDeny, AlwaysPullImages, ExtendedResourceToleration, LimitAntiAffinity, NamespaceExists,
        PodNodeSelector,
    },
    owners::OwnerReferences,
    pods::{DefaultTolerationSeconds, Priority, StorageProtection},
    podsecurity::PodSecurity,
    quota::ResourceQuota,
    service_accounts::ServiceAccount,
};
pub(crate) use self::{
    conditions::{compile as compile_expression, names as expression_names},
    matching::REVIEWS,
    policy::mutation_of,
};
use crate::{registry::Registry, status::Status};

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

    /// Changes the object, or refuses the request.
    fn admit<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a mut Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (registry, attributes);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Refuses what must not be stored.
    fn validate<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (registry, attributes);
        Box::pin(std::future::ready(Ok(())))
    }
}
