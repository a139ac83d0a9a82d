//! The containers of a pod, one step at a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Pod,
};

use super::super::script::Script;
use crate::{objects, pod, workloads::step::Note};

/// How long the kubelet tells of a failed pull before it tells of backing off.
const PULL_BACKOFF: SignedDuration = SignedDuration::from_secs(10);
const FIRST_RESTART: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_RESTART: SignedDuration = SignedDuration::from_secs(300);

/// The containers of a pod and what has become of them.
pub(super) struct Containers<'a> {
    pod: &'a Pod,
    policy: &'a str,
    init: Vec<(&'a Container, ContainerStatus)>,
    main: Vec<(&'a Container, ContainerStatus)>,
    now: Timestamp,
    /// Whether the pod is asked to end: then nothing is restarted any more.
    stopping: bool,
}

impl<'a> Containers<'a> {
    pub(super) fn of(pod: &'a Pod, now: Timestamp) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let pair = |containers: &'a [Container], known: Option<&Vec<ContainerStatus>>| {
            let status = |container: &Container| {
                let known = known.into_iter().flatten().find(|status| status.name == container.name);
                known.cloned().unwrap_or_else(|| fresh(container))
            };
            containers.iter().map(|container| (container, status(container))).collect()
        };
        let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        Self {
            pod,
            policy: spec.and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always"),
            init: pair(init, status.and_then(|status| status.init_container_statuses.as_ref())),
            main: pair(main, status.and_then(|status| status.container_statuses.as_ref())),
            now,
            stopping: pod::is_terminating(pod),
        }
    }

    /// The statuses of init containers and of containers.
    pub(super) fn into_statuses(self) -> (Vec<ContainerStatus>, Vec<ContainerStatus>) {
        let statuses = |containers: Vec<(&Container, ContainerStatus)>| {
            containers.into_iter().map(|(_, status)| status).collect::<Vec<_>>()
        };
        (statuses(self.init), statuses(self.main))
    }

    /// The phase that the containers amount to.
    pub(super) fn phase(&self) -> &'static str {
        let for_good = |code: &i32| self.stopping || !restarts(self.policy, *code);
        let codes: Option<Vec<i32>> =
            self.main.iter().map(|(_, status)| exit_code(status).filter(for_good)).collect();
        if let Some(codes) = codes.filter(|codes| !codes.is_empty()) {
            return if codes.iter().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
        }
        // A container that waits to be restarted has run; the server fills in an empty last state where there is none.
        let restarting = |status: &ContainerStatus| {
            status.last_state.as_ref().is_some_and(|state| state.terminated.is_some())
        };
        let begun = |status: &ContainerStatus| {
            running_since(status).is_some() || exit_code(status).is_some() || restarting(status)
        };
        if self.main.iter().all(|(_, status)| begun(status)) { "Running" } else { "Pending" }
    }

    /// They are being created.
    pub(super) fn create(&mut self) {
        for (_, status) in self.init.iter_mut().chain(&mut self.main) {
            status.state = Some(waiting("ContainerCreating", None));
        }
    }

    /// Their images cannot be had; when to look again.
    pub(super) fn fail_to_pull(&mut self, begun: Timestamp, notes: &mut Vec<Note>) -> Option<Duration> {
        let backing_off = begun.checked_add(PULL_BACKOFF).unwrap_or(begun);
        for (container, status) in &mut self.main {
            let image = container.image.as_deref().unwrap_or_default();
            let (reason, message) = if self.now < backing_off {
                let why = format!("failed to pull and unpack image \"{image}\": simulated by annotation");
                ("ErrImagePull", why)
            } else {
                ("ImagePullBackOff", format!("Back-off pulling image \"{image}\""))
            };
            let state = waiting(reason, Some(message.clone()));
            if status.state.as_ref() != Some(&state) {
                if reason == "ErrImagePull" {
                    notes.push(Note::normal("Pulling", format!("Pulling image \"{image}\"")));
                    notes.push(Note::warning(
                        "Failed",
                        format!("Failed to pull image \"{image}\": {message}"),
                    ));
                    notes.push(Note::warning("Failed", "Error: ErrImagePull"));
                } else {
                    notes.push(Note::normal("BackOff", message));
                    notes.push(Note::warning("Failed", "Error: ImagePullBackOff"));
                }
                status.state = Some(state);
            }
        }
        super::Turn::look_at(backing_off, self.now)
    }

    /// Lets time pass for them; when to look again.
    pub(super) fn advance(&mut self, script: &Script, notes: &mut Vec<Note>) -> Option<Duration> {
        let now = self.now;
        for (container, status) in &mut self.init {
            let sidecar = container.restart_policy.as_deref() == Some("Always");
            let done = exit_code(status) == Some(0) || (sidecar && running_since(status).is_some());
            if !done {
                start(self.pod, container, status, now, notes);
                if sidecar {
                    status.ready = true;
                } else {
                    end(status, 0, now, now);
                }
                status.started = Some(sidecar);
            }
        }
        let mut looks = Vec::new();
        let policy = self.policy;
        for (container, status) in &mut self.main {
            looks.extend(advance_one(self.pod, container, status, script, policy, now, notes));
        }
        looks.into_iter().min().and_then(|at| super::Turn::look_at(at, now))
    }

    /// Ends those that run; whether there were any.
    pub(super) fn stop(&mut self, killed: bool, notes: &mut Vec<Note>) -> bool {
        let mut any = false;
        for (container, status) in self.init.iter_mut().chain(&mut self.main) {
            if let Some(since) = running_since(status) {
                any = true;
                notes.push(Note::normal("Killing", format!("Stopping container {}", container.name)));
                end(status, if killed { 137 } else { 143 }, since, self.now);
            }
        }
        if any {
            // What was about to be restarted will not be.
            for (_, status) in &mut self.main {
                if exit_code(status).is_none() {
                    end(status, 143, self.now, self.now);
                }
            }
        }
        any
    }
}

fn fresh(container: &Container) -> ContainerStatus {
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(false),
        ..ContainerStatus::default()
    }
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
        ..ContainerState::default()
    }
}

fn running_since(status: &ContainerStatus) -> Option<Timestamp> {
    status.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|time| time.0)
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// Whether a container that ended with this code is started again.
fn restarts(policy: &str, code: i32) -> bool {
    policy == "Always" || (policy == "OnFailure" && code != 0)
}

/// Starts a container.
fn start(
    pod: &Pod,
    container: &Container,
    status: &mut ContainerStatus,
    now: Timestamp,
    notes: &mut Vec<Note>,
) {
    let image = container.image.as_deref().unwrap_or_default();
    notes.push(Note::normal(
        "Pulled",
        format!("Container image \"{image}\" already present on machine and can be accessed by the pod"),
    ));
    notes.push(Note::normal("Created", "Container created"));
    notes.push(Note::normal("Started", "Container started"));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    status.container_id = Some(format!("simulated://{uid}/{}/{}", container.name, status.restart_count));
    image.clone_into(&mut status.image);
    status.image_id = format!("simulated://{image}");
    status.started = Some(true);
    status.ready = false;
    status.state = Some(ContainerState {
        running: Some(ContainerStateRunning { started_at: Some(objects::timestamp(now)) }),
        ..ContainerState::default()
    });
}

/// Ends a container.
fn end(status: &mut ContainerStatus, code: i32, since: Timestamp, now: Timestamp) {
    status.ready = false;
    status.started = Some(false);
    status.state = Some(ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: code,
            reason: Some(if code == 0 { "Completed" } else { "Error" }.into()),
            started_at: Some(objects::timestamp(since)),
            finished_at: Some(objects::timestamp(now)),
            container_id: status.container_id.clone(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    });
}

/// How long a container waits that has been restarted so often: the first time not at all.
fn restart_delay(restarts: i32) -> SignedDuration {
    match u32::try_from(restarts).unwrap_or(0) {
        0 => SignedDuration::ZERO,
        times => (FIRST_RESTART * 2i32.pow((times - 1).min(8))).min(LONGEST_RESTART),
    }
}

/// One transition of one container; when to look again.
fn advance_one(
    pod: &Pod,
    container: &Container,
    status: &mut ContainerStatus,
    script: &Script,
    policy: &str,
    now: Timestamp,
    notes: &mut Vec<Note>,
) -> Option<Timestamp> {
    if let Some(since) = running_since(status) {
        if let Some(lasts) = script.run_duration {
            let over = since.checked_add(lasts).ok()?;
            if now >= over {
                end(status, script.exit_code, since, now);
                return None;
            }
            return Some(over).into_iter().chain(become_ready(container, status, script, since, now)).min();
        }
        return become_ready(container, status, script, since, now);
    }
    let Some(code) = exit_code(status) else { return restart_or_start(pod, container, status, now, notes) };
    if !restarts(policy, code) {
        return None;
    }
    let ended = status
        .state
        .as_ref()
        .and_then(|state| state.terminated.as_ref()?.finished_at.as_ref().map(|time| time.0));
    let at = ended.unwrap_or(now).checked_add(restart_delay(status.restart_count)).ok()?;
    status.last_state = status.state.take();
    if now >= at {
        status.restart_count += 1;
        start(pod, container, status, now, notes);
        return None;
    }
    let seconds = restart_delay(status.restart_count).as_secs();
    let wait =
        if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) };
    let meta = &pod.metadata;
    let (space, name) =
        (meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
    let uid = meta.uid.as_deref().unwrap_or_default();
    let whose = format!("container={} pod={name}_{space}({uid})", container.name);
    status.state =
        Some(waiting("CrashLoopBackOff", Some(format!("back-off {wait} restarting failed {whose}"))));
    let said =
        format!("Back-off restarting failed container {} in pod {name}_{space}({uid})", container.name);
    notes.push(Note::warning("BackOff", said));
    Some(at)
}

/// A container that waits: to be started for the first time, or for its back-off to be over.
fn restart_or_start(
    pod: &Pod,
    container: &Container,
    status: &mut ContainerStatus,
    now: Timestamp,
    notes: &mut Vec<Note>,
) -> Option<Timestamp> {
    let last = status.last_state.as_ref().and_then(|state| state.terminated.as_ref()?.finished_at.as_ref());
    if let Some(ended) = last.map(|time| time.0) {
        let at = ended.checked_add(restart_delay(status.restart_count)).ok()?;
        if now < at {
            return Some(at);
        }
        status.restart_count += 1;
    }
    start(pod, container, status, now, notes);
    None
}

/// Makes a running container ready when it is time; when that is.
fn become_ready(
    container: &Container,
    status: &mut ContainerStatus,
    script: &Script,
    since: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    if script.not_ready {
        status.ready = false;
        return None;
    }
    let delay = container.readiness_probe.as_ref().and_then(|probe| probe.initial_delay_seconds).unwrap_or(0);
    let at = since.checked_add(SignedDuration::from_secs(delay.into())).ok()?;
    status.ready = now >= at;
    (!status.ready).then_some(at)
}
