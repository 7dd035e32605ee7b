//! The options that keep operators of one namespace apart, with their types.

use std::time::Duration;

use super::{ConfigError, OptionSources, parse_duration};

/// The name of the Lease, which is that of the reference operator: the two never lead at the same time.
const LEASE: &str = "addon-operator-leader-election";

/// The longest time that an operator may be waited for that is dead.
const LONGEST: Duration = Duration::from_mins(10);

/// How much sooner a leader has ended than others may take its Lease.
const MARGIN: Duration = Duration::from_secs(1);

/// How operators of one namespace are kept apart.
#[derive(Clone, Debug)]
pub struct ElectionSettings {
    /// What an operator does that does not hold the Lease.
    pub mode: ElectionMode,
    /// The name of the Lease.
    pub lease: String,
    /// Who this operator is.
    pub identity: String,
    /// How long others wait for a leader that is silent.
    pub lease_duration: Duration,
    /// How long a leader acts that can't renew the Lease.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed.
    pub retry_period: Duration,
}

/// What an operator does that does not hold the Lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ElectionMode {
    /// There is no Lease.
    Off,
    /// It ends if another one is alive.
    Refuse,
    /// It waits.
    Standby,
    /// It works, and warns if another one is alive.
    Warn,
}

impl ElectionSettings {
    pub(super) fn new(given: &OptionSources) -> Result<Self, ConfigError> {
        let is_ha = given.switch("ha")?;
        let single = given.parse("single-instance", "warn, refuse or off", |text| match text {
            "off" => Some(ElectionMode::Off),
            "refuse" => Some(ElectionMode::Refuse),
            "warn" => Some(ElectionMode::Warn),
            _ => None,
        })?;
        let seconds = |flag| {
            given.parse(flag, "a duration from 500ms to 10m", |text| {
                parse_duration(text).filter(|time| (Duration::from_millis(500)..=LONGEST).contains(time))
            })
        };
        let lease_duration = seconds("ha-lease-duration")?;
        let renew_deadline = seconds("ha-renew-deadline")?;
        let retry_period = seconds("ha-retry-period")?;
        if lease_duration.subsec_nanos() != 0 || lease_duration < Duration::from_secs(2) {
            return Err(wrong(given, "ha-lease-duration", "whole seconds, at least 2, as a Lease has them"));
        }
        if renew_deadline + MARGIN > lease_duration {
            let expected = format!("at least 1s less than --ha-lease-duration, which is {lease_duration:?}");
            return Err(wrong(given, "ha-renew-deadline", &expected));
        }
        // As client-go has it: the second try comes before the deadline, also when it is late.
        if retry_period * 6 / 5 > renew_deadline {
            let expected = format!("at most five sixths of --ha-renew-deadline, which is {renew_deadline:?}");
            return Err(wrong(given, "ha-retry-period", &expected));
        }
        let mode = if is_ha { ElectionMode::Standby } else { single };
        let identity = if is_ha { replica(given)? } else { instance(given) };
        Ok(Self { mode, lease: LEASE.to_owned(), identity, lease_duration, renew_deadline, retry_period })
    }
}

fn wrong(given: &OptionSources, option: &'static str, expected: &str) -> ConfigError {
    let (text, source_of) = given.text(option);
    ConfigError::Malformed { option, source_of, given: text, expected: expected.to_owned() }
}

/// Returns who a replica is: the name of its pod in the DNS, or where it says that it is.
fn replica(given: &OptionSources) -> Result<String, ConfigError> {
    let text = |flag| given.text(flag).0;
    let (pod, address) = (text("pod-name"), text("ha-advertise-address"));
    if pod.is_empty() {
        let advice = "with --ha set ADDON_OPERATOR_POD to the name of the pod (metadata.name), or to another name that no other replica has";
        return Err(ConfigError::Missing { option: "--pod-name", advice });
    }
    if !address.is_empty() {
        return Ok(format!("{pod}_{address}"));
    }
    let ip: Result<std::net::IpAddr, _> = text("prometheus-listen-address").parse();
    match ip {
        Ok(ip) if !ip.is_unspecified() => {
            Ok(format!("{pod}.{}.{}.pod", ip.to_string().replace(['.', ':'], "-"), text("namespace")))
        }
        Ok(_) | Err(_) => {
            let advice = "with --ha set ADDON_OPERATOR_LISTEN_ADDRESS to the address of the pod (status.podIP), or --ha-advertise-address";
            Err(ConfigError::Missing { option: "--prometheus-listen-address", advice })
        }
    }
}

/// Returns who an operator is that is alone: nobody else has this name, and neither has it after a restart.
fn instance(given: &OptionSources) -> String {
    let pod = given.text("pod-name").0;
    let host = given.environment().text("HOSTNAME").unwrap_or("operator");
    format!("{}_{:08x}", if pod.is_empty() { host } else { &pod }, rand::random::<u32>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Environment;

    fn election(pairs: &[(&str, &str)]) -> Result<ElectionSettings, String> {
        let mut environment = Environment::default().with("ADDON_OPERATOR_NAMESPACE", "ops");
        for (name, text) in pairs {
            environment = environment.with(name, *text);
        }
        let given = OptionSources::new(BTreeMap::new(), environment);
        ElectionSettings::new(&given).map_err(|error| error.to_string())
    }

    #[test]
    fn a_replica_has_the_name_that_the_reference_operator_gives_it() {
        let ha = [("ADDON_OPERATOR_HA", "true"), ("ADDON_OPERATOR_POD", "ao-1")];
        let with = |more: &[(&str, &str)]| election(&[&ha[..], more].concat());
        let settings = with(&[("ADDON_OPERATOR_LISTEN_ADDRESS", "10.1.2.3")]).unwrap();
        assert_eq!(settings.identity, "ao-1.10-1-2-3.ops.pod");
        assert_eq!(settings.lease, "addon-operator-leader-election");
        assert_eq!(settings.mode, ElectionMode::Standby);
        let times = [settings.lease_duration, settings.renew_deadline, settings.retry_period];
        assert_eq!(times.map(|time| time.as_secs()), [35, 30, 10]);
        let settings = with(&[("ADDON_OPERATOR_HA_ADVERTISE_ADDRESS", "host:9115")]).unwrap();
        assert_eq!(settings.identity, "ao-1_host:9115");
    }

    #[test]
    fn a_replica_that_nobody_could_tell_from_others_does_not_start() {
        let error = election(&[("ADDON_OPERATOR_HA", "true")]).unwrap_err();
        assert!(error.contains("--pod-name") && error.contains("ADDON_OPERATOR_POD"), "{error}");
        let named = [("ADDON_OPERATOR_HA", "true"), ("ADDON_OPERATOR_POD", "ao-1")];
        let error = election(&named).unwrap_err();
        assert!(error.contains("ADDON_OPERATOR_LISTEN_ADDRESS"), "{error}");
    }

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        let times = |lease, renew, retry| {
            election(&[
                ("ADDON_OPERATOR_HA_LEASE_DURATION", lease),
                ("ADDON_OPERATOR_HA_RENEW_DEADLINE", renew),
                ("ADDON_OPERATOR_HA_RETRY_PERIOD", retry),
            ])
        };
        assert!(times("3s", "2s", "500ms").is_ok());
        for (lease, renew, retry, named) in [
            ("30s", "30s", "10s", "ha-renew-deadline"),
            ("35s", "34500ms", "10s", "ha-renew-deadline"),
            ("35s", "11s", "10s", "ha-retry-period"),
            ("35500ms", "30s", "10s", "ha-lease-duration"),
            ("1s", "500ms", "500ms", "ha-lease-duration"),
            ("1h", "30s", "10s", "ha-lease-duration"),
            ("35s", "30s", "0s", "ha-retry-period"),
            ("35s", "soon", "10s", "ha-renew-deadline"),
        ] {
            let error = times(lease, renew, retry).unwrap_err();
            assert!(error.contains(named), "{lease} {renew} {retry}: {error}");
        }
    }

    #[test]
    fn who_is_alone_has_another_name_after_each_start() {
        let names = [(); 2].map(|()| election(&[("HOSTNAME", "node")]).unwrap().identity);
        assert!(names.iter().all(|name| name.starts_with("node_")) && names[0] != names[1], "{names:?}");
        assert_eq!(election(&[]).unwrap().mode, ElectionMode::Warn);
        assert!(election(&[("ADDON_OPERATOR_SINGLE_INSTANCE", "perhaps")]).is_err());
    }
}
