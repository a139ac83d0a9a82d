//! Runs a target without a fuzzing engine: known inputs, changed a little, over and over.
//!
//! There is no coverage to go by. Instead an input is kept when the target says something that it has not said before
//! ([`saw`](crate::saw)), which leads from a syntax error to the next one, and behind them. The same seed makes the same
//! inputs in the same order.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::targets::Target;

/// The longest input that is made.
const MAX_INPUT: usize = 64 * 1024;
/// An input that takes longer than this is a hang.
const MAX_TIME: Duration = Duration::from_secs(20);
/// A target that holds more than this is eating memory.
const MAX_RESIDENT: u64 = 1 << 30;
/// Inputs that are kept.
const MAX_KEPT: usize = 4096;

/// What is worth putting into an input: what the readers of JSON, YAML, CEL, selectors and patches look for.
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

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Inputs that were tried.
    pub inputs: u64,
    /// Inputs that are known now.
    pub kept: usize,
    /// The slowest one.
    pub slowest: Duration,
}

/// Why a run ended.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong.
    pub what: String,
    /// The input that did it.
    pub input: Vec<u8>,
}

/// `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, 0 when there is none.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit.max(1) as u64).unwrap_or_default()
    }
}

/// The files of a target's corpus, in the order of their names; one empty input at least.
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

/// One input: how long it took and what the target said.
fn attempt((_, run): Target, input: &[u8]) -> Result<(Duration, u64), Failure> {
    let began = Instant::now();
    let _ = crate::take_seen();
    let fails = |what: String| Failure { what, input: input.to_vec() };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        return Err(fails(format!("it panicked: {}", said.unwrap_or_default())));
    }
    let (mut took, seen) = (began.elapsed(), crate::take_seen());
    if took > MAX_TIME {
        // The machine may have been asleep; whatever is slow by itself is slow again.
        let began = Instant::now();
        run(input);
        took = began.elapsed();
        let _ = crate::take_seen();
    }
    if took > MAX_TIME {
        return Err(fails(format!("it took {took:?}")));
    }
    Ok((took, seen))
}

/// Runs every known input, and then changed ones until the time is up or so many were tried.
pub fn drive(target: Target, seed: u64, most: u64, time: Duration) -> Result<Summary, Failure> {
    let began = Instant::now();
    let mut dice = Dice(seed);
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
            mutate(&mut dice, &kept)
        };
        watchdog.begins(&input);
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

/// The input that a target is busy with, and since when.
type Busy = Option<(Instant, Vec<u8>)>;

/// Ends the process when an input never ends, and says which one it was.
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

    fn begins(&self, input: &[u8]) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, known) = now.get_or_insert_with(|| (Instant::now(), Vec::new()));
        *began = Instant::now();
        input.clone_into(known);
    }
}

/// Writes down what failed, and where its input is.
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

/// Another input, made of known ones.
fn mutate(dice: &mut Dice, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut input = kept[dice.below(kept.len())].clone();
    for _ in 0..=dice.below(4) {
        change(dice, &mut input, kept);
    }
    input.truncate(MAX_INPUT);
    input
}

fn change(dice: &mut Dice, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
    let at = dice.below(input.len() + 1);
    let end = (at + 1 + dice.below(16)).min(input.len());
    match dice.below(8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 if at < end => drop(input.drain(at..end)),
        2 => {
            let token = TOKENS[dice.below(TOKENS.len())];
            input.splice(at..at, token.iter().copied());
        }
        3 if at < end => {
            let token = TOKENS[dice.below(TOKENS.len())];
            input.splice(at..end, token.iter().copied());
        }
        4 => {
            // A piece of another input.
            let other = &kept[dice.below(kept.len())];
            let from = dice.below(other.len() + 1);
            let to = (from + dice.below(64)).min(other.len());
            input.splice(at..at, other[from..to].iter().copied());
        }
        5 if at < end => {
            // The same piece over and over: what nests, nests deep.
            let times = 1 << dice.below(10);
            let piece = input[at..end].repeat(times);
            input.splice(at..at, piece.into_iter().take(MAX_INPUT));
        }
        6 => {
            let digits = dice.roll().to_string();
            input.splice(at..end.max(at), digits.bytes());
        }
        _ => input.insert(at, u8::try_from(dice.below(256)).unwrap_or_default()),
    }
    input.truncate(MAX_INPUT);
}
