//! The REST mapper: from a kind, a resource or a word to what the API server serves.
//!
//! | you have | you call | client-go |
//! |---|---|---|
//! | `apps/v1 Deployment`, from an object | [`RestMapper::kind`] | `RESTMapping` |
//! | `apps/v1 deployments`, from a URL or a role | [`RestMapper::resource`] | `KindFor` |
//! | `deploy`, from a user | [`RestMapper::find`] | shortcut expander and `ResourceFor` |
//! | `all`, from a user | [`RestMapper::category`] | category expander |
//!
//! The answer is a [`ResourceInfo`]: kind and plural in both directions, scope, verbs and subresources.
//!
//! # Misses
//! What is not found may have been installed since discovery was last asked. A miss therefore refreshes
//! discovery, once, and looks again; however many callers miss at the same time, the server is asked once for
//! all of them. A miss in what the server has said during the same call is final.
//!
//! # Several groups
//! A word without a group may fit several. Kubernetes' own groups win, in the server's order: `events` are
//! the core ones. If only groups of others fit, and more than one, that is [`MapperError::Ambiguous`]:
//! kubectl would take the first by alphabet, and a CRD installed tomorrow would change the answer.

mod lookup;
mod partial;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use kube::core::{GroupVersionKind, GroupVersionResource};

use super::discovery::{DiscoveryClient, DiscoveryError, DiscoveryFailure, ResourceInfo, ServerResources};

/// Why a resource was not found.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The server serves nothing of that name.
    #[error("the server has no {wanted}{}", suggest(.known))]
    NoMatch {
        /// What was asked for.
        wanted: String,
        /// Resources of the same or a similar name.
        known: Vec<String>,
    },
    /// The server serves nothing of that name as far as it could tell.
    #[error("the server has no {wanted}, but could not tell everything: {}", join(.failures))]
    Incomplete {
        /// What was asked for.
        wanted: String,
        /// What could not be discovered.
        failures: Vec<DiscoveryFailure>,
    },
    /// The server serves several of that name.
    #[error("{wanted} may be one of {}: say which", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// What it may be, in words that are unambiguous.
        candidates: Vec<String>,
    },
    /// The object does not say what it is.
    #[error("the object has no apiVersion and kind")]
    Untyped,
    /// The server could not be asked.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

impl MapperError {
    /// The server was asked and has no such thing. Not true while the answer is incomplete.
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

/// Maps kinds, resources and words to each other. A clone shares what was discovered.
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
/// let by_word = mapper.find("deploy").await?;
/// let by_kind = mapper.kind(&GroupVersionKind::gvk("apps", "v1", "Deployment")).await?;
/// assert_eq!(by_word, by_kind);
/// assert_eq!(by_word.to_string(), "deployments.v1.apps");
/// assert!(by_word.is_namespaced());
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
    /// A mapper over what this client discovers.
    pub fn new(discovery: DiscoveryClient) -> Self {
        Self { discovery }
    }

    /// The resource that serves a kind. With an empty version, in the version that the server prefers.
    pub async fn kind(&self, kind: &GroupVersionKind) -> Result<Arc<ResourceInfo>, MapperError> {
        self.look(|failure| concerns(failure, &kind.group), |served| lookup::by_kind(served, kind)).await
    }

    /// The resource with this group, version and plural. With an empty version, in the version that the
    /// server prefers.
    pub async fn resource(&self, resource: &GroupVersionResource) -> Result<Arc<ResourceInfo>, MapperError> {
        self.look(
            |failure| concerns(failure, &resource.group),
            |served| lookup::by_resource(served, resource),
        )
        .await
    }

    /// The resource that kubectl would take this word for: plural, singular, short name or kind, alone or
    /// followed by the group (`deployments.apps`), or by version and group (`deployments.v1.apps`). The
    /// beginning of a group will do.
    pub async fn find(&self, word: &str) -> Result<Arc<ResourceInfo>, MapperError> {
        // Without a group, and with the beginning of one, it may be in any that could not be discovered.
        self.look(|_| true, |served| lookup::by_word(served, word)).await
    }

    /// The resources of a category, such as `all`, each in its preferred version.
    pub async fn category(&self, category: &str) -> Result<Vec<Arc<ResourceInfo>>, MapperError> {
        let wanted = || MapperError::NoMatch { wanted: format!("category {category:?}"), known: Vec::new() };
        let look = |served: &ServerResources| {
            let found = lookup::by_category(served, category);
            if found.is_empty() { Err(wanted()) } else { Ok(found) }
        };
        self.look(|_| true, look).await
    }

    /// Looks in what is known and, after a miss, in what the server says now. A miss is no proof while
    /// something that `concerns` it could not be discovered.
    async fn look<T>(
        &self,
        concerns: impl Fn(&DiscoveryFailure) -> bool,
        look: impl Fn(&ServerResources) -> Result<T, MapperError>,
    ) -> Result<T, MapperError> {
        let round = self.discovery.round();
        let mut snapshot = self.discovery.snapshot().await?;
        let mut found = look(&snapshot.resources);
        let just_asked = snapshot.live && snapshot.round > round;
        if matches!(found, Err(MapperError::NoMatch { .. })) && !just_asked {
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

/// Whether a kind of this group may be in what could not be discovered. The metrics server being down says
/// nothing about anybody else's kinds.
fn concerns(failure: &DiscoveryFailure, group: &str) -> bool {
    match failure.what.strip_prefix('/') {
        Some(endpoint) => (endpoint == "api") == group.is_empty(),
        None => failure.what.split_once('/').map_or("", |(failed, _)| failed) == group,
    }
}
