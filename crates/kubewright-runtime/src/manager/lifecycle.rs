//! Up in order, down in reverse.

use std::{io, time::Duration};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use indexmap::IndexMap;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::{AbortHandle, Id, JoinError, JoinHandle, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{Candidacy, RunContext, Runnable, Stage, signals::Signals};
use crate::Error;
use kubewright_core::panic_message;

/// Why a manager ended other than by being asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// Something that it ran failed.
    #[error("{runnable} failed: {source}")]
    Failed {
        /// What failed.
        runnable: String,
        /// How.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This replica no longer leads. What it was doing was dropped.
    #[error("leadership was lost: the process should end, and another replica goes on")]
    LeadershipLost,
    /// Something did not finish in time and was dropped.
    #[error("not finished within the grace period of {grace:?} and dropped: {}", .runnables.join(", "))]
    GraceExceeded {
        /// How long they had.
        grace: Duration,
        /// What was dropped.
        runnables: Vec<String>,
    },
    /// Two of the same name, such as two controllers of one kind: their logs, metrics and journals could not be told apart.
    #[error(
        "there are two of the name {runnable:?}: give one of them another name, a controller with `named`"
    )]
    SameName {
        /// What there are two of.
        runnable: String,
    },
    /// The process cannot listen for signals.
    #[error("cannot listen for signals: {0}")]
    Signals(#[from] io::Error),
}

/// A manager on its way up, running, and on its way down.
pub(super) struct Lifecycle {
    name: String,
    context: RunContext,
    /// What is not started yet, by stage.
    waiting: Vec<Box<dyn Runnable>>,
    added: mpsc::UnboundedReceiver<Box<dyn Runnable>>,
    candidacy: Option<Box<dyn Candidacy>>,
    grace: Duration,
    signals: bool,
    stops: [CancellationToken; Stage::ALL.len()],
    tasks: JoinSet<Result<(), Error>>,
    running: IndexMap<Id, Running>,
    /// Something of the elected was dropped in the middle of its work.
    dropped_elected: bool,
}

struct Running {
    name: String,
    stage: Stage,
    abort: AbortHandle,
}

/// What this replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Candidate,
    Leader,
    Deposed,
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
            candidacy: None,
            grace: Duration::from_secs(30),
            signals: true,
            stops: std::array::from_fn(|_| CancellationToken::new()),
            tasks: JoinSet::new(),
            running: IndexMap::new(),
            dropped_elected: false,
        }
    }

    pub(super) fn candidacy(mut self, candidacy: Option<Box<dyn Candidacy>>) -> Self {
        self.candidacy = candidacy;
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

    /// Boxed, so that no program compiles it once more: the body of an `async fn` is compiled where it is polled.
    pub(super) fn run(self) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(self.run_stages())
    }

    async fn run_stages(mut self) -> Result<(), Error> {
        let mut signals =
            if self.signals { Signals::listen().map_err(ManagerError::Signals)? } else { Signals::none() };
        let (standing, mut seen) = watch::channel(Standing::Candidate);
        let mut election = None;
        let ended = self.up(&mut signals, &standing, &mut seen, &mut election).await;
        // Nobody can add to a manager that is on its way down.
        self.added.close();
        if *standing.borrow() == Standing::Deposed {
            self.depose();
        }
        self.context.manager.inner.leading.send_replace(false);
        let down = self.down(&mut signals, &mut seen).await;
        if let Some(election) = election {
            election.end(!self.dropped_elected).await;
        }
        tracing::info!(manager = self.name, "manager stopped");
        ended?;
        Ok(down?)
    }

    /// Starts stage by stage, then waits for something to end it.
    async fn up(
        &mut self,
        signals: &mut Signals,
        standing: &watch::Sender<Standing>,
        seen: &mut watch::Receiver<Standing>,
        election: &mut Option<Election>,
    ) -> Result<(), ManagerError> {
        let stop = self.context.manager.inner.stop.clone();
        let mut stages = Stage::ALL.into_iter();
        let mut reached = None;
        let mut unprepared = FuturesUnordered::new();
        let (failing, mut failed) = mpsc::channel(1);
        loop {
            // Receivers whose sender is gone belong to runnables that have failed, which the tasks tell of.
            while unprepared.is_empty()
                && let Some(stage) = stages.next()
            {
                reached = Some(stage);
                if stage == Stage::Elected {
                    *election =
                        Some(Election::hold(self.candidacy.take(), standing.clone(), failing.clone()));
                }
                let starting: Vec<_> =
                    self.waiting.extract_if(.., |runnable| runnable.stage() == stage).collect();
                for runnable in starting {
                    let prepared = self.start(runnable, seen.clone());
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
                changed = seen.changed() => {
                    let now = *seen.borrow_and_update();
                    self.context.manager.inner.leading.send_replace(now == Standing::Leader);
                    if now == Standing::Deposed {
                        return Err(ManagerError::LeadershipLost);
                    }
                    if changed.is_ok() && now == Standing::Leader {
                        tracing::info!(manager = self.name, "leading");
                    }
                }
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended)?,
                Some(_) = unprepared.next() => {}
                Some(runnable) = self.added.recv() => {
                    if reached >= Some(runnable.stage()) {
                        drop(self.start(runnable, seen.clone()));
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

    /// Runs one runnable on a task of its own; the receiver hears when it is prepared.
    fn start(
        &mut self,
        mut runnable: Box<dyn Runnable>,
        mut standing: watch::Receiver<Standing>,
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
            // Nobody may be waiting: the elected, and what was added later.
            let _ = prepared.send(());
            if stage == Stage::Elected {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(()),
                    leading = standing.wait_for(|standing| *standing == Standing::Leader) => {
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
        standing: &mut watch::Receiver<Standing>,
    ) -> Result<(), ManagerError> {
        let deadline = Instant::now() + self.grace;
        let mut failure = Ok(());
        for stage in Stage::ALL.into_iter().rev() {
            self.stops[stage as usize].cancel();
            while self.running.values().any(|held| held.stage == stage) {
                tokio::select! {
                    biased;
                    Some(ended) = self.tasks.join_next_with_id() => {
                        let ended = self.ended(ended);
                        failure = failure.and(ended);
                    }
                    // The lease is held until the elected have stopped, and may be lost even then.
                    Ok(()) = standing.changed() => {
                        if *standing.borrow_and_update() == Standing::Deposed {
                            self.depose();
                            failure = failure.and(Err(ManagerError::LeadershipLost));
                        }
                    }
                    _ = signals.next() => return Err(self.drop_all()),
                    () = sleep_until(deadline) => return Err(self.drop_all()),
                }
            }
        }
        failure
    }

    /// Another replica may begin any moment: nothing of the elected may go on.
    fn depose(&mut self) {
        for held in self.running.values().filter(|held| held.stage == Stage::Elected) {
            held.abort.abort();
            self.dropped_elected = true;
        }
    }

    fn drop_all(&mut self) -> ManagerError {
        self.dropped_elected |= self.running.values().any(|held| held.stage == Stage::Elected);
        self.tasks.abort_all();
        let runnables = self.running.drain(..).map(|(_, held)| held.name).collect();
        ManagerError::GraceExceeded { grace: self.grace, runnables }
    }
}

/// The part of a manager that leads, or waits to.
struct Election {
    release: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Election {
    /// Leads until asked to release. Without anybody to ask, at once.
    fn hold(
        candidacy: Option<Box<dyn Candidacy>>,
        standing: watch::Sender<Standing>,
        failing: mpsc::Sender<Error>,
    ) -> Self {
        let (release, mut released) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let Some(candidacy) = candidacy else {
                standing.send_replace(Standing::Leader);
                // An error says that the manager is gone, which is the same to us.
                let _ = released.await;
                return;
            };
            let led = tokio::select! {
                biased;
                _ = &mut released => return,
                led = candidacy.lead() => led,
            };
            let mut term = match led {
                Ok(term) => term,
                // A manager that is on its way down has no use for it.
                Err(error) => return drop(failing.send(error).await),
            };
            standing.send_replace(Standing::Leader);
            let asked = tokio::select! {
                biased;
                () = term.lost() => {
                    standing.send_replace(Standing::Deposed);
                    return;
                }
                asked = &mut released => asked,
            };
            match asked {
                Ok(()) => term.release().await,
                // Dropped, and with it what it ran.
                Err(_) => term.abandon(),
            }
        });
        Self { release, task }
    }

    /// Gives leadership up when all that was done under it is done; otherwise it runs out by itself.
    async fn end(self, all_done: bool) {
        let Self { release, task } = self;
        if all_done {
            // An error says that it was lost before.
            let _ = release.send(());
        } else {
            drop(release);
        }
        // It ends by itself, and fails only by a panic, which has been reported.
        let _ = task.await;
    }
}
