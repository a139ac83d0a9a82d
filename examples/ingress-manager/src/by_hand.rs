//! The ingress manager with informers and a work queue, as with client-go alone.

use std::time::Duration;

use kubewright::{
    Error, ObjectKey, Result,
    cache::{Event, Indexer, InformerFactory, Lazy},
    client::{Refusal, set_controller_reference},
    k8s_openapi::api::{core::v1::Service, networking::v1::Ingress},
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams, Preconditions},
    },
    queue::RateLimitingQueue,
};

use crate::{host, is_ours, rules};

const WORKERS: usize = 5;
const MAX_RETRIES: u32 = 10;

/// Runs until the future is dropped.
pub async fn run(client: Client) -> Result<()> {
    let factory = InformerFactory::new(client.clone()).resync(Duration::from_secs(30));
    let (services, ingresses) = (factory.informer::<Service>(), factory.informer::<Ingress>());
    let queue = RateLimitingQueue::<ObjectKey>::named("ingress-manager");

    let changed = queue.clone();
    let _services = services.on_event(move |event| match event {
        // Most changes of a Service do not matter here: its status, its labels.
        Event::Updated { old, new } if has_same_ingress(&old, &new) => {}
        event => changed.add(event.key()),
    });
    let changed = queue.clone();
    let _ingresses = ingresses.on_event(move |event| {
        if let Event::Updated { old, .. } = &event
            && let Some(key) = controlling_service(old)
        {
            changed.add(key);
        }
        if let Some(key) = controlling_service(event.object()) {
            changed.add(key);
        }
    });
    factory.start();
    factory.wait_for_sync().await?;

    let manager = IngressManager { client, queue, services: services.store(), ingresses: ingresses.store() };
    let workers = [(); WORKERS].map(|()| manager.clone()).map(|manager| tokio::spawn(manager.work()));
    let workers = Workers(workers);
    std::future::pending::<()>().await;
    drop(workers);
    Ok(())
}

/// Tasks that are aborted when this is dropped.
struct Workers([tokio::task::JoinHandle<()>; WORKERS]);

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

fn has_same_ingress(old: &Lazy<Service>, new: &Lazy<Service>) -> bool {
    match (old.load(), new.load()) {
        (Ok(old), Ok(new)) => host(&old) == host(&new) && rules(&old) == rules(&new),
        _ => false,
    }
}

/// The key of the Service that controls the Ingress.
fn controlling_service(ingress: &Lazy<Ingress>) -> Option<ObjectKey> {
    let owner = ingress.controller().filter(|owner| owner.kind == "Service" && owner.api_version == "v1")?;
    Some(ObjectKey::new(ingress.namespace(), owner.name))
}

#[derive(Clone)]
struct IngressManager {
    client: Client,
    queue: RateLimitingQueue<ObjectKey>,
    services: Indexer<Service>,
    ingresses: Indexer<Ingress>,
}

impl IngressManager {
    async fn work(self) {
        while let Some(item) = self.queue.get().await {
            match self.sync(item.key()).await {
                Ok(()) => item.forget(),
                Err(error) if item.requeues() < MAX_RETRIES => item.retry(error),
                Err(error) => item.give_up(error),
            }
        }
    }

    async fn sync(&self, key: &ObjectKey) -> Result<()> {
        let service = self.services.get_by_key(key).map(|service| service.load()).transpose()?;
        let ingress = self.ingresses.get_by_key(key).map(|ingress| ingress.load()).transpose()?;
        match (service.filter(|service| host(service).is_some()), ingress) {
            (Some(service), None) => self.create(key, &service).await,
            (Some(service), Some(ingress)) => self.update(key, &service, &ingress).await,
            (None, Some(ingress)) if is_ours(&ingress) => self.delete(key, &ingress).await,
            (None, _) => Ok(()),
        }
    }

    fn api(&self, key: &ObjectKey) -> Api<Ingress> {
        Api::namespaced(self.client.clone(), key.namespace().unwrap_or_default())
    }

    async fn create(&self, key: &ObjectKey, service: &Service) -> Result<()> {
        let mut ingress = Ingress { spec: rules(service), ..Ingress::default() };
        ingress.metadata.name = Some(key.name().to_owned());
        ingress.metadata.namespace = key.namespace().map(str::to_owned);
        set_controller_reference(service, &mut ingress)?;
        match self.api(key).create(&PostParams::default(), &ingress).await {
            // The cache has not seen the created Ingress yet, or another client was faster: the cache will.
            Err(error) if error.is_already_exists() => Ok(()),
            created => created.map(drop).map_err(Error::from),
        }
    }

    async fn update(&self, key: &ObjectKey, service: &Service, ingress: &Ingress) -> Result<()> {
        let mut wanted = ingress.clone();
        wanted.spec = rules(service);
        set_controller_reference(service, &mut wanted)?;
        if wanted != *ingress {
            self.api(key).replace(key.name(), &PostParams::default(), &wanted).await?;
        }
        Ok(())
    }

    async fn delete(&self, key: &ObjectKey, ingress: &Ingress) -> Result<()> {
        let this_one = Preconditions { uid: ingress.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams::default().preconditions(this_one);
        match self.api(key).delete(key.name(), &params).await {
            // Deleted already, and possibly recreated.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => deleted.map(drop).map_err(Error::from),
        }
    }
}
