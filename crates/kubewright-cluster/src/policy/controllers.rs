//! The quota and disruption controllers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::{PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, Service},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::api::ListParams;
use kubewright::{
    Error, ObjectKey,
    cache::{Event, Lazy},
    client::{ApiStatus, CachedClient, ServerResources},
    controller::{Action, Context, Controller, HandlerContext, Watch},
    events::Recorder,
};

use super::{
    disruption::{self, Scale},
    quota::{self, Contents, Counted},
};
use crate::{
    ControllerContext,
    indexes::{BUDGETS_BY_SELECTOR, PODS_BY_LABEL, possibly_selecting, required_label},
    lifecycle::monitors::api_of,
    objects::{controller_of, selects},
    pod,
};

/// How often a quota is counted again without a reason.
const RECOUNT: Duration = Duration::from_mins(5);

/// Counts what quotas limit.
///
/// Admission charges creations as they come, so what matters here are deletions and pods that finish.
pub fn quotas(cluster: &ControllerContext) -> Controller {
    let contents = cluster.monitors().source("contents", |event, cx| {
        if matches!(event, Event::Deleted { .. }) {
            enqueue_quotas(event.object().namespace(), cx);
        }
    });
    let of_pod = |event: &Event<Pod>, cx: &HandlerContext| {
        let Event::Updated { old, new } = event else { return };
        let is_terminal = |pod: &Lazy<Pod>| pod.load().is_ok_and(|pod| pod::is_terminal(&pod));
        if !is_terminal(old) && is_terminal(new) {
            enqueue_quotas(new.namespace(), cx);
        }
    };
    let cluster = cluster.clone();
    Controller::of::<ResourceQuota>()
        .named("resourcequota")
        .watches(Watch::handled(of_pod))
        .source(contents)
        .reconcile(move |cx: Context<ResourceQuota>| {
            let cluster = cluster.clone();
            async move { count(&cx, &cluster).await }
        })
}

/// Enqueues the quotas of a namespace.
fn enqueue_quotas(namespace: Option<&str>, cx: &HandlerContext) {
    let quotas = cx.cache::<ResourceQuota>().in_namespace(namespace.unwrap_or_default());
    cx.add_all(quotas.iter().map(|quota| quota.key().clone()));
}

async fn count(cx: &Context<ResourceQuota>, cluster: &ControllerContext) -> Result<Action, Error> {
    // The quota is read before its namespace: a creation that is charged in between makes the write a conflict.
    let Some(quota) = cx.own_kind().live().get(cx.key()).await? else { return Ok(Action::done()) };
    let namespace = cx.key().namespace().unwrap_or_default();
    let live = cx.client().live();
    let contents = Contents {
        pods: all::<Pod>(&live, namespace).await?,
        services: all::<Service>(&live, namespace).await?,
        claims: all::<PersistentVolumeClaim>(&live, namespace).await?,
        counts: counts(cluster, namespace, &quota::tracked(&quota)).await?,
    };
    if let Some(status) = quota::plan(&quota, &contents, cx.clock().now()) {
        let mut changed = (*quota).clone();
        changed.status = Some(status);
        cx.own_kind().status().update(&changed).await?;
    }
    Ok(Action::requeue_after(RECOUNT))
}

async fn all<K>(client: &CachedClient, namespace: &str) -> Result<Vec<K>, Error>
where
    K: kubewright::Object + kube::Resource<DynamicType = ()>,
{
    let mut found = Vec::new();
    for object in client.list::<K>().namespace(namespace).await? {
        found.push((*object.load()?).clone());
    }
    Ok(found)
}

/// How many objects there are of each kind; of a kind that is not served, none.
async fn counts(
    cluster: &ControllerContext,
    namespace: &str,
    kinds: &BTreeSet<Counted>,
) -> Result<BTreeMap<Counted, usize>, Error> {
    let mut found = BTreeMap::new();
    if kinds.is_empty() {
        return Ok(found);
    }
    let served: Arc<ServerResources> = cluster.clients().discovery().resources().await?;
    let preferred = served.preferred();
    for kind in kinds {
        let known = preferred.iter().find(|known| known.plural == kind.plural && known.group == kind.group);
        let Some(known) = known.filter(|known| known.is_namespaced() && known.supports("list")) else {
            continue;
        };
        let api = api_of(cluster.clients().client(), known, Some(namespace));
        match api.list_metadata(&ListParams::default()).await {
            Ok(list) => drop(found.insert(kind.clone(), list.items.len())),
            // A definition that went away since took its objects with it.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Counts how many pods may be disrupted.
pub fn budgets(cluster: &ControllerContext) -> Controller {
    let of_pod = |pod: &Lazy<Pod>, cx: &HandlerContext| -> Vec<ObjectKey> {
        let budgets = possibly_selecting(&cx.cache::<PodDisruptionBudget>(), &BUDGETS_BY_SELECTOR, pod);
        if budgets.is_empty() {
            return Vec::new();
        }
        let Ok(loaded) = pod.load() else { return Vec::new() };
        let covers = |budget: &Lazy<PodDisruptionBudget>| {
            budget.load().is_ok_and(|budget| {
                let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
                selects(selector, loaded.metadata.labels.as_ref())
            })
        };
        budgets.into_iter().filter(covers).map(|budget| budget.key().clone()).collect()
    };
    let recorder = cluster.recorder("controllermanager");
    let cluster = cluster.clone();
    Controller::of::<PodDisruptionBudget>()
        .named("disruption")
        .index(&BUDGETS_BY_SELECTOR)
        .index(&PODS_BY_LABEL)
        .watches(Watch::mapped_with(of_pod))
        .reconcile(move |cx: Context<PodDisruptionBudget>| {
            let (cluster, recorder) = (cluster.clone(), recorder.clone());
            async move { sync_budget(&cx, &cluster, &recorder).await }
        })
}

async fn sync_budget(
    cx: &Context<PodDisruptionBudget>,
    cluster: &ControllerContext,
    recorder: &Recorder,
) -> Result<Action, Error> {
    let Some(budget) = cx.object()? else { return Ok(Action::done()) };
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let mut pods = Vec::new();
    let list = cx.list::<Pod>().namespace(cx.key().namespace().unwrap_or_default());
    let labels = selector.and_then(|selector| selector.match_labels.as_ref());
    let list = match required_label(cx.key().namespace(), labels) {
        Some(label) => list.by_index(&PODS_BY_LABEL, &label),
        None => list,
    };
    for pod in list.await? {
        let pod = pod.load()?;
        if selects(selector, pod.metadata.labels.as_ref()) {
            pods.push(pod);
        }
    }
    pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    let mut scales: BTreeMap<String, Scale> = BTreeMap::new();
    for owner in pods.iter().filter_map(|pod| controller_of(&pod.metadata)) {
        if !scales.contains_key(&owner.uid)
            && let Some(scale) = scale_of(cx, cluster, owner).await?
        {
            scales.insert(owner.uid.clone(), scale);
        }
    }
    let borrowed: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let known = |pod: &Pod| {
        let owner = controller_of(&pod.metadata)?;
        scales.get(&owner.uid).cloned()
    };
    let now = cx.clock().time().0;
    let plan = match disruption::plan(&budget, &borrowed, known, now) {
        Ok(plan) => plan,
        Err(error) => {
            let text = format!("Failed to calculate the number of expected pods: {error}");
            recorder.warning(&*budget, "CalculateExpectedPodCountFailed", text);
            let mut failed = (*budget).clone();
            failed.status = Some(disruption::fail_safe(&budget, &error.to_string(), now));
            if failed.status != budget.status {
                cx.own_kind().status().update(&failed).await?;
            }
            return Err(error.into());
        }
    };
    tell_of(recorder, &budget, &borrowed, &plan);
    if let Some(status) = plan.status {
        let mut changed = (*budget).clone();
        changed.status = Some(status);
        cx.own_kind().status().update(&changed).await?;
    }
    let wait = plan.recheck.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
    Ok(wait.map_or(Action::done(), |wait| Action::requeue_after(wait + Duration::from_secs(1))))
}

fn tell_of(recorder: &Recorder, budget: &PodDisruptionBudget, pods: &[&Pod], plan: &disruption::Plan) {
    if plan.no_pods {
        recorder.normal(budget, "NoPods", "No matching pods found");
    }
    if !plan.unmanaged.is_empty() {
        recorder.warning(
            budget,
            "UnmanagedPods",
            "Pods selected by this PodDisruptionBudget were found to be unmanaged. As a result, the status of the PDB \
             cannot be calculated correctly, which may result in undefined behavior. To account for these pods please \
             set \".spec.minAvailable\" field of the PDB to an integer value.",
        );
    }
    for pod in
        pods.iter().filter(|pod| pod.metadata.name.as_ref().is_some_and(|n| plan.not_deleted.contains(n)))
    {
        let key = |value: &Option<String>| value.clone().unwrap_or_default();
        let (namespace, name) = (key(&budget.metadata.namespace), key(&budget.metadata.name));
        let text = format!("Pod was expected by PDB {namespace}/{name} to be deleted but it wasn't");
        recorder.warning(*pod, "NotDeleted", text);
    }
}

/// How many pods a controller wants; `None` when it is gone, or is another of the same name.
async fn scale_of(
    cx: &Context<PodDisruptionBudget>,
    cluster: &ControllerContext,
    owner: &OwnerReference,
) -> Result<Option<Scale>, Error> {
    let key = cx.neighbour(&owner.name);
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let scale = |uid: Option<&String>, replicas: Option<i32>| {
        (uid == Some(&owner.uid)).then(|| Scale { uid: owner.uid.clone(), replicas: replicas.unwrap_or(1) })
    };
    match (group, owner.kind.as_str()) {
        ("apps", "ReplicaSet") => {
            let Some(set) = cx.get::<ReplicaSet>(&key).await? else { return Ok(None) };
            // The Deployment above decides, across its sets.
            if let Some(above) = controller_of(&set.metadata)
                && above.kind == "Deployment"
                && let Some(deployment) = cx.get::<Deployment>(&cx.neighbour(&above.name)).await?
                && deployment.metadata.uid.as_ref() == Some(&above.uid)
            {
                let replicas = deployment.spec.replicas.unwrap_or(1);
                return Ok(Some(Scale { uid: above.uid.clone(), replicas }));
            }
            Ok(scale(set.metadata.uid.as_ref(), set.spec.replicas))
        }
        ("apps", "StatefulSet") => {
            let found = cx.get::<StatefulSet>(&key).await?;
            Ok(found.and_then(|set| scale(set.metadata.uid.as_ref(), set.spec.replicas)))
        }
        ("", "ReplicationController") => {
            let found = cx.get::<ReplicationController>(&key).await?;
            Ok(found.and_then(|set| {
                scale(set.metadata.uid.as_ref(), set.spec.as_ref().and_then(|spec| spec.replicas))
            }))
        }
        _ => {
            let Some(kind) = cluster.monitors().resource(&owner.api_version, &owner.kind).await? else {
                return Ok(None);
            };
            if kind.subresource("scale").is_none() {
                return Ok(None);
            }
            let api = api_of(cluster.clients().client(), &kind, cx.key().namespace());
            match api.get_scale(&owner.name).await {
                Ok(found) => {
                    Ok(scale(found.metadata.uid.as_ref(), found.spec.and_then(|spec| spec.replicas)))
                }
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
    }
}
