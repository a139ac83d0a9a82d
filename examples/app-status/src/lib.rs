//! Live status of any objects of a cluster.
//!
//! The kinds to show are given on the command line, and at run time by ConfigMaps with the label
//! `app-status.kubewright.dev/watch: "true"`, whose `kinds` lists them as for `kubectl get`. Each kind has a
//! dynamic informer, started when the kind is first requested and stopped when it is no longer. Custom
//! resources need no code: their health is derived from conditions, phase or replicas.
//!
//! - [`health`]: the health of an object, derived from its status;
//! - [`board`]: the watched kinds, with a row for every object;
//! - [`controller`]: reconciles the watched kinds with the requested ones;
//! - [`show`]: the board on a terminal, as plain lines or as JSON;
//! - [`terminal`]: colours, widths and redrawing in place.
//!
//! It guarantees, as `tests/` checks:
//!
//! - a kind is watched once, however many request it, for as long as one does;
//! - a kind that is not served is reported, and shown as soon as it is; a kind that is no longer served is
//!   removed;
//! - a row exists as long as its object, and is as current as the informer;
//! - it writes nothing.

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

/// The whole operator, for `main`, for tests and for embedding. Its output is the board.
pub fn operator(board: &Board) -> ManagerBuilder {
    let board_keys = || [controller::board_key()];
    let board = board.clone();
    let controller = Controller::of::<ConfigMap>()
        .named("app-status")
        .without_leader()
        // There is one board, so every event has the same key.
        .only_others()
        .source(source::function("start", |requests| async move { requests.add(controller::board_key()) }))
        .watches(Watch::mapped(move |_: &Lazy<ConfigMap>| board_keys()))
        .watches(Watch::mapped(move |_: &Lazy<PartialObjectMeta<CustomResourceDefinition>>| board_keys()))
        .reconcile(move |cx| controller::reconcile(board.clone(), cx));
    Manager::builder("app-status")
        .cache(CacheOptions::<ConfigMap>::new().labels(format!("{}=true", controller::LABEL)))
        .controller(controller)
}
