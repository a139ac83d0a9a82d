//! `kubewright up --data-dir`: acknowledged writes survive SIGKILL.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{sync::mpsc, task::JoinSet};

/// Server in a process of its own, killed when it is dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command; `blocks` limits the size of each file that it writes, in units of 512 bytes.
fn command(directory: &Path, port: u16, blocks: Option<u32>) -> Command {
    let mut command = match blocks {
        None => Command::new(env!("CARGO_BIN_EXE_kubewright")),
        Some(blocks) => {
            let mut shell = Command::new("sh");
            // Beyond the limit the kernel sends a signal; if it is ignored, the write fails as on a full
            // disk.
            shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
            shell.arg(env!("CARGO_BIN_EXE_kubewright"));
            shell
        }
    };
    command
        .args(["up", "--bind", &format!("127.0.0.1:{port}"), "--data-dir"])
        .arg(directory.join("data"))
        .arg("--kubeconfig-out")
        .arg(directory.join("kubeconfig"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn start(directory: &Path, port: u16, blocks: Option<u32>) -> Server {
    let mut child = command(directory, port, blocks).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        let mut why = String::new();
        child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        panic!("it did not start: {why}");
    }
    let address = line.split("https://").nth(1).unwrap().split(';').next().unwrap();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    Server { child, port }
}

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn map(name: &str, value: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        // Large enough that a frame spans several pages.
        data: Some(BTreeMap::from([("value".into(), value.to_string()), ("fill".into(), "x".repeat(3000))])),
        ..ConfigMap::default()
    }
}

/// State of one object as its writer knows it.
#[derive(Debug, Clone, Default, PartialEq)]
struct WriterState {
    /// The acknowledged value and version; `None` if there is no acknowledged write, or it was a deletion.
    acknowledged: Option<(u64, u64)>,
    /// A write without a response.
    in_doubt: Option<Write>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Write {
    Value(u64),
    Deletion,
}

fn version(map: &ConfigMap) -> u64 {
    map.metadata.resource_version.as_ref().unwrap().parse().unwrap()
}

fn value(map: &ConfigMap) -> u64 {
    let data = map.data.as_ref().unwrap();
    assert_eq!(data["fill"].len(), 3000, "half an object");
    data["value"].parse().unwrap()
}

/// Writes until the server is killed.
async fn write(
    maps: Api<ConfigMap>,
    writer: usize,
    mut known: Vec<WriterState>,
    acks: mpsc::UnboundedSender<()>,
) -> Vec<WriterState> {
    for turn in 0u64.. {
        let n = usize::try_from(turn * 7 + turn / 3).unwrap() % known.len();
        let name = format!("w{writer}-{n}");
        let mine = &mut known[n];
        let value = turn * 1000 + n as u64;
        let result = match &mine.acknowledged {
            Some(_) if turn % 5 == 4 => {
                mine.in_doubt = Some(Write::Deletion);
                maps.delete(&name, &DeleteParams::default()).await.map(|_| None)
            }
            Some((_, version)) => {
                mine.in_doubt = Some(Write::Value(value));
                let mut map = map(&name, value);
                map.metadata.resource_version = Some(version.to_string());
                maps.replace(&name, &PostParams::default(), &map).await.map(Some)
            }
            None => {
                mine.in_doubt = Some(Write::Value(value));
                maps.create(&PostParams::default(), &map(&name, value)).await.map(Some)
            }
        };
        match result {
            Ok(stored) => {
                mine.acknowledged = stored.map(|map| (value, version(&map)));
                mine.in_doubt = None;
                if acks.send(()).is_err() {
                    break;
                }
            }
            Err(kube::Error::Api(status)) => panic!("{name} was refused: {status:?}"),
            // The connection broke: the last write may or may not have happened.
            Err(_) => break,
        }
    }
    known
}

/// Compares the writer's state with the stored objects, and resolves its last write.
fn check(found: &BTreeMap<String, ConfigMap>, writer: usize, known: &mut [WriterState]) {
    for (n, mine) in known.iter_mut().enumerate() {
        let name = format!("w{writer}-{n}");
        let there = found.get(&name).map(|map| (value(map), version(map)));
        if there != mine.acknowledged {
            let happened = there.map_or(Write::Deletion, |(value, _)| Write::Value(value));
            assert_eq!(
                mine.in_doubt,
                Some(happened),
                "{name}: acknowledged {:?}, found {there:?}",
                mine.acknowledged
            );
            let newer = there.is_none_or(|(_, v)| mine.acknowledged.is_none_or(|(_, old)| v > old));
            assert!(newer, "{name}: a later write has an earlier version");
        }
        *mine = WriterState { acknowledged: there, in_doubt: None };
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_repeated_kills_under_load() {
    const WRITERS: usize = 24;
    let directory = tempfile::tempdir().unwrap();
    let mut server = start(directory.path(), 0, None);
    let port = server.port;
    // The kubeconfig of the first run is used in all runs.
    let kubeconfig = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
    let mut known = vec![vec![WriterState::default(); 6]; WRITERS];
    let (mut last_version, mut uid) = (0, None);
    // The server is killed after this many acknowledgements, with most writers in flight.
    for kill_after in [40, 333, 1, 170, 97, 260] {
        let (acks, mut acked) = mpsc::unbounded_channel();
        let mut writers = JoinSet::new();
        for (writer, known) in known.drain(..).enumerate() {
            let maps = Api::namespaced(client(&kubeconfig).await, "default");
            let acks = acks.clone();
            writers.spawn(async move { (writer, write(maps, writer, known, acks).await) });
        }
        drop(acks);
        for _ in 0..kill_after {
            acked.recv().await.unwrap();
        }
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        let mut results: Vec<_> = writers.join_all().await;
        results.sort_by_key(|(writer, _)| *writer);

        server = start(directory.path(), port, None);
        let client = client(&kubeconfig).await;
        let list = Api::<ConfigMap>::namespaced(client.clone(), "default")
            .list(&ListParams::default())
            .await
            .unwrap();
        let present: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        let found: BTreeMap<_, _> =
            list.items.into_iter().map(|map| (map.metadata.name.clone().unwrap(), map)).collect();
        for (writer, known) in &mut results {
            check(&found, *writer, known);
        }
        known = results.into_iter().map(|(_, known)| known).collect();
        let newest = known.iter().flatten().filter_map(|k| k.acknowledged).map(|(_, v)| v).max().unwrap_or(0);
        assert!(present >= newest && present > last_version, "{present} after {newest} and {last_version}");
        last_version = present;
        let namespace = Api::<Namespace>::all(client).get("default").await.unwrap();
        assert_eq!(*uid.get_or_insert(namespace.metadata.uid.clone()), namespace.metadata.uid);
    }
}

#[tokio::test]
async fn after_a_restart_old_history_is_compacted_and_tokens_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path(), 0, None);
    let kubeconfig = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
    let admin = client(&kubeconfig).await;
    let maps = Api::<ConfigMap>::namespaced(admin.clone(), "default");
    let first = version(&maps.create(&PostParams::default(), &map("a", 1)).await.unwrap());
    maps.create(&PostParams::default(), &map("b", 1)).await.unwrap();
    let post = |path: &str, body: serde_json::Value| {
        http::Request::post(path)
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .unwrap()
    };
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = serde_json::json!({"metadata": {"name": "robot"}});
    admin.request::<serde_json::Value>(post(accounts, account)).await.unwrap();
    let token: serde_json::Value =
        admin.request(post(&format!("{accounts}/robot/token"), serde_json::json!({}))).await.unwrap();
    let port = server.port;
    drop(server);

    let _server = start(directory.path(), port, None);
    let admin = client(&kubeconfig).await;
    let review = serde_json::json!({"spec": {"token": token["status"]["token"]}});
    let review: serde_json::Value =
        admin.request(post("/apis/authentication.k8s.io/v1/tokenreviews", review)).await.unwrap();
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:robot");

    let watch = http::Request::get(format!("/api/v1/configmaps?watch=true&resourceVersion={first}"));
    let line: serde_json::Value = admin.request(watch.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!((&line["type"], &line["object"]["code"]), (&"ERROR".into(), &410.into()));
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _first = start(directory.path(), 0, None);
    let second = command(directory.path(), 0, None).output().unwrap();
    assert!(!second.status.success());
    let why = String::from_utf8(second.stderr).unwrap();
    assert!(why.contains("held by another server") && why.contains("--data-dir"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_a_500_and_loses_no_acknowledged_write() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = start(directory.path(), 0, Some(800));
    let kubeconfig = std::fs::read_to_string(directory.path().join("kubeconfig")).unwrap();
    let api = Api::<ConfigMap>::namespaced(client(&kubeconfig).await, "default");
    let refusals = Arc::new(AtomicUsize::new(0));
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let (api, refusals) = (api.clone(), Arc::clone(&refusals));
        writers.spawn(async move {
            let mut stored = Vec::new();
            for n in 0.. {
                match api.create(&PostParams::default(), &map(&format!("w{writer}-{n}"), n)).await {
                    Ok(map) => stored.push((map.metadata.name.clone().unwrap(), n, version(&map))),
                    Err(kube::Error::Api(status)) => {
                        assert_eq!(status.code, 500, "{status:?}");
                        assert!(status.message.contains("data directory"), "{status:?}");
                        refusals.fetch_add(1, Ordering::Relaxed);
                        return stored;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            stored
        });
    }
    let stored: Vec<_> = writers.join_all().await.into_iter().flatten().collect();
    assert_eq!(refusals.load(Ordering::Relaxed), 8);
    assert!(stored.len() > 8, "only {} writes fitted", stored.len());
    // Reads continue. A refused write may have been stored together with one that was acknowledged.
    let shown = api.list(&ListParams::default()).await.unwrap().items.len();
    assert!((stored.len()..stored.len() + 8).contains(&shown), "{shown} of {}", stored.len());
    server.child.kill().unwrap();
    server.child.wait().unwrap();

    let _server = start(directory.path(), server.port, None);
    let api = Api::<ConfigMap>::namespaced(client(&kubeconfig).await, "default");
    let found: BTreeMap<_, _> = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .map(|map| (map.metadata.name.clone().unwrap(), map))
        .collect();
    for (name, n, at) in stored {
        assert_eq!((value(&found[&name]), version(&found[&name])), (n, at), "{name}");
    }
    api.create(&PostParams::default(), &map("afterwards", 1)).await.unwrap();
}
