//! Health checks and their probe responses.

use std::{collections::BTreeMap, fmt, fmt::Write as _, sync::Arc};

use futures::future::BoxFuture;
use http::StatusCode;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tower::BoxError;

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// Set of named health checks. Clones share it; checks can be added while it is served.
///
/// An empty set passes, as `ping`.
///
/// ```
/// use kubewright::manager::serve::Checks;
///
/// let checks = Checks::new();
/// checks.add("queue", || async { Err("four workers hang".into()) });
/// ```
#[derive(Clone, Default)]
pub struct Checks(Arc<Mutex<BTreeMap<String, Check>>>);

/// Status code and body.
pub(super) type ProbeResponse = (StatusCode, String);

impl Checks {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check, or replaces the one of the same name. It runs with every probe: keep it fast.
    pub fn add<F>(&self, name: impl Into<String>, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        self.0.lock().insert(name.into(), check);
    }

    fn all(&self) -> BTreeMap<String, Check> {
        self.0.lock().clone()
    }

    /// Runs all checks that are not excluded, in the order of their names.
    pub(super) async fn run(&self, query: &str) -> ProbeResponse {
        let checks = self.all();
        let mut excluded: Vec<String> = values(query, "exclude");
        excluded.sort_unstable();
        excluded.dedup();
        let (mut text, mut failed) = (String::new(), false);
        for (name, check) in &checks {
            // Writing to a String does not fail.
            if let Ok(at) = excluded.binary_search(name) {
                excluded.remove(at);
                let _ = writeln!(text, "[+]{name} excluded: ok");
            } else if let Err(error) = check().await {
                failed = true;
                tracing::info!(check = name, error, "a health check failed");
                // This response is public; the reason is in the response for the single check.
                let _ = writeln!(text, "[-]{name} failed: reason withheld");
            } else {
                let _ = writeln!(text, "[+]{name} ok");
            }
        }
        if checks.is_empty() {
            text.push_str("[+]ping ok\n");
        }
        if !failed && values(query, "verbose").is_empty() {
            return (StatusCode::OK, "ok".to_owned());
        }
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            let _ = writeln!(text, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        text.push_str(if failed { "healthz check failed\n" } else { "healthz check passed\n" });
        (if failed { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }, text)
    }

    /// Runs one check; `None` if there is none of this name.
    pub(super) async fn run_one(&self, name: &str) -> Option<ProbeResponse> {
        let checks = self.all();
        if checks.is_empty() && name == "ping" {
            return Some((StatusCode::OK, "ok".to_owned()));
        }
        Some(match checks.get(name)?().await {
            Ok(()) => (StatusCode::OK, "ok".to_owned()),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {error}\n")),
        })
    }
}

impl fmt::Debug for Checks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checks").field(&self.0.lock().keys().collect::<Vec<_>>()).finish()
    }
}

/// The decoded values of a query parameter; empty for a parameter without a value.
fn values(query: &str, wanted: &str) -> Vec<String> {
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(key, _)| decode(key) == wanted)
        .map(|(_, value)| decode(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Checks {
        let checks = Checks::new();
        checks.add("good", || async { Ok(()) });
        checks.add("bad", || async { Err("hunter2".into()) });
        checks
    }

    #[tokio::test]
    async fn no_checks_pass_as_ping() {
        let checks = Checks::new();
        assert_eq!(checks.run("").await, (StatusCode::OK, "ok".into()));
        assert_eq!(checks.run("verbose").await.1, "[+]ping ok\nhealthz check passed\n");
        assert_eq!(checks.run_one("ping").await.unwrap().1, "ok");
        assert!(checks.run_one("pong").await.is_none());
    }

    #[tokio::test]
    async fn a_failure_lists_all_checks_and_withholds_the_reason() {
        let (status, text) = checks().run("").await;
        assert_eq!(status, 500);
        assert_eq!(text, "[-]bad failed: reason withheld\n[+]good ok\nhealthz check failed\n");
        assert_eq!(
            checks().run_one("bad").await,
            Some((StatusCode::INTERNAL_SERVER_ERROR, "internal server error: hunter2\n".into()))
        );
    }

    #[tokio::test]
    async fn excluded_checks_do_not_run_and_unknown_ones_are_named() {
        assert_eq!(checks().run("exclude=bad").await, (StatusCode::OK, "ok".into()));
        let (status, text) = checks().run("verbose&exclude=bad&exclude=no%20such&exclude=b").await;
        assert_eq!(status, 200);
        assert_eq!(
            text,
            "[+]bad excluded: ok\n[+]good ok\n\
             warn: some health checks cannot be excluded: no matches for \"b\",\"no such\"\nhealthz check passed\n"
        );
    }
}
