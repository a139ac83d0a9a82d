//! The `kubewright` command.
//!
//! `kubewright up` runs an API server in this process. Each command is a module.

mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A request makes hundreds of small allocations, and a server holds many objects: the system's allocator
/// spends a quarter of the CPU time on the former and fragments memory with the latter.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Write, test and run Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "kubewright", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a Kubernetes API server in this process until it is stopped.
    Up(up::Args),
}

fn main() -> ExitCode {
    let Cli { command: Command::Up(args) } = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the asynchronous runtime did not start: {error}")),
    };
    match runtime.block_on(up::run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "errors of a command go to standard error")]
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}
