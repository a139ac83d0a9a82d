//! kubectl against `kubewright up`: runs the scripts in `tests/kubectl`, each against a server of its own.
//!
//! A script looks like a terminal session. `$ ` begins a command (`> ` continues it), followed by the
//! expected output, errors included: `*` matches any text in a line, a line `...` any lines, and `[1]` is the
//! exit code of a command that must fail. Lines that begin with `#` are comments.
//!
//! kubectl is taken from `$KUBECTL`, or from where `make real` builds it. Without it the scripts are skipped.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

/// Time-out of a command.
const TIMEOUT: Duration = Duration::from_mins(1);

fn kubectl() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("KUBECTL") {
        return Some(given.into());
    }
    let cache = std::env::var_os("KUBEWRIGHT_CACHE").map(PathBuf::from);
    let cache =
        cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache/kubewright")))?;
    Some(cache.join("v1.37.0/kubectl")).filter(|path| path.exists())
}

/// A running `kubewright up`.
struct Up {
    process: Child,
    folder: tempfile::TempDir,
}

impl Up {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut process = Command::new(env!("CARGO_BIN_EXE_kubewright"))
            .args(["up", "--bind", "127.0.0.1:0", "--kubeconfig-out"])
            .arg(folder.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubewright starts");
        let mut ready = String::new();
        let output = process.stdout.take().expect("a pipe was asked for");
        BufReader::new(output).read_line(&mut ready).expect("the line that reports readiness");
        assert!(ready.contains("is ready on https://127.0.0.1:"), "{ready:?}");
        Self { process, folder }
    }

    /// Runs a command in the directory of the script; returns its output and exit code.
    fn run(&self, kubectl: &Path, command: &str) -> (String, i32) {
        let folder = self.folder.path();
        let search = std::env::var_os("PATH").unwrap_or_default();
        let own = kubectl.parent().expect("kubectl is in a folder").to_owned();
        let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&search)));
        let child = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(folder)
            .env_clear()
            .env("PATH", path.expect("a search path"))
            .env("HOME", folder)
            .env("TMPDIR", folder)
            .env("LC_ALL", "C")
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let (done, result) = mpsc::channel();
        std::thread::spawn(move || done.send(child.wait_with_output()));
        let output = result.recv_timeout(TIMEOUT);
        let output = output.unwrap_or_else(|_| panic!("$ {command}\nhas not ended after {TIMEOUT:?}"));
        let output = output.expect("its output can be read");
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap_or(-1))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A command and its expected output.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
    code: i32,
}

fn parse(script: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (at, line) in script.lines().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { line: at + 1, command: command.to_owned(), output: Vec::new(), code: 0 });
        } else if line.starts_with('#') {
        } else if let Some(step) = steps.last_mut() {
            if let Some(more) = line.strip_prefix("> ").or((line == ">").then_some("")) {
                step.command = format!("{}\n{more}", step.command);
            } else if let Some(code) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')?.parse().ok())
            {
                step.code = code;
            } else {
                step.output.push(line.to_owned());
            }
        }
    }
    for step in &mut steps {
        while step.output.last().is_some_and(String::is_empty) {
            step.output.pop();
        }
    }
    steps
}

/// Whether a line matches a pattern.
fn matches_line(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether lines match patterns; `...` matches any number of lines.
fn matches_all(patterns: &[String], lines: &[&str]) -> bool {
    match patterns.split_first() {
        None => lines.is_empty(),
        Some((any, rest)) if any == "..." => (0..=lines.len()).any(|skip| matches_all(rest, &lines[skip..])),
        Some((pattern, rest)) => lines
            .split_first()
            .is_some_and(|(line, more)| matches_line(pattern, line) && matches_all(rest, more)),
    }
}

fn run_script(name: &str) {
    let Some(kubectl) = kubectl() else {
        #[expect(clippy::print_stderr, reason = "skipped tests must be visible")]
        let () = eprintln!("skipped: there is no kubectl; build one with `make real`, or set KUBECTL");
        return;
    };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl").join(name);
    let steps = parse(&std::fs::read_to_string(file).expect("the script is beside the test"));
    let up = Up::start();
    let mut wrong = Vec::new();
    for step in &steps {
        let (output, code) = up.run(&kubectl, &step.command);
        let lines: Vec<&str> = output.trim_end_matches('\n').split('\n').collect();
        let lines = if output.is_empty() { &[][..] } else { &lines[..] };
        if code != step.code || !matches_all(&step.output, lines) {
            wrong.push(format!(
                "{name}:{}\n$ {}\nexpected [{}]:\n{}\nfound [{code}]:\n{output}",
                step.line,
                step.command,
                step.code,
                step.output.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} steps differ\n\n{}", wrong.len(), steps.len(), wrong.join("\n"));
}

macro_rules! scripts {
    ($($test:ident: $file:literal,)*) => {
        $(#[test]
        fn $test() {
            run_script($file);
        })*

        #[test]
        fn every_script_has_a_test() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl");
            for entry in std::fs::read_dir(folder).expect("the scripts are beside the test") {
                let name = entry.expect("a file").file_name();
                assert!([$($file),*].iter().any(|file| name == **file), "there is no test for {name:?}");
            }
        }
    };
}

scripts! {
    reading: "reading.t",
    applying: "applying.t",
    changing: "changing.t",
    deleting_and_waiting: "deleting.t",
    workloads: "workloads.t",
    cluster_and_access: "cluster.t",
    explaining: "explaining.t",
    custom_resources: "custom.t",
}

#[test]
fn patterns_match_lines_and_gaps() {
    let all = |patterns: &[&str], lines: &[&str]| {
        matches_all(&patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>(), lines)
    };
    assert!(
        matches_line("a*c", "abc")
            && matches_line("*", "")
            && matches_line("a", "a")
            && matches_line("*b*", "abc")
    );
    assert!(!matches_line("a*c", "ab") && !matches_line("a", "ab") && !matches_line("b*", "ab"));
    assert!(all(&["a", "...", "d"], &["a", "b", "c", "d"]) && all(&["...", "d"], &["d"]));
    assert!(!all(&["a", "..."], &["b"]) && !all(&["a"], &["a", "b"]));
}
