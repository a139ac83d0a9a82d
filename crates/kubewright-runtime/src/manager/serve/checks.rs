//! Named checks, and what a probe is told of them.

use std::{collections::BTreeMap, fmt, fmt::Write as _, sync::Arc};

use futures::future::BoxFuture;
use http::StatusCode;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tower::BoxError;

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), BoxError>> + Send + Sync>;

/// A set of named checks. Clones are the same set; checks can be added while it is served.
///
/// Without any checks it passes, as `ping`.
///
/// ```
/// use kubewright::manager::serve::Checks;
///
/// let checks = Checks::new();
/// checks.add("queue", || async { Err("four workers hang".into()) });
/// ```
#[derive(Clone, Default)]
pub struct Checks(Arc<Mutex<BTreeMap<String, Check>>>);

/// A status and a text.
pub(super) type Verdict = (StatusCode, String);

impl Checks {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a check, in the place of one of the same name. It is asked with every probe: keep it quick.
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

    /// Asks all that are not excluded, in the order of their names.
    pub(super) async fn ask(&self, query: &str) -> Verdict {
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
                // Everybody may read this; whoever asks for the check by its name is told the reason.
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

    /// Asks one; nothing if there is none of this name.
    pub(super) async fn ask_one(&self, name: &str) -> Option<Verdict> {
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

/// The values of a parameter of a URL; an empty one for a parameter without a value.
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
        assert_eq!(checks.ask("").await, (StatusCode::OK, "ok".into()));
        assert_eq!(checks.ask("verbose").await.1, "[+]ping ok\nhealthz check passed\n");
        assert_eq!(checks.ask_one("ping").await.unwrap().1, "ok");
        assert!(checks.ask_one("pong").await.is_none());
    }

    #[tokio::test]
    async fn a_failure_lists_all_checks_and_withholds_the_reason() {
        let (status, text) = checks().ask("").await;
        assert_eq!(status, 500);
        assert_eq!(text, "[-]bad failed: reason withheld\n[+]good ok\nhealthz check failed\n");
        assert_eq!(
            checks().ask_one("bad").await,
            Some((StatusCode::INTERNAL_SERVER_ERROR, "internal server error: hunter2\n".into()))
        );
    }

    #[tokio::test]
    async fn excluded_checks_are_not_asked_and_unknown_ones_are_named() {
        assert_eq!(checks().ask("exclude=bad").await, (StatusCode::OK, "ok".into()));
        let (status, text) = checks().ask("verbose&exclude=bad&exclude=no%20such&exclude=b").await;
        assert_eq!(status, 200);
        assert_eq!(
            text,
            "[+]bad excluded: ok\n[+]good ok\n\
             warn: some health checks cannot be excluded: no matches for \"b\",\"no such\"\nhealthz check passed\n"
        );
    }
}
