//! The end of a namespace: everything in it is deleted, then the namespace.
//!
//! Pods go first, so that nothing they run on disappears under them; the rest follows in any order. What remains and
//! what holds it is written into the namespace's [`conditions`], and the namespace's own finalizer is released when
//! nothing does. Upstream waits five seconds before it begins, for other API servers to hear of the deletion; there are
//! no others here.

pub mod conditions;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, PostParams, PropagationPolicy};
use kubewright::{
    Error, ObjectKey,
    cache::{Event, Lazy},
    client::{ApiStatus, Clients, ResourceInfo, ServerResources},
    controller::{Action, Context, Controller},
};

use self::conditions::Findings;
use super::monitors::api_of;
use crate::{ControllerContext, objects::FIELD_MANAGER};

/// The finalizer in the namespace's spec that this controller releases.
const FINALIZER: &str = "kubernetes";
/// When to look again at contents that nobody releases, in case nobody tells.
const RECHECK: Duration = Duration::from_secs(30);

/// The controller that empties namespaces.
pub fn controller(cluster: &ControllerContext) -> Controller {
    let clients = cluster.clients().clone();
    // A namespace that is being deleted may end with the object that has just gone or changed in it.
    let contents = cluster.monitors().source("contents", |event, cx| {
        if matches!(event, Event::Added { is_in_initial_list: true, .. }) {
            return;
        }
        let Some(namespace) = event.object().namespace().map(ObjectKey::cluster) else { return };
        if cx.cache::<Namespace>().get(&namespace).is_some_and(|namespace| namespace.is_deleting()) {
            cx.add(namespace);
        }
    });
    Controller::of::<Namespace>().named("namespace").workers(4).source(contents).reconcile(
        move |cx: Context<Namespace>| {
            let clients = clients.clone();
            async move { finish(&cx, &clients).await }
        },
    )
}

async fn finish(cx: &Context<Namespace>, clients: &Clients) -> Result<Action, Error> {
    if !cx.handle().is_some_and(Lazy::is_deleting) {
        return Ok(Action::done());
    }
    // Others write to a namespace that ends, too.
    let Some(namespace) = cx.own_kind().live().get(cx.key()).await? else { return Ok(Action::done()) };
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.clone()).unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        return Ok(Action::done());
    }
    let findings = empty(clients, cx.key().name()).await;
    let mut namespace = (*namespace).clone();
    let status = namespace.status.get_or_insert_default();
    let old = status.conditions.as_deref().unwrap_or_default();
    if let Some(conditions) = conditions::plan(old, &findings, cx.clock().now()) {
        status.conditions = Some(conditions);
        status.phase = Some("Terminating".to_owned());
        namespace = cx.own_kind().status().update(&namespace).await?;
    }
    if let Some(first) = findings.failures.first() {
        return Err(Error::message(format!(
            "the contents of namespace {} cannot be deleted: {first}",
            cx.key()
        )));
    }
    if !findings.is_empty() {
        return Ok(Action::requeue_after(RECHECK));
    }
    let kept = finalizers.into_iter().filter(|finalizer| finalizer != FINALIZER).collect();
    namespace.spec.get_or_insert_default().finalizers = Some(kept);
    let api = kube::Api::<Namespace>::all(clients.client());
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match api.replace_subresource("finalize", cx.key().name(), &params, &namespace).await {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(Action::done()),
    }
}

/// Deletes what a namespace holds; says what is left.
async fn empty(clients: &Clients, namespace: &str) -> Findings {
    let mut findings = Findings::default();
    let served = match clients.discovery().refresh().await {
        Ok(served) => served,
        Err(error) => {
            findings.discovery = Some(error.to_string());
            return findings;
        }
    };
    findings.discovery = failures(&served);
    let mut kinds: Vec<Arc<ResourceInfo>> = served.preferred();
    kinds.retain(|kind| kind.is_namespaced() && kind.supports("delete") && kind.supports("list"));
    let pods = |kind: &Arc<ResourceInfo>| kind.group.is_empty() && kind.plural == "pods";
    kinds.sort_by_key(|kind| !pods(kind));
    for kind in kinds {
        if let Err(error) = empty_kind(clients, namespace, &kind, &mut findings).await {
            findings.failures.push(error.to_string());
        }
        if pods(&kind) && !findings.remaining.is_empty() {
            break;
        }
    }
    findings
}

fn failures(served: &ServerResources) -> Option<String> {
    if served.failures.is_empty() {
        return None;
    }
    let groups: Vec<String> = served.failures.iter().map(ToString::to_string).collect();
    Some(format!("Discovery failed for some groups, {} failing: {}", groups.len(), groups.join(", ")))
}

async fn empty_kind(
    clients: &Clients,
    namespace: &str,
    kind: &ResourceInfo,
    findings: &mut Findings,
) -> Result<(), kube::Error> {
    let api = api_of(clients.client(), kind, Some(namespace));
    let list = ListParams::default();
    // What defines the kind may go with the namespace's contents.
    let missing = |error: &kube::Error| error.is_not_found();
    match api.list_metadata(&list).await {
        Ok(found) if found.items.is_empty() => return Ok(()),
        Ok(found) => {
            // Dependents need not be waited for: everything goes.
            let delete = DeleteParams {
                propagation_policy: Some(PropagationPolicy::Background),
                ..DeleteParams::default()
            };
            if kind.supports("deletecollection") {
                match api.delete_collection(&delete, &list).await {
                    Err(error) if !missing(&error) => return Err(error),
                    _ => {}
                }
            } else {
                for name in found.items.iter().filter_map(|object| object.metadata.name.as_deref()) {
                    match api.delete(name, &delete).await {
                        Err(error) if !missing(&error) => return Err(error),
                        _ => {}
                    }
                }
            }
        }
        Err(error) if missing(&error) => return Ok(()),
        Err(error) => return Err(error),
    }
    let left = api.list_metadata(&list).await?;
    let finalizers =
        left.items.iter().map(|object| object.metadata.finalizers.as_deref().unwrap_or_default());
    findings.remain(&kind.plural, &kind.group, finalizers);
    Ok(())
}
