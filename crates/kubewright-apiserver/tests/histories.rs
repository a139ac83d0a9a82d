//! Property tests of any interleaving of requests, through the HTTP service: linear history per object,
//! watchers that see exactly the later changes once and in order, and pages that add up to the state of their
//! revision.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::{
    ApiServer,
    authn::{MASTERS, User},
    http::ApiService,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

fn admin(server: &ApiServer) -> ApiService {
    server.service().for_peer(User { name: "a".into(), groups: vec![MASTERS.into()], ..User::default() })
}

/// Sends a request; returns the code and the lines of the response.
async fn send(service: &ApiService, method: &str, path: &str, body: Option<&Value>) -> (u16, Vec<Value>) {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let lines = serde_json::Deserializer::from_slice(&bytes).into_iter().map(Result::unwrap).collect();
    (code, lines)
}

async fn ask(service: &ApiService, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let (code, mut lines) = send(service, method, path, body).await;
    (code, lines.pop().unwrap_or_default())
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Create {
        key: u8,
        label: u8,
        value: u16,
    },
    /// With the current version, or with an outdated one.
    Update {
        key: u8,
        label: u8,
        value: u16,
        stale: bool,
    },
    Patch {
        key: u8,
        value: u16,
    },
    Delete {
        key: u8,
    },
    Compact,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6u8;
    let step = prop_oneof![
        5 => (key.clone(), 0..3u8, any::<u16>()).prop_map(|(key, label, value)| Step::Create { key, label, value }),
        5 => (key.clone(), 0..3u8, any::<u16>(), prop::bool::weighted(0.3))
            .prop_map(|(key, label, value, stale)| Step::Update { key, label, value, stale }),
        3 => (key.clone(), any::<u16>()).prop_map(|(key, value)| Step::Patch { key, value }),
        3 => key.prop_map(|key| Step::Delete { key }),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..most)
}

fn place(key: u8) -> (&'static str, String) {
    (if key.is_multiple_of(2) { "default" } else { "kube-public" }, format!("o{key}"))
}

fn object(key: u8, label: u8, value: u16, version: Option<u64>) -> Value {
    let (namespace, name) = place(key);
    let mut object = json!({
        "metadata": {"name": name, "namespace": namespace, "labels": {"l": label.to_string()}},
        "data": {"v": value.to_string()},
    });
    if let Some(version) = version {
        object["metadata"]["resourceVersion"] = version.to_string().into();
    }
    object
}

/// Object in the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    version: u64,
    label: u8,
    value: u16,
}

impl Known {
    fn read(object: &Value) -> Self {
        let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
        Self {
            version: version(object),
            label: u8::try_from(number(&object["metadata"]["labels"]["l"])).unwrap(),
            value: u16::try_from(number(&object["data"]["v"])).unwrap(),
        }
    }
}

type State = BTreeMap<u8, Known>;

/// Server with its model.
struct World {
    server: ApiServer,
    service: ApiService,
    /// The revision before the first step.
    start: u64,
    /// The objects after each revision.
    states: BTreeMap<u64, State>,
    /// Older revisions are compacted.
    floor: u64,
    /// An outdated version of each object.
    stale: BTreeMap<u8, u64>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::builder().seed(1).in_process().unwrap();
        let service = admin(&server);
        let start = version(&ask(&service, "GET", "/api/v1/configmaps", None).await.1);
        let states = BTreeMap::from([(start, State::new())]);
        Self { server, service, start, states, floor: 0, stale: BTreeMap::new() }
    }

    fn now(&self) -> &State {
        self.states.last_key_value().unwrap().1
    }

    fn revision(&self) -> u64 {
        *self.states.last_key_value().unwrap().0
    }

    fn at(&self, revision: u64) -> &State {
        self.states.range(..=revision).next_back().unwrap().1
    }

    fn store(&mut self, key: u8, known: Option<Known>, revision: u64) {
        assert_eq!(revision, self.revision() + 1, "a write took more or less than one revision");
        let mut state = self.now().clone();
        if let Some(old) = state.remove(&key) {
            self.stale.insert(key, old.version);
        }
        state.extend(known.map(|known| (key, known)));
        self.states.insert(revision, state);
    }

    async fn play(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step).await;
        }
    }

    async fn step(&mut self, step: &Step) {
        match *step {
            Step::Compact => {
                self.server.compact();
                self.floor = self.revision();
            }
            Step::Create { key, label, value } => {
                let path = format!("/api/v1/namespaces/{}/configmaps", place(key).0);
                let (code, answer) =
                    ask(&self.service, "POST", &path, Some(&object(key, label, value, None))).await;
                if self.now().contains_key(&key) {
                    assert_eq!((code, &answer["reason"]), (409, &json!("AlreadyExists")));
                } else {
                    assert_eq!(code, 201, "{answer}");
                    let known = Known::read(&answer);
                    assert_eq!((known.label, known.value), (label, value));
                    self.store(key, Some(known.clone()), known.version);
                }
            }
            Step::Update { key, label, value, stale } => {
                let present = self.now().get(&key).cloned();
                let old = self.stale.get(&key).copied();
                let sent = if stale { old } else { present.as_ref().map(|p| p.version).or(old) };
                let Some(sent) = sent else { return };
                let body = object(key, label, value, Some(sent));
                let (code, answer) = ask(&self.service, "PUT", &Self::path(key), Some(&body)).await;
                match present {
                    None => assert_eq!((code, &answer["reason"]), (404, &json!("NotFound"))),
                    Some(present) if present.version != sent => {
                        assert_eq!((code, &answer["reason"]), (409, &json!("Conflict")));
                    }
                    Some(present) => self.changed(key, &present, label, value, code, &answer),
                }
            }
            Step::Patch { key, value } => {
                let patch = json!({"data": {"v": value.to_string()}});
                let (code, answer) = ask(&self.service, "PATCH", &Self::path(key), Some(&patch)).await;
                match self.now().get(&key).cloned() {
                    None => assert_eq!(code, 404),
                    Some(present) => self.changed(key, &present, present.label, value, code, &answer),
                }
            }
            Step::Delete { key } => {
                let (code, answer) = ask(&self.service, "DELETE", &Self::path(key), None).await;
                if self.now().contains_key(&key) {
                    assert_eq!(code, 200, "{answer}");
                    let revision = self.revision() + 1;
                    self.store(key, None, revision);
                } else {
                    assert_eq!(code, 404);
                }
            }
        }
    }

    fn changed(&mut self, key: u8, present: &Known, label: u8, value: u16, code: u16, answer: &Value) {
        assert_eq!(code, 200, "{answer}");
        let known = Known::read(answer);
        assert_eq!((known.label, known.value), (label, value));
        if (present.label, present.value) == (label, value) {
            assert_eq!(known.version, present.version, "a write that changes nothing is no write");
        } else {
            self.store(key, Some(known.clone()), known.version);
        }
    }

    fn path(key: u8) -> String {
        let (namespace, name) = place(key);
        format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
    }
}

/// Selection of a reader.
#[derive(Debug, Clone)]
struct Wanted {
    namespace: Option<u8>,
    label: Option<u8>,
    name: Option<u8>,
}

fn wanted() -> impl Strategy<Value = Wanted> {
    (prop::option::of(0..2u8), prop::option::of(0..3u8), prop::option::weighted(0.3, 0..6u8))
        .prop_map(|(namespace, label, name)| Wanted { namespace, label, name })
}

impl Wanted {
    fn has(&self, key: u8, known: &Known) -> bool {
        self.namespace.is_none_or(|n| n == key % 2)
            && self.label.is_none_or(|l| l == known.label)
            && self.name.is_none_or(|n| n == key)
    }

    fn of(&self, state: &State) -> State {
        state.iter().filter(|(key, known)| self.has(**key, known)).map(|(k, v)| (*k, v.clone())).collect()
    }

    fn path(&self) -> String {
        let namespace = self.namespace.map(|n| format!("/namespaces/{}", place(n).0)).unwrap_or_default();
        let label = self.label.map(|l| format!("&labelSelector=l%3D{l}")).unwrap_or_default();
        let name = self.name.map(|n| format!("&fieldSelector=metadata.name%3Do{n}")).unwrap_or_default();
        format!("/api/v1{namespace}/configmaps?pretty=false{label}{name}")
    }

    /// Returns the expected watch events after a revision: type, key and version, and the value if the object
    /// is included.
    fn events(&self, world: &World, after: u64) -> Vec<(String, u8, u64, u16)> {
        let mut events = Vec::new();
        let mut before = self.of(world.at(after));
        for (revision, state) in world.states.range(after + 1..) {
            let now = self.of(state);
            for key in before.keys().chain(now.keys()).collect::<BTreeSet<_>>() {
                let (kind, shown) = match (before.get(key), now.get(key)) {
                    (None, Some(new)) => ("ADDED", new),
                    (Some(old), Some(new)) if old != new => ("MODIFIED", new),
                    (Some(old), None) => ("DELETED", old),
                    _ => continue,
                };
                events.push((kind.to_owned(), *key, *revision, shown.value));
            }
            before = now;
        }
        events
    }
}

fn key_of(object: &Value) -> u8 {
    object["metadata"]["name"].as_str().unwrap()[1..].parse().unwrap()
}

fn state_of(items: &Value) -> State {
    items.as_array().unwrap().iter().map(|o| (key_of(o), Known::read(o))).collect()
}

fn run(test: impl Future<Output = ()>) {
    // Time is paused: a watch waiting for its timeout ends at once.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn watchers_from_any_revision_see_exactly_the_later_changes_in_order(
        steps in steps(40), wanted in prop::collection::vec(wanted(), 1..4),
    ) {
        run(async {
            let mut world = World::new().await;
            world.play(&steps).await;
            for wanted in &wanted {
                for from in world.start..=world.revision() {
                    check_watch(&world, wanted, from).await;
                }
            }
        });
    }

    #[test]
    fn a_watch_with_initial_events_continues_with_later_changes(steps in steps(25), more in steps(25), wanted in wanted()) {
        run(async {
            let mut world = World::new().await;
            world.play(&steps).await;
            let path = format!(
                "{}&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
                 &timeoutSeconds=3600",
                wanted.path()
            );
            let request = Request::get(path).body(Full::<Bytes>::default()).unwrap();
            let mut body = world.service.clone().oneshot(request).await.unwrap().into_body();
            let (initial, at) = (wanted.of(world.now()), world.revision());
            // Compaction would only end the watch.
            let more: Vec<_> = more.iter().filter(|s| !matches!(s, Step::Compact)).cloned().collect();
            world.play(&more).await;
            let later = wanted.events(&world, at);
            let mut text = Vec::new();
            let mut lines: Vec<Value> = Vec::new();
            while lines.len() < initial.len() + 1 + later.len() {
                let frame = body.frame().await.unwrap().unwrap();
                text.extend_from_slice(frame.data_ref().unwrap());
                while let Some(end) = text.iter().position(|b| *b == b'\n') {
                    lines.push(serde_json::from_slice(&text.drain(..=end).collect::<Vec<_>>()).unwrap());
                }
            }
            let (first, rest) = lines.split_at(initial.len());
            assert!(first.iter().all(|line| line["type"] == "ADDED"));
            assert_eq!(first.iter().map(|l| (key_of(&l["object"]), Known::read(&l["object"]))).collect::<State>(), initial);
            assert_eq!(rest[0]["type"], "BOOKMARK");
            assert_eq!(rest[0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
            assert_eq!(version(&rest[0]["object"]), at);
            assert_eq!(rest[1..].iter().map(event).collect::<Vec<_>>(), later);
        });
    }

    #[test]
    fn pages_add_up_to_the_state_of_their_revision_despite_writes_between_them(
        steps in steps(30), size in 1..4usize, between in prop::collection::vec(steps(4), 1..4), wanted in wanted(),
    ) {
        run(async {
            let mut world = World::new().await;
            world.play(&steps).await;
            let want = wanted.of(world.now());
            let (mut pages, mut found, mut token, mut revision) = (0, State::new(), String::new(), None);
            loop {
                let path = format!("{}&limit={size}&continue={token}", wanted.path());
                let (code, page) = ask(&world.service, "GET", &path, None).await;
                if revision.is_some_and(|r| r < world.floor) {
                    assert_eq!((code, &page["reason"]), (410, &json!("Expired")));
                    return;
                }
                assert_eq!(code, 200, "{page}");
                assert_eq!(*revision.get_or_insert(version(&page)), version(&page), "pages of different states");
                let items = state_of(&page["items"]);
                assert!(items.len() <= size && found.keys().all(|k| !items.contains_key(k)));
                found.extend(items);
                token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
                if token.is_empty() {
                    break;
                }
                world.play(&between[pages % between.len()]).await;
                pages += 1;
            }
            assert_eq!(found, want);
        });
    }

    #[test]
    fn a_list_at_an_exact_revision_is_the_state_of_that_revision(steps in steps(40), wanted in wanted()) {
        run(async {
            let mut world = World::new().await;
            world.play(&steps).await;
            for revision in world.start..=world.revision() {
                let path = format!("{}&resourceVersion={revision}&resourceVersionMatch=Exact", wanted.path());
                let (code, list) = ask(&world.service, "GET", &path, None).await;
                if revision < world.floor {
                    assert_eq!(code, 410);
                } else {
                    assert_eq!((code, version(&list)), (200, revision));
                    assert_eq!(state_of(&list["items"]), wanted.of(world.at(revision)));
                }
            }
        });
    }
}

fn event(line: &Value) -> (String, u8, u64, u16) {
    let object = &line["object"];
    (line["type"].as_str().unwrap().to_owned(), key_of(object), version(object), Known::read(object).value)
}

async fn check_watch(world: &World, wanted: &Wanted, from: u64) {
    let path = format!(
        "{}&watch=true&resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=90",
        wanted.path()
    );
    let (code, lines) = send(&world.service, "GET", &path, None).await;
    assert_eq!(code, 200);
    if from < world.floor {
        assert_eq!((&lines[0]["type"], &lines[0]["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert_eq!(lines.len(), 1);
        return;
    }
    let (mut results, mut marked) = (Vec::new(), from);
    for line in &lines {
        if line["type"] == "BOOKMARK" {
            marked = version(&line["object"]);
            assert!(
                results.last().is_none_or(|(_, _, last, _)| *last <= marked) && marked <= world.revision()
            );
        } else {
            results.push(event(line));
            assert!(results.last().unwrap().2 > marked, "an event from before a bookmark");
        }
    }
    assert_eq!(results, wanted.events(world, from), "{wanted:?} from {from}");
    assert_eq!(marked, world.revision(), "the last bookmark lets nobody miss anything");
}

/// Response to one write of one writer.
#[derive(Debug)]
struct WriteResult {
    name: String,
    /// The version that it was based on; `None` for creates.
    base: Option<u64>,
    version: Option<u64>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_produce_a_linear_history_per_object() {
    const WRITERS: usize = 8;
    let server = ApiServer::builder().seed(1).in_process().unwrap();
    let service = admin(&server);
    let maps = "/api/v1/namespaces/default/configmaps";
    let start = version(&ask(&service, "GET", maps, None).await.1);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let service = service.clone();
        writers.spawn(async move {
            let mut results = Vec::new();
            for turn in 0..60 {
                let name = format!("o{}", (turn * 5 + writer) % 4);
                let path = format!("{maps}/{name}");
                let (code, read) = ask(&service, "GET", &path, None).await;
                let value = format!("{writer}-{turn}");
                let (base, (code, answer)) = if code == 404 {
                    let body = json!({"metadata": {"name": name}, "data": {"v": value}});
                    (None, ask(&service, "POST", maps, Some(&body)).await)
                } else if turn % 7 == 6 {
                    let base = version(&read);
                    let body = json!({"preconditions": {"resourceVersion": base.to_string()}});
                    (Some(base), ask(&service, "DELETE", &path, Some(&body)).await)
                } else {
                    let mut body = read;
                    body["data"]["v"] = value.into();
                    (Some(version(&body)), ask(&service, "PUT", &path, Some(&body)).await)
                };
                match code {
                    200 | 201 => {
                        let deleted = answer["kind"] == "Status";
                        results.push(WriteResult {
                            name,
                            base,
                            version: (!deleted).then(|| version(&answer)),
                        });
                    }
                    404 | 409 => {}
                    other => panic!("{other}: {answer}"),
                }
            }
            results
        });
    }
    let results: Vec<WriteResult> = writers.join_all().await.into_iter().flatten().collect();

    let path = format!("{maps}?watch=true&resourceVersion={start}&timeoutSeconds=1");
    let (_, events) = send(&service, "GET", &path, None).await;
    assert_eq!(events.len(), results.len(), "acknowledged writes and events are not the same number");
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    let mut seen = start;
    for event in &events {
        let (object, at) = (&event["object"], version(&event["object"]));
        assert_eq!(at, seen + 1, "events out of order");
        seen = at;
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let deleted = event["type"] == "DELETED";
        let base = if deleted { last.remove(&name) } else { last.insert(name.clone(), at) };
        let wrote = results
            .iter()
            .filter(|t| t.name == name && t.base == base && t.version == (!deleted).then_some(at))
            .count();
        assert_eq!(
            wrote, 1,
            "{name} at {at} on top of {base:?}: every change has one author, who saw what it replaced"
        );
    }
}
