//! The loop that takes deltas out of a queue and hands them to a function.
//!
//! This is client-go's `cache.Controller`: a reflector and a pop loop, without a store of its own. [`Informer`] puts a
//! store and one handler on it. Both are for programs that want the parts; [`SharedInformer`](super::SharedInformer)
//! is the whole.

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
    store::Indexer,
    turns::Turns,
};

/// A reflector and the loop that consumes what it finds.
///
/// ```no_run
/// # async fn example(client: kube::Client) {
/// use kubewright::cache::{Controller, DeltaFifo, Indexer, ListWatch};
/// use kubewright::k8s_openapi::api::core::v1::ConfigMap;
///
/// let store = Indexer::<ConfigMap>::keyed();
/// let fifo = DeltaFifo::of(&store);
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
    /// Follows `list_watch` into `fifo` and calls `process` with what comes out of it.
    pub fn new(
        list_watch: ListWatch<K>,
        fifo: DeltaFifo<Lazy<K>>,
        process: impl FnMut(Deltas<Lazy<K>>) + Send + 'static,
    ) -> Self {
        let reflector = Reflector::new(list_watch, fifo.clone());
        Self { fifo, reflector, process: Box::new(process) }
    }

    /// Changes how the reflector works.
    #[must_use]
    pub fn reflector(mut self, tune: impl FnOnce(Reflector<K>) -> Reflector<K>) -> Self {
        self.reflector = tune(self.reflector);
        self
    }

    /// Runs until the future is dropped or the queue is closed.
    pub async fn run(mut self) {
        let pop = async {
            let mut turns = Turns::default();
            while self.fifo.pop(&mut *self.process).await.is_some() {
                turns.end().await;
            }
        };
        tokio::select! {
            biased;
            () = self.reflector.run() => {}
            () = pop => {}
        }
    }
}

/// A controller that keeps a store and tells one handler: client-go's `NewInformer` and `NewIndexerInformer`.
///
/// The handler runs on the same task, so a slow one holds up the store. For more handlers than one, or for one that
/// may be slow, use [`SharedInformer`](super::SharedInformer).
pub struct Informer<K: Resource> {
    store: Indexer<K>,
    fifo: DeltaFifo<Lazy<K>>,
    controller: Controller<K>,
}

impl<K> Informer<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    /// Follows `list_watch` into a store and calls `handler` with every change.
    pub fn new(list_watch: ListWatch<K>, mut handler: impl FnMut(Event<K>) + Send + 'static) -> Self {
        let store = Indexer::<K>::keyed();
        let fifo = DeltaFifo::of(&store);
        let faults = list_watch.faults().clone();
        let cache = store.clone();
        let controller = Controller::new(list_watch, fifo.clone(), move |popped| {
            let (events, errors) = cache.objects().transaction(|cache| {
                let mut events = Vec::new();
                for delta in popped.deltas {
                    apply_delta(cache, delta, popped.is_in_initial_list, &mut events);
                }
                events
            });
            for error in errors {
                faults.report(&Fault::Index(error));
            }
            events.into_iter().for_each(&mut handler);
        });
        Self { store, fifo, controller }
    }

    /// The store that the informer fills; add indexes to it.
    pub fn store(&self) -> Indexer<K> {
        self.store.clone()
    }

    /// Says, while the informer runs, whether the store holds what the first list held.
    pub fn has_synced(&self) -> impl Fn() -> bool + Send + Sync + use<K> {
        let fifo = self.fifo.clone();
        move || fifo.has_synced()
    }

    /// Changes how the reflector works.
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
