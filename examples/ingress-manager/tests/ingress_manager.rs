//! Both ingress managers, held to the same promises, on an API server in this process.

use std::time::Duration;

use ingress_manager::{by_hand, with_builder};
use kubewright::{
    k8s_openapi::api::{core::v1::Service, networking::v1::Ingress},
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    manager::Manager,
};
use kubewright_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Both, one after the other, each with a server of its own.
struct Rig {
    client: Client,
    task: JoinHandle<()>,
    _server: ApiServer,
}

impl Rig {
    async fn each(check: impl AsyncFn(Rig)) {
        for by_builder in [false, true] {
            let server = ApiServer::builder().in_process().expect("a server needs nothing");
            let client = server.client();
            let task = tokio::spawn({
                let client = client.clone();
                async move {
                    let ended = if by_builder {
                        let manager = Manager::builder("ingress-manager").client(client).signals(false);
                        manager.controller(with_builder::controller()).run().await
                    } else {
                        by_hand::run(client).await
                    };
                    panic!("it runs until it is stopped, and ended with {ended:?}");
                }
            });
            check(Rig { client, task, _server: server }).await;
        }
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn ingresses(&self) -> Api<Ingress> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn create(&self, annotations: Value) {
        let service = serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
        }))
        .expect("a service");
        self.services().create(&PostParams::default(), &service).await.expect("created");
    }

    async fn ingress(&self) -> Option<Ingress> {
        self.ingresses().get_opt("web").await.expect("an answer")
    }

    /// Waits, in virtual time, until the Ingress is as it should be.
    async fn until(&self, what: &str, wanted: impl Fn(Option<&Ingress>) -> bool) {
        for _ in 0..6000 {
            assert!(!self.task.is_finished(), "the manager has ended while waiting: {what}");
            if wanted(self.ingress().await.as_ref()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("did not come true: {what}");
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn host(ingress: Option<&Ingress>) -> Option<&str> {
    ingress?.spec.as_ref()?.rules.as_ref()?.first()?.host.as_deref()
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_has_an_ingress_that_it_controls_and_others_have_none() {
    Rig::each(async |rig| {
        rig.create(json!({})).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(rig.ingress().await.is_none());
        let annotate = json!({"metadata": {"annotations": {"ingress/http": "web.example.com"}}});
        rig.services().patch("web", &PatchParams::default(), &Patch::Merge(annotate)).await.unwrap();
        rig.until("an ingress", |ingress| host(ingress) == Some("web.example.com")).await;
        let ingress = rig.ingress().await.unwrap();
        let owner = &ingress.metadata.owner_references.unwrap()[0];
        assert_eq!((&*owner.kind, &*owner.name, owner.controller), ("Service", "web", Some(true)));
        let backend = ingress.spec.unwrap().rules.unwrap()[0].http.clone().unwrap().paths[0].backend.clone();
        assert_eq!(backend.service.unwrap().port.unwrap().number, Some(80));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_ingress_goes_with_the_annotation_and_with_the_service() {
    Rig::each(async |rig| {
        rig.create(json!({"ingress/http": "a"})).await;
        rig.until("an ingress", |ingress| ingress.is_some()).await;
        let remove = json!({"metadata": {"annotations": {"ingress/http": null}}});
        rig.services().patch("web", &PatchParams::default(), &Patch::Merge(remove)).await.unwrap();
        rig.until("no ingress", |ingress| ingress.is_none()).await;
        let again = json!({"metadata": {"annotations": {"ingress/http": "b"}}});
        rig.services().patch("web", &PatchParams::default(), &Patch::Merge(again)).await.unwrap();
        rig.until("an ingress again", |ingress| host(ingress) == Some("b")).await;
        rig.services().delete("web", &DeleteParams::default()).await.unwrap();
        rig.until("no ingress without its service", |ingress| ingress.is_none()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_changed_by_hand_comes_back() {
    Rig::each(async |rig| {
        rig.create(json!({"ingress/http": "a"})).await;
        rig.until("an ingress", |ingress| ingress.is_some()).await;
        let first = rig.ingress().await.unwrap().metadata.uid;
        rig.ingresses().delete("web", &DeleteParams::default()).await.unwrap();
        rig.until("another ingress", |ingress| ingress.is_some_and(|ingress| ingress.metadata.uid != first))
            .await;
        let meddle = json!({"spec": {"rules": [{"host": "elsewhere"}]}});
        rig.ingresses().patch("web", &PatchParams::default(), &Patch::Merge(meddle)).await.unwrap();
        rig.until("the right host", |ingress| host(ingress) == Some("a")).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_ingress_that_is_not_ours_is_left_alone() {
    Rig::each(async |rig| {
        let stranger = serde_json::from_value(json!({
            "metadata": {"name": "web", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": "x", "controller": true},
            ]},
            "spec": {"rules": [{"host": "theirs"}]},
        }))
        .unwrap();
        rig.ingresses().create(&PostParams::default(), &stranger).await.unwrap();
        rig.create(json!({"ingress/http": "ours"})).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.services().delete("web", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(host(rig.ingress().await.as_ref()), Some("theirs"));
    })
    .await;
}

#[test]
fn the_builder_needs_at_most_half_the_lines() {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let by_hand = lines(include_str!("../src/by_hand.rs"));
    let with_builder = lines(include_str!("../src/with_builder.rs"));
    assert!(with_builder * 2 <= by_hand, "{with_builder} and {by_hand}");
}
