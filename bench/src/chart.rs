//! Bar chart of the main results, as an SVG for light and dark pages.

use std::fmt::Write as _;

use crate::{
    results::{OURS, Results},
    table::{Unit, written},
};

struct Panel {
    title: &'static str,
    /// Prefixes of workloads; the first that was measured is shown.
    workloads: &'static [&'static str],
    number: &'static str,
    unit: Unit,
}

const PANELS: &[Panel] = &[
    Panel { title: "CPU to sync", workloads: SYNC, number: "cpu_s", unit: Unit::Seconds },
    Panel { title: "Memory after it", workloads: SYNC, number: "steady_bytes", unit: Unit::Bytes },
    Panel { title: "CPU to sync", workloads: SYNC_MIXED, number: "cpu_s", unit: Unit::Seconds },
    Panel { title: "Memory after it", workloads: SYNC_MIXED, number: "steady_bytes", unit: Unit::Bytes },
    Panel { title: "CPU per change", workloads: &["watch"], number: "cpu_us_each", unit: Unit::Micros },
    Panel { title: "Peak memory", workloads: &["relist"], number: "peak_bytes", unit: Unit::Bytes },
    Panel {
        title: "CPU to converge",
        workloads: &["sample-controller"],
        number: "cpu_s",
        unit: Unit::Seconds,
    },
    Panel { title: "Keys per second", workloads: &["queue: distinct-4"], number: "per_s", unit: Unit::Rate },
    Panel {
        title: "Start of a server",
        workloads: &["server: start"],
        number: "wall_s",
        unit: Unit::Seconds,
    },
    Panel { title: "Creates per second", workloads: &["server: create"], number: "per_s", unit: Unit::Rate },
    Panel {
        title: "One operator test",
        workloads: &["operator test"],
        number: "wall_s",
        unit: Unit::Seconds,
    },
];
const SYNC: &[&str] = &["sync of 100,000 Pods", "sync of 30,000 Pods", "sync of 10,000 Pods", "sync"];
const SYNC_MIXED: &[&str] = &["sync of 30,000 mixed", "sync of 10,000 mixed"];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 200.0;
const RIGHT: f64 = 90.0;
const BAR: f64 = 16.0;
const STEP: f64 = 21.0;

const STYLE: &str = "<style>text{font:12px system-ui,sans-serif;fill:#24292f}.head{font-weight:600}.peer{fill:#8c959f}\
.ours{fill:#0969da}.dim{fill:#57606a}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.peer{fill:#6e7681}\
.ours{fill:#4493f8}.dim{fill:#9198a1}}</style>";

/// Renders the chart, without panels that have no results.
pub fn render(results: &Results) -> String {
    let (mut body, mut y) = (String::new(), 10.0);
    for panel in PANELS {
        let found = panel.workloads.iter().find_map(|prefix| {
            results.workloads().find(|(name, held)| name.starts_with(prefix) && held.contains_key(OURS))
        });
        let Some((workload, implementations)) = found else { continue };
        let bars: Vec<(&str, f64)> = implementations
            .keys()
            .filter_map(|name| Some((name.as_str(), results.median(workload, name, panel.number)?)))
            .collect();
        let longest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        if longest <= 0.0 {
            continue;
        }
        y += STEP;
        let _ = write!(
            body,
            "<text class=\"head\" x=\"8\" y=\"{y:.0}\">{}<tspan class=\"dim\" font-weight=\"400\"> — {}</tspan></text>",
            panel.title,
            escaped(workload)
        );
        for (name, value) in bars {
            y += STEP;
            let length = (value / longest * (WIDTH - LEFT - RIGHT)).max(1.0);
            let class = if name == OURS { "ours" } else { "peer" };
            let _ = write!(
                body,
                "<text x=\"{:.0}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>\
                 <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"{BAR:.0}\" rx=\"2\"/>\
                 <text x=\"{:.1}\" y=\"{y:.0}\">{}</text>",
                LEFT - 8.0,
                escaped(name),
                y - 12.0,
                LEFT + length + 6.0,
                written(value, panel.unit)
            );
        }
        y += STEP / 2.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {0:.0}\" width=\"{WIDTH:.0}\" height=\"{0:.0}\" \
         role=\"img\" aria-label=\"kubewright beside its peers\">{STYLE}{body}</svg>\n",
        y + 10.0
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_measured_is_left_out() {
        let mut results = Results::default();
        results.record("watch, 20,000 changes", &json!({"impl": "kubewright", "cpu_us_each": 30.0}));
        results.record("watch, 20,000 changes", &json!({"impl": "client-go", "cpu_us_each": 60.0}));
        let chart = render(&results);
        assert!(chart.contains("CPU per change") && chart.contains("60.0 µs"), "{chart}");
        assert!(!chart.contains("Keys per second"));
    }
}
