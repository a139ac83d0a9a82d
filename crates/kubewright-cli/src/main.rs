//! The `kubewright` command.
//!
//! `kubewright up` runs an API server in this process; further commands join it here, one module each.

mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

/// A request is some hundred small allocations, and a server holds as many objects as there are: the allocator of the
/// system spends a quarter of its time on the first and leaves holes between the second.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Kubernetes operators: write, test and run them.
#[derive(Debug, Parser)]
#[command(name = "kubewright", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a Kubernetes API server in this process until told to stop.
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

#[expect(clippy::print_stderr, reason = "a command speaks to its user")]
fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}
