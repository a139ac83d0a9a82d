//! Shows the status of the cluster of the kubeconfig, or the one it runs in.

use std::io;

use app_status::{
    options::{Options, USAGE},
    show,
    terminal::Output,
};
use kubewright::Result;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let output = Output::of_stdout();
    if options.help {
        return Ok(io::Write::write_all(&mut io::stdout(), format!("{USAGE}\n").as_bytes())?);
    }
    // Standard output has the table; logs are off unless `RUST_LOG` is set.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter).init();
    let board = options.board();
    let shown = async {
        if options.once {
            show::once(&board, options.format, output, &mut io::stdout()).await
        } else {
            show::live(&board, options.format, output).await
        }
    };
    tokio::select! {
        biased;
        ended = app_status::operator(&board).run() => Ok(ended?),
        shown = shown => match shown {
            // The reader has closed the pipe.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            shown => Ok(shown?),
        },
    }
}
