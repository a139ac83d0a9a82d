//! Both forms of discovery, what fails in parts, and what is remembered for how long.

mod disk;

use futures::future::join_all;
use kube::core::GroupVersionKind;

use super::*;
use crate::testing::{
    self, Log,
    cluster::{Cluster, Form, Served},
};

fn serve(form: Form) -> (Cluster, Log, DiscoveryClient) {
    let cluster = Cluster::new(form);
    let server = cluster.clone();
    let (log, client) = testing::client(move |seen| server.answer(seen));
    (cluster, log, DiscoveryClient::new(client))
}

#[tokio::test]
async fn aggregated_discovery_takes_one_request_for_each_endpoint() {
    let (_, log, discovery) = serve(Form::Aggregated);
    let served = discovery.resources().await.unwrap();
    let mut lines = log.lines();
    lines.sort();
    assert_eq!(lines, ["GET /api", "GET /apis"]);
    for seen in log.all() {
        let accept = seen.headers["accept"].to_str().unwrap();
        assert!(
            accept.starts_with("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"),
            "{accept}"
        );
        assert!(accept.ends_with(",application/json"), "{accept}");
    }
    assert!(served.failures.is_empty());
    assert_eq!(served.groups[0].name, "", "the core group comes first");
    let pods = &served.group_version("v1").unwrap().resources[0];
    assert_eq!(pods.gvk(), GroupVersionKind::gvk("", "v1", "Pod"));
    assert_eq!((pods.plural.as_str(), pods.singular.as_str()), ("pods", "pod"));
    assert_eq!(pods.short_names, ["po"]);
    assert_eq!(pods.categories, ["all"]);
    assert!(pods.is_namespaced() && pods.supports("list") && !pods.supports("watch"));
    assert_eq!(pods.subresource("eviction").unwrap().kind, GroupVersionKind::gvk("policy", "v1", "Eviction"));
    assert_eq!(pods.subresource("status").unwrap().kind, GroupVersionKind::gvk("", "v1", "Pod"));
    assert!(!served.group_version("v1").unwrap().resources[2].is_namespaced());
    assert_eq!(served.group("autoscaling").unwrap().preferred_version, "v2");
}

#[tokio::test]
async fn every_form_tells_the_same() {
    let (_, _, aggregated) = serve(Form::Aggregated);
    let expected = aggregated.resources().await.unwrap();
    for form in [Form::Old, Form::Refusing(406), Form::Refusing(404), Form::Refusing(415)] {
        let (_, log, discovery) = serve(form);
        assert_eq!(discovery.resources().await.unwrap(), expected, "{form:?}");
        let lists = log.lines().iter().filter(|line| line.matches('/').count() >= 2).count();
        assert_eq!(lists, 10, "one request for each group version: {:#?}", log.lines());
    }
}

#[tokio::test]
async fn a_group_version_that_fails_is_reported_beside_the_others() {
    let down = "metrics.k8s.io/v1beta1";
    let (cluster, _, discovery) = serve(Form::Old);
    cluster.change(|state| state.down.push(down));
    let served = discovery.resources().await.unwrap();
    assert_eq!(served.failures.len(), 1, "{:?}", served.failures);
    assert_eq!(served.failures[0].what, down);
    assert!(matches!(&served.failures[0].reason, FailureReason::Failed(why) if why.contains("503")));
    assert!(served.group_version(down).unwrap().resources.is_empty());
    assert!(served.group_version("apps/v1").unwrap().resources.len() == 1);
}

#[tokio::test]
async fn a_stale_group_version_is_reported_and_its_resources_are_kept() {
    let (cluster, _, discovery) = serve(Form::Aggregated);
    cluster.change(|state| state.down.extend(["metrics.k8s.io/v1beta1", "autoscaling/v2"]));
    let served = discovery.resources().await.unwrap();
    let stale: Vec<_> =
        served.failures.iter().map(|failure| (failure.what.as_str(), &failure.reason)).collect();
    assert_eq!(
        stale,
        [("autoscaling/v2", &FailureReason::Stale), ("metrics.k8s.io/v1beta1", &FailureReason::Stale)]
    );
    assert!(served.group_version("metrics.k8s.io/v1beta1").unwrap().stale);
    assert_eq!(served.group_version("metrics.k8s.io/v1beta1").unwrap().resources.len(), 1);
    assert_eq!(served.group("autoscaling").unwrap().preferred_version, "v1", "current before stale");
}

#[tokio::test]
async fn one_endpoint_may_be_missing_and_both_may_not() {
    for form in [Form::Aggregated, Form::Old] {
        let (cluster, _, discovery) = serve(form);
        cluster.change(|state| state.absent.push("/api"));
        let served = discovery.resources().await.unwrap();
        assert_eq!(served.failures[0].what, "/api");
        assert!(served.group_version("apps/v1").is_some());
        cluster.change(|state| state.absent.push("/apis"));
        assert!(discovery.refresh().await.unwrap_err().is_not_found());
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_an_error_and_is_not_remembered() {
    let (cluster, _, discovery) = serve(Form::Aggregated);
    for code in [401, 500, 503] {
        cluster.change(|state| state.broken = Some(code));
        let error = discovery.resources().await.unwrap_err();
        assert_eq!(error.status().unwrap().code, code, "{error}");
    }
    cluster.change(|state| state.broken = None);
    assert!(!discovery.resources().await.unwrap().groups.is_empty());
}

#[tokio::test]
async fn nonsense_is_an_error_that_does_not_repeat_it() {
    for body in [
        "hunter2",
        "{\"kind\":\"APIGroupDiscoveryList\",\"items\":\"hunter2\"}",
        "{\"kind\":\"hunter2\"}",
        "[]",
    ] {
        let (_, client) = testing::client(move |_| testing::text(200, "application/json", body));
        let error = DiscoveryClient::new(client).resources().await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn the_answer_is_kept_in_memory_until_it_is_invalidated() {
    let (cluster, log, discovery) = serve(Form::Aggregated);
    discovery.resources().await.unwrap();
    let first = discovery.clone().resources().await.unwrap();
    assert_eq!(log.lines().len(), 2, "a clone shares the memory");
    cluster.change(|state| state.served.push(Served::new("new.example.com", "v1", "things", "Thing")));
    assert_eq!(discovery.resources().await.unwrap(), first);
    discovery.invalidate();
    let second = discovery.resources().await.unwrap();
    assert_eq!(log.lines().len(), 4);
    assert!(second.group("new.example.com").is_some() && first.group("new.example.com").is_none());
}

#[tokio::test]
async fn refreshing_what_has_not_changed_sends_no_document() {
    let (cluster, log, discovery) = serve(Form::Aggregated);
    let first = discovery.resources().await.unwrap();
    log.clear();
    assert_eq!(discovery.refresh().await.unwrap(), first);
    assert!(log.all().iter().all(|seen| seen.headers.contains_key("if-none-match")), "{:?}", log.all());
    cluster.change(|state| state.served.push(Served::new("new.example.com", "v1", "things", "Thing")));
    assert!(discovery.refresh().await.unwrap().group("new.example.com").is_some());
}

#[tokio::test]
async fn many_who_ask_at_once_cost_one_answer_and_share_one_failure() {
    let (cluster, log, discovery) = serve(Form::Aggregated);
    cluster.change(|state| state.broken = Some(500));
    let answers = join_all((0..50).map(|_| discovery.resources())).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(log.lines().len(), 2, "one attempt, heard of by all");
    cluster.change(|state| state.broken = None);
    log.clear();
    let answers = join_all((0..50).map(|_| discovery.resources())).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(log.lines().len(), 2);
    log.clear();
    join_all((0..50).map(|_| discovery.refresh())).await;
    assert_eq!(log.lines().len(), 2);
}

#[tokio::test]
async fn an_answer_that_was_asked_for_before_an_invalidation_is_not_kept_after_it() {
    let (_, log, discovery) = serve(Form::Aggregated);
    let mut under_way = Box::pin(discovery.resources());
    // Until the requests are out, and no further.
    while log.lines().is_empty() {
        assert!(futures::poll!(&mut under_way).is_pending());
        tokio::task::yield_now().await;
    }
    discovery.invalidate();
    under_way.await.unwrap();
    discovery.resources().await.unwrap();
    assert_eq!(log.lines().len(), 4);
}

#[tokio::test]
async fn dropping_the_one_who_asks_lets_the_next_one_ask() {
    let (_, log, discovery) = serve(Form::Aggregated);
    let mut first = Box::pin(discovery.resources());
    assert!(futures::poll!(&mut first).is_pending());
    drop(first);
    discovery.resources().await.unwrap();
    assert!(log.lines().len() <= 4);
}

#[test]
fn every_resource_is_preferred_once() {
    let info = |version: &str, plural: &str| {
        Arc::new(ResourceInfo {
            group: "g".into(),
            version: version.into(),
            kind: plural.into(),
            plural: plural.into(),
            singular: plural.into(),
            scope: kube::discovery::Scope::Cluster,
            verbs: vec![],
            short_names: vec![],
            categories: vec![],
            subresources: vec![],
        })
    };
    let version = |name: &str, plurals: &[&str], stale| VersionInfo {
        version: name.into(),
        resources: plurals.iter().map(|plural| info(name, plural)).collect(),
        stale,
    };
    let group = GroupInfo {
        name: "g".into(),
        preferred_version: "v2".into(),
        versions: vec![
            version("v1", &["a", "b"], false),
            version("v2", &["a"], false),
            version("v3", &["b", "c"], true),
        ],
    };
    let served = ServerResources { groups: vec![group], failures: vec![] };
    let preferred: Vec<_> = served.preferred().iter().map(ToString::to_string).collect();
    assert_eq!(preferred, ["a.v2.g", "b.v1.g", "c.v3.g"]);
}
