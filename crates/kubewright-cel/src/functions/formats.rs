//! Named formats: `format.dns1123Label().validate('x')`.

use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;

use super::{EvalResult, time};
use crate::{signatures::FORMATS, value::Val};
use kubewright_schema::dns;

type Pattern = LazyLock<Option<Regex>>;

static LABEL: Pattern = LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static QUALIFIED: Pattern = LazyLock::new(|| Regex::new("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$").ok());
static UUID: Pattern = LazyLock::new(|| {
    Regex::new("^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    let named = |name: &str| FORMATS.into_iter().chain(["date", "datetime"]).find(|known| *known == name);
    match (function, args) {
        ("format.named", [Val::String(name)]) => {
            Some(Ok(Val::Optional(named(name).map(|name| Box::new(Val::Format(name))))))
        }
        ("validate", [Val::Format(format), Val::String(text)]) => {
            let problems = validate(format, text);
            let list = || Val::list(problems.iter().map(|problem| Val::text(problem.as_str())).collect());
            Some(Ok(Val::Optional((!problems.is_empty()).then(|| Box::new(list())))))
        }
        (function, []) => Some(Ok(Val::Format(named(function.strip_prefix("format.")?)?))),
        _ => None,
    }
}

fn validate(format: &str, text: &str) -> Vec<String> {
    let wrong = |ok: bool, message: &str| if ok { Vec::new() } else { vec![message.to_owned()] };
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    // A name prefix may end in a dash because a suffix follows.
    let prefix = || text.strip_suffix('-').map_or_else(|| text.to_owned(), |start| format!("{start}a"));
    match format {
        "dns1123Label" => wrong(text.len() <= 63 && matches(&LABEL, text), label),
        "dns1123LabelPrefix" => wrong(text.len() <= 63 && matches(&LABEL, &prefix()), label),
        "dns1123Subdomain" => dns::subdomain(text),
        "dns1123SubdomainPrefix" => dns::subdomain(&prefix()),
        "dns1035Label" => dns::label_1035(text),
        "dns1035LabelPrefix" => dns::label_1035(&prefix()),
        "labelValue" => wrong(
            text.is_empty() || (text.len() <= 63 && matches(&QUALIFIED, text)),
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'",
        ),
        "qualifiedName" => {
            let (domain, name) =
                text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
            let mut out = domain.map(dns::subdomain).unwrap_or_default();
            out.extend(wrong(
                name.len() <= 63 && matches(&QUALIFIED, name),
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character",
            ));
            out
        }
        "uuid" => wrong(matches(&UUID, text), "does not match the UUID format"),
        "byte" => wrong(base64::engine::general_purpose::STANDARD.decode(text).is_ok(), "invalid base64"),
        "date" => wrong(time::timestamp(&format!("{text}T00:00:00Z")).is_some(), "invalid date"),
        "datetime" => wrong(time::timestamp(text).is_some(), "invalid datetime"),
        "uri" => {
            let absolute =
                text.starts_with('/') || text.split_once("://").is_some_and(|(scheme, _)| !scheme.is_empty());
            wrong(absolute && !text.contains(' '), "invalid URI for request")
        }
        _ => Vec::new(),
    }
}
