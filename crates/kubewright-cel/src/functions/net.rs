//! URLs, IP addresses and CIDR blocks.

use std::{fmt, net::IpAddr, sync::Arc};

use super::{super::eval::fail, EvalResult};
use crate::value::Val;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip(pub(super) IpAddr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    ip: IpAddr,
    length: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    fn parse(text: &str) -> Option<Self> {
        if text.chars().any(|c| c.is_control() || c == ' ') {
            return None;
        }
        let text = text.split('#').next().unwrap_or_default();
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = if before.starts_with('/') { ("", before) } else { before.split_once(':')? };
        let scheme_ok = scheme.is_empty()
            || (scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let host = host.rsplit('@').next().unwrap_or_default();
        let absolute = !scheme.is_empty() && rest.starts_with('/') || before.starts_with('/');
        (scheme_ok && absolute).then(|| Self {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        })
    }

    fn hostname_and_port(&self) -> (&str, &str) {
        match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
                (name.trim_start_matches('[').trim_end_matches(']'), port)
            }
            _ => (self.host.trim_start_matches('[').trim_end_matches(']'), ""),
        }
    }
}

impl Ip {
    /// Parses a canonical address: no zone, no IPv4 in IPv6, no leading zeros.
    fn parse(text: &str) -> Result<Self, String> {
        let Ok(ip) = text.parse::<IpAddr>() else {
            return Err(format!(
                "IP Address {text:?} parse error during conversion from string: ParseAddr({text:?}): unable to parse IP"
            ));
        };
        if matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
            return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
        }
        Ok(Self(ip))
    }

    fn is_link_local(self) -> bool {
        match self.0 {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
        }
    }
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (ip, length) = text.split_once('/')?;
        let ip = Ip::parse(ip).ok()?.0;
        let digits = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
        let length = length.parse().ok().filter(|_| digits)?;
        (length <= if ip.is_ipv4() { 32 } else { 128 }).then_some(Self { ip, length })
    }

    fn bits(ip: IpAddr) -> (u128, u32) {
        match ip {
            IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
            IpAddr::V6(ip) => (u128::from(ip), 128),
        }
    }

    fn prefix(ip: IpAddr, length: u8) -> u128 {
        let (bits, width) = Self::bits(ip);
        bits.checked_shr(width.saturating_sub(u32::from(length))).unwrap_or_default()
    }

    fn contains(&self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.ip.is_ipv4()
            && Self::prefix(ip, self.length) == Self::prefix(self.ip, self.length)
    }

    fn contains_block(&self, other: &Self) -> bool {
        self.length <= other.length && self.contains(other.ip)
    }

    fn masked(&self) -> Self {
        let (_, width) = Self::bits(self.ip);
        let kept = Self::prefix(self.ip, self.length)
            .checked_shl(width - u32::from(self.length))
            .unwrap_or_default();
        let ip = if width == 32 {
            IpAddr::V4(u32::try_from(kept).unwrap_or_default().into())
        } else {
            IpAddr::V6(kept.into())
        };
        Self { ip, length: self.length }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.ip, self.length)
    }
}

pub(super) fn call<'v>(function: &str, args: &[Val<'v>]) -> Option<EvalResult<'v>> {
    let flag = |flag: bool| Some(Ok(Val::Bool(flag)));
    let cidr_error =
        |text: &str| fail(format!("network address parse error during conversion from string: {text:?}"));
    match (function, args) {
        ("isURL", [Val::String(text)]) => flag(Url::parse(text).is_some()),
        ("url", [Val::String(text)]) => Some(match Url::parse(text) {
            Some(url) => Ok(Val::Url(Arc::new(url))),
            None => fail(format!(
                "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
            )),
        }),
        ("isIP", [Val::String(text)]) => flag(Ip::parse(text).is_ok()),
        ("ip", [Val::String(text)]) => Some(Ip::parse(text).map_or_else(fail, |ip| Ok(Val::Ip(ip)))),
        ("ip.isCanonical", [Val::String(text)]) => {
            Some(Ip::parse(text).map_or_else(fail, |ip| Ok(Val::Bool(ip.0.to_string() == **text))))
        }
        ("isCIDR", [Val::String(text)]) => flag(Cidr::parse(text).is_some()),
        ("cidr", [Val::String(text)]) => {
            Some(Cidr::parse(text).map_or_else(|| cidr_error(text), |cidr| Ok(Val::Cidr(cidr))))
        }
        (function, [Val::Url(url)]) => url_part(function, url),
        (function, [Val::Ip(ip)]) => flag(match function {
            "family" => return Some(Ok(Val::Int(if ip.0.is_ipv4() { 4 } else { 6 }))),
            "isUnspecified" => ip.0.is_unspecified(),
            "isLoopback" => ip.0.is_loopback(),
            "isLinkLocalUnicast" => ip.is_link_local(),
            "isLinkLocalMulticast" => match ip.0 {
                IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
                IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
            },
            "isGlobalUnicast" => {
                let broadcast = matches!(ip.0, IpAddr::V4(ip) if ip.is_broadcast());
                !(ip.0.is_unspecified()
                    || ip.0.is_loopback()
                    || ip.0.is_multicast()
                    || ip.is_link_local()
                    || broadcast)
            }
            _ => return None,
        }),
        ("containsIP", [Val::Cidr(cidr), Val::Ip(ip)]) => flag(cidr.contains(ip.0)),
        ("containsIP", [Val::Cidr(cidr), Val::String(text)]) => {
            Some(Ip::parse(text).map_or_else(fail, |ip| Ok(Val::Bool(cidr.contains(ip.0)))))
        }
        ("containsCIDR", [Val::Cidr(cidr), Val::Cidr(other)]) => flag(cidr.contains_block(other)),
        ("containsCIDR", [Val::Cidr(cidr), Val::String(text)]) => Some(
            Cidr::parse(text)
                .map_or_else(|| cidr_error(text), |other| Ok(Val::Bool(cidr.contains_block(&other)))),
        ),
        ("ip", [Val::Cidr(cidr)]) => Some(Ok(Val::Ip(Ip(cidr.ip)))),
        ("masked", [Val::Cidr(cidr)]) => Some(Ok(Val::Cidr(cidr.masked()))),
        ("prefixLength", [Val::Cidr(cidr)]) => Some(Ok(Val::Int(i64::from(cidr.length)))),
        _ => None,
    }
}

fn url_part<'v>(function: &str, url: &Url) -> Option<EvalResult<'v>> {
    let text = match function {
        "getScheme" => url.scheme.as_str(),
        "getHost" => url.host.as_str(),
        "getHostname" => url.hostname_and_port().0,
        "getPort" => url.hostname_and_port().1,
        "getEscapedPath" => url.path.as_str(),
        "getQuery" => {
            let mut out: Vec<(Val<'v>, Vec<Val<'v>>)> = Vec::new();
            for pair in url.query.split('&').filter(|pair| !pair.is_empty()) {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                let (key, value) = (Val::text(unescape(key)), Val::text(unescape(value)));
                match out.iter_mut().find(|(known, _)| known.equals(&key)) {
                    Some((_, values)) => values.push(value),
                    None => out.push((key, vec![value])),
                }
            }
            let entries = out.into_iter().map(|(key, values)| (key, Val::list(values))).collect();
            return Some(Ok(Val::Map(Arc::new(entries))));
        }
        _ => return None,
    };
    Some(Ok(Val::text(text)))
}

fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let hex = text.get(i + 1..i + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[i], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                i += 2;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
