//! Sources of requests: owners, map functions, predicates, channels, functions, informers, other clusters.

use futures::SinkExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Selector};
use kubewright::{
    cache::{Event, FieldIndex, KindCache, Lazy, ListWatch, SharedInformer},
    controller::{
        HandlerContext,
        predicate::{
            AnnotationChanged, GenerationChanged, LabelChanged, ResourceVersionChanged, Selected, object,
        },
        source,
    },
};
use serde_json::{Value, json};

use super::*;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn secret(name: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "default", "name": name, "ownerReferences": owners},
    })
}

fn owner(name: &str, kind: &str, controller: bool) -> Value {
    let version = if kind == "ConfigMap" { "v1" } else { "apps/v1" };
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("uid-of-{name}"), "controller": controller})
}

/// A controller that writes the keys of its requests, from other sources than its own kind.
fn recording(builder: ControllerBuilder<ConfigMap>, journal: &Journal) -> Controller {
    let journal = journal.clone();
    builder.only_others().reconcile(move |cx: Context<ConfigMap>| {
        journal.write(cx.key());
        async { Ok(Action::done()) }
    })
}

#[tokio::test(start_paused = true)]
async fn an_owned_object_enqueues_its_controller_and_an_update_both_the_old_and_the_new_one() {
    let api = FakeApi::new();
    let journal = Journal::default();
    let running = run(&api, [recording(maps().0.owns::<Secret>(), &journal)]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    api.put(
        SECRETS,
        secret("s", &json!([owner("one", "ConfigMap", true), owner("other", "ConfigMap", false)])),
    );
    journal.reaches(1).await;
    api.put(SECRETS, secret("s", &json!([owner("two", "ConfigMap", true)])));
    journal.reaches(3).await;
    api.delete(SECRETS, "s");
    journal.reaches(4).await;
    assert_eq!(journal.lines(), ["default/one", "default/one", "default/two", "default/two"]);
    // Another kind of the same name, and an owner that is not the controller, enqueue nothing.
    api.put(
        SECRETS,
        secret("t", &json!([owner("one", "ReplicaSet", true), owner("one", "ConfigMap", false)])),
    );
    journal.reaches(4).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn owners_that_do_not_control_count_with_owned_by_any() {
    let api = FakeApi::new();
    let journal = Journal::default();
    let running = run(&api, [recording(maps().0.watches(Watch::<Secret>::owned_by_any()), &journal)]).await;
    api.put(
        SECRETS,
        secret("s", &json!([owner("one", "ConfigMap", true), owner("two", "ConfigMap", false)])),
    );
    journal.reaches(2).await;
    assert_eq!(journal.sorted(), ["default/one", "default/two"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_map_function_is_called_with_the_old_and_the_new_object() {
    let api = FakeApi::new();
    let journal = Journal::default();
    let watch = Watch::mapped(|secret: &Lazy<Secret>| {
        secret.label("for").map(|name| ObjectKey::namespaced("elsewhere", name))
    });
    let running = run(&api, [recording(maps().0.watches(watch), &journal)]).await;
    let labelled = |name: &str| {
        let mut object = secret("s", &json!([]));
        object["metadata"]["labels"] = json!({"for": name});
        object
    };
    api.put(SECRETS, labelled("one"));
    journal.reaches(1).await;
    api.put(SECRETS, labelled("two"));
    journal.reaches(3).await;
    assert_eq!(journal.lines(), ["elsewhere/one", "elsewhere/one", "elsewhere/two"]);
    running.stop().await.unwrap();
}

static MAPS_BY_SECRET: FieldIndex<ConfigMap> = FieldIndex::new("secret", |map, values| {
    let name = map.label("secret");
    values.extend(name.map(|name| ObjectKey::new(map.namespace(), name).to_string()));
    Ok(())
});

#[tokio::test(start_paused = true)]
async fn an_index_leads_from_an_object_to_those_that_refer_to_it() {
    let api = FakeApi::new();
    for (name, secret) in [("one", "s"), ("two", "other"), ("three", "s")] {
        api.put(
            "/api/v1/namespaces/default/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"namespace": "default", "name": name, "labels": {"secret": secret}}}),
        );
    }
    let journal = Journal::default();
    let watch = Watch::<Secret>::by_index(&MAPS_BY_SECRET);
    let builder = maps().0.only_others().index(&MAPS_BY_SECRET).watches(watch);
    let running = run(&api, [recording(builder.owns::<ConfigMap>(), &journal)]).await;
    api.put(SECRETS, secret("s", &json!([])));
    journal.reaches(2).await;
    assert_eq!(journal.sorted(), ["default/one", "default/three"]);
    let watch = Watch::mapped_with(|secret: &Lazy<Secret>, cx: &HandlerContext| {
        cx.cache::<ConfigMap>()
            .get(&ObjectKey::namespaced("default", secret.name()))
            .map(|map| map.key().clone())
    });
    let journal = Journal::default();
    let other =
        run(&api, [recording(maps().0.only_others().watches(watch).owns::<ConfigMap>(), &journal)]).await;
    api.put(SECRETS, secret("two", &json!([])));
    journal.reaches(1).await;
    assert_eq!(journal.lines(), ["default/two"]);
    running.stop().await.unwrap();
    other.stop().await.unwrap();
}

fn handle(version: &str, change: impl Fn(&mut Value)) -> Lazy<Secret> {
    let mut object = secret("s", &json!([]));
    object["metadata"]["resourceVersion"] = json!(version);
    object["metadata"]["uid"] = json!("u");
    object["metadata"]["generation"] = json!(1);
    change(&mut object);
    let object = serde_json::from_value(object).expect("a secret");
    Lazy::new(object, &()).expect("it has a name")
}

fn update(old: &Lazy<Secret>, new: &Lazy<Secret>) -> Event<Secret> {
    Event::Updated { old: old.clone(), new: new.clone() }
}

type Passes = fn(&Event<Secret>) -> bool;

#[test]
fn each_predicate_passes_the_update_it_is_named_for_and_every_addition_and_deletion() {
    let base = handle("1", |_| ());
    let touched = handle("2", |_| ());
    let generation = handle("2", |object| object["metadata"]["generation"] = json!(2));
    let labelled = handle("2", |object| object["metadata"]["labels"] = json!({"app": "web"}));
    let annotated = handle("2", |object| object["metadata"]["annotations"] = json!({"note": "x"}));
    // Which of: resync, touched, generation, labels, annotations.
    let table: [(&str, Passes, [bool; 5]); 4] = [
        ("version", |event| ResourceVersionChanged.passes(event), [false, true, true, true, true]),
        ("generation", |event| GenerationChanged.passes(event), [false, false, true, false, false]),
        ("labels", |event| LabelChanged.passes(event), [false, false, false, true, false]),
        ("annotations", |event| AnnotationChanged.passes(event), [false, false, false, false, true]),
    ];
    for (name, passes, wanted) in table {
        let events = [&base, &touched, &generation, &labelled, &annotated].map(|new| update(&base, new));
        assert_eq!(events.each_ref().map(passes), wanted, "{name}");
        let added = Event::Added { object: base.clone(), is_in_initial_list: true };
        let deleted = Event::Deleted { object: base.clone(), final_state_unknown: false };
        assert!(passes(&added) && passes(&deleted), "{name}");
    }
}

#[test]
fn predicates_combine_and_a_selector_passes_objects_that_leave_it() {
    let outside = handle("1", |_| ());
    let inside = handle("2", |object| object["metadata"]["labels"] = json!({"app": "web"}));
    let added = |object: &Lazy<Secret>| Event::Added { object: object.clone(), is_in_initial_list: false };
    let selected = || Selected::by(&[("app", "web")].into_iter().collect::<Selector>());
    let passes = |event: &Event<Secret>| Predicate::<Secret>::passes(&selected(), event);
    assert!(passes(&added(&inside)) && !passes(&added(&outside)));
    assert!(passes(&update(&outside, &inside)) && passes(&update(&inside, &outside)));
    assert!(!passes(&update(&outside, &outside)));

    let labelled = || object(|secret: &Lazy<Secret>| secret.label("app").is_some());
    let never = |_: &Event<Secret>| false;
    assert!(!labelled().and(never).passes(&added(&inside)));
    assert!(labelled().or(never).passes(&added(&inside)));
    assert!(labelled().not().passes(&added(&outside)));
    let no_deletions = |event: &Event<Secret>| !matches!(event, Event::Deleted { .. });
    assert!(!no_deletions.passes(&Event::Deleted { object: inside, final_state_unknown: false }));
}

#[tokio::test(start_paused = true)]
async fn only_events_that_pass_lead_to_a_reconcile() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let journal = Journal::default();
    let controller = maps().0.when(|event: &Event<ConfigMap>| event.key().name() != "ignored").reconcile({
        let journal = journal.clone();
        move |cx: Context<ConfigMap>| {
            journal.write(cx.key());
            async { Ok(Action::done()) }
        }
    });
    let running = run(&api, [controller]).await;
    journal.reaches(1).await;
    api.put_config_map("default", "ignored", "1");
    api.put_config_map("default", "b", "1");
    journal.reaches(2).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn channels_functions_and_external_informers_enqueue_requests() {
    let api = FakeApi::new();
    let journal = Journal::default();
    let (mut sender, receiver) = futures::channel::mpsc::channel::<u32>(4);
    let informer = SharedInformer::new(ListWatch::<Secret>::new(api.client()));
    let _running = informer.start();
    let builder = maps()
        .0
        .source(source::channel("numbers", receiver, |number| [ObjectKey::cluster(&number.to_string())]))
        .source(source::function("once", |requests| async move { requests.add(ObjectKey::cluster("once")) }))
        .watches(
            Watch::mapped(|secret: &Lazy<Secret>| [secret.key().clone()])
                .through(KindCache::from_informer(informer.clone(), ())),
        );
    let running = run(&api, [recording(builder, &journal)]).await;
    sender.send(7).await.unwrap();
    api.put(SECRETS, secret("s", &json!([])));
    journal.reaches(3).await;
    assert_eq!(journal.sorted(), ["7", "default/s", "once"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_watches_across_clusters() {
    let (here, there) = (FakeApi::new(), FakeApi::new());
    there.put(SECRETS, secret("s", &json!([])));
    let journal = Journal::default();
    let remote = kubewright::manager::ClusterHandle::new("remote", there.client());
    let watch = Watch::mapped(|secret: &Lazy<Secret>| [secret.key().clone()]).in_cluster(&remote);
    let controller = maps().0.watches(watch).reconcile({
        let (journal, remote) = (journal.clone(), remote.clone());
        move |cx: Context<ConfigMap>| {
            let (journal, remote) = (journal.clone(), remote.clone());
            async move {
                let found = remote.client().get::<Secret>(cx.key()).await?.is_some();
                journal.write(format!("{} {} {found}", cx.key(), cx.object()?.is_some()));
                Ok(Action::done())
            }
        }
    });
    let manager = Manager::builder("test")
        .client(here.client())
        .cluster(&remote)
        .signals(false)
        .controller(controller)
        .build()
        .await
        .unwrap();
    let handle = manager.handle();
    assert!(handle.cluster("remote").is_some());
    let running = Running { handle, task: tokio::spawn(manager.run()) };
    journal.reaches(1).await;
    here.put_config_map("default", "s", "1");
    journal.reaches(2).await;
    assert_eq!(journal.lines(), ["default/s false true", "default/s true true"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dynamic_and_metadata_only_controllers_see_the_same_objects() {
    let api = FakeApi::new();
    api.put_config_map("default", "a", "1");
    let journal = Journal::default();
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic = Controller::dynamic(&resource).named("dynamic").reconcile({
        let journal = journal.clone();
        move |cx: Context<DynamicObject>| {
            let journal = journal.clone();
            async move {
                let object = cx.object()?.expect("it exists");
                journal.write(format!("dynamic {}", object.data["data"]["value"]));
                Ok(Action::done())
            }
        }
    });
    let metadata = Controller::of::<PartialObjectMeta<ConfigMap>>().named("metadata").reconcile({
        let journal = journal.clone();
        move |cx: Context<PartialObjectMeta<ConfigMap>>| {
            let journal = journal.clone();
            async move {
                journal.write(format!("metadata {}", cx.object()?.expect("it exists").name_any()));
                Ok(Action::done())
            }
        }
    });
    let running = run(&api, [dynamic, metadata]).await;
    journal.reaches(2).await;
    assert_eq!(journal.sorted(), ["dynamic \"1\"", "metadata a"]);
    running.stop().await.unwrap();
}
