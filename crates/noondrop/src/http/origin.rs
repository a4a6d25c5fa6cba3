//! `Noondrop-Origin`: where a request came from. An address is cut before anything is made of it (RULES R13), so that
//! not even its digest tells one person's line from his neighbour's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The text with its addresses cut: IPv4 to 24 bits, IPv6 to 48. What stands for an address and is none is left out.
#[must_use]
pub fn cut_origin(text: &str) -> String {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let parts = parts.map(|part| match part.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("ip") => {
            address(value).map_or_else(|| "ip=".to_owned(), |network| format!("ip={network}"))
        }
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(";")
}

fn address(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('"');
    let with_port = || text.parse::<SocketAddr>().ok().map(|socket| socket.ip());
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let bare = bare.split('%').next().unwrap_or(bare);
    let found = bare.parse::<IpAddr>().ok().or_else(with_port)?;
    Some(match found.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{}/24", Ipv4Addr::new(a, b, c, 0))
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{}/48", Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_however_it_is_written() {
        for (text, cut) in [
            ("device=d9;ip=203.0.113.77", "device=d9;ip=203.0.113.0/24"),
            ("ip=203.0.113.77:4431 ; device=d9", "ip=203.0.113.0/24;device=d9"),
            ("IP = ::ffff:203.0.113.77", "ip=203.0.113.0/24"),
            ("ip=2001:db8:85a3:1:2:3:4:5", "ip=2001:db8:85a3::/48"),
            ("ip=\"[2001:db8:85a3:1::5]:80\"", "ip=2001:db8:85a3::/48"),
            ("ip=[fe80::1%eth0]", "ip=fe80::/48"),
        ] {
            assert_eq!(cut_origin(text), cut, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_not_kept_and_the_rest_is() {
        assert_eq!(cut_origin("ip=10.1.2.3.4;device=d9"), "ip=;device=d9");
        assert_eq!(cut_origin("device=d9;; agent=x"), "device=d9;agent=x");
    }
}
