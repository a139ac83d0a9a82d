//! The sample-controller on kube-runtime: a Deployment per Foo, the status written when it changed, an event for every sync.
//!
//! `kube-rs-operator --kubeconfig FILE [--workers N]`: runs until its input ends, then prints what it took.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use futures::StreamExt as _;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        Controller, WatchStreamExt as _,
        controller::Action,
        events::{Event, EventType, Recorder, Reporter},
        reflector::{self, ObjectRef},
        watcher,
    },
};
use mimalloc::MiMalloc;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[path = "../../../../src/arguments.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod arguments;
#[path = "../../../../src/measure.rs"]
#[allow(dead_code, reason = "shared with the programs of kubewright, which use all of it")]
mod measure;
#[path = "../../../../src/requests.rs"]
mod requests;

use arguments::Arguments;
use measure::{Phase, resident_bytes};
use requests::Requests;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
struct Foo {
    metadata: ObjectMeta,
    spec: FooSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<FooStatus>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct FooSpec {
    deployment_name: String,
    replicas: Option<i32>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct FooStatus {
    available_replicas: i32,
}

// What the derive of kube-rs writes, without its dependencies.
impl Resource for Foo {
    type DynamicType = ();
    type Scope = k8s_openapi::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Foo".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "samplecontroller.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "foos".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

struct Context {
    client: Client,
    deployments: reflector::Store<Deployment>,
    recorder: Recorder,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::of_process(&[]);
    let phase = Phase::start();
    let requests = Requests::default();
    let kubeconfig = Kubeconfig::read_from(arguments.text("kubeconfig", ""))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = ClientBuilder::try_from(config)?.with_layer(&requests.layer()).build();

    // One watch of Deployments for both the cache and the events, as kube-rs's page on shared streams has it.
    let (deployments, writer) = reflector::store::<Deployment>();
    let owned = watcher(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|deployment| deployment.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    let recorder =
        Recorder::new(client.clone(), Reporter { controller: "sample-controller".into(), instance: None });
    let context = Arc::new(Context { client: client.clone(), deployments, recorder });
    let workers = arguments.get("workers", 8);
    let (told, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = told.send(());
    });
    let controller = Controller::new(Api::<Foo>::all(client), watcher::Config::default());
    let controller = controller
        .owns_stream(owned)
        .with_config(kube::runtime::controller::Config::default().concurrency(workers))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), context)
        .for_each(|_| std::future::ready(()));
    tokio::select! {
        () = controller => {}
        _ = ended => {}
    }
    requests.add(phase.stop(1)).with("steady_bytes", resident_bytes()).print("sample-controller", "kube-rs");
    Ok(())
}

async fn reconcile(foo: Arc<Foo>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let namespace = foo.namespace().unwrap_or_default();
    let api = Api::<Deployment>::namespaced(context.client.clone(), &namespace);
    let cached = context.deployments.get(&ObjectRef::new(&foo.spec.deployment_name).within(&namespace));
    let deployment = match cached {
        Some(deployment) => (*deployment).clone(),
        None => match api.create(&PostParams::default(), &deployment(&foo)).await {
            Ok(created) => created,
            // The cache is behind; the event of the Deployment asks again.
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(Action::await_change()),
            Err(error) => return Err(error),
        },
    };
    if deployment.spec.replicas != foo.spec.replicas {
        let patch = json!({"spec": {"replicas": foo.spec.replicas}});
        api.patch(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let available = deployment.status.and_then(|status| status.available_replicas).unwrap_or(0);
    let status = FooStatus { available_replicas: available };
    if foo.status.as_ref() != Some(&status) {
        let foos = Api::<Foo>::namespaced(context.client.clone(), &namespace);
        let patch = json!({"status": status});
        foos.patch_status(&foo.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let event = Event {
        type_: EventType::Normal,
        reason: "Synced".into(),
        note: Some("Foo synced successfully".into()),
        action: "Sync".into(),
        secondary: None,
    };
    context.recorder.publish(&event, &foo.object_ref(&())).await?;
    Ok(Action::await_change())
}

fn deployment(foo: &Foo) -> Deployment {
    let labels: BTreeMap<String, String> =
        [("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), foo.name_any())].into();
    let container =
        Container { name: "nginx".into(), image: Some("nginx:latest".into()), ..Container::default() };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            owner_references: Some(foo.controller_owner_ref(&()).into_iter().collect()),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: foo.spec.replicas,
            selector: LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    }
}
