//! Normalisation and comparison of responses, by the rules of the recordings.

use crate::ordered::Json;

const TIMES: [&str; 18] = [
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "lastProbeTime",
    "startTime",
    "completionTime",
    "expirationTimestamp",
    "renewTime",
    "acquireTime",
    "lastHeartbeatTime",
    "lastScheduleTime",
    "lastPhaseTransitionTime",
    "requestReceivedTimestamp",
];

/// Tokens of identities, in the order of first appearance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens(Vec<(String, String)>);

impl Tokens {
    pub(crate) fn set(&mut self, raw: &str, token: &str) {
        self.0.push((raw.to_owned(), token.to_owned()));
    }

    fn token(&mut self, kind: &str, value: &str) -> String {
        let raw = format!("{kind}:{value}");
        if let Some((_, token)) = self.0.iter().find(|(r, _)| *r == raw) {
            return token.clone();
        }
        let head = format!("<{kind}");
        let token = format!("<{kind}-{}>", 1 + self.0.iter().filter(|(_, t)| t.starts_with(&head)).count());
        self.0.push((raw, token.clone()));
        token
    }

    /// Replaces the run's own names and known uids in a text by their tokens.
    pub(crate) fn rename(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (raw, token) in &self.0 {
            if let Some((kind, value)) = raw.split_once(':')
                && matches!(kind, "uid" | "id")
                && text.contains(value)
            {
                text = text.replace(value, token);
            }
        }
        text
    }
}

/// Normalises a response: identities become tokens, times become `<time>`.
pub(crate) fn normalise(value: &Json, tokens: &mut Tokens, key: &str) -> Json {
    match value {
        Json::Object(members) => object(value, members, tokens),
        Json::Array(list) => Json::Array(list.iter().map(|item| normalise(item, tokens, key)).collect()),
        Json::String(text) => Json::String(string(text, tokens, key)),
        other => other.clone(),
    }
}

fn object(value: &Json, members: &[(String, Json)], tokens: &mut Tokens) -> Json {
    let is_list = matches!(value.get("items"), Some(Json::Array(_)))
        || value.get("kind").and_then(Json::as_str) == Some("Table");
    let mut out: Vec<(String, Json)> = Vec::new();
    for (key, member) in members {
        if key == "metadata" && is_list && matches!(member, Json::Object(_)) {
            let mut metadata = normalise(member, &mut tokens.clone(), key);
            if let Json::Object(members) = &mut metadata {
                for (key, value) in members.iter_mut() {
                    match key.as_str() {
                        "resourceVersion" => *value = Json::String("<list-rv>".into()),
                        "continue" if value.as_str().is_some_and(|c| !c.is_empty()) => {
                            *value = Json::String("<continue>".into());
                        }
                        _ => {}
                    }
                }
            }
            out.push((key.clone(), metadata));
            continue;
        }
        let renamed = tokens.rename(key);
        let member = normalise(member, tokens, key);
        out.push((renamed, member));
    }
    let metadata = value.get("metadata");
    let base = metadata.and_then(|m| m.get("generateName")).and_then(Json::as_str).unwrap_or_default();
    let name = metadata.and_then(|m| m.get("name")).and_then(Json::as_str).unwrap_or_default();
    if !base.is_empty() && name.starts_with(base) {
        let shown = Json::String(format!("{base}<random>"));
        if let Some((_, Json::Object(metadata))) = out.iter_mut().find(|(k, _)| k == "metadata") {
            match metadata.iter_mut().find(|(k, _)| k == "name") {
                Some((_, name)) => *name = shown,
                None => metadata.push(("name".into(), shown)),
            }
        }
    }
    Json::Object(out)
}

fn string(text: &str, tokens: &mut Tokens, key: &str) -> String {
    let is_address = || !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    match key {
        _ if TIMES.contains(&key) && !text.is_empty() => "<time>".into(),
        "uid" if !text.is_empty() => tokens.token("uid", text),
        "resourceVersion" if !text.is_empty() && text != "0" => tokens.token("rv", text),
        "continue" if !text.is_empty() => "<continue>".into(),
        "clusterIP" | "ip" | "clusterIPs" if is_address() => "<ip>".into(),
        _ => tokens.rename(text),
    }
}

/// Returns the value at a dotted path; `~1` stands for a dot in a key.
pub(crate) fn pick<'j>(value: &'j Json, path: &str) -> Option<&'j Json> {
    let mut current = value;
    for part in path.split('.') {
        let part = part.replace("~1", ".");
        current = match current {
            Json::Array(list) => {
                let at: i64 = part.parse().ok()?;
                let at = if at < 0 { i64::try_from(list.len()).ok()? + at } else { at };
                list.get(usize::try_from(at).ok()?)?
            }
            Json::Object(_) => current.get(&part)?,
            _ => return None,
        };
    }
    Some(current)
}

/// Removes the value at a dotted path; `*` matches every element.
pub(crate) fn drop_path(value: &mut Json, path: &str) {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match value {
        Json::Object(members) => {
            let key = head.replace("~1", ".");
            if rest.is_empty() {
                members.retain(|(k, _)| head != "*" && *k != key);
            } else {
                for (_, member) in members.iter_mut().filter(|(k, _)| head == "*" || *k == key) {
                    drop_path(member, rest);
                }
            }
        }
        Json::Array(list) => {
            let at: Option<usize> = head.parse().ok();
            for (n, item) in list.iter_mut().enumerate() {
                if head == "*" || at == Some(n) {
                    if rest.is_empty() {
                        *item = Json::Null;
                    } else {
                        drop_path(item, rest);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Collects the differences of two normalised responses. Wording of messages may differ.
pub(crate) fn differences(want: &Json, got: &Json, path: &str, found: &mut Vec<String>) {
    match (want, got) {
        (Json::Object(wants), Json::Object(gots)) => {
            let mut keys: Vec<&String> = wants.iter().chain(gots).map(|(k, _)| k).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (want.get(key), got.get(key)) {
                    (Some(_), Some(_)) if key == "message" => {}
                    (Some(want), Some(got)) => differences(want, got, &here, found),
                    (Some(want), None) => found.push(format!("{here}: want {want}, missing")),
                    (None, Some(got)) => found.push(format!("{here}: want nothing, got {got}")),
                    (None, None) => {}
                }
            }
        }
        (Json::Array(wants), Json::Array(gots)) => {
            for n in 0..wants.len().max(gots.len()) {
                let here = format!("{path}[{n}]");
                match (wants.get(n), gots.get(n)) {
                    (Some(want), Some(got)) => differences(want, got, &here, found),
                    (Some(want), None) => found.push(format!("{here}: want {want}, missing")),
                    (None, Some(got)) => found.push(format!("{here}: want nothing, got {got}")),
                    (None, None) => {}
                }
            }
        }
        (want, got) if !want.same(got) => found.push(format!("{path}: want {want}, got {got}")),
        _ => {}
    }
}
