//! Child processes that take orders on standard input and print lines of JSON.

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read as _, Seek as _},
    path::Path,
    process::Stdio,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{ChildStdin, ChildStdout, Command},
};

/// Time limit of one step of a benchmark.
const PATIENCE: Duration = Duration::from_mins(15);

/// Child process, killed on drop.
pub struct Child {
    name: String,
    process: tokio::process::Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    complaints: File,
}

impl Child {
    /// Starts a program.
    pub fn spawn(
        program: &Path,
        arguments: &[String],
        environment: &[(&str, &Path)],
    ) -> Result<Self, String> {
        let mut name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for argument in arguments {
            let _ = write!(name, " {argument}");
        }
        let failed = |error: std::io::Error| format!("cannot run {}: {error}", program.display());
        let complaints = tempfile::tempfile().map_err(failed)?;
        let mut process = Command::new(program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints.try_clone().map_err(failed)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let stdin = process.stdin.take();
        let lines = BufReader::new(process.stdout.take().ok_or("its output is not piped")?).lines();
        Ok(Self { name, process, stdin, lines, complaints })
    }

    /// Returns the process id, zero when it has ended.
    pub fn id(&self) -> u32 {
        self.process.id().unwrap_or(0)
    }

    /// Reads the next line; `None` when it has exited successfully.
    pub async fn line(&mut self) -> Result<Option<Value>, String> {
        let line = match tokio::time::timeout(PATIENCE, self.lines.next_line()).await {
            Ok(line) => line.map_err(|error| self.failed(&error.to_string()))?,
            Err(_) => return Err(self.failed("said nothing for too long")),
        };
        match line {
            Some(line) => {
                let value = serde_json::from_str(&line);
                value.map(Some).map_err(|error| self.failed(&format!("said {line:?}: {error}")))
            }
            None => match self.process.wait().await {
                Ok(status) if status.success() => Ok(None),
                Ok(status) => Err(self.failed(&status.to_string())),
                Err(error) => Err(self.failed(&error.to_string())),
            },
        }
    }

    /// Reads the next line; the end is an error.
    pub async fn must_say(&mut self) -> Result<Value, String> {
        self.line().await?.ok_or_else(|| self.failed("ended too early"))
    }

    /// Sends an order and waits for the answer.
    pub async fn order(&mut self, order: &str) -> Result<Value, String> {
        if let Some(stdin) = &mut self.stdin
            && let Err(error) = stdin.write_all(format!("{order}\n").as_bytes()).await
        {
            return Err(self.failed(&error.to_string()));
        }
        self.must_say().await
    }

    /// Ends its input, and returns the last line that it prints.
    pub async fn end(mut self) -> Result<Value, String> {
        drop(self.stdin.take());
        self.must_say().await
    }

    /// Formats an error with the name of the program and the end of its standard error.
    fn failed(&mut self, what: &str) -> String {
        const LINES: usize = 8;
        let mut text = String::new();
        let _ = self.complaints.rewind();
        let _ = self.complaints.read_to_string(&mut text);
        let lines: Vec<&str> = text.lines().collect();
        format!("{}: {what}\n{}", self.name, lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }
}
