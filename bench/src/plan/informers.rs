//! Informers: duration of a sync, cost of a change, memory of a relist.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{OUR_SERVER, Plan, REAL_SERVER, all_lines, grouped, note, strings};
use crate::{
    child::Child,
    results::{OURS, Results},
};

/// Number of changes of a watch.
const EVENTS: usize = 20_000;

/// Program and options of an informer.
struct Informer {
    program: PathBuf,
    arguments: Vec<String>,
    /// Whether the handler decodes every object; the peers always do.
    reads_all: bool,
}

impl Plan {
    fn informers(&self, kind: &str) -> Vec<Informer> {
        let informer = |program: PathBuf, arguments: &[&str]| Informer {
            program,
            arguments: strings(arguments),
            reads_all: arguments.contains(&"whole"),
        };
        let mut all = vec![informer(self.ours.join("informer"), &["--read", "labels"])];
        if let Some(go) = &self.go {
            all.push(informer(go.join("informer"), &["--encoding", "protobuf"]));
            if kind != "configmaps" {
                all.push(informer(go.join("informer"), &["--encoding", "protobuf", "--strip"]));
                all.push(informer(go.join("informer"), &["--encoding", "json"]));
            }
        }
        if let Some(kube_rs) = &self.kube_rs {
            all.push(informer(kube_rs.join("kube-rs-informer"), &[]));
            if kind != "configmaps" {
                all.push(informer(kube_rs.join("kube-rs-informer"), &["--strip"]));
            }
            all.push(informer(kube_rs.join("kube-rs-informer-tuned"), &["--strip"]));
        }
        all
    }

    /// Syncs Pods in growing numbers, then small objects, on one server.
    pub(super) async fn informers_on_real(
        &self,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        say("starting kube-apiserver and etcd");
        let (mut host, kubeconfig) = self.host("real").await?;
        for &size in &self.sizes {
            self.fill(&mut host, "pods", size, "kube-apiserver + etcd", results, say).await?;
            // Large syncs take long and vary little.
            let repeats = if self.quick || size >= 100_000 { 1 } else { self.repeats };
            let title = sync_title("pods", size, REAL_SERVER);
            for _ in 0..repeats {
                for informer in self.informers("pods") {
                    let run =
                        self.informer(&informer, &kubeconfig, "pods", size, &mut host, "sync", say).await;
                    record(results, run, |_| title.clone(), &informer);
                }
            }
        }
        if let (Some(kube_rs), Some(&size)) = (&self.kube_rs, self.sizes.iter().max()) {
            let done = self.wire(&kube_rs.join("wire"), &kubeconfig, size.min(10_000), results, say).await;
            note(results, "protobuf instead of JSON", done);
        }
        if let (Some(&small), Some(&large)) =
            (self.sizes.iter().find(|size| **size >= 10_000), self.sizes.iter().max())
            && small < large
        {
            #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let at = |size: usize| size as f64;
            let title = format!("growth from {} to {} Pods", grouped(small), grouped(large));
            results.growth(
                (&sync_title("pods", small, REAL_SERVER), at(small)),
                (&sync_title("pods", large, REAL_SERVER), at(large)),
                &title,
            );
        }
        let maps = 100_000;
        say(&format!("filling kube-apiserver with {maps} config maps"));
        host.order(&format!("fill configmaps {maps}")).await?;
        let title = format!("sync of {} small ConfigMaps from {REAL_SERVER}", grouped(maps));
        for _ in 0..if self.quick { 1 } else { self.repeats } {
            for informer in self.informers("configmaps") {
                let run =
                    self.informer(&informer, &kubeconfig, "configmaps", maps, &mut host, "sync", say).await;
                record(results, run, |_| title.clone(), &informer);
            }
        }
        Ok(())
    }

    /// Compares JSON and protobuf for the same Pods.
    async fn wire(
        &self,
        program: &Path,
        kubeconfig: &Path,
        count: usize,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        say(&format!("{} Pods as JSON and as protobuf", grouped(count)));
        let (path, count) = (kubeconfig.display().to_string(), count.to_string());
        let arguments = strings(&["--kubeconfig", &path, "--count", &count]);
        for line in all_lines(program, &arguments, &[]).await? {
            let title = format!("protobuf instead of JSON: {}", line["bench"].as_str().unwrap_or_default());
            let form = line["impl"].as_str().unwrap_or_default();
            results.record_as(&title, if form == "json" { OURS } else { form }, &line);
        }
        Ok(())
    }

    async fn fill(
        &self,
        host: &mut Child,
        kind: &str,
        size: usize,
        implementation: &str,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        say(&format!("filling {implementation} up to {} {}", grouped(size), title_of(kind)));
        let answer = host.order(&format!("fill {kind} {size}")).await?;
        let added = answer["added"].as_f64().unwrap_or(0.0);
        // The first objects include fixed costs.
        if added >= 5_000.0 {
            let each = answer["grown_bytes"].as_f64().unwrap_or(0.0) / added;
            let title = match kind {
                "mixed-pods" => "server: hold a mixed Pod of 10.9 KB",
                _ => "server: hold a Pod of 9.5 KB",
            };
            results.record_as(title, implementation, &json!({"bytes_each": each}));
        }
        Ok(())
    }

    /// Syncs Pods of applications that differ, on a server of their own.
    pub(super) async fn mixed_on_real(
        &self,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        let (mut host, kubeconfig) = self.host("real").await?;
        for &size in if self.quick { &[10_000][..] } else { &[10_000, 30_000] } {
            self.fill(&mut host, "mixed-pods", size, "kube-apiserver + etcd", results, say).await?;
            let title = sync_title("mixed-pods", size, REAL_SERVER);
            for _ in 0..if self.quick { 1 } else { self.repeats } {
                for informer in self.informers("mixed-pods") {
                    let run = self
                        .informer(&informer, &kubeconfig, "mixed-pods", size, &mut host, "sync", say)
                        .await;
                    record(results, run, |_| title.clone(), &informer);
                }
            }
        }
        Ok(())
    }

    /// Syncs, changes objects at full speed, then makes the server forget its history, which ends watches with 410.
    pub(super) async fn informers_on_ours(
        &self,
        kind: &str,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        let size = if self.quick { 10_000 } else { 30_000 };
        let (mut host, kubeconfig) = self.host("ours").await?;
        self.fill(&mut host, kind, 1_000, "kubewright", results, say).await?;
        self.fill(&mut host, kind, size, "kubewright", results, say).await?;
        let objects = title_of(kind);
        let mut informers = self.informers(kind);
        let whole = Informer {
            program: self.ours.join("informer"),
            arguments: strings(&["--read", "whole"]),
            reads_all: true,
        };
        informers.insert(1, whole);
        for _ in 0..if self.quick { 1 } else { self.repeats } {
            for informer in &informers {
                let phases = "sync,watch,relist";
                let run = self.informer(informer, &kubeconfig, kind, size, &mut host, phases, say).await;
                let title = |phase: &str| match phase {
                    "watch" => {
                        format!(
                            "watch, {} changes of {objects} at full speed from {OUR_SERVER}",
                            grouped(EVENTS)
                        )
                    }
                    "relist" => format!("relist of {} {objects} after 410 from {OUR_SERVER}", grouped(size)),
                    _ => sync_title(kind, size, OUR_SERVER),
                };
                record(results, run, title, informer);
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "one run is all of this")]
    async fn informer(
        &self,
        informer: &Informer,
        kubeconfig: &Path,
        kind: &str,
        count: usize,
        host: &mut Child,
        phases: &str,
        say: &dyn Fn(&str),
    ) -> Result<Vec<Value>, String> {
        let name = informer.program.strip_prefix(&self.ours).map_or("peer", |_| "kubewright");
        say(&format!("{phases} of {} {kind}: {name} {}", grouped(count), informer.arguments.join(" ")));
        if phases != "sync" {
            host.order("reset").await?;
        }
        let mut arguments = informer.arguments.clone();
        let settle = if self.quick { 2 } else { 4 };
        // Go's flag needs a unit.
        let settle = if informer.arguments.contains(&"--encoding".to_owned()) {
            format!("{settle}s")
        } else {
            settle.to_string()
        };
        let count = count.to_string();
        let path = kubeconfig.display().to_string();
        let resource = if kind == "mixed-pods" { "pods" } else { kind };
        arguments.extend(strings(&["--kubeconfig", &path, "--kind", resource, "--count", &count]));
        arguments.extend(strings(&["--phases", phases, "--settle", &settle]));
        let mut child = Child::spawn(&informer.program, &arguments, &[])?;
        let mut lines = Vec::new();
        for phase in phases.split(',') {
            match phase {
                "watch" => drop(host.order(&format!("events {EVENTS}")).await?),
                "relist" => {
                    // The informer waits for its memory to settle first.
                    tokio::time::sleep(std::time::Duration::from_secs(if self.quick { 4 } else { 6 })).await;
                    host.order("forget").await?;
                }
                _ => {}
            }
            lines.push(child.must_say().await?);
        }
        while child.line().await?.is_some() {}
        Ok(lines)
    }
}

fn sync_title(kind: &str, size: usize, server: &str) -> String {
    format!("sync of {} {} from {server}", grouped(size), title_of(kind))
}

/// Name of generated objects in the table.
fn title_of(kind: &str) -> &'static str {
    match kind {
        "mixed-pods" => "mixed Pods",
        _ => "Pods",
    }
}

/// Records the lines of a run. Runs that decode every object are a workload of their own.
fn record(
    results: &mut Results,
    run: Result<Vec<Value>, String>,
    title: impl Fn(&str) -> String,
    informer: &Informer,
) {
    let lines = match run {
        Ok(lines) => lines,
        Err(reason) => return results.failures.push(reason),
    };
    for line in lines {
        let phase = line["bench"].as_str().unwrap_or_default();
        let (title, implementation) = (title(phase), line["impl"].as_str().unwrap_or_default());
        let reading = title.replacen("watch,", "watch, the whole object read,", 1);
        if informer.reads_all {
            if phase == "watch" {
                results.record_as(&reading, "kubewright", &line);
            }
        } else {
            results.record(&title, &line);
            if phase == "watch" && implementation != "kubewright" {
                results.record(&reading, &line);
            }
        }
    }
}
