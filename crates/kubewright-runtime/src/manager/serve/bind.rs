//! Addresses as Go programs take them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where to listen: the addresses to try, in order; none at all for `0`. Nothing if the text is no address.
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
        // All interfaces: the first takes both families, unless the machine has only one.
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
    fn addresses_are_read_as_go_reads_them() {
        let text = |text| parse(text).map(|all| all.iter().map(SocketAddr::to_string).collect::<Vec<_>>());
        assert_eq!(text("0"), Some(vec![]));
        assert_eq!(text(":8080").unwrap(), ["[::]:8080", "0.0.0.0:8080"]);
        assert_eq!(text("127.0.0.1:0").unwrap(), ["127.0.0.1:0"]);
        assert_eq!(text("[::1]:9").unwrap(), ["[::1]:9"]);
        assert_eq!(text("localhost:9").unwrap(), ["127.0.0.1:9", "[::1]:9"]);
        for nonsense in ["", "8080", "a:b", ":", ":99999", "example.com:80", "http://x:80"] {
            assert_eq!(text(nonsense), None, "{nonsense}");
        }
    }
}
