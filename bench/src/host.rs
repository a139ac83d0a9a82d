//! A server for the informers to talk to, filled and changed by orders on standard input.
//!
//! `compare host ours|real` prints one line of JSON when it is ready, `{"kubeconfig": …}`, and one for every order:
//! - `fill pods|configmaps N`: from now on there are so many. Says how the memory of the server grew.
//! - `events N`: so many changes of 2,000 Pods as fast as it can, each stamped, and a marker at the end.
//! - `forget` (ours only): a change and a marker, and no history: every watch ends with 410.
//! - `reset`: the Pods as they were, and no markers.
//!
//! Ours is the server in this process, on TLS; real is etcd and kube-apiserver. Objects go straight into the storage of
//! either, because an informer does not care how they came there and creating 100,000 Pods by requests takes minutes.
//! One thread, so that between the change and the forgetting no watch gets a turn.
use std::time::Duration;

use kubewright::ObjectKey;
use kubewright_apiserver::{ApiServer, RunningServer};
use kubewright_envtest::{Binaries, ControlPlane};
use kubewright_storage::{Expect, Retention};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{
    etcd::Etcd,
    measure::{cpu_of, cpu_seconds, memory_of, resident_bytes},
    objects::{Kind, key, marker, stamp},
};

/// How many Pods the events are about.
const CHANGING: usize = 2_000;

/// Serves until standard input ends.
#[allow(clippy::print_stdout, reason = "the lines are the protocol")]
pub async fn run(which: &str) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join("kubeconfig");
    let mut host = match which {
        "ours" => Host::ours(&path).await,
        "real" => Host::real(&path).await,
        _ => panic!("usage: compare host ours|real"),
    };
    println!("{}", json!({"kubeconfig": path, "processes": host.processes()}));
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(order)) = orders.next_line().await {
        let words: Vec<&str> = order.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
        let answer = match words.first().copied() {
            Some("fill") => host.fill(Kind::named(words[1]).expect("pods or configmaps"), number(2)).await,
            Some("events") => host.events(number(1)).await,
            Some("forget") => host.forget(),
            Some("reset") => host.reset().await,
            Some("usage") => host.usage(),
            _ => panic!("{order:?} is no order"),
        };
        println!("{answer}");
    }
}

enum Server {
    Ours(Box<RunningServer>),
    Real(Box<ControlPlane>, Etcd),
}

struct Host {
    server: Server,
    pods: usize,
    config_maps: usize,
}

impl Host {
    async fn ours(kubeconfig: &std::path::Path) -> Self {
        // Longer than a slow watcher is behind.
        let retention = Retention::default().with_events(200_000).with_bytes(4 << 30);
        let address = ([127, 0, 0, 1], 0).into();
        let server =
            ApiServer::builder().bind(address).retention(retention).start().await.expect("it starts");
        std::fs::write(kubeconfig, server.kubeconfig()).expect("there is room for a file");
        Self { server: Server::Ours(Box::new(server)), pods: 0, config_maps: 0 }
    }

    async fn real(kubeconfig: &std::path::Path) -> Self {
        let binaries = Binaries::find().expect("`make real` has built them");
        let plane = ControlPlane::builder().start(&binaries).await.expect("it starts");
        std::fs::copy(plane.kubeconfig(), kubeconfig).expect("there is room for a file");
        let etcd = Etcd::at(&plane.etcd());
        Self { server: Server::Real(Box::new(plane), etcd), pods: 0, config_maps: 0 }
    }

    fn processes(&self) -> Value {
        match &self.server {
            Server::Ours(_) => json!([["kubewright", std::process::id()]]),
            Server::Real(plane, _) => json!(plane.processes().collect::<Vec<_>>()),
        }
    }

    /// Resident memory and time of the processor, of all processes of the server.
    fn spent(&self) -> (u64, f64) {
        match &self.server {
            Server::Ours(_) => (resident_bytes(), cpu_seconds()),
            Server::Real(plane, _) => plane.processes().fold((0, 0.0), |(memory, cpu), (_, process)| {
                (memory + memory_of(&process.to_string()).0, cpu + cpu_of(process))
            }),
        }
    }

    fn usage(&self) -> Value {
        let (resident, cpu) = self.spent();
        json!({"resident_bytes": resident, "cpu_s": cpu})
    }

    async fn write(&self, kind: Kind, objects: impl Iterator<Item = Value>, change: impl Fn(&mut Value)) {
        match &self.server {
            Server::Real(_, etcd) => etcd.put(kind.resource(), objects, change).await,
            Server::Ours(server) => {
                for (written, mut object) in objects.enumerate() {
                    change(&mut object);
                    put(server.server(), kind, &object);
                    if written % 8 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }

    async fn fill(&mut self, kind: Kind, count: usize) -> Value {
        let held = match kind {
            Kind::Pods => &mut self.pods,
            Kind::ConfigMaps => &mut self.config_maps,
        };
        let new = std::mem::replace(held, count.max(*held))..count;
        let (before, _) = self.spent();
        let added = new.len();
        self.write(kind, new.map(|i| kind.object(i)), |_| {}).await;
        let (after, _) = self.settled(kind, count).await;
        json!({"added": added, "grown_bytes": after.saturating_sub(before)})
    }

    /// What the server takes when it has taken in what was written: a real one follows etcd.
    async fn settled(&self, kind: Kind, count: usize) -> (u64, f64) {
        if let Server::Real(plane, _) = &self.server {
            let path = format!("/api/v1/{}?limit=1", kind.resource());
            loop {
                let request = http::Request::get(&path).body(Vec::new()).expect("the path is one");
                let list: Value = plane.client().request(request).await.expect("the server answers");
                let more = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
                if more + 1 >= count as u64 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // What is garbage by now goes before the next measurement, or never.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        self.spent()
    }

    async fn events(&self, count: usize) -> Value {
        let pods: Vec<Value> = (0..CHANGING.min(self.pods)).map(|i| Kind::Pods.object(i)).collect();
        let began = std::time::Instant::now();
        self.write(Kind::Pods, pods.iter().cycle().take(count).cloned(), stamp).await;
        self.write(Kind::Pods, std::iter::once(marker(1)), |_| {}).await;
        json!({"written_s": began.elapsed().as_secs_f64()})
    }

    fn forget(&self) -> Value {
        let Server::Ours(server) = &self.server else { panic!("a real server forgets when it likes") };
        put(server.server(), Kind::Pods, &marker(2));
        server.server().compact();
        json!({})
    }

    async fn reset(&self) -> Value {
        self.write(Kind::Pods, (0..CHANGING.min(self.pods)).map(|i| Kind::Pods.object(i)), |_| {}).await;
        let markers = [marker(1), marker(2)];
        match &self.server {
            Server::Real(_, etcd) => etcd.delete("pods", markers).await,
            Server::Ours(server) => markers.iter().for_each(|marker| remove(server.server(), marker)),
        }
        json!({})
    }
}

fn object_key(object: &Value) -> ObjectKey {
    let (namespace, name) = key(object);
    ObjectKey::namespaced(namespace, name)
}

fn put(server: &ApiServer, kind: Kind, object: &Value) {
    let ty = server.registry().resolve("", "v1", kind.resource()).expect("it is served");
    let (key, object) = (object_key(object), object.as_object().expect("it is an object"));
    let storage = &server.registry().storage;
    let held = storage.get(&ty.storage, &key).map_or(Expect::Absent, |held| Expect::Revision(held.revision));
    storage.put(&ty.storage, &key, held, ty.draft(object)).expect("nobody else writes");
}

fn remove(server: &ApiServer, object: &Value) {
    let ty = server.registry().resolve("", "v1", "pods").expect("pods are served");
    let storage = &server.registry().storage;
    let key = object_key(object);
    if let Some(held) = storage.get(&ty.storage, &key) {
        storage.remove(&ty.storage, &key, held.revision).expect("nobody else writes");
    }
}
