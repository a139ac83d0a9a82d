//! The controllers of Services: they read caches, compute plans, and write.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::{Endpoints, Node, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kubewright::{
    Error, Object, ObjectKey,
    cache::{Event, FieldIndex, Lazy},
    client::CachedClient,
    controller::{Action, Context, Controller, HandlerContext, Watch},
    events::Recorder,
};

use super::{endpoint, legacy, mirror, slices};
use crate::{
    ControllerContext,
    indexes::{PODS_BY_LABEL, PODS_BY_NODE, SERVICES_BY_SELECTOR, possibly_selecting, required_label},
    pod,
    writes::ignore_already_exists,
};

/// Keys of the Services that select a Pod.
fn services_of(pod: &Lazy<Pod>, cx: &HandlerContext) -> Vec<ObjectKey> {
    let selects = |service: &Lazy<Service>| {
        service.load().is_ok_and(|service| {
            let mut selector = service.spec.iter().flat_map(|spec| spec.selector.iter().flatten());
            selector.all(|(key, value)| pod.label(key) == Some(value))
        })
    };
    let services = possibly_selecting(&cx.cache::<Service>(), &SERVICES_BY_SELECTOR, pod);
    services.into_iter().filter(selects).map(|service| service.key().clone()).collect()
}

/// Endpoint slices by the keys of their Services.
static SLICES_BY_SERVICE: FieldIndex<EndpointSlice> =
    FieldIndex::new(slices::SERVICE_NAME, |slice, values| {
        let name = slice.label(slices::SERVICE_NAME);
        values.extend(name.map(|name| ObjectKey::new(slice.namespace(), name).to_string()));
        Ok(())
    });

/// The Service that a slice belongs to, if `manager` looks after it.
fn service_of(slice: &Lazy<EndpointSlice>, manager: &str) -> Option<ObjectKey> {
    let name = slice.label(slices::SERVICE_NAME).filter(|name| !name.is_empty())?;
    (slice.label(slices::MANAGED_BY) == Some(manager)).then(|| ObjectKey::new(slice.namespace(), name))
}

/// The Pods that a Service selects, in the order of their names.
async fn pods_of<K: Object>(cx: &Context<K>, service: &Service) -> Result<Vec<Arc<Pod>>, Error> {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let Some(label) = required_label(cx.key().namespace(), selector) else { return Ok(Vec::new()) };
    let mut list = cx.list::<Pod>().by_index(&PODS_BY_LABEL, &label);
    for (key, value) in selector.into_iter().flatten() {
        list = list.label(key, value);
    }
    let mut pods = list.await?;
    pods.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(pods.iter().map(Lazy::load).collect::<Result<_, _>>()?)
}

/// Slices of a Service by who manages them, in the order of their names.
async fn slices_of<K: Object>(cx: &Context<K>, manager: &str) -> Result<Vec<EndpointSlice>, Error> {
    let list = cx.list::<EndpointSlice>().by_index(&SLICES_BY_SERVICE, cx.key().as_str());
    let mut slices = list.label(slices::MANAGED_BY, manager).await?;
    slices.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(slices.iter().map(|slice| slice.load().map(Arc::unwrap_or_clone)).collect::<Result<_, _>>()?)
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

/// The endpoint slice controller: keeps the slices of Services with a selector.
pub fn endpoint_slices(cluster: &ControllerContext) -> Controller {
    let recorder = cluster.recorder("endpoint-slice-controller");
    // Pods whose node was missing can be placed when it comes.
    let of_node = |event: &Event<Node>, cx: &HandlerContext| {
        if matches!(event, Event::Updated { .. }) {
            return;
        }
        for pod in cx.cache::<Pod>().by_index(&PODS_BY_NODE, event.object().name()).unwrap_or_default() {
            cx.add_all(services_of(&pod, cx));
        }
    };
    Controller::of::<Service>()
        .named("endpointslice")
        .index(&SERVICES_BY_SELECTOR)
        .index(&SLICES_BY_SERVICE)
        .index(&PODS_BY_LABEL)
        .index(&PODS_BY_NODE)
        .watches(Watch::mapped_with(services_of))
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
    for name in pods.iter().filter_map(|pod| pod::node(pod)) {
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

/// The endpoints controller: keeps the `Endpoints` of Services with a selector.
pub fn endpoints() -> Controller {
    Controller::of::<Service>()
        .named("endpoint")
        .index(&SERVICES_BY_SELECTOR)
        .index(&PODS_BY_LABEL)
        .watches(Watch::mapped_with(services_of))
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
pub fn mirroring(cluster: &ControllerContext) -> Controller {
    let recorder = cluster.recorder("endpoint-slice-mirroring-controller");
    Controller::of::<Endpoints>()
        .named("endpointslicemirroring")
        .index(&SLICES_BY_SERVICE)
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
