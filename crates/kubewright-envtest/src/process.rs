//! One program of the control plane and its log.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

use crate::Error;

/// A process that ends when this is dropped.
pub(crate) struct Process {
    program: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn start(
        program: &'static str,
        path: &Path,
        flags: &[String],
        folder: &Path,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{program}.log"));
        let failed = |source| Error::Io { doing: format!("start {}", path.display()), source };
        let file = File::create(&log).map_err(failed)?;
        let child = Command::new(path)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        Ok(Self { program, child, log })
    }

    /// Its name and, while it runs, its number.
    pub(crate) fn id(&self) -> Option<(&'static str, u32)> {
        Some((self.program, self.child.id()?))
    }

    /// Refuses to go on when the process has ended.
    pub(crate) fn must_run(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.not_ready(format!("ended: {status}"))),
            Err(source) => Err(Error::Io { doing: format!("ask how {} is", self.program), source }),
        }
    }

    pub(crate) fn not_ready(&self, why: String) -> Error {
        const LINES: usize = 15;
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let log = lines[lines.len().saturating_sub(LINES)..].join("\n");
        Error::NotReady { program: self.program, why, log }
    }
}
