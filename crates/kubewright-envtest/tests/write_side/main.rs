//! What the cached client, controllers and managers promise, held against two judges: the embedded server, and a real
//! kube-apiserver where there is one on the machine (`make real` builds it; without it that one test says so and passes).
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
use place::Place;

/// One test for each promise on the embedded server, and one test of all of them on a real one. In virtual time where no
/// socket is involved.
macro_rules! promises {
    ($($time:ident $module:ident::$promise:ident;)*) => {
        mod embedded {
            use super::*;
            $(promises!(@test $time $module $promise);)*
        }

        #[tokio::test(flavor = "multi_thread")]
        async fn all_of_them_on_a_real_server() {
            let Some(binaries) = Binaries::find() else {
                eprintln!("no real API server on this machine: `make real` builds one");
                return;
            };
            let plane = ControlPlane::builder().start(&binaries).await.unwrap();
            let mut promises: Vec<LocalBoxFuture<'_, ()>> = Vec::new();
            $({
                let place = Place::on_a_real_server(&plane, &binaries, stringify!($promise)).await;
                promises.push(Box::pin($module::$promise(place)));
            })*
            join_all(promises).await;
        }
    };
    (@test virtual_time $module:ident $promise:ident) => {
        #[tokio::test(start_paused = true)]
        async fn $promise() {
            let server = ApiServer::builder().in_process().unwrap();
            $module::$promise(Place::new(server.client(), stringify!($promise)).await).await;
        }
    };
    (@test real_time $module:ident $promise:ident) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            let server = ApiServer::builder().in_process().unwrap();
            $module::$promise(Place::new(server.client(), stringify!($promise)).await).await;
        }
    };
}

promises! {
    virtual_time cached::every_write_is_seen_by_the_next_read;
    virtual_time cached::a_deletion_meant_for_an_object_spares_its_successor;
    virtual_time cached::many_are_deleted_at_once_and_reads_know;
    virtual_time cached::dry_runs_store_nothing_and_hold_up_no_read;
    virtual_time cached::what_was_written_is_as_the_cache_holds_it;
    virtual_time cached::apply_takes_what_it_says_and_leaves_the_rest;
    virtual_time cached::a_status_is_written_when_it_changes_and_only_then;
    virtual_time cached::subresources_of_other_kinds_are_read_and_written;
    virtual_time cached::a_finalizer_holds_the_object_until_the_clean_up_and_not_its_successor;
    virtual_time cached::what_somebody_else_controls_is_refused;
    virtual_time controllers::workers_that_count_together_lose_no_step_and_do_none_twice;
    virtual_time controllers::owned_objects_come_back_and_are_adopted_only_once;
    virtual_time controllers::repeated_events_are_counted;
    virtual_time operator::it_waits_for_its_kind_and_then_does_its_work;
    virtual_time election::one_works_and_hands_over_when_it_stops;
    virtual_time ingress::both_managers_keep_their_promises;
    real_time serving::probes_and_metrics_are_served_to_those_who_may;
    real_time serving::an_address_in_use_is_told;
}
