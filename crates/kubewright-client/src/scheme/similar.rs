//! The word that was probably meant.

/// The known name that a misspelt one was probably meant to be: at most two letters away, or another case.
pub(super) fn similar(key: &str, known: &'static [&'static str]) -> Option<&'static str> {
    known
        .iter()
        .map(|name| (if name.eq_ignore_ascii_case(key) { 0 } else { distance(key, name) }, *name))
        .min()
        .filter(|(distance, name)| *distance <= 2 && *distance * 3 < name.len())
        .map(|(_, name)| name)
}

/// How many letters must be added, removed, changed or swapped with their neighbour to make one word of the other.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len().abs_diff(right.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
                let best = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
                if swapped { best.min(rows[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_stay_close() {
        const KNOWN: &[&str] = &["replicas", "selector", "id"];
        assert_eq!(similar("replica", KNOWN), Some("replicas"));
        assert_eq!(similar("Selector", KNOWN), Some("selector"));
        assert_eq!(similar("selectro", KNOWN), Some("selector"));
        assert_eq!(similar("selcetro", KNOWN), Some("selector"));
        assert_eq!(similar("it", KNOWN), None);
        assert_eq!(similar("minReadySeconds", KNOWN), None);
    }
}
