//! Parses listen addresses as Go programs take them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the addresses to try in order; empty for `0`, `None` if the text is no address.
pub(super) fn parse(text: &str) -> Option<Vec<SocketAddr>> {
    if text == "0" {
        return Some(Vec::new());
    }
    if let Ok(address) = text.parse() {
        return Some(vec![address]);
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let hosts: &[IpAddr] = match host {
        // All interfaces: the IPv6 socket takes both families, unless the machine has IPv4 only.
        "" => &[IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
        "localhost" => &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        _ => return None,
    };
    Some(hosts.iter().map(|host| SocketAddr::new(*host, port)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_as_in_go() {
        let text = |text| parse(text).map(|all| all.iter().map(SocketAddr::to_string).collect::<Vec<_>>());
        assert_eq!(text("0"), Some(vec![]));
        assert_eq!(text(":8080").unwrap(), ["[::]:8080", "0.0.0.0:8080"]);
        assert_eq!(text("127.0.0.1:0").unwrap(), ["127.0.0.1:0"]);
        assert_eq!(text("[::1]:9").unwrap(), ["[::1]:9"]);
        assert_eq!(text("localhost:9").unwrap(), ["127.0.0.1:9", "[::1]:9"]);
        for invalid in ["", "8080", "a:b", ":", ":99999", "example.com:80", "http://x:80"] {
            assert_eq!(text(invalid), None, "{invalid}");
        }
    }
}
