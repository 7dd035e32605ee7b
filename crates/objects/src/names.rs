//! Rules for names, labels, ports and addresses, with the texts that say what breaks them.

use std::net::IpAddr;

use serde_json::Value;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = r"a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// How a kind's objects may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS label.
    Label,
    /// A DNS label that starts with a letter.
    Dns1035,
    /// Anything that can be a part of a path.
    PathSegment,
    /// A DNS name.
    Subdomain,
    /// The address of a host, as it is usually written.
    Address,
}

impl NameRule {
    /// Returns what is wrong with `name`.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Label => label(name),
            NameRule::Dns1035 => dns_1035(name),
            NameRule::PathSegment => path_segment(name),
            NameRule::Subdomain => subdomain(name),
            NameRule::Address => strict_ip(name),
        }
    }
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// Returns the texts of the rules that `name` breaks, after that of its length.
fn broken(name: &str, most: usize, rules: &[(bool, &str)]) -> Vec<String> {
    let long = (name.len() > most).then(|| too_long(most));
    let broken = rules.iter().filter(|(broken, _)| *broken).map(|(_, text)| (*text).to_owned());
    long.into_iter().chain(broken).collect()
}

fn is_label(name: &str) -> bool {
    let inner = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    inner && !name.is_empty() && !name.starts_with('-') && !name.ends_with('-')
}

/// Returns what is wrong with a DNS label, for example `web-1`.
pub fn label(name: &str) -> Vec<String> {
    let text = if subdomain(name).is_empty() { "must not contain dots" } else { LABEL };
    broken(name, 63, &[(!is_label(name), text)])
}

/// Returns what is wrong with a DNS name, for example `a.example.com`.
pub fn subdomain(name: &str) -> Vec<String> {
    broken(name, 253, &[(!name.split('.').all(is_label), SUBDOMAIN)])
}

/// Returns what is wrong with a DNS name whose first label is a star, for example `*.example.com`.
pub fn wildcard_subdomain(name: &str) -> Vec<String> {
    let valid = name.strip_prefix("*.").is_some_and(|rest| rest.split('.').all(is_label));
    broken(name, 253, &[(!valid, WILDCARD)])
}

/// Returns what is wrong with a DNS label that begins with a letter.
pub fn dns_1035(name: &str) -> Vec<String> {
    let valid = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    broken(name, 63, &[(!valid, DNS_1035)])
}

/// Returns what is wrong with a name that is one part of a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|illegal| name.contains(**illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

fn is_qualified(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    inner && ends(name.chars().next()) && ends(name.chars().last())
}

/// Returns what is wrong with a name like `example.com/name`.
pub fn qualified(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let local = match parts.as_slice() {
        [local] => *local,
        [prefix, local] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
            }
            *local
        }
        _ => {
            let text = format!(
                "a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            );
            return vec![text];
        }
    };
    if local.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if local.len() > 63 {
        wrong.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified(local) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// Returns what is wrong with a name as the language C has them.
pub fn c_identifier(name: &str) -> Vec<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let valid =
        name.chars().all(known) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    if valid { Vec::new() } else { vec![C_IDENTIFIER.to_owned()] }
}

/// Labels of nodes that have another name by now, and what is said of them.
const DEPRECATED_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

/// Returns what is said of a label of nodes that has another name by now.
pub fn deprecated_label(name: &str) -> Option<&'static str> {
    DEPRECATED_LABELS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Returns what is wrong with the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    broken(value, 63, &[(!value.is_empty() && !is_qualified(value), LABEL_VALUE)])
}

/// Returns what is wrong with a key of a ConfigMap or a Secret.
pub fn config_key(key: &str) -> Vec<String> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut wrong = broken(key, 253, &[(key.is_empty() || !key.chars().all(known), CONFIG_KEY)]);
    if matches!(key, "." | "..") {
        wrong.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

/// Returns what is wrong with the name of a port.
pub fn port_name(name: &str) -> Vec<String> {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let rules = [
        (!name.bytes().all(known), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (!name.bytes().any(|b| b.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    broken(name, 15, &rules)
}

/// Returns what is wrong with the number of a port.
pub fn port_number(port: i64) -> Vec<String> {
    if (1..=65535).contains(&port) {
        Vec::new()
    } else {
        vec!["must be between 1 and 65535, inclusive".to_owned()]
    }
}

/// Returns what is wrong with the name of an environment variable.
pub fn environment(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| (0x20..=0x7e).contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned(),
    ]
}

/// Returns what is wrong with the address of a host.
pub fn ip(address: &str) -> Vec<String> {
    if address.parse::<IpAddr>().is_ok() {
        Vec::new()
    } else {
        vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
    }
}

/// Returns an address as the older fields take it: the numbers of one like `010.0.0.1` may begin with zeros.
pub fn lenient_ip(address: &str) -> Option<IpAddr> {
    if let Ok(address) = address.parse() {
        return Some(address);
    }
    let numbers = address.split('.').map(|number| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        rest => rest,
    });
    numbers.collect::<Vec<_>>().join(".").parse::<std::net::Ipv4Addr>().ok().map(IpAddr::V4)
}

/// Returns what is wrong with the address of a host in a field that is older than strict rules.
pub fn older_ip(address: &str) -> Vec<String> {
    if lenient_ip(address).is_some() { Vec::new() } else { ip(address) }
}

/// Returns what is said of an address that [`lenient_ip`] accepts and that is not written as usual.
pub fn unusual_ip(address: &str) -> Option<String> {
    let read = lenient_ip(address)?;
    let usual = read.to_canonical().to_string();
    if usual == address {
        return None;
    }
    Some(if read.is_ipv6() && read.to_canonical().is_ipv6() {
        format!("IPv6 address {address:?} should be in RFC 5952 canonical format ({usual:?})")
    } else {
        format!(
            "non-standard IP address {address:?} will be considered invalid in a future Kubernetes release: use {usual:?}"
        )
    })
}

/// Returns what is wrong with the address of a host in a field that takes the usual form only.
pub fn strict_ip(address: &str) -> Vec<String> {
    let Some(read) = lenient_ip(address) else { return ip(address) };
    let usual = format!("must be in canonical form ({:?})", read.to_canonical().to_string());
    let rules = [
        (address.parse::<IpAddr>().is_err(), "must not have leading 0s"),
        (read.to_canonical() != read, "must not be an IPv4-mapped IPv6 address"),
        (read.to_string() != address, usual.as_str()),
    ];
    first(&rules)
}

/// Returns the text of the first of these rules that is broken.
fn first(rules: &[(bool, &str)]) -> Vec<String> {
    rules.iter().find(|(broken, _)| *broken).map(|(_, text)| (*text).to_owned()).into_iter().collect()
}

/// Returns what is wrong with a network in a field that takes the usual form only.
pub fn strict_network(cidr: &str) -> Vec<String> {
    let Some((address, length)) = network(cidr) else { return vec![CIDR.to_owned()] };
    let (given, digits) = cidr.split_once('/').unwrap_or_default();
    let start = first_of(address, length);
    let zeros = given.parse::<IpAddr>().is_err() || (digits.len() > 1 && digits.starts_with('0'));
    let usual = format!("{start}/{length}");
    first(&[
        (zeros, "must not have leading 0s in IP or prefix length"),
        (address.to_canonical() != address, "must not have an IPv4-mapped IPv6 address"),
        (start != address, "must not have bits set beyond the prefix length"),
        (usual != cidr, &format!("must be in canonical form ({usual:?})")),
    ])
}

/// Returns what is wrong with an address that is written with the length of the prefix of its network.
pub fn strict_interface(cidr: &str) -> Vec<String> {
    let Some((address, length)) = network(cidr) else {
        return vec!["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned()];
    };
    let mapped = address.is_ipv6() && address.to_canonical().is_ipv4();
    let length = if mapped { length.saturating_sub(96) } else { length };
    let usual = format!("{}/{length}", address.to_canonical());
    first(&[(usual != cidr, &format!("must be in canonical form ({usual:?})"))])
}

/// Returns the first address of a network.
fn first_of(address: IpAddr, length: u8) -> IpAddr {
    let shift = u32::from(length);
    match address {
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(32 - shift).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(128 - shift).unwrap_or(0)).into()),
    }
}

/// Returns what is wrong with an address that something is reached at: those of one host or link are not.
pub fn endpoint_ip(address: &str) -> Vec<String> {
    let Some(read) = lenient_ip(address) else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let (local, multicast) = match read.to_canonical() {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => {
            (v6.is_unicast_link_local(), v6.segments().first().is_some_and(|s| s & 0xff0f == 0xff02))
        }
    };
    let unspecified = format!("may not be unspecified ({address})");
    let rules = [
        (read.to_canonical().is_unspecified(), unspecified.as_str()),
        (read.to_canonical().is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    broken("", 0, &rules)
}

/// Returns the address and the length of the prefix of a network.
pub fn network(cidr: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = cidr.split_once('/')?;
    let address = lenient_ip(address)?;
    let length: u8 = length.parse().ok().filter(|_| !length.starts_with('+'))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    (length <= most).then_some((address, length))
}

/// Returns what is said of a network that [`network`] accepts and that is not written as usual.
pub fn unusual_network(cidr: &str) -> Option<String> {
    let (address, length) = network(cidr)?;
    let first = first_of(address, length);
    let (given, _) = cidr.split_once('/')?;
    let usual = format!("{first}/{length}");
    if given.parse::<IpAddr>().is_err() || address.to_canonical() != address {
        return Some(format!(
            "non-standard CIDR value {cidr:?} will be considered invalid in a future Kubernetes release: use {usual:?}"
        ));
    }
    if first != address {
        let alone = if address.is_ipv4() { 32 } else { 128 };
        return Some(format!(
            "CIDR value {cidr:?} is ambiguous in this context (should be {usual:?} or \"{address}/{alone}\"?)"
        ));
    }
    let unusual = address.is_ipv6() && usual != cidr;
    unusual.then(|| format!("IPv6 CIDR value {cidr:?} should be in RFC 5952 canonical format ({usual:?})"))
}

/// What is said of a text that [`network`] does not accept.
pub const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Returns what is wrong with a number or a percentage.
pub fn amount_or_percent(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => match percent(text) {
            None => vec![PERCENT.to_owned()],
            Some(_) => Vec::new(),
        },
        Value::Number(number) if number.as_i64().is_some_and(|n| n < 0) => {
            vec!["must be greater than or equal to 0".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Returns the number before the percent sign.
pub fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.parse().unwrap_or(u64::MAX))
}
