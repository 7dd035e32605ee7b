//! Which addresses the operator may be sent to by what other people write.
//!
//! A repository is named by whoever may write a configuration, and its server may send a request on. Without this check
//! both could have the operator ask what only the operator reaches: metadata of the cloud, the API server, its neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns in a few words what kind of address this is, if no repository may be there; `None` for a public one.
pub(crate) fn refusal(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => refusal_v4(address),
        IpAddr::V6(address) => refusal_v6(address),
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [first, second, third, _] = address.octets();
    Some(match (first, second, third) {
        (0, ..) => "an unspecified address",
        (127, ..) => "a loopback address",
        (169, 254, _) => "a link-local address",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "a private address",
        (100, 64..=127, _) => "a shared address (100.64.0.0/10)",
        (192, 0, 0) | (198, 18..=19, _) | (240..=255, ..) => "a reserved address",
        (224..=239, ..) => "a multicast address",
        _ => return None,
    })
}

fn refusal_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some(inner) = inner_v4(address) {
        return refusal_v4(inner);
    }
    let [first, ..] = address.segments();
    Some(match first {
        _ if address.is_unspecified() => "an unspecified address",
        _ if address.is_loopback() => "a loopback address",
        0xfc00..=0xfdff => "a unique local address (fc00::/7)",
        0xfe80..=0xfebf => "a link-local address",
        0xfec0..=0xfeff => "a site-local address",
        0xff00..=0xffff => "a multicast address",
        _ => return None,
    })
}

/// Returns the IPv4 address that an IPv6 address stands for: a mapped or compatible one, that of NAT64, of 6to4 and of a
/// tunnel by Teredo.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // `::` and `::1` are no IPv4 addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, .., high, low]
        | [0x2002, high, low, ..] => Some(joined(high, low)),
        // Teredo hides the address of the client by turning its bits round.
        [0x2001, 0, .., high, low] => Some(joined(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_operator_reaches_is_refused_however_it_is_written() {
        for (address, kind) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("10.96.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("100.64.0.1", "shared"),
            ("100.127.255.255", "shared"),
            ("192.0.0.8", "reserved"),
            ("198.18.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("224.0.0.1", "multicast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("fd00::1", "unique local"),
            ("fc00::1", "unique local"),
            ("fe80::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::10.0.0.1", "private"),
            ("::ffff:0:169.254.169.254", "link-local"),
            ("64:ff9b::10.0.0.1", "private"),
            ("2002:7f00:0001::", "loopback"),
            ("2001:0:4136:e378:8000:63bf:f5ff:fffe", "private"),
        ] {
            let said = refusal(address.parse().unwrap());
            assert!(said.is_some_and(|said| said.contains(kind)), "{address}: {said:?}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for address in [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.0.2.1",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:0101:0101::",
        ] {
            assert_eq!(refusal(address.parse().unwrap()), None, "{address}");
        }
    }
}
