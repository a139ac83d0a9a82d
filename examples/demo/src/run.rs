//! Starts everything and shows it until Ctrl-C.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use app_status::{
    Board, Row,
    show::Watching,
    terminal::{self, Output, Screen},
};
use jiff::Timestamp;
use kubewright::{
    cache::{InformerFactory, Registration},
    controller::ControllerMetrics,
};
use kubewright_cluster::{Cluster, ClusterError, HarnessError, Operator};

use crate::{
    log::{Log, name},
    operators::{DemoOperator, OPERATORS},
    options::Options,
    picture,
    view::View,
};

const NODES: u32 = 3;
/// Time-out for all to be ready, with `DEMO_EXIT`.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval of drawing the screen.
const FRAME: Duration = Duration::from_millis(80);
/// Size of the picture, in characters.
const PICTURE: (usize, usize) = (112, 48);

/// Error of the demo.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The cluster did not start.
    #[error("the cluster did not start")]
    Cluster(#[from] ClusterError),
    /// A definition or a sample was refused, or an operator did not start.
    #[error("{what}")]
    Step {
        /// The operation.
        what: String,
        /// The error.
        #[source]
        source: Box<HarnessError>,
    },
    /// An operator has ended by itself.
    #[error("{0} has ended by itself; RUST_LOG=info says why")]
    Ended(&'static str),
    /// Not all objects were ready in time.
    #[error("not ready after {}s:\n{}", READY_TIMEOUT.as_secs(), .0.join("\n"))]
    Late(Vec<String>),
    /// A file cannot be written.
    #[error("cannot write {path}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// Error of the terminal or of signals.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs the demo.
pub async fn run(options: Options) -> Result<(), DemoError> {
    let stop = interrupted()?;
    let stage = Demo::start(&options).await?;
    let shown = tokio::select! {
        biased;
        () = stop => Ok(()),
        shown = stage.show() => shown,
    };
    stage.stop().await;
    match shown {
        // The reader has closed the pipe.
        Err(DemoError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown,
    }
}

/// The cluster with operators, and their display.
struct Demo<'o> {
    options: &'o Options,
    board: Board,
    log: Log,
    operators: Vec<(DemoOperator, Operator)>,
    cluster: Cluster,
    _events: Registration,
    /// Keeps the handler of events registered.
    _factory: InformerFactory,
}

impl<'o> Demo<'o> {
    /// Starts the cluster, applies the definitions, starts the operators, and applies the samples.
    async fn start(options: &'o Options) -> Result<Self, DemoError> {
        let log = Log::new();
        let cluster = Cluster::builder().nodes(NODES).serve().await?;
        let server = cluster.listening().ok_or_else(|| io::Error::other("the API server does not listen"))?;
        write(&options.kubeconfig, &server.kubeconfig())?;
        log.say(format!("a cluster with {NODES} nodes listens on https://{}", server.address()));
        let factory = InformerFactory::new(cluster.client());
        let events = log.events(&factory);
        factory.start();
        let board = Board::new(Vec::<String>::new());
        let operators = Vec::new();
        let mut stage = Self { options, board, log, operators, cluster, _events: events, _factory: factory };
        stage.start_operators().await?;
        Ok(stage)
    }

    async fn start_operators(&mut self) -> Result<(), DemoError> {
        for part in OPERATORS {
            for definition in part.definitions {
                self.apply(&part, definition).await?;
            }
        }
        for part in OPERATORS {
            let running = self.cluster.run((part.operator)(&self.board)).await;
            let what = || format!("{} did not start", part.name);
            let running =
                running.map_err(|source| DemoError::Step { what: what(), source: Box::new(source) })?;
            for sample in part.samples {
                self.apply(&part, sample).await?;
            }
            self.operators.push((part, running));
        }
        self.log.say(format!("{} operators run, and their samples are applied", self.operators.len()));
        Ok(())
    }

    async fn apply(&self, part: &DemoOperator, manifest: &str) -> Result<(), DemoError> {
        let what = || format!("a manifest of {} was refused", part.name);
        let applied = self.cluster.apply(manifest).await;
        applied.map(drop).map_err(|source| DemoError::Step { what: what(), source: Box::new(source) })
    }

    /// Shows the screen, for ever or until all is ready.
    async fn show(&self) -> Result<(), DemoError> {
        let output = Output::of_stdout();
        let mut screen = output.live.then(|| Screen::new(io::stdout(), output)).transpose()?;
        let (mut watching, mut states, mut printed) = (Watching::default(), BTreeMap::new(), 0);
        let mut ready = None;
        loop {
            if let Some((part, _)) = self.operators.iter().find(|(_, operator)| operator.is_finished()) {
                return Err(DemoError::Ended(part.name));
            }
            let rows = self.board.rows();
            self.log.changes(&watching.changes(rows.clone()), &mut states);
            let not_ready = self.not_ready(&rows);
            let just_ready = ready.is_none() && not_ready.is_empty();
            if just_ready {
                let took = self.log.elapsed();
                ready = Some(took);
                self.log.say(format!(
                    "all {} objects are ready after {:.1} s",
                    rows.len(),
                    took.as_secs_f64()
                ));
            }
            let view = self.view(rows, ready);
            if let Some(screen) = &mut screen {
                screen.draw(&view.frame(terminal::size()), terminal::size())?;
            } else {
                let hints = if just_ready { view.hints() } else { Vec::new() };
                let mut out = io::stdout().lock();
                for line in self.log.since(&mut printed).iter().chain(&hints) {
                    writeln!(out, "{}", output.render(line))?;
                }
                out.flush()?;
            }
            if let Some(path) = self.options.picture.as_ref().filter(|_| just_ready) {
                let svg = picture::svg(&view.frame(PICTURE), PICTURE.0);
                fs::write(path, svg).map_err(|source| DemoError::File { path: path.clone(), source })?;
            }
            if self.options.exit {
                if ready.is_some() {
                    return Ok(());
                }
                if self.log.elapsed() > READY_TIMEOUT {
                    return Err(DemoError::Late(not_ready));
                }
            }
            tokio::time::sleep(FRAME).await;
        }
    }

    /// The objects that are not ready yet, a line each.
    fn not_ready(&self, rows: &[Row]) -> Vec<String> {
        let expected = self.operators.iter().flat_map(|(part, _)| part.expected);
        let absent = expected
            .filter(|wanted| !rows.iter().any(|row| name(row) == **wanted))
            .map(|wanted| format!("  {wanted} is not there"));
        let unsettled = rows.iter().filter(|row| !row.health.state.is_settled());
        let unsettled = unsettled
            .map(|row| format!("  {} is {} {}", name(row), row.health.state.word(), row.health.message));
        let unserved = self.board.missing().into_iter().map(|(word, why)| format!("  {word}: {why}"));
        absent.chain(unsettled).chain(unserved).collect()
    }

    fn view(&self, rows: Vec<Row>, ready: Option<Duration>) -> View {
        let totals = ControllerMetrics::global().totals();
        let operators = self.operators.iter().map(|(part, _)| {
            let total = totals.iter().find(|totals| *totals.name == *part.controller);
            (part.name, part.does, total.cloned())
        });
        View {
            elapsed: self.log.elapsed(),
            ready,
            operators: operators.collect(),
            rows,
            log: self.log.last(50),
            now: Timestamp::now(),
            kubeconfig: self.options.kubeconfig.clone(),
        }
    }

    /// Stops the operators, then the cluster.
    async fn stop(self) {
        for (_, operator) in self.operators {
            // Errors of stopping operators are ignored.
            let _ = operator.stop().await;
        }
        self.cluster.stop().await;
    }
}

/// Writes a file that only its owner can read: a kubeconfig has a private key.
fn write(path: &Path, text: &str) -> Result<(), DemoError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| DemoError::File { path: path.to_owned(), source })
}

/// Waits for Ctrl-C or SIGTERM.
fn interrupted() -> io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => {}
            () = async {
                #[cfg(unix)]
                terminated.recv().await;
                #[cfg(not(unix))]
                std::future::pending::<()>().await;
            } => {}
        }
    })
}
