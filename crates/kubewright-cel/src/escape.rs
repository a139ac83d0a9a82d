//! Escaping of field names into identifiers.

const LITERALS: [&str; 4] = ["true", "false", "null", "in"];
/// Reserved words, which the parser rejects as identifiers.
pub(super) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the identifier of a field in rules, or `None` if the name cannot be escaped.
///
/// ```
/// use kubewright_cel::escape;
///
/// assert_eq!(escape("my_field").as_deref(), Some("my_field"));
/// assert_eq!(escape("a__b").as_deref(), Some("a__underscores__b"));
/// assert_eq!(escape("x-y.z/w").as_deref(), Some("x__dash__y__dot__z__slash__w"));
/// assert_eq!(escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(escape("1a"), None);
/// ```
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if LITERALS.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (text, length) = match c {
            _ if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[length..];
    }
    Some(out)
}
