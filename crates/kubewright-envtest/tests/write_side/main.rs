//! Guarantees of the cached client, controllers and managers on two servers: the embedded one, and a real
//! kube-apiserver if it is installed (`make real` builds it; otherwise that test is skipped).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cached;
mod controllers;
mod election;
mod ingress;
mod operator;
mod place;
mod serving;

use futures::future::{LocalBoxFuture, join_all};
use kubewright_apiserver::ApiServer;
use kubewright_envtest::{Binaries, ControlPlane};
use place::TestEnv;

/// Generates a test for each case on the embedded server, and one test of all cases on a real one. In virtual
/// time unless sockets are involved.
macro_rules! cases {
    ($($time:ident $module:ident::$case:ident;)*) => {
        mod embedded {
            use super::*;
            $(cases!(@test $time $module $case);)*
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn all_cases_on_a_real_server() {
            let Some(binaries) = Binaries::find() else {
                eprintln!("no real API server on this machine: `make real` builds one");
                return;
            };
            let plane = ControlPlane::builder().start(&binaries).await.unwrap();
            let mut cases: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
            $({
                let env = TestEnv::with_real_server(&plane, &binaries, stringify!($case)).await;
                cases.push(Box::pin($module::$case(env)));
            })*
            join_all(cases).await;
        }
    };
    (@test virtual_time $module:ident $case:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $case() {
            let server = ApiServer::builder().in_process().unwrap();
            $module::$case(TestEnv::new(server.client(), stringify!($case)).await).await;
        }
    };
    (@test real_time $module:ident $case:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $case() {
            let server = ApiServer::builder().in_process().unwrap();
            $module::$case(TestEnv::new(server.client(), stringify!($case)).await).await;
        }
    };
}

cases! {
    virtual_time cached::every_write_is_visible_to_the_next_read;
    virtual_time cached::a_delete_with_a_uid_spares_a_recreated_object;
    virtual_time cached::a_collection_is_deleted_and_reads_see_it;
    virtual_time cached::dry_runs_store_nothing_and_delay_no_read;
    virtual_time cached::written_objects_equal_cached_ones;
    virtual_time cached::apply_owns_the_applied_fields_only;
    virtual_time cached::a_status_is_written_only_when_it_changes;
    virtual_time cached::subresources_of_other_kinds_are_read_and_written;
    virtual_time cached::a_finalizer_keeps_the_object_until_clean_up_and_not_a_recreated_one;
    virtual_time cached::an_object_of_another_controller_is_refused;
    virtual_time controllers::concurrent_workers_lose_and_repeat_no_step;
    virtual_time controllers::owned_objects_are_recreated_and_adopted_once;
    virtual_time controllers::repeated_events_are_counted;
    virtual_time operator::it_waits_until_its_kind_is_served;
    virtual_time election::one_replica_leads_and_releases_the_lease_when_it_stops;
    virtual_time ingress::both_managers_reconcile_services;
    real_time serving::probes_are_public_and_metrics_are_authorized;
    real_time serving::an_address_in_use_is_reported;
}
