//! What words mean, and what a miss costs.

use futures::future::join_all;

use super::*;
use crate::{
    DiskCache,
    testing::{
        self, Log,
        cluster::{Cluster, Form, Served},
    },
};

fn serve() -> (Cluster, Log, RestMapper) {
    let cluster = Cluster::new(Form::Aggregated);
    let server = cluster.clone();
    let (log, client) = testing::client(move |seen| server.answer(seen));
    (cluster, log, RestMapper::new(DiscoveryClient::new(client)))
}

#[tokio::test]
async fn a_word_means_what_it_means_to_kubectl() {
    let (_, _, mapper) = serve();
    for (word, expected) in [
        ("pods", "pods.v1."),
        ("pod", "pods.v1."),
        ("po", "pods.v1."),
        ("Pod", "pods.v1."),
        ("PODS", "pods.v1."),
        ("pods.v1.", "pods.v1."),
        ("deploy", "deployments.v1.apps"),
        ("deployment", "deployments.v1.apps"),
        ("deployments.apps", "deployments.v1.apps"),
        ("deploy.apps", "deployments.v1.apps"),
        ("deployments.v1.apps", "deployments.v1.apps"),
        ("Deployment.v1.apps", "deployments.v1.apps"),
        ("hpa", "horizontalpodautoscalers.v2.autoscaling"),
        ("hpa.v1.autoscaling", "horizontalpodautoscalers.v1.autoscaling"),
        ("events", "events.v1."),
        ("ev", "events.v1."),
        ("events.events.k8s.io", "events.v1.events.k8s.io"),
        ("events.events", "events.v1.events.k8s.io"),
        ("pods.metrics", "pods.v1beta1.metrics.k8s.io"),
        ("podmetrics", "pods.v1beta1.metrics.k8s.io"),
        ("widgets.a.example.com", "widgets.v1.a.example.com"),
        ("wd.b", "widgets.v1.b.example.com"),
        ("gadgets", "gadgets.v1.old.example.com"),
        ("gizmos", "gizmos.v1beta1.old.example.com"),
    ] {
        assert_eq!(mapper.find(word).await.unwrap().to_string(), expected, "{word}");
    }
}

#[tokio::test]
async fn kinds_and_resources_map_both_ways() {
    let (_, _, mapper) = serve();
    for (group, version, kind, plural) in [
        ("", "v1", "Pod", "pods"),
        ("metrics.k8s.io", "v1beta1", "PodMetrics", "pods"),
        ("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
        ("old.example.com", "v1beta1", "Gizmo", "gizmos"),
    ] {
        let by_kind = mapper.kind(&GroupVersionKind::gvk(group, version, kind)).await.unwrap();
        let by_resource = mapper.resource(&GroupVersionResource::gvr(group, version, plural)).await.unwrap();
        assert_eq!(by_kind, by_resource);
        assert_eq!((by_kind.kind.as_str(), by_kind.plural.as_str()), (kind, plural));
        assert_eq!(by_kind.api_resource().plural, plural);
    }
    let preferred =
        mapper.kind(&GroupVersionKind::gvk("autoscaling", "", "HorizontalPodAutoscaler")).await.unwrap();
    assert_eq!(preferred.version, "v2");
    let preferred =
        mapper.resource(&GroupVersionResource::gvr("old.example.com", "", "gizmos")).await.unwrap();
    assert_eq!(preferred.version, "v1beta1", "the preferred version does not have it");
    assert!(!mapper.find("ns").await.unwrap().is_namespaced());
}

#[tokio::test]
async fn a_category_is_every_resource_in_it_once() {
    let (_, _, mapper) = serve();
    let all: Vec<_> = mapper.category("all").await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        all,
        ["pods.v1.", "services.v1.", "deployments.v1.apps", "horizontalpodautoscalers.v2.autoscaling"]
    );
    let error = mapper.category("none").await.unwrap_err();
    assert_eq!(error.to_string(), "the server has no category \"none\"");
}

#[tokio::test]
async fn a_word_that_fits_the_groups_of_two_others_is_ambiguous() {
    let (_, log, mapper) = serve();
    for word in ["widgets", "widget", "wd", "Widget"] {
        let error = mapper.find(word).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{word:?} may be one of widgets.v1.a.example.com, widgets.v1.b.example.com: say which")
        );
    }
    assert_eq!(log.lines().len(), 2, "asking again would not help");
}

#[tokio::test]
async fn two_resources_of_one_kind_in_one_version_are_ambiguous() {
    let (cluster, _, mapper) = serve();
    cluster.change(|state| {
        state.served.push(Served::new("twin.example.com", "v1", "lefts", "Twin"));
        state.served.push(Served::new("twin.example.com", "v1", "rights", "Twin"));
    });
    let error = mapper.kind(&GroupVersionKind::gvk("twin.example.com", "v1", "Twin")).await.unwrap_err();
    assert!(matches!(&error, MapperError::Ambiguous { candidates, .. } if candidates.len() == 2), "{error}");
    assert!(mapper.find("twin").await.is_err());
    assert_eq!(mapper.find("lefts").await.unwrap().plural, "lefts");
}

#[tokio::test]
async fn what_is_not_there_is_named_with_what_is_near() {
    let (_, _, mapper) = serve();
    let error = mapper.kind(&GroupVersionKind::gvk("apps", "v2", "Deployment")).await.unwrap_err();
    assert!(error.is_no_match());
    assert_eq!(
        error.to_string(),
        "the server has no kind \"Deployment\" in version \"apps/v2\"; it has deployments.v1.apps"
    );
    let error = mapper.resource(&GroupVersionResource::gvr("", "v1", "deployments")).await.unwrap_err();
    assert_eq!(error.to_string(), "the server has no resource deployments.v1.; it has deployments.v1.apps");
    let error = mapper.find("deployments.extensions").await.unwrap_err();
    assert_eq!(error.to_string(), "the server has no \"deployments.extensions\"; it has deployments.v1.apps");
    assert!(mapper.find("").await.unwrap_err().is_no_match());
    assert!(mapper.find("...").await.unwrap_err().is_no_match());
    assert!(mapper.find("pods/log").await.unwrap_err().is_no_match(), "a subresource is no resource");
}

#[tokio::test]
async fn a_miss_asks_the_server_once_more_and_no_more_than_that() {
    let (cluster, log, mapper) = serve();
    assert!(mapper.find("things").await.unwrap_err().is_no_match());
    assert_eq!(log.lines().len(), 2, "the server has just been asked: that is final");
    assert!(mapper.find("things").await.unwrap_err().is_no_match());
    assert_eq!(log.lines().len(), 4, "what was known is looked up anew");
    cluster.change(|state| {
        state.served.push(Served::new("new.example.com", "v1", "things", "Thing").short(&["th"]));
    });
    assert_eq!(mapper.find("th").await.unwrap().kind, "Thing");
    assert_eq!(log.lines().len(), 6);
    mapper.find("things").await.unwrap();
    assert_eq!(log.lines().len(), 6, "a hit asks nobody");
}

#[tokio::test]
async fn fifty_who_miss_at_once_cost_one_reload() {
    let (cluster, log, mapper) = serve();
    mapper.find("pods").await.unwrap();
    log.clear();
    cluster.change(|state| state.served.push(Served::new("new.example.com", "v1", "things", "Thing")));
    let found = join_all((0..50).map(|_| mapper.find("things"))).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(log.lines().len(), 2, "one for /api and one for /apis: {:?}", log.lines());

    log.clear();
    let missed = join_all((0..50).map(|_| mapper.find("nothing"))).await;
    assert!(missed.iter().all(|error| error.as_ref().unwrap_err().is_no_match()));
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_who_miss_on_several_threads_cost_one_reload_too() {
    let (cluster, log, mapper) = serve();
    mapper.find("pods").await.unwrap();
    log.clear();
    cluster.change(|state| state.served.push(Served::new("new.example.com", "v1", "things", "Thing")));
    let tasks = (0..50).map(|_| {
        let mapper = mapper.clone();
        tokio::spawn(async move { mapper.find("things").await })
    });
    for found in join_all(tasks).await {
        found.unwrap().unwrap();
    }
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
}

#[tokio::test]
async fn fifty_who_miss_while_the_server_is_down_cost_one_attempt() {
    let (cluster, log, mapper) = serve();
    mapper.find("pods").await.unwrap();
    log.clear();
    cluster.change(|state| state.broken = Some(503));
    let missed = join_all((0..50).map(|_| mapper.find("things"))).await;
    assert!(missed.iter().all(|error| matches!(error, Err(MapperError::Discovery(_)))));
    assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    mapper.find("pods").await.unwrap();
}

#[tokio::test]
async fn what_the_disk_knows_is_asked_for_anew_on_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let (cluster, log, mapper) = serve();
    let process = || RestMapper::new(mapper.discovery.disk_cache(DiskCache::at(dir.path())));
    process().find("pods").await.unwrap();
    cluster.change(|state| state.served.push(Served::new("new.example.com", "v1", "things", "Thing")));
    log.clear();
    assert_eq!(process().find("things").await.unwrap().kind, "Thing");
    assert_eq!(log.lines().len(), 2);
    log.clear();
    assert_eq!(process().find("things").await.unwrap().kind, "Thing");
    assert!(log.lines().is_empty(), "the reload went to disk too");
}

#[tokio::test]
async fn a_miss_while_something_could_not_be_discovered_is_no_proof() {
    let (cluster, _, mapper) = serve();
    cluster.change(|state| {
        state.form = Form::Old;
        state.down.push("metrics.k8s.io/v1beta1");
    });
    let error =
        mapper.kind(&GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics")).await.unwrap_err();
    assert!(!error.is_no_match());
    let text = error.to_string();
    assert!(text.contains("could not tell everything: metrics.k8s.io/v1beta1: "), "{text}");
    assert_eq!(mapper.find("deploy").await.unwrap().kind, "Deployment", "the rest works");
    let error = mapper.kind(&GroupVersionKind::gvk("new.example.com", "v1", "Thing")).await.unwrap_err();
    assert!(error.is_no_match(), "another group's failure has nothing to do with it: {error}");
    assert!(!mapper.find("things").await.unwrap_err().is_no_match(), "without a group, who knows");
}

#[tokio::test]
async fn a_stale_version_is_taken_only_where_there_is_no_other() {
    let (cluster, _, mapper) = serve();
    cluster.change(|state| state.down.extend(["autoscaling/v2", "metrics.k8s.io/v1beta1"]));
    assert_eq!(mapper.find("hpa").await.unwrap().version, "v1");
    assert_eq!(mapper.find("podmetrics").await.unwrap().version, "v1beta1");
}
