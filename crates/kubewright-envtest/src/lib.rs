//! A real control plane for tests: etcd, kube-apiserver and, on request, kube-controller-manager, in a temporary folder.
//!
//! The embedded server (`kubewright-apiserver`) is what tests run on: it starts in milliseconds and needs nothing. This
//! crate is the judge: the same test, against the programs that Kubernetes is made of.
//!
//! ```no_run
//! # async fn judge() -> Result<(), kubewright_envtest::Error> {
//! use kubewright_envtest::{Binaries, ControlPlane};
//!
//! let Some(binaries) = Binaries::find() else { return Ok(()) }; // not on this machine: nothing to compare with
//! let plane = ControlPlane::builder().controllers(true).start(&binaries).await?;
//! let version = plane.client().apiserver_version().await;
//! # Ok(()) }
//! ```
//!
//! **Where the programs come from.** `KUBEBUILDER_ASSETS`, as for Go's envtest; otherwise the folder that
//! `tools/real/build.sh` fills (`make real`): `$KUBEWRIGHT_CACHE`, or `kubewright/` in the user's cache folder.
//!
//! **Pitfalls.** These are processes, ports and real time: a start takes seconds, and a test must wait for what it
//! expects, never for a duration. Dropping the [`ControlPlane`] kills its processes and removes its folder, and so does the end of
//! the test program, however it ends.

mod binaries;
mod flags;
mod plane;
mod process;

pub use binaries::Binaries;
pub use plane::{Builder, ControlPlane};

/// Why a control plane did not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a process could not be made.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The key of the service accounts could not be made.
    #[error("cannot make a key for service account tokens")]
    Key(#[from] rcgen::Error),
    /// A client for the API server could not be made.
    #[error("cannot make a client for the API server at {url}")]
    Client {
        /// Where it listens.
        url: String,
        /// What kube-rs said.
        source: Box<kube::Error>,
    },
    /// A process ended, or was not ready in time. What it said last is part of the message.
    #[error("{program} {why}; its last words:\n{log}")]
    NotReady {
        /// Which one.
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
