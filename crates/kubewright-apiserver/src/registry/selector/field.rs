//! Field selectors in query parameters: `metadata.name=a,status.phase!=Running`.

/// Term of a field selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field.
    pub field: String,
    /// The value to compare with.
    pub value: String,
    /// Whether the operator is `=` rather than `!=`.
    pub equal: bool,
}

/// Parsed field selector; whether the fields exist is not checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// Terms that must all match.
    pub terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// Parses a selector; the error is the message of the 400 response.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split(text) {
            if part.is_empty() {
                continue;
            }
            let Some((field, equal, value)) = operator(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            terms.push(FieldTerm { field: field.into(), value: unescape(value)?, equal });
        }
        Ok(Self { terms })
    }

    /// Returns the value that the selector requires of a field, if any.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| t.equal && t.field == field).map(|t| t.value.as_str())
    }
}

/// Splits at unescaped commas.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn operator(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.find('=')?;
    if let Some(field) = part[..at].strip_suffix('!') {
        return Some((field, false, &part[at + 1..]));
    }
    let value = &part[at + 1..];
    Some((&part[..at], true, value.strip_prefix('=').unwrap_or(value)))
}

fn unescape(value: &str) -> Result<String, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.to_owned());
    }
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".into()),
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_operators_and_escapes() {
        let selector = FieldSelector::parse(r"metadata.name==a,x!=b\,c,y=").unwrap();
        let terms: Vec<_> =
            selector.terms.iter().map(|t| (t.field.as_str(), t.equal, t.value.as_str())).collect();
        assert_eq!(terms, [("metadata.name", true, "a"), ("x", false, "b,c"), ("y", true, "")]);
        assert_eq!(selector.required("metadata.name"), Some("a"));
    }

    #[test]
    fn malformed_selectors_are_rejected_with_upstreams_messages() {
        assert_eq!(
            FieldSelector::parse("metadata.name").unwrap_err(),
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
        );
        assert_eq!(
            FieldSelector::parse(r"metadata.name=a\b").unwrap_err(),
            "invalid field selector: invalid escape sequence: \\b"
        );
    }
}
