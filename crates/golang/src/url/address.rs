//! Addresses of IPv6 in brackets.

/// How many fields an address has.
const FIELDS: usize = 8;

/// Returns what is wrong with an address, as Go's `net/netip` does; nothing if it is one of IPv6
/// or IPv4.
pub fn address_problem(address: &str) -> Option<String> {
    let text = address.split('%').next().unwrap_or_default();
    if text.parse::<std::net::IpAddr>().is_ok() && !address.ends_with('%') {
        return None;
    }
    let (what, at) = match address.find(['.', ':', '%']).and_then(|place| address.get(place..)) {
        Some(rest) if rest.starts_with(':') => wrong_field(text),
        Some(rest) if rest.starts_with('%') => ("missing IPv6 address", ""),
        Some(_) | None => ("unable to parse IP", ""),
    };
    let address = crate::strconv::quote(address.as_bytes());
    let at =
        if at.is_empty() { String::new() } else { format!(" (at {})", crate::strconv::quote(at.as_bytes())) };
    Some(format!("ParseAddr({address}): {what}{at}"))
}

/// Returns what is wrong with the fields of an address, and where.
fn wrong_field(text: &str) -> (&'static str, &str) {
    let mut shortened = text.starts_with("::");
    let mut rest = text.strip_prefix("::").unwrap_or(text);
    let mut fields = 0;
    while fields < FIELDS {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            return ("each colon-separated field must have at least one digit", rest);
        }
        if digits > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        fields += 1;
        rest = rest.get(digits..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return ("unexpected character, want colon", rest);
        };
        if after.is_empty() {
            return ("colon must be followed by more characters", rest);
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if shortened {
                return ("multiple :: in address", rest);
            }
            shortened = true;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest.is_empty(), shortened) {
        (false, _) => ("trailing garbage after address", rest),
        (true, false) => ("address string too short", ""),
        (true, true) => ("the :: must expand to at least one field of zeros", ""),
    }
}
