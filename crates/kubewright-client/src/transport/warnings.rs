//! Warnings that the server sends with its answers.
//!
//! A deprecated version, a field that nobody knows, a policy that is not enforced yet: the server says so in `Warning`
//! headers, and kubectl shows them. An operator that does not will learn of a removed API when it is gone.

use std::{collections::BTreeSet, fmt, sync::Arc};

use http::{Request, header::WARNING};
use kube::client::Body;
use parking_lot::Mutex;
use tower::BoxError;

use super::tap::{Answer, Tap, TapLayer};

/// How many texts are remembered as told.
const ROOM: usize = 1024;
/// The longest text that is passed on.
const LENGTH: usize = 1024;

/// One warning.
///
/// The text is the server's alone: nothing of the request is added to it. Control characters are taken out, and what is
/// longer than 1,024 characters is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Kubernetes uses 299 only.
    pub code: u16,
    /// Who warns; usually `-`.
    pub agent: String,
    /// What about.
    pub text: String,
}

/// What to do with warnings. Clones do it together.
///
/// ```
/// use kubewright::client::{Transport, Warnings};
///
/// # fn example(config: kubewright::kube::Config) -> Result<(), Box<dyn std::error::Error>> {
/// let transport = Transport::builder(config)
///     .warnings(Warnings::handled(|warning| eprintln!("Warning: {}", warning.text)))
///     .build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Warnings(Arc<dyn Fn(&Warning) + Send + Sync>);

impl Warnings {
    /// Logs every text once, at level `WARN` under the target `kubewright::warnings`.
    pub fn logged_once() -> Self {
        let told = Mutex::new(BTreeSet::new());
        Self::handled(move |warning| {
            if warning.code != 299 || warning.text.is_empty() {
                return;
            }
            let mut told = told.lock();
            if told.contains(&warning.text) {
                return;
            }
            if told.len() >= ROOM {
                told.clear();
            }
            told.insert(warning.text.clone());
            drop(told);
            tracing::warn!(target: "kubewright::warnings", "Warning: {}", warning.text);
        })
    }

    /// Calls a function with every warning. It must not block.
    pub fn handled(handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        Self(Arc::new(handler))
    }

    /// Passes over them.
    pub fn ignored() -> Self {
        Self::handled(|_| {})
    }
}

impl Default for Warnings {
    fn default() -> Self {
        Self::logged_once()
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warnings").finish_non_exhaustive()
    }
}

impl Tap for Warnings {
    type Note = ();

    fn request(&self, _: &mut Request<Body>) -> Result<(), BoxError> {
        Ok(())
    }

    fn answer(&self, (): (), answer: Answer<'_>) {
        let Ok((_, headers)) = answer else { return };
        for value in headers.get_all(WARNING) {
            for warning in parse(&String::from_utf8_lossy(value.as_bytes())) {
                (self.0)(&warning);
            }
        }
    }
}

/// Hands warnings of answers to a [`Warnings`].
pub type WarningsLayer = TapLayer<Warnings>;

/// The warnings of one header: `299 - "text"`, perhaps with a date, several with commas. What is malformed ends it.
fn parse(header: &str) -> Vec<Warning> {
    let (mut warnings, mut rest) = (Vec::new(), header.trim_start());
    while let Some((warning, after)) = one(rest) {
        warnings.push(warning);
        match after.trim_start().strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => break,
        }
    }
    warnings
}

fn one(text: &str) -> Option<(Warning, &str)> {
    let (code, rest) = text.split_once(' ')?;
    let code = (code.len() == 3).then(|| code.parse().ok()).flatten()?;
    let rest = rest.trim_start();
    let (agent, rest) = if rest.starts_with('"') {
        quoted(rest)?
    } else {
        let (agent, rest) = rest.split_once(' ')?;
        (agent.to_owned(), rest)
    };
    let (text, rest) = quoted(rest.trim_start())?;
    let rest = quoted(rest.trim_start()).map_or(rest, |(_date, rest)| rest);
    Some((Warning { code, agent: clean(&agent), text: clean(&text) }, rest))
}

/// A text in quotes, with backslashes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let (mut out, mut escaped) = (String::new(), false);
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => {
                out.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((out, &inner[at + 1..])),
            _ => out.push(c),
        }
    }
    None
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use http::Response;
    use tower::{Layer as _, ServiceExt as _};

    use super::*;

    fn texts(header: &str) -> Vec<String> {
        parse(header)
            .into_iter()
            .map(|warning| format!("{} {} {}", warning.code, warning.agent, warning.text))
            .collect()
    }

    #[test]
    fn warnings_are_read_as_the_rfc_writes_them() {
        assert_eq!(texts(r#"299 - "policy/v1beta1 is deprecated""#), ["299 - policy/v1beta1 is deprecated"]);
        assert_eq!(
            texts(r#"299 - "a, \"b\" \\", 299 "the agent" "c" "Sat, 25 Aug 2012 23:34:45 GMT", 112 x "d""#),
            [r#"299 - a, "b" \"#, "299 the agent c", "112 x d"]
        );
        assert_eq!(texts(r#"299 - "one", nonsense, 299 - "two""#), ["299 - one"]);
        for malformed in ["", "299", "299 -", "29 - \"x\"", "abc - \"x\"", "299 - \"open", "299 - text"] {
            assert!(texts(malformed).is_empty(), "{malformed}");
        }
    }

    #[test]
    fn texts_are_cut_and_cleaned() {
        let warning = &parse(&format!("299 - \"\u{1b}[31m{}\"", "x".repeat(5000)))[0];
        assert_eq!(warning.text.chars().count(), LENGTH);
        assert!(!warning.text.contains('\u{1b}'));
    }

    #[tokio::test]
    async fn every_warning_of_an_answer_reaches_the_handler() {
        let server = tower::service_fn(|_: Request<Body>| async {
            let response = Response::builder().header(WARNING, "299 - \"a\"").header(WARNING, "299 - \"b\"");
            response.body(()).map_err(BoxError::from)
        });
        let heard = Arc::new(Mutex::new(Vec::new()));
        let warnings = Warnings::handled({
            let heard = Arc::clone(&heard);
            move |warning| heard.lock().push(warning.text.clone())
        });
        let request = Request::get("/").body(Body::empty()).unwrap();
        WarningsLayer::new(warnings).layer(server).oneshot(request).await.unwrap();
        assert_eq!(*heard.lock(), ["a", "b"]);
    }

    #[test]
    fn the_default_logs_each_text_once_and_only_code_299() {
        let lines = Arc::new(Mutex::new(Vec::<u8>::new()));
        let writer = Arc::clone(&lines);
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || Sink(Arc::clone(&writer)))
            .finish();
        let warning = |code, text: &str| Warning { code, agent: "-".into(), text: text.into() };
        tracing::subscriber::with_default(subscriber, || {
            let warnings = Warnings::logged_once();
            for warning in [warning(299, "old"), warning(299, "old"), warning(199, "odd"), warning(299, "")] {
                (warnings.0)(&warning);
            }
        });
        let text = String::from_utf8(lines.lock().clone()).unwrap();
        assert_eq!(text.matches("Warning: old").count(), 1, "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
