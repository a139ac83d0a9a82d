//! Tests of the server through a `kube::Client`, in process and over TLS.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use kubewright_apiserver::{ApiServer, authz::Mode};
use kubewright_storage::Retention;
use serde_json::json;

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("k".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

#[tokio::test]
async fn a_client_in_process_creates_reads_replaces_and_deletes() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    let created = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    assert!(created.metadata.uid.is_some());

    let mut changed = created.clone();
    changed.data = config_map("a", "2").data;
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.metadata.resource_version, created.metadata.resource_version);

    let stale = maps.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn an_update_without_changes_is_no_write() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    let created = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let again = maps.replace("a", &PostParams::default(), &created).await.unwrap();
    assert_eq!(again.metadata.resource_version, created.metadata.resource_version);
}

#[tokio::test]
async fn a_client_can_use_all_patch_types() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    let applied = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value},
        }))
    };
    let mine = PatchParams::apply("mine");
    maps.patch("a", &mine, &applied("1")).await.unwrap();
    let other = PatchParams::default();
    maps.patch("a", &other, &Patch::Merge(json!({"data": {"merge": "1"}}))).await.unwrap();
    maps.patch("a", &other, &Patch::Strategic(json!({"data": {"strategic": "1"}}))).await.unwrap();
    let request = http::Request::patch("/api/v1/namespaces/default/configmaps/a")
        .header("content-type", "application/json-patch+json")
        .body(br#"[{"op": "add", "path": "/data/json", "value": "1"}]"#.to_vec());
    let patched: ConfigMap = server.client().request(request.unwrap()).await.unwrap();
    let keys: Vec<_> = patched.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["json", "k", "merge", "strategic"]);

    // An applier that omits its fields gives up those and no others.
    let none = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let given_up = maps.patch("a", &mine, &Patch::Apply(none)).await.unwrap();
    let keys: Vec<_> = given_up.data.unwrap().into_keys().collect();
    assert_eq!(keys, ["json", "merge", "strategic"]);
}

#[tokio::test]
async fn an_apply_conflicts_with_the_owner_of_a_field_unless_forced() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    let config = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value},
        }))
    };
    maps.patch("a", &PatchParams::apply("first"), &config("1")).await.unwrap();
    let refused = maps.patch("a", &PatchParams::apply("second"), &config("2")).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 409
        && status.message == "Apply failed with 1 conflict: conflict with \"first\": .data.k"));
    let taken = maps.patch("a", &PatchParams::apply("second").force(), &config("2")).await.unwrap();
    assert_eq!(taken.data.unwrap()["k"], "2");
    let owners: Vec<_> =
        taken.metadata.managed_fields.unwrap().into_iter().filter_map(|entry| entry.manager).collect();
    assert_eq!(owners, ["second"]);
}

#[tokio::test]
async fn an_invalid_scale_is_rejected_without_scaling() {
    let server = ApiServer::builder().in_process().unwrap();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let send = async |method: &str, path: String, body: serde_json::Value| {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes());
        server.client().request::<serde_json::Value>(request.unwrap()).await
    };
    send("POST", deployments.to_owned(), deployment).await.unwrap();
    let scale = format!("{deployments}/d/scale");
    for spec in [json!("x"), json!([]), json!({"replicas": "many"}), json!({"replicas": 1.5})] {
        let body = json!({"metadata": {"name": "d"}, "spec": spec});
        let refused = send("PUT", scale.clone(), body).await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.code == 400), "{spec}");
    }
    let now = send("GET", scale.clone(), json!({})).await.unwrap();
    assert_eq!(now["spec"]["replicas"], 3);
}

#[tokio::test]
async fn pages_have_the_state_of_the_first_page() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    for n in 0..7 {
        maps.create(&PostParams::default(), &config_map(&format!("m{n}"), "1")).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(3)).await.unwrap();
    maps.delete("m4", &DeleteParams::default()).await.unwrap();
    let mut names: Vec<_> = first.items.iter().filter_map(|m| m.metadata.name.clone()).collect();
    let mut token = first.metadata.continue_;
    while let Some(next) = token.filter(|t| !t.is_empty()) {
        let page = maps.list(&ListParams::default().limit(3).continue_token(&next)).await.unwrap();
        names.extend(page.items.into_iter().filter_map(|m| m.metadata.name));
        token = page.metadata.continue_;
    }
    assert_eq!(names, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
}

#[tokio::test]
async fn a_watch_shows_changes_in_order_and_compaction_ends_it_with_410() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();

    let events: Vec<_> =
        maps.watch(&WatchParams::default(), &start).await.unwrap().take(2).try_collect().await.unwrap();
    assert!(matches!(&events[..], [WatchEvent::Added(_), WatchEvent::Deleted(_)]));

    server.compact();
    let mut late = maps.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    assert!(matches!(late.next().await, Some(Ok(WatchEvent::Error(error))) if error.code == 410));
    assert!(late.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_bookmark() {
    let server = ApiServer::builder().in_process().unwrap();
    let maps = maps(server.client());
    maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let params = WatchParams { send_initial_events: true, ..WatchParams::default() };
    let events: Vec<_> = maps.watch(&params, "0").await.unwrap().take(2).try_collect().await.unwrap();
    let WatchEvent::Bookmark(mark) = &events[1] else { panic!("a bookmark, not {:?}", events[1]) };
    assert_eq!(mark.metadata.annotations.get("k8s.io/initial-events-end").map(String::as_str), Some("true"));
}

#[tokio::test]
async fn a_slow_watcher_expires_without_blocking_writers() {
    let retention = Retention::default().with_events(8).with_bytes(1 << 20);
    let server = ApiServer::builder().retention(retention).in_process().unwrap();
    let maps = maps(server.client());
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut slow = maps.watch(&WatchParams::default(), &start).await.unwrap().boxed();
    for n in 0..40 {
        maps.create(&PostParams::default(), &config_map(&format!("m{n}"), "1")).await.unwrap();
    }
    assert!(matches!(slow.next().await, Some(Ok(WatchEvent::Error(error))) if error.code == 410));
}

#[tokio::test]
async fn the_same_seed_and_requests_give_the_same_names_and_uids() {
    let run = async || {
        let server = ApiServer::builder().seed(42).in_process().unwrap();
        let mut map = config_map("", "1");
        map.metadata.name = None;
        map.metadata.generate_name = Some("pre-".into());
        let made = maps(server.client()).create(&PostParams::default(), &map).await.unwrap();
        (made.metadata.name, made.metadata.uid)
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test]
async fn over_tls_only_the_kubeconfig_of_the_administrator_works() {
    let running = ApiServer::builder().start().await.unwrap();
    let yaml = running.kubeconfig();
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&yaml).unwrap();
    let mut config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    let namespaces = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
    assert_eq!(namespaces.items.len(), 4);

    config.auth_info = kube::config::AuthInfo::default();
    let nobody = Client::try_from(config).unwrap();
    let refused = Api::<Namespace>::all(nobody).list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
    running.stop().await;
}

#[tokio::test]
async fn always_deny_denies_even_administrators() {
    let server = ApiServer::builder().authorization([Mode::AlwaysDeny]).in_process().unwrap();
    let refused = maps(server.client()).get("a").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
}
