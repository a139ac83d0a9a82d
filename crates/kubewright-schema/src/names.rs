//! Validation of names, labels and annotation keys.

/// Rule for the names of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 characters: most types.
    #[default]
    Subdomain,
    /// RFC 1123 label, at most 63 characters: namespaces and others.
    Label,
    /// RFC 1035 label, which begins with a letter: services.
    Label1035,
    /// Path segment: RBAC.
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SEARCH_DOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PORT_NAME_FORMAT: &str = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";

fn is_lower_alnum(c: u8) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Returns whether a text consists of lower-case letters, digits and inner hyphens.
pub fn is_label(text: &str) -> bool {
    let b = text.as_bytes();
    !b.is_empty()
        && b.iter().all(|&c| is_lower_alnum(c) || c == b'-')
        && is_lower_alnum(b[0])
        && is_lower_alnum(b[b.len() - 1])
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// Returns the errors of an RFC 1123 subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 bytes".into());
    }
    if !is_subdomain(text) {
        why.push(SUBDOMAIN.into());
    }
    why
}

/// Returns the errors of a DNS search domain: an RFC 1123 subdomain with underscores allowed.
pub fn subdomain_with_underscores(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 characters".into());
    }
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part).as_bytes();
        part.first().copied().is_some_and(is_lower_alnum)
            && part.last().copied().is_some_and(is_lower_alnum)
            && part.iter().all(|&c| is_lower_alnum(c) || matches!(c, b'-' | b'_'))
    };
    if !text.split('.').all(part) {
        why.push(SEARCH_DOMAIN.into());
    }
    why
}

/// Returns the errors of a domain-prefixed path, as in the names of controllers and signers.
pub fn domain_prefixed_path(text: &str) -> Vec<String> {
    match text.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let mut why = subdomain(domain);
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~%!$&'()*+,;=:/@".contains(c);
            if !path.chars().all(allowed) {
                why.push(
                    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')".into(),
                );
            }
            why
        }
        _ => vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".into()],
    }
}

/// Returns the errors of an RFC 1123 label.
pub fn label(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 characters".into());
    }
    if !is_label(text) {
        why.push(if is_subdomain(text) { "must not contain dots".into() } else { LABEL.into() });
    }
    why
}

/// Returns the errors of an RFC 1035 label.
pub fn label1035(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 characters".into());
    }
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        let dotted = text.contains('.') && is_subdomain(text);
        why.push(if dotted { "must not contain dots".into() } else { LABEL1035.into() });
    }
    why
}

fn path_segment(text: &str, prefix: bool) -> Vec<String> {
    if !prefix && (text == "." || text == "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|bad| text.contains(bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

impl NameRule {
    /// Returns the errors of a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => subdomain(name),
            Self::Label => label(name),
            Self::Label1035 => label1035(name),
            Self::PathSegment => path_segment(name, false),
        }
    }

    /// Returns the errors of a name prefix, to which a suffix will be appended.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment(prefix, true),
            // A trailing hyphen is allowed if more characters follow.
            rule => match prefix.strip_suffix('-') {
                Some(head) if !head.is_empty() => rule.check(&format!("{head}a")),
                _ => rule.check(prefix),
            },
        }
    }
}

/// Returns the errors of a qualified name (`prefix/name`): label keys, annotation keys, finalizers.
pub fn qualified(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                why.push("prefix part must be non-empty".into());
            } else {
                why.extend(subdomain(prefix).into_iter().map(|w| format!("prefix part {w}")));
            }
            name
        }
        Some(_) => {
            let mut text = QUALIFIED.replacen("name part ", "a qualified name ", 1);
            text.push_str(" with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
            return vec![text];
        }
    };
    if name.is_empty() {
        why.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        why.push("name part must be no more than 63 bytes".into());
    }
    if !is_qualified_name(name) {
        why.push(QUALIFIED.into());
    }
    why
}

fn is_qualified_name(name: &str) -> bool {
    let b = name.as_bytes();
    !b.is_empty()
        && b.iter().all(|&c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
        && b[0].is_ascii_alphanumeric()
        && b[b.len() - 1].is_ascii_alphanumeric()
}

/// Returns the errors of a label value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 63 {
        why.push("must be no more than 63 bytes".into());
    }
    if !text.is_empty() && !is_qualified_name(text) {
        why.push(LABEL_VALUE.into());
    }
    why
}

/// Returns the errors of a key of a `ConfigMap` or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 253 {
        why.push("must be no more than 253 bytes".into());
    }
    if text.is_empty() || !text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
    {
        why.push(CONFIG_KEY.into());
    }
    if text == "." || text == ".." {
        why.push(format!("must not be '{text}'"));
    } else if text.starts_with("..") {
        why.push("must not start with '..'".into());
    }
    why
}

/// Returns the errors of a port name.
pub fn port_name(text: &str) -> Vec<String> {
    let mut why = Vec::new();
    if text.len() > 15 {
        why.push("must be no more than 15 characters".into());
    }
    if text.is_empty() || !text.bytes().all(|c| is_lower_alnum(c) || c == b'-') {
        why.push(PORT_NAME_FORMAT.into());
    }
    if !text.bytes().any(|c| c.is_ascii_lowercase()) {
        why.push("must contain at least one letter (a-z)".into());
    }
    if text.contains("--") {
        why.push("must not contain consecutive hyphens".into());
    }
    if text.starts_with('-') || text.ends_with('-') {
        why.push("must not begin or end with a hyphen".into());
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_accepts_valid_names_and_explains_errors() {
        assert!(NameRule::Subdomain.check("a.b.c").is_empty());
        assert_eq!(NameRule::Subdomain.check("a_b"), [SUBDOMAIN]);
        assert_eq!(NameRule::Label.check("a.b"), ["must not contain dots"]);
        assert_eq!(NameRule::Label1035.check("1a"), [LABEL1035]);
        assert!(NameRule::PathSegment.check("a:B_c").is_empty());
        assert_eq!(NameRule::PathSegment.check("a/b"), ["may not contain '/'"]);
        assert!(NameRule::Subdomain.check_prefix("pre-").is_empty());
        assert_eq!(NameRule::Subdomain.check_prefix("Bad_"), [SUBDOMAIN]);
        assert!(qualified("example.com/x").is_empty());
        assert_eq!(qualified("-bad-"), [QUALIFIED]);
        assert!(label_value("").is_empty());
    }
}
