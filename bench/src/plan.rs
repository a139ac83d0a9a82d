//! Who runs what, in which order. Within a workload the implementations take turns, so that all meet the same machine.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{child::Child, foos, results::Results};

/// How many changes a watch brings.
const EVENTS: usize = 20_000;
const OUR_SERVER: &str = "kubewright's server";
const REAL_SERVER: &str = "kube-apiserver";

/// What is there and what is wanted.
#[derive(Debug)]
pub struct Plan {
    /// Where our programs are.
    pub ours: PathBuf,
    /// Where those of kube-rs are, if they were built.
    pub kube_rs: Option<PathBuf>,
    /// Where those in Go are, if they were built.
    pub go: Option<PathBuf>,
    /// Where etcd and kube-apiserver are, if they were built.
    pub real: Option<PathBuf>,
    /// How often each is run.
    pub repeats: usize,
    /// Minutes instead of half an hour: smaller sizes, fewer runs.
    pub quick: bool,
    /// Only workloads whose names contain this.
    pub only: String,
    /// How many Pods are synced.
    pub sizes: Vec<usize>,
    /// How many Foos there are.
    pub foos: Vec<usize>,
}

/// A way to run an informer.
struct Informer {
    program: PathBuf,
    arguments: Vec<String>,
    /// The whole object is read for every change; the peers always have it.
    reads_all: bool,
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// 30000 as 30,000.
pub fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl Plan {
    /// Runs everything. What fails is noted and left out.
    pub async fn run(&self, results: &mut Results, say: &dyn Fn(&str)) {
        if self.wants("sync watch relist server: hold") && self.real.is_some() {
            let done = self.informers_on_real(results, say).await;
            note(results, "informers on kube-apiserver", done);
        }
        if self.wants("sync watch relist server: hold") {
            let done = self.informers_on_ours(results, say).await;
            note(results, "informers on our server", done);
        }
        for (prefix, program, arguments, peer) in [
            (
                "in process",
                "cache",
                strings(&["events"]),
                self.kube_rs.as_ref().map(|path| path.join("peer-kube-rs")),
            ),
            ("queue", "queue", vec![], self.go.as_ref().map(|path| path.join("queue"))),
            ("store", "indexer", vec![], self.go.as_ref().map(|path| path.join("indexer"))),
        ] {
            if self.wants(&format!("{prefix}: {program}")) {
                let done = self.in_turns(prefix, program, &arguments, peer, results, say).await;
                note(results, prefix, done);
            }
        }
        for &count in &self.foos {
            for (server, is_there) in [("real", self.real.is_some()), ("ours", true)] {
                if is_there && self.wants(&format!("sample-controller {count}")) {
                    let done = self.sample_controllers(server, count, results, say).await;
                    note(results, "sample-controller", done);
                }
            }
        }
        if self.wants("server: ") {
            let done = self.servers(results, say).await;
            note(results, "servers", done);
        }
        if self.wants("operator test") {
            let done = self.operator_tests(results, say).await;
            note(results, "operator tests", done);
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.split(',').any(|only| name.contains(only))
    }

    fn informers(&self, kind: &str) -> Vec<Informer> {
        let informer = |program: PathBuf, arguments: &[&str]| Informer {
            program,
            arguments: strings(arguments),
            reads_all: arguments.contains(&"whole"),
        };
        let mut all = vec![informer(self.ours.join("informer"), &["--read", "labels"])];
        if let Some(go) = &self.go {
            all.push(informer(go.join("informer"), &["--encoding", "protobuf"]));
            if kind == "pods" {
                all.push(informer(go.join("informer"), &["--encoding", "protobuf", "--strip"]));
                all.push(informer(go.join("informer"), &["--encoding", "json"]));
            }
        }
        if let Some(kube_rs) = &self.kube_rs {
            all.push(informer(kube_rs.join("kube-rs-informer"), &[]));
        }
        all
    }

    async fn host(&self, which: &str) -> Result<(Child, PathBuf), String> {
        let mut environment = Vec::new();
        if let Some(real) = &self.real {
            environment.push(("KUBEBUILDER_ASSETS", real.as_path()));
        }
        let mut host = Child::spawn(&self.ours.join("compare"), &strings(&["host", which]), &environment)?;
        let ready = host.must_say().await?;
        let kubeconfig = ready["kubeconfig"].as_str().ok_or("the host names no kubeconfig")?;
        let kubeconfig = PathBuf::from(kubeconfig);
        Ok((host, kubeconfig))
    }

    /// Sizes from small to large on one server, then small objects, then changes.
    async fn informers_on_real(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        say("starting kube-apiserver and etcd");
        let (mut host, kubeconfig) = self.host("real").await?;
        for &size in &self.sizes {
            self.fill(&mut host, size, "kube-apiserver + etcd", results, say).await?;
            // Large ones take their time and vary little.
            let repeats = if size >= 30_000 && (self.quick || size >= 100_000) { 1 } else { self.repeats };
            let title = sync_title(size, REAL_SERVER);
            for _ in 0..repeats {
                for informer in self.informers("pods") {
                    let run =
                        self.informer(&informer, &kubeconfig, "pods", size, &mut host, "sync", say).await;
                    record(results, run, |_| title.clone(), &informer);
                }
            }
        }
        if let (Some(&small), Some(&large)) =
            (self.sizes.iter().find(|size| **size >= 10_000), self.sizes.iter().max())
            && small < large
        {
            #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            let at = |size: usize| size as f64;
            let title = format!("growth from {} to {} Pods", grouped(small), grouped(large));
            results.growth(
                (&sync_title(small, REAL_SERVER), at(small)),
                (&sync_title(large, REAL_SERVER), at(large)),
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

    async fn fill(
        &self,
        host: &mut Child,
        size: usize,
        implementation: &str,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        say(&format!("filling {implementation} up to {} Pods", grouped(size)));
        let answer = host.order(&format!("fill pods {size}")).await?;
        let added = answer["added"].as_f64().unwrap_or(0.0);
        // The first ones pay for what is needed once.
        if added >= 5_000.0 {
            let each = answer["grown_bytes"].as_f64().unwrap_or(0.0) / added;
            results.record_as("server: hold a Pod of 9.5 KB", implementation, &json!({"bytes_each": each}));
        }
        Ok(())
    }

    /// One sync, then changes at full speed, then 410: our server can be told to forget its history.
    async fn informers_on_ours(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        let size = if self.quick { 10_000 } else { 30_000 };
        let (mut host, kubeconfig) = self.host("ours").await?;
        self.fill(&mut host, 1_000, "kubewright", results, say).await?;
        self.fill(&mut host, size, "kubewright", results, say).await?;
        let mut informers = self.informers("pods");
        let whole = Informer {
            program: self.ours.join("informer"),
            arguments: strings(&["--read", "whole"]),
            reads_all: true,
        };
        informers.insert(1, whole);
        for _ in 0..if self.quick { 1 } else { self.repeats } {
            for informer in &informers {
                let phases = "sync,watch,relist";
                let run = self.informer(informer, &kubeconfig, "pods", size, &mut host, phases, say).await;
                let title = |phase: &str| match phase {
                    "watch" => format!("watch, {} changes at full speed from {OUR_SERVER}", grouped(EVENTS)),
                    "relist" => format!("relist of {} Pods after 410 from {OUR_SERVER}", grouped(size)),
                    _ => sync_title(size, OUR_SERVER),
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
        // Go wants a unit, and the others do not.
        let settle = if informer.arguments.contains(&"--encoding".to_owned()) {
            format!("{settle}s")
        } else {
            settle.to_string()
        };
        let count = count.to_string();
        let path = kubeconfig.display().to_string();
        arguments.extend(strings(&["--kubeconfig", &path, "--kind", kind, "--count", &count]));
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

    /// Programs that print lines and end.
    async fn in_turns(
        &self,
        prefix: &str,
        program: &str,
        arguments: &[String],
        peer: Option<PathBuf>,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        for run in 1..=self.repeats {
            for program in std::iter::once(self.ours.join(program)).chain(peer.clone()) {
                say(&format!("{prefix}, run {run} of {}: {}", self.repeats, program.display()));
                for line in all_lines(&program, arguments, &[]).await? {
                    results
                        .record(&format!("{prefix}: {}", line["bench"].as_str().unwrap_or_default()), &line);
                }
            }
        }
        Ok(())
    }

    async fn sample_controllers(
        &self,
        server: &str,
        count: usize,
        results: &mut Results,
        say: &dyn Fn(&str),
    ) -> Result<(), String> {
        let mut operators = vec![self.ours.join("operator")];
        if let Some(go) = &self.go {
            operators.extend([go.join("operator"), go.join("manager")]);
        }
        if let Some(kube_rs) = &self.kube_rs {
            operators.push(kube_rs.join("kube-rs-operator"));
        }
        let on = if server == "real" { REAL_SERVER } else { OUR_SERVER };
        let title = format!("sample-controller, {} Foos on {on}", grouped(count));
        let repeats = if self.quick || count > 1_000 { 1 } else { self.repeats.min(3) };
        for _ in 0..repeats {
            for program in &operators {
                say(&format!("{title}: {}", program.display()));
                // A server of its own: what the one before has left behind would be work.
                let (_host, kubeconfig) = self.host(server).await?;
                let client = foos::client(&kubeconfig).await?;
                foos::define(&client).await?;
                foos::create_all(&client, count).await?;
                let path = kubeconfig.display().to_string();
                let run = foos::converge(&client, count, || {
                    Child::spawn(program, &strings(&["--kubeconfig", &path]), &[])
                });
                match run.await {
                    Ok(line) => results.record(&title, &line),
                    Err(reason) => results.failures.push(format!("{title}: {reason}")),
                }
            }
        }
        Ok(())
    }

    async fn servers(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        let (starts, creates, changes) = if self.quick { ("3", "2000", "10") } else { ("5", "10000", "20") };
        let numbers = strings(&["--starts", starts, "--creates", creates, "--changes", changes]);
        for run in 1..=if self.quick { 1 } else { self.repeats.min(3) } {
            for server in ["ours", "real"] {
                let Some(real) = self.real.as_deref().or(Some(Path::new("")).filter(|_| server == "ours"))
                else {
                    continue;
                };
                say(&format!("servers, run {run}: {server}"));
                let mut arguments = strings(&["servers", server]);
                arguments.extend(numbers.clone());
                let environment = [("KUBEBUILDER_ASSETS", real)];
                for line in all_lines(&self.ours.join("compare"), &arguments, &environment).await? {
                    results.record(line["bench"].as_str().unwrap_or_default(), &line);
                }
            }
        }
        Ok(())
    }

    /// From nothing to nothing: a server, the definition, the operator, a Foo, its Deployment, and the end.
    async fn operator_tests(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let definition = folder.path().join("foo.json");
        std::fs::write(&definition, foos::definition().to_string()).map_err(|error| error.to_string())?;
        let title = "operator test: server, definition, operator, a Deployment, the end";
        for run in 1..=self.repeats.min(3) {
            say(&format!("operator test, run {run}: kubewright"));
            for line in all_lines(&self.ours.join("operator"), &strings(&["--test"]), &[]).await? {
                results.record(title, &line);
            }
            if let (Some(go), Some(real)) = (&self.go, &self.real) {
                say(&format!("operator test, run {run}: envtest"));
                let arguments = strings(&["--crd", &definition.display().to_string()]);
                let environment = [("KUBEBUILDER_ASSETS", real.as_path())];
                for line in all_lines(&go.join("e2e"), &arguments, &environment).await? {
                    results.record(title, &line);
                }
            }
        }
        Ok(())
    }
}

fn sync_title(size: usize, server: &str) -> String {
    format!("sync of {} Pods from {server}", grouped(size))
}

fn note(results: &mut Results, what: &str, done: Result<(), String>) {
    if let Err(reason) = done {
        results.failures.push(format!("{what}: {reason}"));
    }
}

/// Records the lines of a run. What reads all is shown beside peers, which always do, as a workload of its own.
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

async fn all_lines(
    program: &Path,
    arguments: &[String],
    environment: &[(&str, &Path)],
) -> Result<Vec<Value>, String> {
    let mut child = Child::spawn(program, arguments, environment)?;
    let mut lines = Vec::new();
    while let Some(line) = child.line().await? {
        lines.push(line);
    }
    Ok(lines)
}
