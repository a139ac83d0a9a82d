//! The controllers of this room: they read caches, ask the plans, and write.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kubewright::{
    Error, Object, ObjectKey,
    cache::{Event, KindCache, Lazy},
    client::CachedClient,
    controller::{Action, Context, Controller, Requests, Watch},
    events::Recorder,
};

use super::{endpoint, legacy, mirror, slices};
use crate::{
    Parts,
    objects::{pod_node, selects_all},
    writes::ignore_already_exists,
};

/// Keys of the Services that select a pod.
fn services_of(services: &KindCache<Service>, pod: &Lazy<Pod>) -> Vec<ObjectKey> {
    let labels: BTreeMap<String, String> =
        pod.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let selecting = |service: &Lazy<Service>| {
        service.load().is_ok_and(|service| {
            selects_all(service.spec.as_ref().and_then(|spec| spec.selector.as_ref()), Some(&labels))
        })
    };
    let here = services.in_namespace(pod.namespace().unwrap_or_default());
    here.into_iter().filter(selecting).map(|service| service.key().clone()).collect()
}

/// The Service that a slice belongs to, if `manager` looks after it.
fn service_of(slice: &Lazy<EndpointSlice>, manager: &str) -> Option<ObjectKey> {
    let name = slice.label(slices::SERVICE_NAME).filter(|name| !name.is_empty())?;
    (slice.label(slices::MANAGED_BY) == Some(manager)).then(|| ObjectKey::new(slice.namespace(), name))
}

/// The pods that a Service selects, in the order of their names.
async fn pods_of<K: Object>(cx: &Context<K>, service: &Service) -> Result<Vec<Arc<Pod>>, Error> {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let mut pods = Vec::new();
    for pod in cx.list::<Pod>().namespace(cx.key().namespace().unwrap_or_default()).await? {
        let pod = pod.load()?;
        if selects_all(selector, pod.metadata.labels.as_ref()) {
            pods.push(pod);
        }
    }
    pods.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(pods)
}

/// Slices of a Service by who looks after them, in the order of their names.
async fn slices_of<K: Object>(cx: &Context<K>, manager: &str) -> Result<Vec<EndpointSlice>, Error> {
    let list = cx
        .list::<EndpointSlice>()
        .namespace(cx.key().namespace().unwrap_or_default())
        .label(slices::SERVICE_NAME, cx.key().name())
        .label(slices::MANAGED_BY, manager);
    let mut found = Vec::new();
    for slice in list.await? {
        found.push((*slice.load()?).clone());
    }
    found.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    Ok(found)
}

async fn write(
    client: &CachedClient,
    existing: &[EndpointSlice],
    create: &[EndpointSlice],
    update: &[EndpointSlice],
    delete: &[String],
) -> Result<(), Error> {
    for slice in create {
        ignore_already_exists(client.create(slice).await)?;
    }
    for slice in update {
        client.update(slice).await?;
    }
    for slice in
        existing.iter().filter(|slice| slice.metadata.name.as_ref().is_some_and(|n| delete.contains(n)))
    {
        client.delete(slice).await?;
    }
    Ok(())
}

/// Keeps the slices of Services with a selector.
pub fn endpoint_slices(parts: &Parts) -> Controller {
    let (services, pods) = (parts.caches().of::<Service>(), parts.caches().of::<Pod>());
    let recorder = parts.recorder("endpoint-slice-controller");
    let of_pod = {
        let services = services.clone();
        move |pod: &Lazy<Pod>| services_of(&services, pod)
    };
    // Pods whose node was missing can be placed when it comes.
    let of_node = move |event: &Event<Node>, requests: &Requests| {
        if matches!(event, Event::Updated { .. }) {
            return;
        }
        for pod in pods.list() {
            if pod.load().is_ok_and(|pod| pod_node(&pod) == Some(event.object().name())) {
                for key in services_of(&services, &pod) {
                    requests.add(key);
                }
            }
        }
    };
    Controller::of::<Service>()
        .named("endpointslice")
        .watches(Watch::mapped(of_pod))
        .watches(Watch::handled(of_node))
        .watches(Watch::mapped(|slice: &Lazy<EndpointSlice>| service_of(slice, slices::MANAGER)))
        .workers(2)
        .reconcile(move |cx: Context<Service>| {
            let recorder = recorder.clone();
            async move { sync_slices(&cx, &recorder).await }
        })
}

async fn sync_slices(cx: &Context<Service>, recorder: &Recorder) -> Result<Action, Error> {
    let Some(service) = cx.object()?.filter(|service| endpoint::has_pods(service)) else {
        return Ok(Action::done());
    };
    let pods = pods_of(cx, &service).await?;
    let mut nodes: BTreeMap<String, Arc<Node>> = BTreeMap::new();
    for name in pods.iter().filter_map(|pod| pod_node(pod)) {
        if !nodes.contains_key(name)
            && let Some(node) = cx.get::<Node>(&ObjectKey::cluster(name)).await?
        {
            nodes.insert(name.to_owned(), node);
        }
    }
    let existing = slices_of(cx, slices::MANAGER).await?;
    let borrowed: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
    let plan = slices::plan(&service, &borrowed, |name| nodes.get(name).map(AsRef::as_ref), &existing);
    write(cx.client(), &existing, &plan.create, &plan.update, &plan.delete).await?;
    if !plan.skipped.is_empty() {
        let why = match plan.skipped.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("Error updating Endpoint Slices for Service {}: {why}", cx.key());
        recorder.warning(&*service, "FailedToUpdateEndpointSlices", message);
    }
    Ok(Action::done())
}

/// Keeps the `Endpoints` of Services with a selector.
pub fn endpoints(parts: &Parts) -> Controller {
    let services = parts.caches().of::<Service>();
    Controller::of::<Service>()
        .named("endpoint")
        .watches(Watch::mapped(move |pod: &Lazy<Pod>| services_of(&services, pod)))
        .watches(Watch::mapped(|endpoints: &Lazy<Endpoints>| [endpoints.key().clone()]))
        .workers(2)
        .reconcile(async |cx: Context<Service>| {
            let existing = cx.get::<Endpoints>(cx.key()).await?;
            let Some(service) = cx.object()? else {
                if let Some(existing) = existing.filter(|existing| legacy::is_ours(existing)) {
                    cx.delete(&*existing).await?;
                }
                return Ok(Action::done());
            };
            if !endpoint::has_pods(&service) {
                return Ok(Action::done());
            }
            let pods = pods_of(&cx, &service).await?;
            let borrowed: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
            match legacy::plan(&service, &borrowed, existing.as_deref()) {
                Some(wanted) if existing.is_some() => drop(cx.client().update(&wanted).await?),
                Some(wanted) => ignore_already_exists(cx.client().create(&wanted).await)?,
                None => {}
            }
            Ok(Action::done())
        })
}

/// Mirrors `Endpoints` that were written by hand.
pub fn mirroring(parts: &Parts) -> Controller {
    let recorder = parts.recorder("endpoint-slice-mirroring-controller");
    Controller::of::<Endpoints>()
        .named("endpointslicemirroring")
        .watches(Watch::mapped(|service: &Lazy<Service>| [service.key().clone()]))
        .watches(Watch::mapped(|slice: &Lazy<EndpointSlice>| service_of(slice, mirror::MANAGER)))
        .reconcile(move |cx: Context<Endpoints>| {
            let recorder = recorder.clone();
            async move {
                let endpoints = cx.object()?;
                let service = cx.get::<Service>(cx.key()).await?;
                let existing = slices_of(&cx, mirror::MANAGER).await?;
                let plan = mirror::plan(endpoints.as_deref(), service.as_deref(), &existing);
                write(cx.client(), &existing, &plan.create, &plan.update, &plan.delete).await?;
                if let Some(endpoints) = endpoints {
                    warn(&recorder, &endpoints, &plan);
                }
                Ok(Action::done())
            }
        })
}

fn warn(recorder: &Recorder, endpoints: &Endpoints, plan: &mirror::Plan) {
    if plan.invalid > 0 {
        let message =
            format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", plan.invalid);
        recorder.warning(endpoints, "InvalidIPAddress", message);
    }
    if plan.too_many > 0 {
        let message = format!(
            "A max of {} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
            mirror::MAX_ADDRESSES,
            plan.too_many + plan.invalid
        );
        recorder.warning(endpoints, "TooManyAddressesToMirror", message);
    }
}
