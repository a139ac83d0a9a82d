//! `kubewright up`: runs a cluster's API server on TLS.

use std::{
    fs,
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use kubewright_apiserver::{ApiServer, authn::token_file::TokenFile, authz::Mode};
use kubewright_cluster::{Cluster, ClusterError};

/// Controllers that run besides the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Controllers {
    /// No controllers.
    None,
    /// The built-in controllers.
    All,
}

/// Options of `kubewright up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The address to listen on; port 0 for any free port.
    #[arg(long, default_value = "127.0.0.1:6443")]
    bind: SocketAddr,
    /// Users by static token: lines of `token,user,uid,"group1,group2"`.
    #[arg(long, value_name = "CSV")]
    token_auth_file: Option<PathBuf>,
    /// The CA of client certificates.
    #[arg(long, value_name = "PEM")]
    client_ca_file: Option<PathBuf>,
    /// Authorisers, in order: RBAC, `AlwaysAllow`, `AlwaysDeny`.
    #[arg(long, value_delimiter = ',', default_value = "RBAC")]
    authorization_mode: Vec<Mode>,
    /// The kubeconfig file to write, with the rights of an administrator.
    #[arg(long, value_name = "FILE", default_value = "kubewright.kubeconfig")]
    kubeconfig_out: PathBuf,
    /// The built-in controllers to run.
    #[arg(long, value_enum, default_value = "none")]
    controllers: Controllers,
    /// The number of simulated nodes.
    #[arg(long, default_value_t = 0)]
    nodes: u32,
    /// The directory of the durable storage, in which acknowledged writes survive SIGKILL; without it the
    /// cluster is in memory.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Error of `kubewright up`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source}")]
    Tokens { path: PathBuf, source: kubewright_apiserver::authn::token_file::TokenFileError },
    #[error("cannot write the kubeconfig {path}: {source}; choose another place with --kubeconfig-out")]
    Kubeconfig { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Start(#[from] ClusterError),
    #[error("cannot listen for signals: {0}")]
    Signals(std::io::Error),
    #[error("the API server does not listen")]
    NotListening,
}

fn read(path: &Path) -> Result<String, UpError> {
    fs::read_to_string(path).map_err(|source| UpError::Read { path: path.to_owned(), source })
}

/// Writes a file that only its owner can read: a kubeconfig has a private key.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)?.write_all(text.as_bytes())
}

/// Runs until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: Args) -> Result<(), UpError> {
    let mut builder = ApiServer::builder().bind(args.bind).authorization(args.authorization_mode);
    if let Some(path) = &args.token_auth_file {
        let tokens = TokenFile::parse(&read(path)?)
            .map_err(|source| UpError::Tokens { path: path.clone(), source })?;
        builder = builder.tokens(tokens);
    }
    if let Some(path) = &args.client_ca_file {
        builder = builder.client_ca(read(path)?);
    }
    if let Some(path) = args.data_dir {
        builder = builder.data_dir(path);
    }
    let stop = signals().map_err(UpError::Signals)?;
    let controllers = match args.controllers {
        Controllers::None => kubewright_cluster::Controllers::None,
        Controllers::All => kubewright_cluster::Controllers::All,
    };
    let cluster =
        Cluster::builder().server(builder).controllers(controllers).nodes(args.nodes).serve().await?;
    let server = cluster.listening().ok_or(UpError::NotListening)?;
    write_private(&args.kubeconfig_out, &server.kubeconfig())
        .map_err(|source| UpError::Kubeconfig { path: args.kubeconfig_out.clone(), source })?;
    print_line(&format!(
        "kubewright is ready on https://{}; use it with: kubectl --kubeconfig {} get namespaces",
        server.address(),
        args.kubeconfig_out.display()
    ));
    stop.await;
    cluster.stop().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "scripts wait for this line")]
fn print_line(line: &str) {
    println!("{line}");
}

#[cfg(unix)]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            biased;
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signals() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
