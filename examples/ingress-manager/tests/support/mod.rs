//! Runs both ingress managers in one cluster, one after the other, each with objects of its own.

use ingress_manager::{by_hand, with_builder};
use kubewright::{
    Result,
    k8s_openapi::api::{core::v1::Service, networking::v1::Ingress},
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    manager::{Manager, ManagerBuilder, Stage, runnable_fn},
};
use kubewright_cluster::{Cluster, Operator};
use serde_json::{Value, json};

/// One of the two managers and its cluster.
pub(crate) struct Rig<'a> {
    pub(crate) cluster: &'a Cluster,
    /// Prefix of the names of its objects, so that a report shows which of the two has failed. Namespaces
    /// would do as well, but a real control plane takes time to delete one.
    prefix: &'static str,
    operator: fn() -> ManagerBuilder,
}

/// Runs a check with both managers.
pub(crate) async fn each(cluster: &Cluster, check: impl AsyncFn(&Rig<'_>) -> Result<()>) -> Result<()> {
    let both: [(_, fn() -> _); 2] = [("by-hand-", made_by_hand), ("with-builder-", made_with_builder)];
    for (prefix, operator) in both {
        check(&Rig { cluster, prefix, operator }).await?;
    }
    Ok(())
}

fn made_with_builder() -> ManagerBuilder {
    Manager::builder("ingress-manager").controller(with_builder::controller())
}

/// A manager around it, as the harness runs managers: only the client and the shutdown are used.
fn made_by_hand() -> ManagerBuilder {
    Manager::builder("ingress-manager").runnable(runnable_fn("by-hand", Stage::Others, |cx| async move {
        tokio::select! {
            biased;
            () = cx.stop().cancelled() => Ok(()),
            ended = by_hand::run(cx.client().client().clone()) => ended,
        }
    }))
}

impl Rig<'_> {
    /// Starts the ingress manager.
    pub(crate) async fn started(&self) -> Result<Operator> {
        Ok(self.cluster.run((self.operator)()).await?)
    }

    /// Starts it with a limited number of writes.
    pub(crate) async fn started_for(&self, writes: u32) -> Result<Operator> {
        Ok(self.cluster.run_with_write_limit((self.operator)(), writes).await?)
    }

    /// Applies a Service with or without a host annotation.
    pub(crate) async fn serve(&self, name: &str, host: Option<&str>) -> Result<()> {
        self.serve_on(name, host, 80).await
    }

    /// Applies a Service with this port.
    pub(crate) async fn serve_on(&self, name: &str, host: Option<&str>, port: u16) -> Result<()> {
        let annotations = host.map(|host| json!({"ingress/http": host}));
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": self.named(name), "annotations": annotations},
            "spec": {"ports": [{"port": port}], "selector": {"app": "web"}},
        });
        self.cluster.apply(&service.to_string()).await?;
        Ok(())
    }

    pub(crate) async fn withdraw(&self, name: &str) -> Result<()> {
        Ok(self.cluster.delete::<Service>(&self.key(name)).await?)
    }

    pub(crate) async fn ingress(&self, name: &str) -> Result<Option<Ingress>> {
        Ok(self.cluster.find::<Ingress>(&self.key(name)).await?)
    }

    pub(crate) async fn delete_ingress(&self, name: &str) -> Result<()> {
        Ok(self.cluster.delete::<Ingress>(&self.key(name)).await?)
    }

    /// Changes an Ingress by hand.
    pub(crate) async fn patch_ingress(&self, name: &str, change: Value) -> Result<()> {
        let ingresses = Api::<Ingress>::namespaced(self.cluster.client(), "default");
        ingresses.patch(&self.named(name), &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Creates an Ingress by hand, with these owners.
    pub(crate) async fn create_ingress(&self, name: &str, owners: Value) -> Result<()> {
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": self.named(name), "ownerReferences": owners},
            "spec": {"defaultBackend": {"service": {"name": "theirs", "port": {"number": 1}}}},
        });
        self.cluster.apply(&ingress.to_string()).await?;
        Ok(())
    }

    /// Creates an owner; returns its owner reference.
    pub(crate) async fn other_owner(&self) -> Result<Value> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.named("other-owner")},
        });
        let made = self.cluster.apply(&map.to_string()).await?;
        let (name, uid) = (&made[0].metadata.name, &made[0].metadata.uid);
        Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true}))
    }

    /// Waits until an Ingress meets a condition.
    pub(crate) async fn until(
        &self,
        what: &str,
        name: &str,
        wanted: impl Fn(Option<&Ingress>) -> bool,
    ) -> Result<()> {
        let key = self.key(name);
        let right = async |cluster: &Cluster| {
            let found = cluster.find::<Ingress>(&key).await?;
            Ok(wanted(found.as_ref()).then_some(()))
        };
        let what = format!("{what}, {key},");
        Ok(self.cluster.eventually(&what, right).await?)
    }

    /// The Service and port that the host leads to.
    pub(crate) fn backend<'a>(&self, ingress: Option<&'a Ingress>) -> Option<(&'a str, i32)> {
        let http = ingress?.spec.as_ref()?.rules.as_ref()?.first()?.http.as_ref()?;
        let service = http.paths.first()?.backend.service.as_ref()?;
        Some((service.name.strip_prefix(self.prefix)?, service.port.as_ref()?.number?))
    }

    /// The kind and name of its controller.
    pub(crate) fn controller<'a>(&self, ingress: Option<&'a Ingress>) -> Option<(&'a str, &'a str)> {
        let owners = ingress?.metadata.owner_references.as_ref()?;
        let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
        Some((&owner.kind, owner.name.strip_prefix(self.prefix)?))
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn key(&self, name: &str) -> String {
        format!("default/{}", self.named(name))
    }
}

/// The host of the first rule.
pub(crate) fn host(ingress: Option<&Ingress>) -> Option<&str> {
    ingress?.spec.as_ref()?.rules.as_ref()?.first()?.host.as_deref()
}
