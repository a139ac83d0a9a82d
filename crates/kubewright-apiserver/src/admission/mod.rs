//! Admission: plugins that change or refuse writes.
//!
//! A [`Chain`] is a list of plugins. Each may change the object (`admit`) and then, after all have, refuse it
//! (`validate`). A [`Context`] gives them read access to the cluster.
//!
//! - A custom rule: implement [`Plugin`] and add it with [`Chain::with`].
//! - A rule that calls another process: [`RemotePlugin`].
//! - Rules that are objects of the cluster: [`policy`] (expressions) and [`webhook`] (servers).
//!
//! ```
//! use kubewright_apiserver::{
//!     ApiServer,
//!     admission::{Attributes, Chain, Context, Plugin},
//!     status::Status,
//! };
//!
//! /// Requires a label on every ConfigMap.
//! struct Owned;
//!
//! impl Plugin for Owned {
//!     fn name(&self) -> &'static str {
//!         "Owned"
//!     }
//!
//!     fn validate(&self, _: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
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

mod admit;
mod attributes;
mod cache;
mod certificates;
mod chain;
mod classes;
mod conditions;
mod context;
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

pub(crate) use self::{
    admit::Admission,
    certificates::{CertificateApproval, CertificateSigning, CertificateSubject},
    classes::{ClaimResize, DefaultIngressClass, DefaultStorageClass, RuntimeClass},
    conditions::{compile as compile_expression, names as expression_names},
    limits::LimitRanger,
    matching::REVIEWS,
    namespace::NamespaceLifecycle,
    nodes::TaintNodes,
    optional::{
        AlwaysDeny, AlwaysPullImages, ExtendedResourceToleration, LimitAntiAffinity, NamespaceExists,
        PodNodeSelector,
    },
    owners::OwnerReferences,
    pods::{DefaultTolerationSeconds, Priority, StorageProtection},
    podsecurity::PodSecurity,
    policy::mutation_of,
    quota::ResourceQuota,
    service_accounts::ServiceAccount,
};
pub use self::{
    attributes::{Attributes, Operation},
    chain::{Chain, UnknownPlugin},
    context::Context,
};
use crate::status::Status;

/// An admission plugin.
pub trait Plugin: Send + Sync + 'static {
    /// Returns the name, as in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses the request.
    fn admit(&self, context: &Context<'_>, attributes: &mut Attributes<'_>) -> Result<(), Status> {
        let _ = (context, attributes);
        Ok(())
    }

    /// Refuses the request after all plugins have changed the object.
    fn validate(&self, context: &Context<'_>, attributes: &Attributes<'_>) -> Result<(), Status> {
        let _ = (context, attributes);
        Ok(())
    }
}

/// An admission plugin that calls other processes: webhooks.
pub trait RemotePlugin: Send + Sync + 'static {
    /// Returns the name, as in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses the request.
    fn admit<'a>(
        &'a self,
        context: &'a Context<'_>,
        attributes: &'a mut Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (context, attributes);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Refuses the request after all plugins have changed the object.
    fn validate<'a>(
        &'a self,
        context: &'a Context<'_>,
        attributes: &'a Attributes<'_>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (context, attributes);
        Box::pin(std::future::ready(Ok(())))
    }
}
