//! REST mapper: from a kind, a resource or a kubectl-style argument to a resource of the API server.
//!
//! | input | method | client-go |
//! |---|---|---|
//! | `apps/v1 Deployment`, from an object | [`RestMapper::kind`] | `RESTMapping` |
//! | `apps/v1 deployments`, from a URL or a role | [`RestMapper::resource`] | `KindFor` |
//! | `deploy`, from a user | [`RestMapper::find`] | shortcut expander and `ResourceFor` |
//! | `all`, from a user | [`RestMapper::category`] | category expander |
//!
//! The result is a [`ResourceInfo`]: kind and plural, scope, verbs and subresources.
//!
//! # Misses
//! A resource that is not found may have been installed since the last discovery. A miss therefore refreshes
//! discovery once and looks again; concurrent misses share one refresh. A miss in a result that was fetched
//! during the same call is final.
//!
//! # Several groups
//! An argument without a group may match several. Kubernetes' own groups win, in the server's order: `events`
//! are the core ones. If several other groups match, that is [`MapperError::Ambiguous`]: kubectl would take
//! the first in alphabetical order, and a CRD installed tomorrow would change the result.

mod lookup;
mod resource_arg;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::core::{GroupVersionKind, GroupVersionResource};

use super::discovery::{DiscoveryClient, DiscoveryError, DiscoveryFailure, ResourceInfo, ServerResources};

/// Error from looking up a resource.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The server has no such resource.
    #[error("the server has no {wanted}{}", suggest(.known))]
    NoMatch {
        /// The requested kind, resource or argument.
        wanted: String,
        /// Resources of the same or a similar name.
        known: Vec<String>,
    },
    /// The resource was not found, and discovery is incomplete.
    #[error("the server has no {wanted}, but could not tell everything: {}", join(.failures))]
    Incomplete {
        /// The requested kind, resource or argument.
        wanted: String,
        /// The parts that could not be discovered.
        failures: Vec<DiscoveryFailure>,
    },
    /// Several resources match.
    #[error("{wanted} may be one of {}: say which", .candidates.join(", "))]
    Ambiguous {
        /// The requested kind, resource or argument.
        wanted: String,
        /// The matches, by their unambiguous names.
        candidates: Vec<String>,
    },
    /// The object has no `apiVersion` and `kind`.
    #[error("the object has no apiVersion and kind")]
    Untyped,
    /// Discovery failed.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

impl MapperError {
    /// Returns whether the server has no such resource. False while discovery is incomplete.
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch { .. })
    }
}

fn suggest(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) }
}

fn join(failures: &[DiscoveryFailure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Mapper between kinds, resources and kubectl-style arguments. Clones share the discovery cache.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use http::{Request, Response};
/// # use kubewright::kube::client::Body;
/// # let server = tower::service_fn(|request: Request<Body>| async move {
/// #     let body = match request.uri().path() {
/// #         "/apis" => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
/// #             {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
/// #                 {"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment",
/// #                  "verbs":["get","list"],"shortNames":["deploy"],"categories":["all"]}]}]}]}"#,
/// #         _ => r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[]}"#,
/// #     };
/// #     Ok::<_, std::convert::Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
/// # });
/// # let client = kubewright::kube::Client::new(server, "default");
/// use kubewright::client::{DiscoveryClient, RestMapper};
/// use kubewright::kube::core::GroupVersionKind;
///
/// let mapper = RestMapper::new(DiscoveryClient::new(client));
/// let by_arg = mapper.find("deploy").await?;
/// let by_kind = mapper.kind(&GroupVersionKind::gvk("apps", "v1", "Deployment")).await?;
/// assert_eq!(by_arg, by_kind);
/// assert_eq!(by_arg.to_string(), "deployments.v1.apps");
/// assert!(by_arg.is_namespaced());
///
/// let error = mapper.find("deployment.aps").await.unwrap_err();
/// assert_eq!(error.to_string(), "the server has no \"deployment.aps\"; it has deployments.v1.apps");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RestMapper {
    discovery: DiscoveryClient,
}

impl RestMapper {
    /// Creates a mapper over a discovery client.
    pub fn new(discovery: DiscoveryClient) -> Self {
        Self { discovery }
    }

    /// Returns the resource of a kind. With an empty version, in the server's preferred version.
    pub async fn kind(&self, kind: &GroupVersionKind) -> Result<Arc<ResourceInfo>, MapperError> {
        self.lookup(|failure| concerns(failure, &kind.group), |served| lookup::by_kind(served, kind)).await
    }

    /// Returns the resource with this group, version and plural. With an empty version, in the server's
    /// preferred version.
    pub async fn resource(&self, resource: &GroupVersionResource) -> Result<Arc<ResourceInfo>, MapperError> {
        self.lookup(
            |failure| concerns(failure, &resource.group),
            |served| lookup::by_resource(served, resource),
        )
        .await
    }

    /// Returns the resource of a kubectl-style argument: plural, singular, short name or kind, alone or
    /// followed by the group (`deployments.apps`), or by version and group (`deployments.v1.apps`). A prefix
    /// of a group is enough.
    pub async fn find(&self, arg: &str) -> Result<Arc<ResourceInfo>, MapperError> {
        // Without a full group, the resource may be in any group that could not be discovered.
        self.lookup(|_| true, |served| lookup::by_arg(served, arg)).await
    }

    /// Returns the resources of a category, such as `all`, each in its preferred version.
    pub async fn category(&self, category: &str) -> Result<Vec<Arc<ResourceInfo>>, MapperError> {
        let wanted = || MapperError::NoMatch { wanted: format!("category {category:?}"), known: Vec::new() };
        let look = |served: &ServerResources| {
            let found = lookup::by_category(served, category);
            if found.is_empty() { Err(wanted()) } else { Ok(found) }
        };
        self.lookup(|_| true, look).await
    }

    /// Looks in the cached result and, after a miss, in a fresh one. A miss is not final while a failure that
    /// `concerns` it is present.
    async fn lookup<T>(
        &self,
        concerns: impl Fn(&DiscoveryFailure) -> bool,
        look: impl Fn(&ServerResources) -> Result<T, MapperError>,
    ) -> Result<T, MapperError> {
        let round = self.discovery.round();
        let mut snapshot = self.discovery.snapshot().await?;
        let mut found = look(&snapshot.resources);
        let fresh = snapshot.live && snapshot.round > round;
        if matches!(found, Err(MapperError::NoMatch { .. })) && !fresh {
            snapshot = self.discovery.newer_than(snapshot.round).await?;
            found = look(&snapshot.resources);
        }
        let Err(MapperError::NoMatch { wanted, known }) = found else { return found };
        let failures: Vec<_> =
            snapshot.resources.failures.iter().filter(|failure| concerns(failure)).cloned().collect();
        if failures.is_empty() {
            Err(MapperError::NoMatch { wanted, known })
        } else {
            Err(MapperError::Incomplete { wanted, failures })
        }
    }
}

/// Returns whether a failure may hide resources of this group. A failing metrics server does not affect other
/// groups.
fn concerns(failure: &DiscoveryFailure, group: &str) -> bool {
    match failure.what.strip_prefix('/') {
        Some(endpoint) => (endpoint == "api") == group.is_empty(),
        None => failure.what.split_once('/').map_or("", |(failed, _)| failed) == group,
    }
}
