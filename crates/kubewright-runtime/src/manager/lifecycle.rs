//! Starts runnables stage by stage and stops them in reverse.

use std::{io, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use indexmap::IndexMap;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, Id, JoinError, JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{LeaderElector, RunContext, Runnable, Stage, signals::Signals};
use crate::Error;
use kubewright_core::panic_message;

/// Error that a manager ended with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A runnable failed.
    #[error("{runnable} failed: {source}")]
    Failed {
        /// The name of the runnable.
        runnable: String,
        /// Its error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This replica lost leadership; its leader-elected runnables were aborted.
    #[error("leadership was lost: the process should end, and another replica goes on")]
    LeadershipLost,
    /// Runnables did not stop within the grace period and were aborted.
    #[error("not finished within the grace period of {grace:?} and dropped: {}", .runnables.join(", "))]
    GraceExceeded {
        /// The grace period.
        grace: Duration,
        /// The names of the runnables.
        runnables: Vec<String>,
    },
    /// Two runnables have the same name, such as two controllers of one kind: their logs, metrics and
    /// journals would be mixed.
    #[error(
        "there are two of the name {runnable:?}: give one of them another name, a controller with `named`"
    )]
    SameName {
        /// The name.
        runnable: String,
    },
    /// The process cannot listen for signals.
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] io::Error),
}

/// State of a running manager.
pub(super) struct Lifecycle {
    name: String,
    context: RunContext,
    /// Runnables that have not started.
    waiting: Vec<Box<dyn Runnable>>,
    added: mpsc::UnboundedReceiver<Box<dyn Runnable>>,
    leader_elector: Option<Box<dyn LeaderElector>>,
    grace: Duration,
    signals: bool,
    stops: [CancellationToken; Stage::ALL.len()],
    tasks: JoinSet<Result<(), Error>>,
    running: IndexMap<Id, Running>,
    /// Whether a leader-elected runnable was aborted.
    aborted_elected: bool,
}

struct Running {
    name: String,
    stage: Stage,
    abort: AbortHandle,
}

/// Leadership of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaderState {
    Candidate,
    Leader,
    Lost,
}

impl Lifecycle {
    pub(super) fn new(
        name: String,
        context: RunContext,
        waiting: Vec<Box<dyn Runnable>>,
        added: mpsc::UnboundedReceiver<Box<dyn Runnable>>,
    ) -> Self {
        Self {
            name,
            context,
            waiting,
            added,
            leader_elector: None,
            grace: Duration::from_secs(30),
            signals: true,
            stops: std::array::from_fn(|_| CancellationToken::new()),
            tasks: JoinSet::new(),
            running: IndexMap::new(),
            aborted_elected: false,
        }
    }

    pub(super) fn leader_elector(mut self, leader_elector: Option<Box<dyn LeaderElector>>) -> Self {
        self.leader_elector = leader_elector;
        self
    }

    pub(super) fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    pub(super) fn signals(mut self, signals: bool) -> Self {
        self.signals = signals;
        self
    }

    pub(super) async fn run(mut self) -> Result<(), Error> {
        let mut signals =
            if self.signals { Signals::listen().map_err(ManagerError::Signals)? } else { Signals::none() };
        let (leader_state, mut observed) = watch::channel(LeaderState::Candidate);
        let mut election = None;
        let ended = self.up(&mut signals, &leader_state, &mut observed, &mut election).await;
        // Nothing can be added to a manager that is stopping.
        self.added.close();
        if *leader_state.borrow() == LeaderState::Lost {
            self.abort_elected();
        }
        self.context.manager.inner.leading.send_replace(false);
        let down = self.down(&mut signals, &mut observed).await;
        if let Some(election) = election {
            election.end(!self.aborted_elected).await;
        }
        tracing::info!(manager = self.name, "manager stopped");
        ended?;
        Ok(down?)
    }

    /// Starts stage by stage, then waits for a reason to stop.
    async fn up(
        &mut self,
        signals: &mut Signals,
        leader_state: &watch::Sender<LeaderState>,
        observed: &mut watch::Receiver<LeaderState>,
        election: &mut Option<Election>,
    ) -> Result<(), ManagerError> {
        let stop = self.context.manager.inner.stop.clone();
        let mut stages = Stage::ALL.into_iter();
        let mut reached = None;
        let mut unprepared = FuturesUnordered::new();
        let (failing, mut failed) = mpsc::channel(1);
        loop {
            // A closed receiver belongs to a runnable that has failed; its task reports the error.
            while unprepared.is_empty()
                && let Some(stage) = stages.next()
            {
                reached = Some(stage);
                if stage == Stage::Elected {
                    *election = Some(Election::start(
                        self.leader_elector.take(),
                        leader_state.clone(),
                        failing.clone(),
                    ));
                }
                let starting: Vec<_> =
                    self.waiting.extract_if(.., |runnable| runnable.stage() == stage).collect();
                for runnable in starting {
                    let prepared = self.start(runnable, observed.clone());
                    if stage != Stage::Elected {
                        unprepared.push(prepared);
                    }
                }
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                signal = signals.next() => {
                    tracing::info!(manager = self.name, signal, "stopping");
                    return Ok(());
                }
                changed = observed.changed() => {
                    let now = *observed.borrow_and_update();
                    self.context.manager.inner.leading.send_replace(now == LeaderState::Leader);
                    if now == LeaderState::Lost {
                        return Err(ManagerError::LeadershipLost);
                    }
                    if changed.is_ok() && now == LeaderState::Leader {
                        tracing::info!(manager = self.name, "leading");
                    }
                }
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended)?,
                Some(_) = unprepared.next() => {}
                Some(runnable) = self.added.recv() => {
                    if reached >= Some(runnable.stage()) {
                        drop(self.start(runnable, observed.clone()));
                    } else {
                        self.waiting.push(runnable);
                    }
                }
                Some(error) = failed.recv() => {
                    let runnable = "leader election".to_owned();
                    return Err(ManagerError::Failed { runnable, source: error.into() });
                }
            }
        }
    }

    /// Spawns a runnable; the receiver resolves when it is prepared.
    fn start(
        &mut self,
        mut runnable: Box<dyn Runnable>,
        mut leader_state: watch::Receiver<LeaderState>,
    ) -> oneshot::Receiver<()> {
        let (prepared, wait) = oneshot::channel();
        let (name, stage) = (runnable.name(), runnable.stage());
        let mut cx = self.context.clone();
        cx.stop = self.stops[stage as usize].clone();
        tracing::debug!(runnable = name, ?stage, "starting");
        let work = async move {
            let stop = cx.stop.clone();
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                ready = runnable.prepare(&cx) => ready?,
            }
            // Leader-elected and later added runnables are not waited for.
            let _ = prepared.send(());
            if stage == Stage::Elected {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(()),
                    leading = leader_state.wait_for(|leader_state| *leader_state == LeaderState::Leader) => {
                        if leading.is_err() {
                            return Ok(());
                        }
                    }
                }
            }
            runnable.run(cx).await
        };
        let abort = self.tasks.spawn(work);
        self.running.insert(abort.id(), Running { name, stage, abort });
        wait
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), Error>), JoinError>) -> Result<(), ManagerError> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, result.map_err(Into::into)),
            Err(error) if error.is_cancelled() => (error.id(), Ok(())),
            Err(error) => {
                let id = error.id();
                let message = panic_message(&*error.into_panic());
                (id, Err(format!("it panicked: {message}").into()))
            }
        };
        let Some(Running { name, .. }) = self.running.shift_remove(&id) else { return Ok(()) };
        result.map_err(|source| ManagerError::Failed { runnable: name, source })
    }

    /// Stops stage by stage, in reverse, within the grace period.
    async fn down(
        &mut self,
        signals: &mut Signals,
        leader_state: &mut watch::Receiver<LeaderState>,
    ) -> Result<(), ManagerError> {
        let deadline = Instant::now() + self.grace;
        let mut failure = Ok(());
        for stage in Stage::ALL.into_iter().rev() {
            self.stops[stage as usize].cancel();
            while self.running.values().any(|running| running.stage == stage) {
                tokio::select! {
                    biased;
                    Some(ended) = self.tasks.join_next_with_id() => {
                        let ended = self.ended(ended);
                        failure = failure.and(ended);
                    }
                    // The lease is held until the leader-elected runnables have stopped, and may be lost even
                    // then.
                    Ok(()) = leader_state.changed() => {
                        if *leader_state.borrow_and_update() == LeaderState::Lost {
                            self.abort_elected();
                            failure = failure.and(Err(ManagerError::LeadershipLost));
                        }
                    }
                    _ = signals.next() => return Err(self.abort_all()),
                    () = sleep_until(deadline) => return Err(self.abort_all()),
                }
            }
        }
        failure
    }

    /// Aborts the leader-elected runnables: another replica may start any moment.
    fn abort_elected(&mut self) {
        for running in self.running.values().filter(|running| running.stage == Stage::Elected) {
            running.abort.abort();
            self.aborted_elected = true;
        }
    }

    fn abort_all(&mut self) -> ManagerError {
        self.aborted_elected |= self.running.values().any(|running| running.stage == Stage::Elected);
        self.tasks.abort_all();
        let runnables = self.running.drain(..).map(|(_, running)| running.name).collect();
        ManagerError::GraceExceeded { grace: self.grace, runnables }
    }
}

/// Task that acquires and holds leadership.
struct Election {
    release: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Election {
    /// Holds leadership until it is released; without an elector, leads at once.
    fn start(
        leader_elector: Option<Box<dyn LeaderElector>>,
        leader_state: watch::Sender<LeaderState>,
        failing: mpsc::Sender<Error>,
    ) -> Self {
        let (release, mut released) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let Some(leader_elector) = leader_elector else {
                leader_state.send_replace(LeaderState::Leader);
                // An error means that the manager was dropped.
                let _ = released.await;
                return;
            };
            let acquired = tokio::select! {
                biased;
                _ = &mut released => return,
                acquired = leader_elector.acquire() => acquired,
            };
            let mut lease = match acquired {
                Ok(lease) => lease,
                // A manager that is stopping has dropped the receiver.
                Err(error) => return drop(failing.send(error).await),
            };
            leader_state.send_replace(LeaderState::Leader);
            let asked = tokio::select! {
                biased;
                () = lease.lost() => {
                    leader_state.send_replace(LeaderState::Lost);
                    return;
                }
                asked = &mut released => asked,
            };
            match asked {
                Ok(()) => lease.release().await,
                // The manager was dropped while runnables were running.
                Err(_) => lease.abandon(),
            }
        });
        Self { release, task }
    }

    /// Releases leadership if all runnables have stopped by themselves; otherwise lets it expire.
    async fn end(self, all_stopped: bool) {
        let Self { release, task } = self;
        if all_stopped {
            // An error means that leadership was lost before.
            let _ = release.send(());
        } else {
            drop(release);
        }
        // The task ends by itself or by a panic, which tokio has reported.
        let _ = task.await;
    }
}
