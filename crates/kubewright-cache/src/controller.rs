//! Pop loop over a queue of deltas.
//!
//! This is client-go's `cache.Controller`: a reflector and a pop loop, without a store of its own.
//! [`Informer`] adds a store and one handler. Both are building blocks;
//! [`SharedInformer`](super::SharedInformer) is the complete form.

use std::sync::Arc;

use kube::Resource;
use serde::de::DeserializeOwned;

use super::{
    delta_fifo::{DeltaFifo, Deltas},
    event::Event,
    fault::Fault,
    list_watch::ListWatch,
    object::Lazy,
    reflector::Reflector,
    shared_informer::apply_delta,
    store::{Indexer, UntypedStore},
    turns::Budget,
};

/// A reflector and the loop that pops its deltas.
///
/// ```no_run
/// # async fn example(client: kube::Client) {
/// use kubewright::cache::{Controller, DeltaFifo, Indexer, ListWatch};
/// use kubewright::k8s_openapi::api::core::v1::ConfigMap;
///
/// let store = Indexer::<ConfigMap>::with_metadata_key();
/// let fifo = DeltaFifo::with_known_objects(&store);
/// let controller = Controller::new(ListWatch::new(client).namespace("tmp"), fifo, |popped| {
///     for delta in popped.deltas {
///         println!("{}: {}", delta.name(), delta.object().name());
///     }
/// });
/// controller.run().await;
/// # }
/// ```
pub struct Controller<K: Resource> {
    fifo: DeltaFifo<Lazy<K>>,
    reflector: Reflector<K>,
    process: Box<dyn FnMut(Deltas<Lazy<K>>) + Send>,
}

impl<K> Controller<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    /// Creates a controller that reflects `list_watch` into `fifo` and calls `process` with the popped
    /// deltas.
    pub fn new(
        list_watch: ListWatch<K>,
        fifo: DeltaFifo<Lazy<K>>,
        process: impl FnMut(Deltas<Lazy<K>>) + Send + 'static,
    ) -> Self {
        let reflector = Reflector::new(list_watch, fifo.clone());
        Self { fifo, reflector, process: Box::new(process) }
    }

    /// Configures the reflector.
    #[must_use]
    pub fn reflector(mut self, tune: impl FnOnce(Reflector<K>) -> Reflector<K>) -> Self {
        self.reflector = tune(self.reflector);
        self
    }

    /// Runs until the future is dropped or the queue is closed.
    pub async fn run(mut self) {
        let pop = async {
            let mut budget = Budget::default();
            while self.fifo.pop(&mut *self.process).await.is_some() {
                budget.spend().await;
            }
        };
        tokio::select! {
            biased;
            () = self.reflector.run() => {}
            () = pop => {}
        }
    }
}

/// A controller with a store and one handler: client-go's `NewInformer` and `NewIndexerInformer`.
///
/// The handler runs on the same task, so a slow one delays the store. For several handlers, or a slow one,
/// use [`SharedInformer`](super::SharedInformer).
pub struct Informer<K: Resource> {
    store: Indexer<K>,
    fifo: DeltaFifo<Lazy<K>>,
    controller: Controller<K>,
}

impl<K> Informer<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    /// Creates an informer that reflects `list_watch` into a store and calls `handler` with every change.
    pub fn new(list_watch: ListWatch<K>, mut handler: impl FnMut(Event<K>) + Send + 'static) -> Self {
        let cache = Arc::new(UntypedStore::new());
        let store = Indexer::viewing(Arc::clone(&cache));
        let fifo = DeltaFifo::with_known_objects(&store);
        let faults = list_watch.faults().clone();
        let controller = Controller::new(list_watch, fifo.clone(), move |popped| {
            let (events, errors) = cache.transaction(|cache| {
                let mut events = Vec::new();
                for delta in popped.deltas {
                    apply_delta(cache, delta.map(Lazy::cast), popped.is_in_initial_list, &mut events);
                }
                events
            });
            for error in errors {
                faults.report(&Fault::Index(error));
            }
            events.into_iter().map(Event::cast).for_each(&mut handler);
        });
        Self { store, fifo, controller }
    }

    /// Returns the store; indexes can be added to it.
    pub fn store(&self) -> Indexer<K> {
        self.store.clone()
    }

    /// Returns a function that tells whether the store holds the first list.
    pub fn has_synced(&self) -> impl Fn() -> bool + Send + Sync + use<K> {
        let fifo = self.fifo.clone();
        move || fifo.has_synced()
    }

    /// Configures the reflector.
    #[must_use]
    pub fn reflector(mut self, tune: impl FnOnce(Reflector<K>) -> Reflector<K>) -> Self {
        self.controller = self.controller.reflector(tune);
        self
    }

    /// Runs until the future is dropped.
    pub async fn run(self) {
        self.controller.run().await;
    }
}
