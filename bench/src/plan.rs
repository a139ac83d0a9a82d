//! Order of the runs. Within a workload the implementations run in turns, so that all see the same state of the machine.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{child::Child, foos, results::Results};

mod informers;

const OUR_SERVER: &str = "kubewright's server";
const REAL_SERVER: &str = "kube-apiserver";

/// Options and programs of a comparison.
#[derive(Debug)]
pub struct Plan {
    /// Directory of our programs.
    pub ours: PathBuf,
    /// Directory of the programs of kube-rs, if they were built.
    pub kube_rs: Option<PathBuf>,
    /// Directory of the Go programs, if they were built.
    pub go: Option<PathBuf>,
    /// Directory of etcd and kube-apiserver, if they were built.
    pub real: Option<PathBuf>,
    /// Number of runs.
    pub repeats: usize,
    /// Whether to use smaller sizes and fewer runs.
    pub quick: bool,
    /// Words of which a workload's name must contain one.
    pub only: String,
    /// Numbers of Pods to sync.
    pub sizes: Vec<usize>,
    /// Numbers of Foos.
    pub foos: Vec<usize>,
}

/// Program of ours and of a peer that print a line per workload and exit.
#[derive(Clone, Default)]
struct Pair {
    prefix: &'static str,
    program: &'static str,
    arguments: Vec<String>,
    environment: &'static [(&'static str, &'static str)],
    peer: Option<PathBuf>,
}

/// Environment for one thread, of tokio and of Go.
const ONE_THREAD: &[(&str, &str)] = &[("TOKIO_WORKER_THREADS", "1"), ("GOMAXPROCS", "1")];

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Formats 30000 as 30,000.
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
    /// Runs all workloads. Failures are recorded.
    pub async fn run(&self, results: &mut Results, say: &dyn Fn(&str)) {
        if self.wants("sync watch relist hold") && self.real.is_some() {
            let done = self.informers_on_real(results, say).await;
            note(results, "informers on kube-apiserver", done);
            let done = self.mixed_on_real(results, say).await;
            note(results, "mixed Pods on kube-apiserver", done);
        }
        if self.wants("sync watch relist hold") {
            for kind in ["pods", "mixed-pods"] {
                let done = self.informers_on_ours(kind, results, say).await;
                note(results, "informers on our server", done);
            }
        }
        for pair in self.pairs() {
            if self.wants(&format!("{}: {}", pair.prefix, pair.program)) {
                let done = self.in_turns(&pair, results, say).await;
                note(results, pair.prefix, done);
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
        if !self.quick && self.wants("goals") {
            let done = self.own_goals(results, say).await;
            note(results, "own goals", done);
        }
        if self.wants("operator test") {
            let done = self.operator_tests(results, say).await;
            note(results, "operator tests", done);
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.split(',').any(|only| name.contains(only))
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

    fn pairs(&self) -> Vec<Pair> {
        let in_go = |program: &str| self.go.as_ref().map(|path| path.join(program));
        let queue = Pair { prefix: "queue", program: "queue", peer: in_go("queue"), ..Pair::default() };
        vec![
            Pair {
                prefix: "in process",
                program: "cache",
                arguments: strings(&["events"]),
                peer: self.kube_rs.as_ref().map(|path| path.join("peer-kube-rs")),
                ..Pair::default()
            },
            // With tiny work, the exchange between threads dominates; so it is also measured on one thread.
            Pair { prefix: "one thread, queue", environment: ONE_THREAD, ..queue.clone() },
            queue,
            Pair { prefix: "store", program: "indexer", peer: in_go("indexer"), ..Pair::default() },
        ]
    }

    async fn in_turns(&self, pair: &Pair, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        let Pair { prefix, program, arguments, environment, peer } = pair;
        let repeats = if self.quick { self.repeats.min(2) } else { self.repeats };
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, Path::new(value))).collect();
        for run in 1..=repeats {
            for program in std::iter::once(self.ours.join(program)).chain(peer.clone()) {
                say(&format!("{prefix}, run {run} of {repeats}: {}", program.display()));
                for line in all_lines(&program, arguments, &environment).await? {
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
                // Each operator gets a fresh server.
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

    /// Runs the programs that check goals without a peer; they print on standard error which are met.
    async fn own_goals(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        for (program, arguments) in [("server", strings(&["goals"])), ("cluster", vec![])] {
            let path = self.ours.join(program);
            if path.exists() {
                say(&format!("goals of its own: {program}"));
                for line in all_lines(&path, &arguments, &[]).await? {
                    results.record(&format!("alone, {}", line["bench"].as_str().unwrap_or_default()), &line);
                }
            }
        }
        Ok(())
    }

    /// Runs a whole operator test: server, definition, operator, a Foo, its Deployment, shutdown.
    async fn operator_tests(&self, results: &mut Results, say: &dyn Fn(&str)) -> Result<(), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let definition = folder.path().join("foo.json");
        std::fs::write(&definition, foos::definition().to_string()).map_err(|error| error.to_string())?;
        let title = "operator test: server, definition, operator, a Deployment, the end";
        for run in 1..=self.repeats.min(if self.quick { 2 } else { 3 }) {
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

fn note(results: &mut Results, what: &str, done: Result<(), String>) {
    if let Err(reason) = done {
        results.failures.push(format!("{what}: {reason}"));
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
