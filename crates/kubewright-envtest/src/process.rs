//! Process of a control plane and its log.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::Error;

/// Shell script that runs a program until it ends or standard input is closed, then removes the directory.
///
/// A test program can end without running destructors: by a signal, an abort, or with a static that is never
/// dropped. Its end of a pipe is closed in all cases. Background jobs of the shell have no standard input, so
/// the pipe gets another file descriptor.
const GUARD: &str = r#"
folder=$1; number=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
echo "$program" > "$number"
{ cat <&3 >/dev/null; kill -9 "$program"; rm -rf -- "$folder"; } 2>/dev/null &
wait "$program"
"#;

/// Process that is killed when this is dropped, and when the test program ends in any way.
pub(crate) struct Process {
    program: &'static str,
    guard: Child,
    /// Standard input of the script, open while the program is to run.
    pipe: Option<ChildStdin>,
    log: PathBuf,
    /// File with the process id, written by the script.
    pid_file: PathBuf,
}

impl Process {
    pub(crate) fn start(
        program: &'static str,
        path: &Path,
        flags: &[String],
        folder: &Path,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{program}.log"));
        let pid_file = folder.join(format!("{program}.pid"));
        let failed = |source| Error::Io { doing: format!("start {}", path.display()), source };
        let file = File::create(&log).map_err(failed)?;
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard"])
            .arg(folder)
            .arg(&pid_file)
            .arg(path)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .spawn()
            .map_err(failed)?;
        let pipe = guard.stdin.take();
        Ok(Self { program, guard, pipe, log, pid_file })
    }

    /// The name of the program and its process id.
    pub(crate) fn id(&self) -> Option<(&'static str, u32)> {
        let pid = std::fs::read_to_string(&self.pid_file).ok()?;
        Some((self.program, pid.trim().parse().ok()?))
    }

    /// Fails if the process has ended.
    pub(crate) fn must_run(&mut self) -> Result<(), Error> {
        match self.guard.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.not_ready(format!("ended: {status}"))),
            Err(source) => Err(Error::Io { doing: format!("query the status of {}", self.program), source }),
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

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // The program was killed, so this takes milliseconds; its files can be removed afterwards.
        let _ = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn running(program: &str) -> bool {
        Command::new("/bin/sh").args(["-c", &format!("kill -0 {program}")]).status().unwrap().success()
    }

    #[test]
    fn a_program_whose_pipe_is_closed_is_killed_and_its_directory_removed() {
        let folder = tempfile::tempdir().unwrap();
        let script = "trap '' TERM INT; echo $$ > pid; while :; do sleep 0.05; done";
        let flags = ["-c".to_owned(), script.to_owned()];
        let mut process = Process::start("loop", Path::new("/bin/sh"), &flags, folder.path()).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let pid = loop {
            let written = std::fs::read_to_string(folder.path().join("pid")).unwrap_or_default();
            if written.ends_with('\n') {
                break written.trim().to_owned();
            }
            assert!(Instant::now() < until, "the program has not started");
            std::thread::sleep(Duration::from_millis(5));
        };
        process.must_run().unwrap();
        assert!(running(&pid));
        drop(process);
        assert!(!running(&pid), "it is killed although it ignores SIGTERM");
        while folder.path().exists() {
            assert!(Instant::now() < until, "the folder is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_error_of_a_program_that_ends_has_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let flags = ["-c".to_owned(), "echo no such flag >&2; exit 3".to_owned()];
        let mut process = Process::start("ends", Path::new("/bin/sh"), &flags, folder.path()).unwrap();
        process.guard.wait().unwrap();
        let error = process.must_run().unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("no such flag"), "{error}");
    }
}
