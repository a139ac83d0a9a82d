//! The programs as modules.
#![allow(dead_code, unreachable_pub, reason = "the tests call what each main calls")]

#[path = "../../src/bin/clients_discovery.rs"]
pub mod clients_discovery;
#[path = "../../src/bin/clients_dynamic.rs"]
pub mod clients_dynamic;
#[path = "../../src/bin/clients_rest.rs"]
pub mod clients_rest;
#[path = "../../src/bin/clients_typed.rs"]
pub mod clients_typed;
#[path = "../../src/bin/controller.rs"]
pub mod controller;
#[path = "../../src/bin/delta_fifo.rs"]
pub mod delta_fifo;
#[path = "../../src/bin/factory.rs"]
pub mod factory;
#[path = "../../src/bin/indexer_by_labels.rs"]
pub mod indexer_by_labels;
#[path = "../../src/bin/indexer_by_namespace.rs"]
pub mod indexer_by_namespace;
#[path = "../../src/bin/informer.rs"]
pub mod informer;
#[path = "../../src/bin/list_namespaces.rs"]
pub mod list_namespaces;
#[path = "../../src/bin/list_watch.rs"]
pub mod list_watch;
#[path = "../../src/bin/reflector.rs"]
pub mod reflector;
#[path = "../../src/bin/shared_informer.rs"]
pub mod shared_informer;
#[path = "../../src/bin/work_queue.rs"]
pub mod work_queue;
