//! Replay of one scenario: its requests against its own server, in process, in virtual time.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::{
    ApiServer, ApiServerBuilder,
    authn::TokenFile,
    http::{ApiBody, ApiService},
};
use tower::Service;

use crate::{
    compare::{Tokens, differences, drop_path, normalise, pick},
    ordered::Json,
};

const TOKENS: &str = "admintoken,admin,admin-uid,\"system:masters\"\n\
                      alicetoken,alice,alice-uid,\"dev\"\n\
                      bobtoken,bob,bob-uid,\"\"\n";

/// Recorded scenario.
pub(crate) struct Scenario {
    pub(crate) name: String,
    recorded: Json,
}

impl Scenario {
    pub(crate) fn parse(name: String, text: &str) -> Self {
        Self { name, recorded: serde_json::from_str(text).expect("a recording is JSON") }
    }

    /// Returns the builder of the server that the recordings expect: its users, and a fixed clock and seed.
    pub(crate) fn server(&self) -> ApiServerBuilder {
        ApiServer::builder()
            .clock(kubewright_core::Clock::starting_at("2026-08-01T00:00:00Z".parse().expect("a time")))
            .seed(self.name.bytes().map(u64::from).sum())
            .tokens(TokenFile::parse(TOKENS).expect("a token file"))
    }

    /// Replays the scenario against a server; returns the differences by step.
    pub(crate) async fn replay(&self, server: &ApiServer) -> Vec<String> {
        let mut peer = Peer::new(server.service());
        let mut found = Vec::new();
        let namespace = "{\"metadata\": {\"name\": \"${run.ns}\"}}";
        peer.send(&request("POST", "/api/v1/namespaces", namespace)).await;
        let Some(Json::Array(steps)) = self.recorded.get("steps") else { return found };
        for step in steps {
            let id = step.get("id").and_then(Json::as_str).unwrap_or_default();
            if let Some(seconds) = number(step.get("sleep")) {
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
            let got = peer.observe(step).await;
            if step.get("compare").and_then(Json::as_str) == Some("none") {
                continue;
            }
            let Some(want) = step.get("answer") else { continue };
            let mut differ = Vec::new();
            differences(want, &got, "", &mut differ);
            let status_differs = want.get("status") != got.get("status");
            found.extend(differ.into_iter().map(|d| format!("{id}: {d}")));
            if status_differs {
                break;
            }
        }
        found
    }
}

fn request(method: &str, path: &str, body: &str) -> Json {
    let text = |t: &str| Json::String(t.to_owned());
    Json::Object(vec![
        ("method".into(), text(method)),
        ("path".into(), text(path)),
        ("text".into(), text(body)),
    ])
}

fn number(value: Option<&Json>) -> Option<f64> {
    match value {
        Some(Json::Number(n)) => n.as_f64(),
        _ => None,
    }
}

/// Client of one scenario with the raw responses that later steps refer to.
struct Peer {
    service: ApiService,
    raw: BTreeMap<String, Json>,
    tokens: Tokens,
}

struct Answer {
    status: u16,
    headers: http::HeaderMap,
    body: Json,
}

impl Peer {
    fn new(service: ApiService) -> Self {
        let id = "g0lden42";
        let mut tokens = Tokens::default();
        tokens.set(&format!("id:{id}"), "<id>");
        let run = Json::Object(vec![
            ("id".into(), Json::String(id.into())),
            ("ns".into(), Json::String(format!("gold-{id}"))),
        ]);
        Self { service, raw: BTreeMap::from([("run".to_owned(), run)]), tokens }
    }

    /// Replaces `${step.a.b.0.c}` by values of earlier responses.
    fn fill(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(from) = rest.find("${") {
            let Some(length) = rest[from..].find('}') else { break };
            out.push_str(&rest[..from]);
            let (step, path) = {
                let inner = &rest[from + 2..from + length];
                inner.split_once('.').unwrap_or((inner, ""))
            };
            let value = self.raw.get(step).and_then(|raw| pick(raw, path));
            match value {
                None | Some(Json::Null) => {}
                Some(Json::String(text)) => out.push_str(text),
                Some(other) => out.push_str(&other.to_string()),
            }
            rest = &rest[from + length + 1..];
        }
        out + rest
    }

    fn fill_json(&self, value: &Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.fill(text)),
            Json::Array(list) => Json::Array(list.iter().map(|v| self.fill_json(v)).collect()),
            Json::Object(members) => {
                Json::Object(members.iter().map(|(k, v)| (self.fill(k), self.fill_json(v))).collect())
            }
            other => other.clone(),
        }
    }

    async fn send(&mut self, request: &Json) -> Answer {
        let request = self.fill_json(request);
        let text = |key: &str| request.get(key).and_then(Json::as_str);
        let mut headers: Vec<(String, Option<String>)> = vec![
            ("Accept".into(), Some("application/json".into())),
            ("User-Agent".into(), Some("golden-replay".into())),
        ];
        let mut set = |key: &str, value: Option<String>| {
            headers.retain(|(k, _)| !k.eq_ignore_ascii_case(key));
            headers.push((key.to_owned(), value));
        };
        let mut authorised = request.get("anonymous").is_some_and(|a| *a != Json::Bool(false));
        let body = match (text("text"), request.get("body")) {
            (Some(text), _) => Some(text.to_owned()),
            (None, Some(body)) => Some(body.to_string()),
            _ => None,
        };
        let mut typed = false;
        if let Some(Json::Object(members)) = request.get("headers") {
            for (key, value) in members {
                authorised |= key == "Authorization";
                typed |= key == "Content-Type";
                set(key, value.as_str().map(str::to_owned));
            }
        }
        if !authorised {
            set("Authorization", Some("Bearer admintoken".into()));
        }
        if body.is_some() && !typed {
            set("Content-Type", Some("application/json".into()));
        }
        let mut built = Request::builder()
            .method(text("method").expect("a request has a method"))
            .uri(quote(text("path").expect("a request has a path")));
        for (key, value) in &headers {
            if let Some(value) = value {
                built = built.header(key, value);
            }
        }
        let sent =
            built.body(Full::new(Bytes::from(body.unwrap_or_default()))).expect("a request is well-formed");
        let response = self.service.call(sent).await.expect("the service answers");
        receive(response, request.get("watch")).await
    }

    /// Runs one step and returns its normalised response.
    async fn observe(&mut self, step: &Json) -> Json {
        let request = step.get("request").expect("a step has a request");
        let patience = Duration::from_secs_f64(number(step.get("retry_seconds")).unwrap_or(0.0));
        let deadline = tokio::time::Instant::now() + patience;
        let answer = loop {
            let answer = self.send(request).await;
            let Some(until) = step.get("until") else { break answer };
            let path = until.get("path").and_then(Json::as_str).unwrap_or_default();
            let reached = match (pick(&answer.body, path), until.get("equals")) {
                (Some(found), Some(wanted)) => found.same(wanted),
                (None, wanted) => wanted == Some(&Json::Null),
                _ => false,
            };
            if reached || tokio::time::Instant::now() > deadline {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let id = step.get("id").and_then(Json::as_str).unwrap_or_default();
        self.raw.insert(id.to_owned(), answer.body.clone());
        let mut out = vec![("status".to_owned(), Json::Number(answer.status.into()))];
        if step.get("compare").and_then(Json::as_str) == Some("status") {
            return Json::Object(out);
        }
        let mut body = normalise(&answer.body, &mut self.tokens, "");
        if let Some(Json::Array(only)) = step.get("only") {
            let picked = only.iter().filter_map(Json::as_str);
            body = Json::Object(
                picked.map(|p| (p.to_owned(), pick(&body, p).cloned().unwrap_or(Json::Null))).collect(),
            );
        }
        if let Some(Json::Array(ignore)) = step.get("ignore") {
            ignore.iter().filter_map(Json::as_str).for_each(|path| drop_path(&mut body, path));
        }
        out.push(("body".into(), body));
        if let Some(Json::Array(wanted)) = step.get("headers") {
            let headers = wanted.iter().filter_map(Json::as_str).map(|name| {
                let values: Vec<&str> =
                    answer.headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).collect();
                let value = match self.tokens.rename(&values.join(", ")) {
                    text if text.is_empty() => Json::Null,
                    text => Json::String(text),
                };
                (name.to_owned(), value)
            });
            out.push(("headers".into(), Json::Object(headers.collect())));
        }
        Json::Object(out)
    }
}

async fn receive(response: Response<ApiBody>, watch: Option<&Json>) -> Answer {
    let (mut parts, body) = response.into_parts();
    let streamed = http_body::Body::size_hint(&body).exact().is_none();
    if streamed {
        // On a socket, hyper sets this header.
        parts.headers.insert("transfer-encoding", http::HeaderValue::from_static("chunked"));
    }
    let status = parts.status.as_u16();
    let body = match watch {
        Some(watch) if status == 200 => events(body, watch).await,
        _ => {
            let bytes = body.collect().await.expect("a body ends").to_bytes();
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Json::String(String::from_utf8_lossy(&bytes).into_owned()))
        }
    };
    Answer { status, headers: parts.headers, body }
}

/// Collects watch events until there are enough or the time is over.
async fn events(mut body: ApiBody, watch: &Json) -> Json {
    let count = match watch.get("count") {
        Some(Json::Number(n)) => n.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1000),
        _ => 1000,
    };
    let seconds = number(watch.get("seconds")).unwrap_or(4.0);
    let mut events: Vec<Json> = Vec::new();
    let mut buffer: Vec<u8> = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs_f64(seconds), async {
        while events.len() < count {
            let Some(Ok(frame)) = body.frame().await else { break };
            buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
            while let Some(end) = buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                if events.len() < count && !line.trim_ascii().is_empty() {
                    events.push(serde_json::from_slice(&line).expect("an event is JSON"));
                }
            }
        }
    })
    .await;
    Json::Array(events)
}

/// Percent-encodes characters that a URL must not contain.
fn quote(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/?&=%:,~!().*+-_@[];'".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
