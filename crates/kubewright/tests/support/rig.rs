//! An informer of `ConfigMap`s on a [`FakeApi`], with a handler that mirrors its events.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright::{
    Random,
    cache::{Event, Fault, ListWatch, Registration, Running, SharedInformer},
};
use parking_lot::Mutex;

use super::FakeApi;

pub const CONFIG_MAPS: &str = "/api/v1/configmaps";

/// Waits, in virtual time, until a condition is true; fails after ten minutes.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("did not come true: {what}");
}

pub struct Rig {
    pub api: FakeApi,
    pub informer: SharedInformer<ConfigMap>,
    mirror: Mirror,
    faults: Arc<Mutex<Vec<String>>>,
    _handler: Registration,
    running: Option<Running>,
}

/// The state of a handler: `namespace/name` → version, from events alone.
#[derive(Clone, Default)]
pub struct Mirror(Arc<Mutex<BTreeMap<String, String>>>, Arc<Mutex<Vec<String>>>);

impl Mirror {
    pub fn take(&self, event: &Event<ConfigMap>) {
        let (key, version) = (event.key().to_string(), event.object().resource_version().to_owned());
        let mut known = self.0.lock();
        let trail = match event {
            Event::Added { .. } => {
                known.insert(key.clone(), version);
                format!("+{key}")
            }
            Event::Updated { .. } => {
                assert!(known.insert(key.clone(), version).is_some(), "update of unknown {key}");
                format!("~{key}")
            }
            Event::Deleted { final_state_unknown, .. } => {
                known.remove(&key);
                format!("-{key}{}", if *final_state_unknown { "?" } else { "" })
            }
        };
        self.1.lock().push(trail);
    }

    pub fn content(&self) -> BTreeMap<String, String> {
        self.0.lock().clone()
    }

    /// Returns its events, in order: `+` added, `~` updated, `-` deleted, `?` final state unknown.
    pub fn trail(&self) -> Vec<String> {
        self.1.lock().clone()
    }

    pub fn forget_trail(&self) {
        self.1.lock().clear();
    }
}

impl Rig {
    /// Starts an informer on this server and waits until it has synced.
    pub async fn start(api: FakeApi) -> Self {
        let rig = Self::prepare(api);
        rig.informer.synced().await;
        rig.settled().await;
        rig
    }

    /// Starts an informer on this server.
    pub fn prepare(api: FakeApi) -> Self {
        Self::prepare_informer(api, |informer| informer)
    }

    pub fn prepare_informer(
        api: FakeApi,
        tune: impl FnOnce(SharedInformer<ConfigMap>) -> SharedInformer<ConfigMap>,
    ) -> Self {
        let faults: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&faults);
        let list_watch = ListWatch::<ConfigMap>::new(api.client())
            .on_fault(move |fault: &Fault| reported.lock().push(fault.to_string()));
        // Streaming covers more code, and falls back to a list on servers that reject it.
        let informer = tune(SharedInformer::new(list_watch.streaming(true)).random(Random::seeded(1)));
        let mirror = Mirror::default();
        let handler = informer.on_event({
            let mirror = mirror.clone();
            move |event| mirror.take(&event)
        });
        let running = Some(informer.start());
        Self { api, informer, mirror, faults, _handler: handler, running }
    }

    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().clone()
    }

    pub fn cache(&self) -> BTreeMap<String, String> {
        self.informer
            .store()
            .list()
            .iter()
            .map(|object| (object.key().to_string(), object.resource_version().to_owned()))
            .collect()
    }

    /// Waits until server, cache and handler agree, and a watch is open.
    pub async fn settled(&self) {
        eventually("server, cache and handler agree", || {
            let server = self.api.content(CONFIG_MAPS);
            self.cache() == server && self.mirror.content() == server && self.api.open_watches() == 1
        })
        .await;
    }

    pub async fn stop(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }
}
