//! What the annotations of a pod say is to happen to it.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

use crate::objects;
use kubewright_cron::duration;

/// How a pod behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// How long until its containers run.
    pub(super) start_delay: SignedDuration,
    /// How long they run; `None` is for ever.
    pub(super) run_duration: Option<SignedDuration>,
    /// With which code they end.
    pub(super) exit_code: i32,
    /// Whether their image cannot be pulled.
    pub(super) image_pull_error: bool,
    /// Whether they never become ready.
    pub(super) not_ready: bool,
    /// How long they take to stop when asked to.
    pub(super) stop_duration: SignedDuration,
}

impl Script {
    /// Reads the annotations of a pod. What cannot be understood is as if it were not there.
    pub(super) fn of(pod: &Pod) -> Self {
        let read = |key: &str| objects::annotation(&pod.metadata, &format!("sim.kubewright.dev/{key}"));
        let lasting = |key: &str| read(key).and_then(duration::parse);
        let is = |key: &str| read(key) == Some("true");
        let crashes = is("crash-loop");
        let of_job = objects::controller_of(&pod.metadata).is_some_and(|owner| owner.kind == "Job");
        let by_itself = match (crashes, of_job) {
            (true, _) => Some(SignedDuration::ZERO),
            (false, true) => Some(SignedDuration::from_secs(1)),
            (false, false) => None,
        };
        let code = read("exit-code").and_then(|code| code.parse().ok());
        // A code without a duration means that the containers end.
        let ends = code.map(|_| SignedDuration::ZERO);
        Self {
            start_delay: lasting("start-delay").unwrap_or_default(),
            run_duration: lasting("run-duration").or(by_itself).or(ends),
            exit_code: code.unwrap_or(i32::from(crashes)),
            image_pull_error: is("image-pull-error"),
            not_ready: is("not-ready"),
            stop_duration: lasting("stop-duration").unwrap_or_default(),
        }
    }
}
