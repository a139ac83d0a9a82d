//! Content negotiation between the text formats of Prometheus and `OpenMetrics`.
//!
//! prometheus-client encodes `OpenMetrics`. The older format of Prometheus, which all scrapers read, differs
//! in few lines and is converted from it.

use std::collections::BTreeSet;

use http::{HeaderMap, header::ACCEPT};

pub(super) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub(super) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the client accepts `OpenMetrics`, with at least the weight of the older format.
pub(super) fn wants_open_metrics(headers: &HeaderMap) -> bool {
    let (mut open, mut plain) = (0.0, 0.0);
    for value in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for range in value.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<&str> = parts.collect();
            let parameter = |name| parameters.iter().find_map(|part| part.strip_prefix(name));
            let weight: f32 = parameter("q=").and_then(|weight| weight.parse().ok()).unwrap_or(1.0);
            let version = parameter("version=").unwrap_or("1.0.0");
            match &*kind {
                "application/openmetrics-text" if matches!(version, "1.0.0" | "0.0.1") => {
                    open = weight.max(open);
                }
                "text/plain" => plain = weight.max(plain),
                _ => {}
            }
        }
    }
    open > 0.0 && open >= plain
}

/// Converts `OpenMetrics` text into the older format.
pub(super) fn to_prometheus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // In the older format the name of a counter includes `_total`.
    let counters: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(what), Some(name)) = (words.next(), words.next()) else { continue };
            let rest = words.next().unwrap_or_default();
            let suffix = if counters.contains(name) { "_total" } else { "" };
            let rest = match (what, rest) {
                ("TYPE", "info" | "stateset") => "gauge",
                ("TYPE", "unknown") => "untyped",
                ("TYPE", "gaugehistogram") => "histogram",
                ("TYPE" | "HELP", rest) => rest,
                // The older format has neither units nor an end marker.
                _ => continue,
            };
            out.extend(["# ", what, " ", name, suffix, " ", rest, "\n"]);
        } else {
            out.push_str(without_exemplar(line));
            out.push('\n');
        }
    }
    out
}

/// Removes the exemplar of a sample: what follows ` # ` outside of the labels.
fn without_exemplar(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted => return line[..at].trim_end(),
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn wants(accept: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        wants_open_metrics(&headers)
    }

    #[test]
    fn prometheus_gets_its_preferred_format_and_others_the_older_one() {
        assert!(wants(
            "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
             text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
        ));
        assert!(wants("application/openmetrics-text"));
        assert!(!wants("text/plain;q=0.9,application/openmetrics-text;q=0.8"));
        assert!(!wants("*/*"));
        assert!(!wants("application/openmetrics-text;q=0"));
        assert!(!wants("application/openmetrics-text;version=2.0.0"));
        assert!(!wants_open_metrics(&HeaderMap::new()));
    }

    #[test]
    fn the_older_format_has_total_in_the_name_and_no_exemplars() {
        let open = concat!(
            "# HELP a Counts # and \"quotes\".\n# TYPE a counter\na_total{x=\"y # z \\\" #\"} 1 # {id=\"7\"} 0.5\n",
            "# HELP b_seconds A gauge.\n# TYPE b_seconds gauge\n# UNIT b_seconds seconds\nb_seconds 2\n",
            "# HELP c Info.\n# TYPE c info\nc_info{v=\"1\"} 1\n# HELP d ?\n# TYPE d unknown\nd 1\n# EOF\n",
        );
        assert_eq!(
            to_prometheus(open),
            concat!(
                "# HELP a_total Counts # and \"quotes\".\n# TYPE a_total counter\na_total{x=\"y # z \\\" #\"} 1\n",
                "# HELP b_seconds A gauge.\n# TYPE b_seconds gauge\nb_seconds 2\n",
                "# HELP c Info.\n# TYPE c gauge\nc_info{v=\"1\"} 1\n# HELP d ?\n# TYPE d untyped\nd 1\n",
            )
        );
    }
}
