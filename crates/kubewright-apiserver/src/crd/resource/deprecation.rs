//! Deprecation warning of a version.

use std::cmp::Ordering;

use serde_json::Value;

use kubewright_schema::props::Props;

/// Returns the warning of the CRD, or one that recommends a newer version.
pub(super) fn warning(spec: &Value, version: &str) -> Option<String> {
    let versions: Vec<Props<'_>> = Props::new(spec).list("versions").iter().map(Props::new).collect();
    let this = versions.iter().find(|known| known.text("name") == version && known.flag("deprecated"))?;
    if let Some(text) = this.get("deprecationWarning").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let spec = Props::new(spec);
    let (group, kind) =
        (spec.text("group"), Props::new(spec.get("names").unwrap_or(&Value::Null)).text("kind"));
    let newer = versions
        .iter()
        .filter(|known| known.flag("served") && !known.flag("deprecated"))
        .map(|known| known.text("name"))
        .filter(|name| compare(version, name).is_lt())
        .max_by(|a, b| compare(a, b));
    let mut out = format!("{group}/{version} {kind} is deprecated");
    if let Some(newer) = newer {
        out.extend(["; use ", group, "/", newer, " ", kind]);
    }
    Some(out)
}

/// Compares versions by maturity, then by number: v2 > v1 > v2beta1 > v1beta2 > v1alpha1 > anything else.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let major = major.parse().ok()?;
    let minor = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('0'));
    match rest {
        "" => Some((2, major, 0)),
        rest => match rest.strip_prefix("beta") {
            Some(number) => Some((1, major, minor(number)?)),
            None => Some((0, major, minor(rest.strip_prefix("alpha")?)?)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_by_maturity_then_number() {
        let sorted = ["foo2", "foo10", "v1alpha1", "v1beta2", "v2beta1", "v1", "v10"];
        for pair in sorted.windows(2) {
            assert!(compare(pair[0], pair[1]).is_lt() || pair[0].starts_with("foo"), "{pair:?}");
        }
        assert!(compare("foo2", "v1alpha1").is_lt());
    }
}
