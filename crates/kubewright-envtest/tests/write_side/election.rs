//! Two replicas, one leader.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event},
};
use kube::api::{ListParams, PostParams};
use kubewright::{manager::election::LeaderElection, prelude::*};

use crate::place::{Running, TestEnv, eventually};

async fn replica(env: &TestEnv, done: &Arc<AtomicUsize>) -> Running {
    let done = Arc::clone(done);
    let controller =
        Controller::of::<ConfigMap>().named("elected").reconcile(move |cx: Context<ConfigMap>| {
            done.fetch_add(1, Ordering::Relaxed);
            cx.event("Synced", "seen by the leader");
            async { Ok(Action::done()) }
        });
    let election = LeaderElection::builder(env.client.clone(), "elected").namespace(&env.namespace);
    let manager = env.manager("elected").leader_elector(election.build().unwrap()).controller(controller);
    Running::begin(manager).await
}

pub(crate) async fn one_replica_leads_and_releases_the_lease_when_it_stops(env: TestEnv) {
    env.api::<ConfigMap>().create(&PostParams::default(), &env.map("a")).await.unwrap();
    let leases = env.api::<Lease>();
    let lease = async || leases.get("elected").await.unwrap().spec.unwrap();
    let (first, second) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let leader = replica(&env, &first).await;
    eventually("the leader works", async || first.load(Ordering::Relaxed) > 0).await;
    assert!(leader.handle.is_leader());
    let held = lease().await;
    assert!(held.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty()));
    assert_eq!(held.lease_duration_seconds, Some(15));

    let candidate = replica(&env, &second).await;
    // The other replica has tried when the leader has renewed twice.
    for _ in 0..2 {
        let before = lease().await.renew_time;
        eventually("the lease is renewed", async || lease().await.renew_time > before).await;
    }
    assert_eq!(second.load(Ordering::Relaxed), 0, "there is a leader");
    assert!(!candidate.handle.is_leader());

    leader.stop().await;
    eventually("the candidate takes over", async || second.load(Ordering::Relaxed) > 0).await;
    let now = lease().await;
    assert_ne!(now.holder_identity, held.holder_identity);
    assert!(now.lease_transitions > held.lease_transitions);
    candidate.stop().await;
    assert_eq!(lease().await.holder_identity.unwrap_or_default(), "", "it is released");

    // Stopping waits for the last events.
    let recorded = env.api::<Event>().list(&ListParams::default()).await.unwrap();
    let synced = recorded.items.iter().find(|event| event.reason.as_deref() == Some("Synced")).unwrap();
    assert_eq!(synced.message.as_deref(), Some("seen by the leader"));
}
