//! One program of the control plane and its log.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::Error;

/// Runs a program until it ends or until nobody holds the other end of standard input, and then removes the folder.
///
/// A test program can end in ways that run no destructor: a signal, an abort, a static that is never dropped. Its end of a
/// pipe is closed in all of them. Jobs in the background read from nowhere, so the pipe gets a number of its own.
const GUARD: &str = r#"
folder=$1; number=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- &
program=$!
echo "$program" > "$number"
{ cat <&3 >/dev/null; kill -9 "$program"; rm -rf -- "$folder"; } 2>/dev/null &
wait "$program"
"#;

/// A process that ends when this is dropped, and when this program ends, however it does.
pub(crate) struct Process {
    program: &'static str,
    guard: Child,
    /// Held open for as long as the program is to run.
    lifeline: Option<ChildStdin>,
    log: PathBuf,
    /// Where the guard writes the number of the program.
    number: PathBuf,
}

impl Process {
    pub(crate) fn start(
        program: &'static str,
        path: &Path,
        flags: &[String],
        folder: &Path,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{program}.log"));
        let number = folder.join(format!("{program}.pid"));
        let failed = |source| Error::Io { doing: format!("start {}", path.display()), source };
        let file = File::create(&log).map_err(failed)?;
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard"])
            .arg(folder)
            .arg(&number)
            .arg(path)
            .args(flags)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .spawn()
            .map_err(failed)?;
        let lifeline = guard.stdin.take();
        Ok(Self { program, guard, lifeline, log, number })
    }

    /// Its name and, while it runs, its number.
    pub(crate) fn id(&self) -> Option<(&'static str, u32)> {
        let number = std::fs::read_to_string(&self.number).ok()?;
        Some((self.program, number.trim().parse().ok()?))
    }

    /// Refuses to go on when the process has ended.
    pub(crate) fn must_run(&mut self) -> Result<(), Error> {
        match self.guard.try_wait() {
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

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // The program was killed, so this is a matter of milliseconds; its files can go afterwards.
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
    fn a_program_whose_lifeline_is_cut_is_killed_and_its_folder_removed() {
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
        assert!(!running(&pid), "it does not listen to SIGTERM and ends all the same");
        while folder.path().exists() {
            assert!(Instant::now() < until, "the folder is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_program_that_ends_is_told_of_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let flags = ["-c".to_owned(), "echo no such flag >&2; exit 3".to_owned()];
        let mut process = Process::start("ends", Path::new("/bin/sh"), &flags, folder.path()).unwrap();
        process.guard.wait().unwrap();
        let told = process.must_run().unwrap_err().to_string();
        assert!(told.contains("exit status: 3") && told.contains("no such flag"), "{told}");
    }
}
