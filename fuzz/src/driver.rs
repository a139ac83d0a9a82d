//! Runs a target without a fuzzing engine, by mutating known inputs.
//!
//! Without coverage, an input is kept when the target reports a new outcome
//! ([`report_outcome`](crate::report_outcome)), which leads from one syntax error to the next and beyond.
//! Equal seeds give equal inputs in equal order.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kubewright::Random;

use crate::targets::Target;

/// Maximum length of a mutated input.
const MAX_INPUT: usize = 64 * 1024;
/// Time-out of an input.
const MAX_TIME: Duration = Duration::from_secs(20);
/// Limit of the resident memory of a target.
const MAX_RESIDENT: u64 = 1 << 30;
/// Maximum number of kept inputs.
const MAX_KEPT: usize = 4096;

/// Tokens to insert into inputs: syntax of JSON, YAML, CEL, selectors and patches.
const TOKENS: [&[u8]; 64] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"null",
    b"true",
    b"false",
    b"0",
    b"-1",
    b"1e400",
    b"0.1",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\0",
    b"\n",
    b"- ",
    b"? ",
    b"&a ",
    b"*a",
    b"<<: ",
    b"|\n ",
    b">-\n ",
    b"---\n",
    b"!!binary ",
    b"%YAML 1.1\n",
    b"#",
    b"'",
    b"~",
    b"/",
    b"metadata",
    b"spec",
    b"kind",
    b"apiVersion",
    b"$patch",
    b"$retainKeys",
    b"$setElementOrder/containers",
    b"\"op\":\"copy\"",
    b"\"path\":\"/spec/-\"",
    b"managedFields",
    b"f:spec",
    b"k:{\"name\":\"a\"}",
    b"containers",
    b"1Gi",
    b"1000m",
    b"2026-01-01T00:00:00Z",
    b" in (a,b)",
    b"!=",
    b"==",
    b"!a",
    b"self.",
    b".all(x, x)",
    b".matches('a*')",
    b" ? 1 : 2",
    b"duration('1h')",
    b"[0]",
    b".map(y, y)",
    b"x-kubernetes-validations",
    b"additionalProperties",
];

/// Summary of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The number of tried inputs.
    pub inputs: u64,
    /// The number of kept inputs.
    pub kept: usize,
    /// The longest time of an input.
    pub slowest: Duration,
}

/// Failure of a run.
#[derive(Debug)]
pub struct Failure {
    /// The description.
    pub what: String,
    /// The failing input.
    pub input: Vec<u8>,
}

/// A number below `limit`; 0 if the limit is 0.
fn below(random: &Random, limit: usize) -> usize {
    usize::try_from(random.next() % limit.max(1) as u64).unwrap_or_default()
}

/// The corpus of a target, in the order of file names; at least one empty input.
pub fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut inputs: Vec<Vec<u8>> = files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
    inputs.push(Vec::new());
    inputs
}

fn resident() -> u64 {
    let pages = |text: &str| text.split_whitespace().nth(1)?.parse::<u64>().ok();
    std::fs::read_to_string("/proc/self/statm").ok().as_deref().and_then(pages).unwrap_or(0) * 4096
}

/// Runs one input; returns its time and its outcome.
fn attempt((_, run): Target, input: &[u8]) -> Result<(Duration, u64), Failure> {
    let began = Instant::now();
    let _ = crate::take_outcome();
    let fails = |what: String| Failure { what, input: input.to_vec() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        return Err(fails(format!("it panicked: {}", said.unwrap_or_default())));
    }
    let (mut took, seen) = (began.elapsed(), crate::take_outcome());
    if took > MAX_TIME {
        // Tries again, because the machine may have been suspended.
        let began = Instant::now();
        run(input);
        took = began.elapsed();
        let _ = crate::take_outcome();
    }
    if took > MAX_TIME {
        return Err(fails(format!("it took {took:?}")));
    }
    Ok((took, seen))
}

/// Runs the corpus, then mutated inputs until the time is up or `most` inputs were tried.
pub fn drive(target: Target, seed: u64, most: u64, time: Duration) -> Result<Summary, Failure> {
    let began = Instant::now();
    let random = Random::seeded(seed);
    let mut kept = corpus(target.0);
    let mut known = BTreeSet::new();
    let mut summary = Summary { inputs: 0, kept: 0, slowest: Duration::ZERO };
    let watchdog = Watchdog::start(target.0);
    let seeds = kept.len();
    for at in 0.. {
        let input = if at < seeds {
            kept[at].clone()
        } else if summary.inputs >= most || began.elapsed() >= time {
            break;
        } else {
            mutate(&random, &kept)
        };
        watchdog.start_input(&input);
        let (took, said) = attempt(target, &input)?;
        summary.inputs += 1;
        summary.slowest = summary.slowest.max(took);
        if known.insert(said) && at >= seeds && kept.len() < MAX_KEPT {
            kept.push(input);
        }
        if summary.inputs.is_multiple_of(256) && resident() > MAX_RESIDENT {
            let what = format!("{} MB are resident", resident() >> 20);
            return Err(Failure { what, input: Vec::new() });
        }
    }
    summary.kept = kept.len();
    Ok(summary)
}

/// The current input of a target and its start.
type Busy = Option<(Instant, Vec<u8>)>;

/// Ends the process when an input does not end, and reports it.
struct Watchdog {
    now: Arc<Mutex<Busy>>,
}

impl Watchdog {
    fn start(name: &'static str) -> Self {
        let now = Arc::new(Mutex::new(Busy::None));
        let watched = Arc::downgrade(&now);
        std::thread::spawn(move || {
            while let Some(now) = watched.upgrade() {
                let guard: Busy = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
                drop(now);
                if let Some((began, input)) = guard
                    && began.elapsed() > MAX_TIME * 2
                {
                    report(name, &Failure { what: "it does not end".to_owned(), input });
                    std::process::exit(1);
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Self { now }
    }

    fn start_input(&self, input: &[u8]) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, known) = now.get_or_insert_with(|| (Instant::now(), Vec::new()));
        *began = Instant::now();
        input.clone_into(known);
    }
}

/// Saves the failing input and prints where it is.
#[expect(clippy::print_stderr, reason = "what the driver is for")]
pub fn report(name: &str, failure: &Failure) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("artifacts");
    let sum = failure.input.iter().fold(0u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(*b)));
    let file = folder.join(format!("{name}-{sum:08x}"));
    let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, &failure.input));
    let place =
        if kept.is_ok() { file.display().to_string() } else { "nowhere: it cannot be written".to_owned() };
    eprintln!("{name}: {}\n  the input is in {place}", failure.what);
}

/// Mutates a kept input.
fn mutate(random: &Random, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut input = kept[below(random, kept.len())].clone();
    for _ in 0..=below(random, 4) {
        change(random, &mut input, kept);
    }
    input.truncate(MAX_INPUT);
    input
}

fn change(random: &Random, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
    let at = below(random, input.len() + 1);
    let end = (at + 1 + below(random, 16)).min(input.len());
    match below(random, 8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << below(random, 8);
            }
        }
        1 if at < end => drop(input.drain(at..end)),
        2 => {
            let token = TOKENS[below(random, TOKENS.len())];
            input.splice(at..at, token.iter().copied());
        }
        3 if at < end => {
            let token = TOKENS[below(random, TOKENS.len())];
            input.splice(at..end, token.iter().copied());
        }
        4 => {
            // Inserts a piece of another input.
            let other = &kept[below(random, kept.len())];
            let from = below(random, other.len() + 1);
            let to = (from + below(random, 64)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
        5 if at < end => {
            // Repeats a piece, for deep nesting.
            let times = 1 << below(random, 10);
            let piece = input[at..end].repeat(times);
            input.splice(at..at, piece.into_iter().take(MAX_INPUT));
        }
        6 => {
            let digits = random.next().to_string();
            input.splice(at..end.max(at), digits.bytes());
        }
        _ => input.insert(at, u8::try_from(below(random, 256)).unwrap_or_default()),
    }
    input.truncate(MAX_INPUT);
}
