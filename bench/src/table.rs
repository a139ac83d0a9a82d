//! Tables of the comparison: our number, the peers', the ratio, the target, and whether it is met.

use crate::{
    results::{OURS, Results, median, spread},
    targets::{self, Limit},
};

/// Number in the table.
struct Shown {
    number: &'static str,
    title: &'static str,
    unit: Unit,
    more_is_better: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    Micros,
    Bytes,
    Rate,
    Plain,
}

const fn less(number: &'static str, title: &'static str, unit: Unit) -> Shown {
    Shown { number, title, unit, more_is_better: false }
}

const fn more(number: &'static str, title: &'static str, unit: Unit) -> Shown {
    Shown { number, title, unit, more_is_better: true }
}

/// Numbers shown of each workload, by the prefix of its name.
const SHOWN: &[(&str, &[Shown])] = &[
    (
        "sync",
        &[
            less("cpu_s", "CPU", Unit::Seconds),
            less("wall_s", "wall", Unit::Seconds),
            less("peak_bytes", "peak memory", Unit::Bytes),
            less("steady_bytes", "steady memory", Unit::Bytes),
            less("forced_bytes", "…after forced GC", Unit::Bytes),
        ],
    ),
    ("growth", &[less("exponent", "exponent of CPU", Unit::Plain)]),
    ("alone, cluster-scale growth", &[less("exponent", "exponent of CPU", Unit::Plain)]),
    (
        "alone, cluster-scale",
        &[less("cpu_us_each", "CPU per Pod", Unit::Micros), more("per_s", "Pods/s", Unit::Rate)],
    ),
    (
        "watch",
        &[
            less("cpu_us_each", "CPU per change", Unit::Micros),
            more("per_s", "changes/s", Unit::Rate),
            less("p50_us", "lag, median", Unit::Micros),
            less("p99_us", "lag, 99 %", Unit::Micros),
        ],
    ),
    (
        "relist",
        &[
            less("peak_to_steady", "peak ÷ steady", Unit::Plain),
            less("peak_bytes", "peak memory", Unit::Bytes),
            less("cpu_s", "CPU", Unit::Seconds),
        ],
    ),
    (
        "sample-controller",
        &[
            less("cpu_s", "CPU", Unit::Seconds),
            less("converged_s", "wall", Unit::Seconds),
            less("requests", "requests", Unit::Rate),
            less("peak_bytes", "peak memory", Unit::Bytes),
        ],
    ),
    (
        "server: start",
        &[
            less("wall_s", "wall", Unit::Seconds),
            less("cpu_s", "CPU", Unit::Seconds),
            less("steady_bytes", "idle memory", Unit::Bytes),
        ],
    ),
    (
        "protobuf instead of JSON",
        &[less("cpu_us_each", "CPU per Pod", Unit::Micros), less("bytes_each", "bytes per Pod", Unit::Bytes)],
    ),
    ("server: hold", &[less("bytes_each", "memory each", Unit::Bytes)]),
    (
        "server: a change",
        &[less("wall_s", "wall", Unit::Seconds), less("server_cpu_us_each", "CPU of server", Unit::Micros)],
    ),
    (
        "operator test",
        &[
            less("wall_s", "wall", Unit::Seconds),
            less("cpu_s", "CPU", Unit::Seconds),
            less("started_s", "of it: start", Unit::Seconds),
        ],
    ),
    (
        "",
        &[
            more("per_s", "operations/s", Unit::Rate),
            less("cpu_us_each", "CPU each", Unit::Micros),
            less("server_cpu_us_each", "CPU of server each", Unit::Micros),
            less("allocations_each", "allocations each", Unit::Plain),
            less("resident_bytes_each", "memory each", Unit::Bytes),
        ],
    ),
];

/// Formats a value with three digits and its unit.
pub(crate) fn written(value: f64, unit: Unit) -> String {
    let (value, unit) = match unit {
        Unit::Seconds if value < 0.1 => (value * 1e3, " ms"),
        Unit::Seconds => (value, " s"),
        Unit::Micros if value >= 1e6 => (value / 1e6, " s"),
        Unit::Micros if value >= 1e3 => (value / 1e3, " ms"),
        Unit::Micros => (value, " µs"),
        Unit::Bytes if value >= 1e9 => (value / 1e9, " GB"),
        Unit::Bytes if value >= 1e6 => (value / 1e6, " MB"),
        Unit::Bytes => (value / 1e3, " KB"),
        Unit::Rate if value >= 1e6 => (value / 1e6, " M"),
        Unit::Rate if value >= 1e4 => (value / 1e3, " k"),
        Unit::Rate => return format!("{value:.0}"),
        Unit::Plain => (value, ""),
    };
    match value {
        value if value >= 100.0 => format!("{value:.0}{unit}"),
        value if value >= 10.0 => format!("{value:.1}{unit}"),
        value => format!("{value:.2}{unit}"),
    }
}

/// Compares a value with its limit and counts the result.
fn verdict(
    limit: Option<Limit>,
    value: f64,
    tally: &mut Tally,
    what: impl FnOnce() -> String,
) -> (String, &'static str) {
    let Some(limit) = limit else { return (String::new(), "") };
    tally.all += 1;
    if limit.is_met(value) {
        (limit.to_string(), "met")
    } else {
        tally.missed.push(what());
        (limit.to_string(), "missed")
    }
}

#[derive(Default)]
struct Tally {
    all: usize,
    missed: Vec<String>,
}

/// Renders all results, and the missed targets at the end.
pub fn render(results: &Results) -> String {
    let (mut out, mut tally) = (Vec::new(), Tally::default());
    out.push(format!(
        "  {:<19} {:>10} {:>5}   {:<24} {:>10} {:>5}   {:>8}  {:<8}",
        "", "kubewright", "±", "peer", "", "±", "ratio", "target"
    ));
    for (workload, implementations) in results.workloads() {
        let Some(ours) = implementations.get(OURS) else { continue };
        out.push(String::new());
        out.push(workload.to_owned());
        for shown in shown_of(workload) {
            let Some(values) = ours.get(shown.number) else { continue };
            let value = median(values);
            let own = format!(
                "  {:<19} {:>10} {:>4.0}%",
                shown.title,
                written(value, shown.unit),
                spread(values) * 100.0
            );
            let alone = targets::alone(workload, shown.number);
            let mut peers: Vec<_> = implementations
                .iter()
                .filter(|(name, _)| *name != OURS)
                .filter_map(|(name, numbers)| Some((name, numbers.get(shown.number)?)))
                .collect();
            // The best peer first.
            peers.sort_by(|(_, a), (_, b)| {
                let order = median(a).total_cmp(&median(b));
                if shown.more_is_better { order.reverse() } else { order }
            });
            let (limit, verdict_alone) =
                verdict(alone, value, &mut tally, || format!("{workload}: {} {value:.2}", shown.title));
            if peers.is_empty() || alone.is_some() {
                let line = format!(
                    "{own}   {:<24} {:>10} {:>5}   {:>8}  {limit:<8} {verdict_alone}",
                    "", "", "", ""
                );
                out.push(line.trim_end().to_owned());
            }
            for (at, (name, theirs)) in peers.into_iter().enumerate() {
                let ratio = value / median(theirs);
                let limit = targets::against(workload, shown.number, name);
                let what = || format!("{workload}: {} {ratio:.3}× of {name}", shown.title);
                let (limit, mut verdict) = verdict(limit, ratio, &mut tally, what);
                if verdict.is_empty() && (ratio > 1.0) != shown.more_is_better && (ratio - 1.0).abs() > 0.005
                {
                    verdict = "worse";
                }
                let lead =
                    if at == 0 && alone.is_none() { own.clone() } else { " ".repeat(own.chars().count()) };
                let (value, spread) = (written(median(theirs), shown.unit), spread(theirs) * 100.0);
                let line = format!(
                    "{lead}   {name:<24} {value:>10} {spread:>4.0}%   {:>8}  {limit:<8} {verdict}",
                    ratio_written(ratio)
                );
                out.push(line.trim_end().to_owned());
            }
        }
    }
    out.push(String::new());
    out.push(format!("{} of {} targets are met.", tally.all - tally.missed.len(), tally.all));
    out.extend(tally.missed.iter().map(|missed| format!("  missed: {missed}")));
    out.extend(results.failures.iter().map(|failure| format!("  failed: {failure}")));
    out.join("\n")
}

fn shown_of(workload: &str) -> &'static [Shown] {
    SHOWN.iter().find(|(prefix, _)| workload.starts_with(prefix)).map_or(&[][..], |(_, shown)| *shown)
}

/// Renders the results that have a target, as Markdown.
pub fn render_targets(results: &Results) -> String {
    let mut out = vec![
        "| workload | | kubewright | peer | | ratio | target | |".to_owned(),
        "|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    let mut tally = Tally::default();
    for (workload, implementations) in results.workloads() {
        for shown in shown_of(workload) {
            let Some(value) = results.median(workload, OURS, shown.number) else { continue };
            let lead = format!("| {workload} | {} | {} |", shown.title, written(value, shown.unit));
            let (limit, met) =
                verdict(targets::alone(workload, shown.number), value, &mut tally, String::new);
            if !met.is_empty() {
                out.push(format!("{lead} | | | {limit} | {met} |"));
            }
            for peer in implementations.keys().filter(|name| *name != OURS) {
                let Some(theirs) = results.median(workload, peer, shown.number) else { continue };
                let limit = targets::against(workload, shown.number, peer);
                let (limit, met) = verdict(limit, value / theirs, &mut tally, String::new);
                if !met.is_empty() {
                    let (theirs, ratio) = (written(theirs, shown.unit), ratio_written(value / theirs));
                    out.push(format!("{lead} {peer} | {theirs} | {ratio} | {limit} | {met} |"));
                }
            }
        }
    }
    out.push(format!("\n{} of {} targets are met.", tally.all - tally.missed.len(), tally.all));
    out.extend(results.failures.iter().map(|failure| format!("  failed: {failure}")));
    out.join("\n")
}

fn ratio_written(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.1 => format!("{ratio:.3}×"),
        ratio if ratio < 100.0 => format!("{ratio:.2}×"),
        ratio => format!("{ratio:.0}×"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missed_target_and_a_worse_result_are_shown() {
        let mut results = Results::default();
        let workload = "sync of 30,000 Pods from kube-apiserver";
        results.record(
            workload,
            &json!({"impl": "kubewright", "cpu_s": 3.0, "wall_s": 2.0, "steady_bytes": 5e6}),
        );
        results.record(
            workload,
            &json!({"impl": "client-go", "cpu_s": 4.0, "wall_s": 1.0, "steady_bytes": 1e9}),
        );
        let table = render(&results);
        assert!(table.contains("1 of 2 targets are met"), "{table}");
        assert!(
            table.contains("missed: sync of 30,000 Pods from kube-apiserver: CPU 0.750× of client-go"),
            "{table}"
        );
        assert!(table.lines().any(|line| line.contains("wall") && line.ends_with("worse")), "{table}");
        let targets = render_targets(&results);
        let row = "| CPU | 3.00 s | client-go | 4.00 s | 0.75× | ≤ 0.6 | missed |";
        assert!(targets.contains(row) && targets.ends_with("1 of 2 targets are met."), "{targets}");
        assert!(!targets.contains("wall"), "{targets}");
    }

    #[test]
    fn lines_are_aligned() {
        let mut results = Results::default();
        results.record("queue: burst", &json!({"impl": "kubewright", "per_s": 3e6}));
        results.record("queue: burst", &json!({"impl": "client-go", "per_s": 1.5e6}));
        let table = render(&results);
        let columns: Vec<_> = table.lines().filter(|line| line.contains('±') || line.contains('×')).collect();
        let end = |line: &str| line.chars().count();
        assert!(columns[1].contains("2.00×"), "{table}");
        assert!(end(columns[0]) <= end(columns[1]) + 8, "{table}");
    }
}
