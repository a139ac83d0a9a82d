//! Says who is calling.
//!
//! The API server writes the user agent into its audit log and its priority-and-fairness debug pages, so a
//! good one is the difference between "who is listing all Secrets?" and knowing it. The default has the shape
//! of client-go's: `binary/version (os/arch) kubernetes/commit`.
//!
//! A request that has a `User-Agent` already keeps it.

use std::fmt;

use http::{HeaderValue, Request, header::USER_AGENT};
use kube::client::Body;
use tower::BoxError;

use super::tap::{Tap, TapLayer, put_if_absent};

/// The text sent as `User-Agent`.
///
/// ```
/// use kubewright::client::UserAgent;
///
/// let agent = UserAgent::new("ingress-manager", "1.4.0");
/// assert!(agent.as_str().starts_with("ingress-manager/1.4.0 ("));
/// assert!(agent.as_str().contains(") kubernetes/kubewright-"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UserAgent(HeaderValue);

impl UserAgent {
    /// The agent of a named program in a version. Characters that no header may have become `_`.
    pub fn new(program: &str, version: &str) -> Self {
        let text = format!(
            "{program}/{version} ({}/{}) kubernetes/kubewright-{}",
            go_os(std::env::consts::OS),
            go_arch(std::env::consts::ARCH),
            env!("CARGO_PKG_VERSION")
        );
        Self::raw(&text)
    }

    /// Exactly this text, for those who have their own scheme. Characters that no header may have become `_`.
    pub fn raw(text: &str) -> Self {
        let clean: String = text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '_' }).collect();
        // Visible ASCII and spaces are a header value by definition; an empty one is too.
        Self(HeaderValue::try_from(clean).unwrap_or(HeaderValue::from_static("kubewright")))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl Default for UserAgent {
    /// The running program under the name of its file, in an unknown version.
    fn default() -> Self {
        let program = std::env::args_os()
            .next()
            .and_then(|path| {
                std::path::Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned())
            })
            .filter(|name| !name.is_empty());
        Self::new(program.as_deref().unwrap_or("unknown"), "unknown")
    }
}

impl fmt::Debug for UserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UserAgent").field(&self.as_str()).finish()
    }
}

impl fmt::Display for UserAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The names under which Go, and so every dashboard over API server logs, knows operating systems.
fn go_os(os: &str) -> &str {
    match os {
        "macos" => "darwin",
        other => other,
    }
}

/// Likewise for architectures.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

impl Tap for UserAgent {
    type Note = ();

    fn request(&self, request: &mut Request<Body>) -> Result<(), BoxError> {
        put_if_absent(request, USER_AGENT, &self.0);
        Ok(())
    }
}

/// Puts a [`UserAgent`] on every request that has none.
pub type UserAgentLayer = TapLayer<UserAgent>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_the_shape_of_client_go() {
        let agent = UserAgent::default();
        let (program, rest) = agent.as_str().split_once('/').unwrap();
        assert!(!program.is_empty());
        let (version, rest) = rest.split_once(" (").unwrap();
        assert_eq!(version, "unknown");
        let (platform, tail) = rest.split_once(") ").unwrap();
        assert_eq!(platform.split('/').count(), 2, "{platform}");
        assert!(tail.starts_with("kubernetes/"), "{tail}");
    }

    #[test]
    fn characters_that_no_header_may_have_are_replaced() {
        assert_eq!(UserAgent::raw("a\r\nAuthorization: x\u{e9}").as_str(), "a__Authorization: x_");
    }
}
