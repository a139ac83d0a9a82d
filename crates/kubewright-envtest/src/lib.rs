//! Real control plane for tests: etcd, kube-apiserver and optionally kube-controller-manager, in a temporary
//! directory.
//!
//! Most tests run on the embedded server (`kubewright-apiserver`), which starts in milliseconds. This crate
//! runs the same tests against the programs of Kubernetes for comparison.
//!
//! ```no_run
//! # async fn example() -> Result<(), kubewright_envtest::Error> {
//! use kubewright_envtest::{Binaries, ControlPlane};
//!
//! let Some(binaries) = Binaries::find() else { return Ok(()) }; // not installed: nothing to compare with
//! let plane = ControlPlane::builder().controllers(true).start(&binaries).await?;
//! let version = plane.client().apiserver_version().await;
//! # Ok(()) }
//! ```
//!
//! **Programs** are taken from `KUBEBUILDER_ASSETS`, as in Go's envtest, or from the directory of
//! `tools/real/build.sh` (`make real`): `$KUBEWRIGHT_CACHE`, or `kubewright/` in the user's cache directory.
//!
//! **Pitfalls.** These are processes, ports and real time: a start takes seconds, and a test must wait for a
//! condition, never for a duration. Dropping the [`ControlPlane`] kills its processes and removes its
//! directory, and so does the end of the test program, however it ends.

mod binaries;
mod flags;
mod plane;
mod process;

pub use binaries::Binaries;
pub use plane::{ControlPlane, ControlPlaneBuilder};

/// Error of starting a control plane.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a process could not be created.
    #[error("cannot {doing}")]
    Io {
        /// The operation.
        doing: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The key of the service accounts could not be generated.
    #[error("cannot make a key for service account tokens")]
    Key(#[from] rcgen::Error),
    /// A client for the API server could not be created.
    #[error("cannot make a client for the API server at {url}")]
    Client {
        /// The URL of the server.
        url: String,
        /// The error of kube-rs.
        source: Box<kube::Error>,
    },
    /// A process ended, or was not ready in time. The message has the end of its log.
    #[error(
        "{program} {why}; the end of its log:
{log}"
    )]
    NotReady {
        /// The program.
        program: &'static str,
        /// `ended: …` or `was not ready after …`.
        why: String,
        /// The end of its log.
        log: String,
    },
}

/// The examples of the README, compiled as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
