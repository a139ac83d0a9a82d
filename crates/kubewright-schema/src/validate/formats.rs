//! String formats of CRD schemas. Formats that are unknown or not for the type are ignored.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

/// Predicate of a string format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Format(fn(&str) -> bool);

impl Format {
    /// Returns the format with this name; dashes are ignored, except in names that Kubernetes added.
    pub(super) fn named(name: &str) -> Option<Self> {
        let check: fn(&str) -> bool = match &*name.replace('-', "") {
            "bsonobjectid" => |s| s.len() == 24 && is_hex(s),
            "uri" => is_uri,
            "email" => is_email,
            "hostname" => is_hostname,
            "ipv4" => is_ipv4,
            "ipv6" => |s| s.contains(':') && s.parse::<Ipv6Addr>().is_ok(),
            "cidr" => is_cidr,
            "mac" => is_mac,
            "uuid" => |s| is_uuid(s, None),
            "uuid3" => |s| is_uuid(s, Some('3')),
            "uuid4" => |s| is_uuid(s, Some('4')),
            "uuid5" => |s| is_uuid(s, Some('5')),
            "isbn" => |s| is_isbn10(s) || is_isbn13(s),
            "isbn10" => is_isbn10,
            "isbn13" => is_isbn13,
            "creditcard" => is_credit_card,
            "ssn" => |s| matches(&SSN, s),
            "hexcolor" => |s| matches(&HEX_COLOUR, s),
            "rgbcolor" => |s| matches(&RGB_COLOUR, s),
            "byte" => |s| matches(&BASE64, s),
            "password" => |_| true,
            "date" => is_date,
            "datetime" => is_date_time,
            "duration" => is_duration,
            "k8sshortname" => |s| s.len() <= 63 && matches(&SHORT_NAME, s),
            "k8slongname" => |s| s.len() <= 253 && matches(&LONG_NAME, s),
            _ => return None,
        };
        Some(Self(check))
    }

    pub(super) fn accepts(self, text: &str) -> bool {
        (self.0)(text)
    }
}

/// Returns the format if it applies to one of these types, else an empty string.
pub(super) fn supported<'f>(format: &'f str, types: &[String]) -> &'f str {
    let known = match types.first().map(String::as_str) {
        Some("integer") if types.len() == 1 => matches!(format, "int32" | "int64"),
        Some("number") => matches!(format, "float" | "double"),
        Some("string") | None => Format::named(format).is_some(),
        _ => false,
    };
    if known { format } else { "" }
}

type Pattern = LazyLock<Option<Regex>>;

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

static SSN: Pattern = LazyLock::new(|| Regex::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$").ok());
static HEX_COLOUR: Pattern = LazyLock::new(|| Regex::new("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$").ok());
static RGB_COLOUR: Pattern = LazyLock::new(|| {
    let part = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*";
    Regex::new(&format!(r"^rgb\({part},{part},{part}\)$")).ok()
});
static BASE64: Pattern = LazyLock::new(|| {
    Regex::new("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static SHORT_NAME: Pattern = LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static LONG_NAME: Pattern =
    LazyLock::new(|| Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok());
static HOST_NAME: Pattern = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    let single = format!(r"[{c}]((-?[{c}]{{0,62}})?)");
    let dotted = format!(r"([{c}](([{c}-]{{0,61}}[{c}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}}");
    Regex::new(&format!("^({single}|{dotted})$")).ok()
});
static DURATION: Pattern = LazyLock::new(|| Regex::new(r"(\d+)\s*([A-Za-zµ]+)").ok());
static GO_DURATION: Pattern =
    LazyLock::new(|| Regex::new(r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$").ok());

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_hostname(text: &str) -> bool {
    matches(&HOST_NAME, text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// Implements Go's `ParseRequestURI`: an absolute path, or a scheme with a path or an authority.
fn is_uri(text: &str) -> bool {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    let rest = match text.split_once(':') {
        _ if text.starts_with('/') => text,
        Some((scheme, rest)) => {
            let mut letters = scheme.chars();
            let good = letters.next().is_some_and(|c| c.is_ascii_alphabetic())
                && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            if !good {
                return false;
            }
            rest
        }
        None => return false,
    };
    let host = rest.strip_prefix("//").map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    rest.starts_with('/')
        && host.is_none_or(|host| !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '}', '|']))
}

fn is_email(text: &str) -> bool {
    let address = match text.trim().strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    let dotted = |text: &str| {
        !text.is_empty() && text.split('.').all(|part| !part.is_empty() && part.chars().all(atom))
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || dotted(local)) && (literal || dotted(domain))
}

/// Parses an IPv4 address with leading zeros allowed, which kube-apiserver accepts for backwards
/// compatibility.
fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))?;
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|_| if part.bytes().all(|b| b == b'0') { Ok(0) } else { Err(()) })
            .ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

fn is_ipv4(text: &str) -> bool {
    sloppy_ipv4(text).is_some() || (text.contains('.') && text.parse::<Ipv6Addr>().is_ok())
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let digits = !length.is_empty() && length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
    let Some(length) = length.parse::<u8>().ok().filter(|_| digits) else { return false };
    match sloppy_ipv4(address) {
        Some(_) => length <= 32,
        None => address.parse::<Ipv6Addr>().is_ok() && length <= 128,
    }
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize| {
        let parts: Vec<_> = text.split(separator).collect();
        let bytes = parts.len() * width / 2;
        parts.iter().all(|part| part.len() == width && is_hex(part)) && [6, 8, 20].contains(&bytes)
    };
    groups(':', 2) || groups('-', 2) || groups('.', 4)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    let mut groups = [""; 5];
    for (i, (group, length)) in groups.iter_mut().zip([8, 4, 4, 4, 12]).enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((head, tail)) = rest.split_at_checked(length) else { return false };
        if !is_hex(head) {
            return false;
        }
        (*group, rest) = (head, tail);
    }
    let variant = || groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    rest.is_empty()
        && version.is_none_or(|version| groups[2].starts_with(version) && (version == '3' || variant()))
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<char> = text.chars().filter(|c| !" -".contains(*c)).collect();
    let value = |i: usize, c: char| if c == 'X' && i == 9 { Some(10) } else { c.to_digit(10) };
    let sum: Option<u32> = digits
        .iter()
        .enumerate()
        .map(|(i, c)| Some(value(i, *c)? * (10 - u32::try_from(i).ok()?.min(9))))
        .sum();
    digits.len() == 10 && sum.is_some_and(|sum| sum.is_multiple_of(11))
}

fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|c| !" -".contains(*c)).map(|c| c.to_digit(10)).collect();
    let Some(digits) = digits.filter(|digits| digits.len() == 13) else { return false };
    let sum: u32 = digits.iter().enumerate().map(|(i, d)| if i % 2 == 0 { *d } else { d * 3 }).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| if i % 2 == 0 { *d } else { d * 2 / 10 + d * 2 % 10 })
        .sum();
    (13..=16).contains(&digits.len()) && sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    let number = |from: usize, to: usize| -> Option<u32> {
        text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    };
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    text.len() == 10
        && text.get(4..5) == Some("-")
        && text.get(7..8) == Some("-")
        && (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    let (Some(clock), Some(rest)) = (time.get(..8), time.get(8..)) else { return false };
    let part = |from: usize, below: u32| {
        clock.get(from..from + 2).and_then(|part| part.parse::<u32>().ok()).is_some_and(|n| n < below)
    };
    let clock_ok = clock.get(2..3) == Some(":")
        && clock.get(5..6) == Some(":")
        && part(0, 24)
        && part(3, 60)
        && part(6, 60);
    let zone =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let zone_ok = match zone.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    };
    is_date(date) && clock_ok && zone_ok
}

/// Accepts a Go duration, or amounts with unit names in the style of Scala.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 19] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d",
        "day", "w", "wk", "week",
    ];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    if matches(&GO_DURATION, text) {
        return true;
    }
    let Some(pattern) = DURATION.as_ref() else { return false };
    pattern.captures_iter(text).any(|found| {
        let unit = found[2].to_lowercase();
        UNITS.contains(&&*unit) || PREFIXES.iter().any(|prefix| unit.starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_accepts_valid_and_rejects_invalid_strings() {
        let cases: [(&str, &[&str], &[&str]); 20] = [
            (
                "date-time",
                &["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.1+02:00"],
                &["yesterday", "2024-01-02", "2024-01-02T25:00:00Z"],
            ),
            ("date", &["2024-02-29"], &["01/02/2024", "2023-02-29"]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0.256", "::1", "1.2.3"]),
            ("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "::g"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "x/8"]),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
                &["nope", "123e4567-e89b-12d3-a456-42661417400"],
            ),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("uri", &["https://a.example/x", "/path"], &["not a uri", "mailto:x", "http://a b/"]),
            ("email", &["a@b.example", "A <a@b>"], &["nope", "@b", "a b@c"]),
            ("hostname", &["a.example", "localhost"], &["-bad-", "a..b"]),
            ("byte", &["aGVsbG8="], &["***", ""]),
            ("duration", &["1h30m", "22 ns", "3 days", "0"], &["soon", "5 parsecs"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["zz", "01:23"]),
            ("isbn10", &["0321751043"], &["0321751044"]),
            ("isbn13", &["978-0321751041"], &["978-0321751042"]),
            ("creditcard", &["4111-1111-1111-1111"], &["4111-1111-1111-1112"]),
            ("ssn", &["111-11-1111"], &["111"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ffff"]),
            ("rgbcolor", &["rgb(255, 0,12)"], &["rgb(256,0,0)"]),
            ("k8s-short-name", &["a-b"], &["A", "a.b", "-a"]),
        ];
        for (name, good, bad) in cases {
            let format = Format::named(name).unwrap();
            for text in good {
                assert!(format.accepts(text), "{name} {text}");
            }
            for text in bad {
                assert!(!format.accepts(text), "{name} {text}");
            }
        }
        assert!(Format::named("banana").is_none());
    }

    #[test]
    fn a_format_must_be_for_the_type() {
        let types = |t: &str| vec![t.to_owned()];
        assert_eq!(supported("int32", &types("integer")), "int32");
        assert_eq!(supported("int32", &types("string")), "");
        assert_eq!(supported("date", &types("string")), "date");
        assert_eq!(supported("date", &types("object")), "");
        assert_eq!(supported("banana", &types("string")), "");
    }
}
