//! Name checks shared by CRDs and their objects, with the messages of apimachinery.

use std::sync::LazyLock;

use regex::Regex;

const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

type Pattern = LazyLock<Option<Regex>>;

static LABEL_1035_PATTERN: Pattern = LazyLock::new(|| Regex::new(&format!("^{LABEL_1035}$")).ok());
static SUBDOMAIN_PATTERN: Pattern = LazyLock::new(|| Regex::new(&format!("^{SUBDOMAIN}$")).ok());

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Returns the errors of a DNS-1035 label.
pub fn label_1035(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > 63 {
        out.push("must be no more than 63 characters".to_owned());
    }
    if !matches(&LABEL_1035_PATTERN, text) {
        out.push(format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '{LABEL_1035}')"
        ));
    }
    out
}

/// Returns the errors of an RFC 1123 subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    if text.len() > 253 {
        out.push("must be no more than 253 characters".to_owned());
    }
    if !matches(&SUBDOMAIN_PATTERN, text) {
        out.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN}')"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains_have_their_own_rules() {
        assert!(label_1035("v1").is_empty() && subdomain("1.example.com").is_empty());
        assert_eq!(label_1035("1a").len(), 1);
        assert_eq!(label_1035(&"A".repeat(64)).len(), 2);
        assert_eq!(subdomain("a..b").len(), 1);
        assert_eq!(subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
    }
}
