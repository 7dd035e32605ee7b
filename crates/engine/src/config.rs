//! What the person who starts the operator decides, as plain data.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::extenders::Extenders;
use crate::hook::spec::FailurePolicy;
use crate::name::ReleaseName;
use crate::retry::RetryPolicy;
use crate::time::Time;

/// Settings of the [`Engine`](crate::Engine).
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is on or off")]
pub struct Config {
    /// The namespace of the ConfigMap and of all releases.
    pub namespace: String,
    /// The name of the ConfigMap.
    pub config_map: String,
    /// The name of the Secret that lies over it.
    pub config_secret: String,
    /// Who says whether modules are on.
    pub extenders: Extenders,
    /// How long a failed task waits before its next attempt.
    pub retry_delay: Duration,
    /// The longest such wait. Waits grow only if it is more than `retry_delay`.
    pub retry_max_delay: Duration,
    /// How long a key of a reconcile binding rests at most, after a run, from what happens beside its object.
    pub longest_rest: Duration,
    /// Where the jitter of growing waits starts.
    pub seed: u64,
    /// What a module does to the others when it fails.
    pub on_module_failure: OnModuleFailure,
    /// How many modules of one order number run at a time; at least 1.
    pub module_concurrency: usize,
    /// How many enabled scripts a discovery runs at a time; at least 1.
    pub script_concurrency: usize,
    /// How many hooks and scripts run at a time; at least 1.
    pub max_hooks: usize,
    /// How long a hook may run that does not say so itself; `None` for ever.
    pub hook_timeout: Option<Duration>,
    /// How long an enabled script may run; `None` for ever.
    pub script_timeout: Option<Duration>,
    /// How long the end of the operator may take. Processes that run may finish, but for its last
    /// 6 s, in which they are ended.
    pub shutdown_timeout: Duration,
    /// A release that is never removed: the operator's own.
    pub ignore_release: Option<ReleaseName>,
    /// How many configurations of module sources are decided on or written at a time; 0 looks after none.
    pub source_workers: usize,
    /// Whether the API server has kinds of module sources. Otherwise they are waited for, and nothing is watched.
    pub are_source_kinds_served: bool,
    /// How long until a configuration of module sources is looked at again that failed.
    pub source_relist: Duration,
    /// How long until one is fetched again that could not be fetched. It grows to an hour while that goes on.
    pub source_retry: Duration,
    /// How many objects of chart repositories are decided on or written at a time; 0 looks after none.
    pub chart_workers: usize,
    /// Whether the API server has kinds of chart repositories. Otherwise they are waited for, and nothing is watched.
    pub are_repository_kinds_served: bool,
    /// The time of day at [`Time::START`](crate::Time::START). The engine asks no clock: times of day in the status of
    /// objects are this and the time since. They are for people, and nothing is decided by them.
    pub started_at: Timestamp,
    /// Where crontab lines of update windows are read that name no time zone.
    pub time_zone: TimeZone,
    /// Whether notices may quote values. They end in the log.
    pub quote_values: bool,
    /// How the API server asks hooks; `None` if it never does.
    pub webhooks: Option<WebhookConfig>,
    /// Whether platforms may ask for what there is, and make instances of it.
    pub has_broker: bool,
    /// How operators of one namespace are kept apart; `None` if nothing does that.
    pub election: Option<ElectionConfig>,
}

/// How operators of one namespace are kept apart: by a Lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElectionConfig {
    /// What who does not hold the Lease does.
    pub mode: ElectionMode,
    /// The name of the Lease.
    pub lease: String,
    /// Who this operator is in the Lease.
    pub identity: String,
    /// How long others wait for a holder that renews it no more.
    pub lease_duration: Duration,
    /// How long a holder acts that can't renew it; less than `lease_duration`.
    pub renew_deadline: Duration,
    /// How often it is renewed; less than `renew_deadline`.
    pub retry_period: Duration,
}

/// What an operator does that does not hold the Lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ElectionMode {
    /// It waits, ready to take over.
    Standby,
    /// It ends with an error if the holder is alive.
    Refuse,
    /// It works, and warns if the holder is alive.
    Warn,
}

/// How the API server asks hooks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebhookConfig {
    /// The name of both configurations of webhooks.
    pub name: String,
    /// Where the API server reaches the operator.
    pub client: WebhookClient,
    /// What the API server does when a webhook does not answer that does not say so itself.
    pub failure_policy: FailurePolicy,
    /// How many hooks answer reviews at a time; at least 1.
    pub concurrency: usize,
    /// How many reviews wait for that at most.
    pub waiting: usize,
}

/// Where the API server reaches the operator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WebhookClient {
    /// Through a Service in the operator's namespace.
    Service(String),
    /// At an address outside of the cluster: `https://10.0.0.1:9651`.
    Url(String),
}

/// How long it takes to end processes: the time between the two signals, and a bit.
const ENDING: Duration = Duration::from_secs(6);

/// What a failing module does to the others.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnModuleFailure {
    /// The modules behind it wait until it succeeds.
    #[default]
    Block,
    /// It goes behind the other modules of its converge.
    Pass,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            config_map: "addon-operator".to_owned(),
            config_secret: "addon-operator".to_owned(),
            extenders: Extenders::default(),
            retry_delay: Duration::from_secs(5),
            retry_max_delay: Duration::ZERO,
            longest_rest: Duration::from_millis(500),
            seed: 0,
            on_module_failure: OnModuleFailure::default(),
            module_concurrency: 1,
            script_concurrency: 4,
            max_hooks: 64,
            hook_timeout: None,
            script_timeout: None,
            shutdown_timeout: Duration::from_secs(10),
            ignore_release: None,
            source_workers: 0,
            source_relist: Duration::from_mins(10),
            are_source_kinds_served: true,
            source_retry: Duration::from_mins(5),
            chart_workers: 0,
            are_repository_kinds_served: true,
            started_at: Timestamp::UNIX_EPOCH,
            time_zone: TimeZone::UTC,
            quote_values: false,
            webhooks: None,
            has_broker: false,
            election: None,
        }
    }
}

impl Config {
    /// Returns how long a task that failed `failures` times waits before its next attempt.
    ///
    /// `salt` is different for tasks that fail at the same moment, so that their waits differ.
    pub(crate) fn retry_after(&self, failures: u32, salt: u64) -> Duration {
        self.retry_within(self.retry_max_delay, failures, salt)
    }

    /// Returns the same for what says itself how it is tried again.
    pub(crate) fn retry_by(&self, policy: &RetryPolicy, failures: u32, salt: u64) -> Duration {
        let delay = policy.delay.unwrap_or(self.retry_delay);
        self.grown(delay, policy.max.unwrap_or(self.retry_max_delay), failures, salt)
    }

    /// Returns the same where waits grow up to `longest`.
    pub(crate) fn retry_within(&self, longest: Duration, failures: u32, salt: u64) -> Duration {
        self.grown(self.retry_delay, longest, failures, salt)
    }

    /// Returns the same where the first wait is `delay`.
    fn grown(&self, delay: Duration, longest: Duration, failures: u32, salt: u64) -> Duration {
        if longest <= delay {
            return delay;
        }
        let doublings = failures.saturating_sub(1).min(16);
        let grown = delay.saturating_mul(1 << doublings);
        let jitter = mixed(self.seed ^ salt.wrapping_mul(31) ^ u64::from(failures)) % 251;
        let jitter = u32::try_from(jitter).unwrap_or_default();
        // Up to a quarter more, so that tasks that failed together don't come back together.
        (grown + grown / 1000 * jitter).min(longest)
    }
}

/// Returns a number that depends on all bits of `seed` (the finalizer of `SplitMix64`).
fn mixed(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Config {
    /// Returns the moment of a time of day; that of the start for all before it.
    pub(crate) fn time_at(&self, time: Timestamp) -> Time {
        let passed = time.duration_since(self.started_at);
        Time::from_start(Duration::try_from(passed).unwrap_or_default())
    }

    /// Returns the time of day at a moment, in seconds, as objects write it.
    pub(crate) fn time_of_day(&self, at: Time) -> String {
        self.timestamp(at).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns what the clock on the wall shows at a moment.
    pub(crate) fn timestamp(&self, at: Time) -> Timestamp {
        let passed = jiff::SignedDuration::try_from(at.since_start()).unwrap_or_default();
        self.started_at.checked_add(passed).unwrap_or(self.started_at)
    }

    /// Returns the time of day that long before a moment, in seconds, as objects write it.
    pub(crate) fn time_of_day_before(&self, at: Time, age: Duration) -> String {
        let ago = jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::MAX);
        let passed = jiff::SignedDuration::try_from(at.since_start()).unwrap_or_default();
        let time = self.started_at.checked_add(passed).and_then(|now| now.checked_sub(ago));
        time.unwrap_or(Timestamp::UNIX_EPOCH).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// Returns how long until a source is fetched again that could not be fetched `failures` times in a row.
    pub(crate) fn refetch_after(&self, failures: u32) -> Duration {
        let longest = self.source_retry.max(Duration::from_hours(1));
        let doublings = failures.saturating_sub(1).min(16);
        self.source_retry.saturating_mul(1 << doublings).min(longest)
    }

    /// Returns how long processes may go on when the operator ends.
    pub(crate) fn shutdown_grace(&self) -> Duration {
        self.shutdown_timeout.saturating_sub(ENDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_stays_five_seconds_unless_it_may_grow() {
        let config = Config::default();
        for failures in [1, 2, 100, u32::MAX] {
            assert_eq!(config.retry_after(failures, 7), Duration::from_secs(5));
        }
    }

    #[test]
    fn f_d5_a_growing_delay_never_overflows_and_never_passes_its_limit() {
        let config = Config { retry_max_delay: Duration::from_mins(1), ..Config::default() };
        let mut last = Duration::ZERO;
        for failures in [1, 2, 3, 4, 5, 6, 1_000, 1_000_000, u32::MAX] {
            let delay = config.retry_after(failures, 7);
            assert!(
                delay >= Duration::from_secs(5) && delay <= Duration::from_mins(1),
                "{failures}: {delay:?}"
            );
            assert!(delay >= last, "{failures}: {delay:?} after {last:?}");
            last = delay;
        }
        assert_eq!(last, Duration::from_mins(1));
    }

    #[test]
    fn who_says_how_it_is_tried_again_goes_before_the_options() {
        let config = Config::default();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let policy = RetryPolicy { delay: seconds(10), max: seconds(60), ..RetryPolicy::default() };
        let pauses: Vec<u64> =
            (1..=6).map(|failures| config.retry_by(&policy, failures, 0).as_secs()).collect();
        assert!(pauses.is_sorted() && (10..=13).contains(&pauses[0]) && pauses[5] == 60, "{pauses:?}");
        let constant = RetryPolicy { delay: seconds(7), ..RetryPolicy::default() };
        assert_eq!([1, 9].map(|failures| config.retry_by(&constant, failures, 3).as_secs()), [7, 7]);
        assert_eq!(config.retry_by(&RetryPolicy::default(), 400, 0), Duration::from_secs(5), "for ever");
    }

    #[test]
    fn tasks_that_failed_together_come_back_at_different_times() {
        let config = Config { retry_max_delay: Duration::from_mins(1), ..Config::default() };
        assert_ne!(config.retry_after(2, 1), config.retry_after(2, 2));
        assert_eq!(config.retry_after(2, 1), config.retry_after(2, 1));
    }
}
