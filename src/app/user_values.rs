//! The ConfigMap and the Secret over it: read at the start, and followed until the end.

use engine::{ConfigObject, Event};
use tokio::task::JoinHandle;

use super::surroundings::{Outcome, Surroundings};
use super::waiting::{Wanted, answered};
use crate::cluster::watch::WatchReports;
use crate::config::{Parameters, Settings};
use crate::driver::{Channels, Inbox};
use crate::kube::{ConfigFeed, ConfigSource, ConfigSources};
use crate::lasting_task::lasting;

/// Returns the ConfigMap and the Secret over it.
pub(crate) fn of(around: &Surroundings) -> ConfigSources {
    let Settings { namespace, config_map, config_secret, .. } = &around.settings;
    ConfigSources::new(&around.client, namespace, config_map, config_secret)
}

/// What was read at the start, and what follows the objects from then on.
pub(super) struct UserValues {
    /// What both objects said.
    pub(super) first: [Event; 2],
    config_map: (ConfigSource, ConfigFeed),
    secret: (ConfigSource, ConfigFeed),
    reports: WatchReports,
}

impl UserValues {
    /// Reads both objects. An API server that is away is waited for, except with `--once`.
    pub(super) async fn read(
        config: ConfigSources,
        reports: WatchReports,
        around: &Surroundings,
        channels: &Channels,
    ) -> Result<Self, Outcome> {
        let ConfigSources { config_map, secret } = config;
        let wanted = Wanted { what: config_map.title(), complaint: "the API server does not answer" };
        channels.say(format!("it waits for {}", wanted.what));
        let (values, version) = answered(&wanted, around, channels, || config_map.read()).await?;
        channels.say(format!("it waits for {}", secret.title()));
        let mut secret_feed = secret.feed(&reports);
        let mut shutdown = around.shutdown.clone();
        let secret_values = tokio::select! {
            values = secret_feed.first() => values,
            // An API server that says nothing must not keep the end waiting.
            _ = shutdown.wait_for(|requested| *requested) => return Err(Outcome::Done),
        };
        let config_map_feed = config_map.feed_behind(version, &reports);
        Ok(Self {
            first: [values, secret_values],
            config_map: (config_map, config_map_feed),
            secret: (secret, secret_feed),
            reports,
        })
    }

    /// Reports each change of the objects until the driver ends.
    pub(super) fn follow(self, inbox: &Inbox, parameters: &Parameters) -> [JoinHandle<()>; 2] {
        let Self { config_map, secret, reports, .. } = self;
        [config_map, secret].map(|(source, feed)| {
            tokio::spawn(follow(source, feed, inbox.clone(), reports.clone(), parameters.clone()))
        })
    }
}

/// Follows one of the objects until the driver ends.
async fn follow(
    source: ConfigSource,
    feed: ConfigFeed,
    inbox: Inbox,
    reports: WatchReports,
    parameters: Parameters,
) {
    let what = match source.object() {
        ConfigObject::ConfigMap => "the watch of the ConfigMap",
        ConfigObject::Secret => "the watch of the Secret with values",
    };
    let mut opened = Some(feed);
    let follow = || {
        let feed = opened.take().unwrap_or_else(|| source.feed(&reports));
        feed.follow(inbox.clone(), parameters.clone())
    };
    lasting(what, follow).await;
}
