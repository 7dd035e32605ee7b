//! Addresses and networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::called::Called;
use crate::failure::Failure;
use crate::value::{Opaque, Value};

pub(super) fn call(function: &str, values: &[Value]) -> Called {
    match values {
        [Value::String(text)] => of_text(function, text),
        [Value::Opaque(Opaque::Ip(address))] => of_address(function, *address),
        [Value::Opaque(Opaque::Cidr(address, length)), rest @ ..] => {
            of_network(function, (*address, *length), rest)
        }
        _ => None,
    }
}

fn of_text(function: &str, text: &str) -> Called {
    Some(match function {
        "ip" => address(text).map(|address| Value::Opaque(Opaque::Ip(address))).map_err(Failure::other),
        "isIP" => Ok(Value::Bool(address(text).is_ok())),
        "ip.isCanonical" => {
            address(text).map(|address| Value::Bool(address.to_string() == text)).map_err(Failure::other)
        }
        "cidr" => network(text)
            .map(|(address, length)| Value::Opaque(Opaque::Cidr(address, length)))
            .map_err(|problem| {
                // The real server says it twice.
                Failure::other(format!(
                    "network address parse error during conversion from string: {problem}"
                ))
            }),
        "isCIDR" => Ok(Value::Bool(network(text).is_ok())),
        _ => return None,
    })
}

fn of_address(function: &str, address: IpAddr) -> Called {
    Some(Ok(match function {
        "family" => Value::Int(if address.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Value::Bool(address.is_unspecified()),
        "isLoopback" => Value::Bool(address.is_loopback()),
        "isLinkLocalUnicast" => Value::Bool(is_link_local(address)),
        "isLinkLocalMulticast" => Value::Bool(match address {
            IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(address) => address.segments().first().is_some_and(|part| part & 0xff0f == 0xff02),
        }),
        "isGlobalUnicast" => Value::Bool(
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !is_link_local(address)
                && address != IpAddr::V4(Ipv4Addr::BROADCAST),
        ),
        _ => return None,
    }))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn of_network(function: &str, own: (IpAddr, u8), rest: &[Value]) -> Called {
    Some(match (function, rest) {
        ("ip", []) => Ok(Value::Opaque(Opaque::Ip(own.0))),
        ("prefixLength", []) => Ok(Value::Int(own.1.into())),
        ("masked", []) => Ok(Value::Opaque(Opaque::Cidr(masked(own.0, own.1), own.1))),
        ("containsIP", [Value::String(text)]) => {
            address(text).map(|other| Value::Bool(contains(own, other))).map_err(Failure::other)
        }
        ("containsIP", [Value::Opaque(Opaque::Ip(other))]) => Ok(Value::Bool(contains(own, *other))),
        ("containsCIDR", [Value::String(text)]) => {
            network(text).map(|other| Value::Bool(covers(own, other))).map_err(Failure::other)
        }
        ("containsCIDR", [Value::Opaque(Opaque::Cidr(address, length))]) => {
            Ok(Value::Bool(covers(own, (*address, *length))))
        }
        _ => return None,
    })
}

fn covers(own: (IpAddr, u8), other: (IpAddr, u8)) -> bool {
    own.1 <= other.1 && contains(own, masked(other.0, other.1))
}

fn contains((network, length): (IpAddr, u8), address: IpAddr) -> bool {
    network.is_ipv4() == address.is_ipv4() && masked(network, length) == masked(address, length)
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    let length = u32::from(length);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - length.min(128)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    }
}

/// Returns an address, or why a text is none.
fn address(text: &str) -> Result<IpAddr, String> {
    if let Some((plain, _)) = text.split_once('%')
        && plain.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {text:?} with zone value is not allowed"));
    }
    let address: IpAddr = text.parse().map_err(|_| {
        let why = format!("ParseAddr({text:?}): {}", unreadable(text));
        format!("IP Address {text:?} parse error during conversion from string: {why}")
    })?;
    if is_mapped(address) {
        return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
    }
    Ok(address)
}

/// Returns what Go says of a text that is no address.
fn unreadable(text: &str) -> &'static str {
    if !text.contains(['.', ':']) {
        return "unable to parse IP";
    }
    if text.contains(':') {
        return "each colon-separated field must have at least one digit";
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.iter().any(|part| !part.chars().all(|digit| digit.is_ascii_digit())) {
        return "unexpected character";
    }
    if parts.iter().any(|part| part.is_empty()) {
        return "IPv4 field must have at least one digit";
    }
    if parts.iter().any(|part| part.len() > 1 && part.starts_with('0')) {
        return "IPv4 field has octet with leading zero";
    }
    if parts.iter().any(|part| part.parse::<u8>().is_err()) {
        return "IPv4 field has value >255";
    }
    if parts.len() < 4 { "IPv4 address too short" } else { "IPv4 address too long" }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Returns a network, or why a text is none.
fn network(text: &str) -> Result<(IpAddr, u8), String> {
    let failed = |why: &str| {
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({text:?}): {why}"
        )
    };
    let (address, length) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
    let read: IpAddr =
        address.parse().map_err(|_| failed(&format!("ParseAddr({address:?}): {}", unreadable(address))))?;
    let is_plain = !length.is_empty()
        && length.len() <= 3
        && length.chars().all(|digit| digit.is_ascii_digit())
        && (length == "0" || !length.starts_with('0'));
    let length: u8 = match length.parse() {
        Ok(length) if is_plain => length,
        _ => return Err(failed(&format!("bad bits after slash: {length:?}"))),
    };
    if length > if read.is_ipv4() { 32 } else { 128 } {
        return Err(failed("prefix length out of range"));
    }
    if is_mapped(read) {
        return Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"));
    }
    Ok((read, length))
}
