//! The status of anything in a cluster, live: what an application centre shows.
//!
//! Which kinds are shown is said on the command line, and at run time by ConfigMaps with the label
//! `app-status.kubewright.dev/watch: "true"`, whose `kinds` lists them in the words that `kubectl get` takes. Every kind has
//! a dynamic informer of its own, which is started when somebody asks for the kind and stopped when nobody does any more.
//! Custom resources need no code: their conditions, their phase or their replicas say how they are.
//!
//! - [`health`]: how an object is, by what its status says;
//! - [`board`]: the kinds that are watched, and a row for every object;
//! - [`controller`]: from what is asked for to what is watched;
//! - [`show`]: the board on a terminal, as plain lines or as JSON;
//! - [`terminal`]: colours, widths and redrawing in place.
//!
//! It keeps these promises, and `tests/` holds it to them:
//!
//! - a kind is watched once, however many ask for it, and as long as one does;
//! - a kind that is not served is told of, and shown as soon as it is; a kind that is not served any more leaves the board;
//! - a row is there as long as its object is, and always as new as the informer;
//! - it writes nothing: no object is touched.

pub mod board;
pub mod controller;
pub mod health;
pub mod options;
pub mod show;
pub mod terminal;

pub use board::{Board, Row};
pub use health::{Health, State};
use k8s_openapi::{
    api::core::v1::ConfigMap, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::core::PartialObjectMeta;
use kubewright::{
    cache::{CacheOptions, Lazy},
    controller::source,
    manager::ManagerBuilder,
    prelude::*,
};

/// The whole operator, for `main`, for tests and for whoever runs it inside of another program. What it finds is on the
/// board.
pub fn operator(board: &Board) -> ManagerBuilder {
    let everything = || [controller::everything()];
    let board = board.clone();
    let controller = Controller::of::<ConfigMap>()
        .named("app-status")
        .without_leader()
        // There is one board: whatever happens, all of it is looked at.
        .only_others()
        .source(source::function("start", |requests| async move { requests.add(controller::everything()) }))
        .watches(Watch::mapped(move |_: &Lazy<ConfigMap>| everything()))
        .watches(Watch::mapped(move |_: &Lazy<PartialObjectMeta<CustomResourceDefinition>>| everything()))
        .reconcile(move |cx| controller::reconcile(board.clone(), cx));
    Manager::builder("app-status")
        .cache(CacheOptions::<ConfigMap>::new().labels(format!("{}=true", controller::LABEL)))
        .controller(controller)
}
