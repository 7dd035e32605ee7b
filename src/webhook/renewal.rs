//! What is shown follows its files or its Secret. The API server is told of another certificate first, then that is shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Event, Failure, FailureKind, WebhookCertificate};
use jiff::{SignedDuration, Timestamp};
use serde::de::IgnoredAny;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::certificate_secret::{CertificateSecret, OwnCertificate};
use super::certificates::{CertificateFiles, Checked, Shown, authorities, bundle, read};
use super::clock::Clock;
use super::error::WebhookError;
use crate::cluster::request::Requests;
use crate::cluster::watch::{Backoff, Reflector, Update, WatchError};
use crate::directory_watch::DirectoryWatch;
use crate::driver::Inbox;

/// How long files must be unchanged before they are read: a certificate and its key are written one after the other.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait before the Secret is looked at again that could not be read or written.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// How long to wait after a write of the Secret, the longer the more of them follow each other.
const BETWEEN_WRITES: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_mins(1));

/// How long nothing has to be written until these waits are short again.
const QUIET: Duration = Duration::from_mins(2);

/// How long who does not tell the API server of webhooks goes on to show a certificate when there is another one. By then whoever
/// leads has got that, too: a node is about two minutes late with the files of a Secret, and clocks differ.
const SHOWN_ON: SignedDuration = SignedDuration::from_mins(10);

/// What listens.
pub(super) struct Serving {
    shown: Arc<Shown>,
    /// The authorities that are trusted for what is shown: PEM.
    shown_ca: String,
    /// The certificate that is shown as soon as the API server trusts it.
    next: Option<Checked>,
    ca_bundle: Arc<str>,
    /// Whether this operator tells the API server what to trust. For a standby another one does.
    tells: bool,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Serving {
    /// Returns what shows a certificate as long as these tasks are not dropped.
    pub(super) fn new(shown: Arc<Shown>, certificate: &Checked, tasks: Vec<JoinHandle<()>>) -> Self {
        let ca_bundle = bundle(&certificate.ca);
        Self { shown, shown_ca: certificate.ca.clone(), next: None, ca_bundle, tells: false, tasks }
    }

    /// Returns what the API server has to trust.
    pub(super) fn ca_bundle(&self) -> &str {
        &self.ca_bundle
    }

    /// Takes note that this operator tells the API server what to trust.
    pub(super) fn tells(&mut self) {
        self.tells = true;
    }

    /// Shows the next certificate, if there is one.
    pub(super) fn show_next(&mut self) {
        if let Some(next) = self.next.take() {
            self.show(next);
        }
    }

    fn show(&mut self, certificate: Checked) {
        self.shown_ca = certificate.ca;
        self.shown.replace(certificate.key);
    }
}

/// Where certificates come from.
pub(super) enum Origin {
    /// Files, and what was read of them.
    Files(CertificateFiles, Checked),
    /// The Secret, and what it had.
    Secret(Box<CertificateSecret>, Box<OwnCertificate>),
}

impl Origin {
    /// Returns the certificate to begin with.
    pub(super) fn certificate(&self) -> &Checked {
        match self {
            Self::Files(_, checked) => checked,
            Self::Secret(_, held) => &held.checked,
        }
    }
}

/// Follows the certificate: its files or its Secret change, or it is renewed.
pub(super) struct Renewal {
    pub(super) serving: Arc<Mutex<Option<Serving>>>,
    pub(super) inbox: Inbox,
    pub(super) requests: Requests,
    pub(super) clock: Clock,
    pub(super) host: String,
}

impl Renewal {
    pub(super) async fn follow(self, origin: Origin) {
        match origin {
            Origin::Files(files, current) => self.follow_files(files, current).await,
            Origin::Secret(secret, held) => self.follow_secret(*secret, *held).await,
        }
    }

    async fn follow_secret(&self, secret: CertificateSecret, mut held: OwnCertificate) {
        let mut changes = Reflector::<IgnoredAny>::new(self.requests.clone(), secret.collection());
        let mut told: Option<Failure> = None;
        let (mut again, mut show_at): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        // Somebody else may write it back each time.
        let (mut writes, mut pause): (u32, Option<Instant>) = (0, None);
        loop {
            let due = again.unwrap_or_else(|| held.renew_at());
            let mut blind = None;
            tokio::select! {
                update = changes.next() => match update {
                    Update::Failed(error @ WatchError::Forbidden(_)) => blind = Some(unwatched(&secret, &error)),
                    // Other watches tell of an API server that is away.
                    Update::Failed(_) => continue,
                    Update::Listed(_) | Update::Changed(..) | Update::Restored => {}
                },
                () = self.clock.until(show_at.map_or(due, |show_at| show_at.min(due))) => {}
            }
            if show_at.is_some_and(|show_at| show_at <= self.clock.now()) {
                self.show_next();
                show_at = None;
            }
            if let Some(end) = pause {
                tokio::time::sleep_until(end).await;
            }
            let failure = match secret.agree(Some(&held), &self.shown()).await {
                Ok((agreed, is_written)) => {
                    if is_written {
                        writes = if pause.is_none_or(|end| end.elapsed() > QUIET) { 1 } else { writes + 1 };
                        pause = Some(Instant::now() + BETWEEN_WRITES.after(writes));
                    }
                    if !agreed.is_as(&held) {
                        show_at = self.renewed(agreed.checked.clone());
                    }
                    (held, again) = (agreed, None);
                    blind
                }
                Err(error) => {
                    again = self.clock.now().checked_add(LOOK_AGAIN).ok();
                    Some(error.failure())
                }
            };
            if failure != told {
                told.clone_from(&failure);
                self.inbox.answer(Event::WebhookCertificateKept { outcome: failure.map_or(Ok(()), Err) });
            }
        }
    }

    /// Returns the authorities of the certificate that is shown and of the next one.
    fn shown(&self) -> Vec<String> {
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(serving) = &*serving else { return Vec::new() };
        let bundles = [Some(&serving.shown_ca), serving.next.as_ref().map(|next| &next.ca)];
        let own = bundles.into_iter().flatten().filter_map(|ca| authorities(ca).next());
        own.map(ToOwned::to_owned).collect()
    }

    async fn follow_files(&self, files: CertificateFiles, mut current: Checked) {
        let (signal, mut changes) = tokio::sync::mpsc::channel(1);
        let watched = DirectoryWatch::new(signal, |_| true).and_then(|mut watch| {
            files.directories().iter().try_for_each(|directory| watch.add(directory)).map(|()| watch)
        });
        let _guard = match watched {
            Ok(guard) => guard,
            Err(source) => {
                let error = WebhookError::Watch { path: files.cert, source };
                return tracing::warn!("{error}; a new certificate is used after a restart");
            }
        };
        let clock = self.clock.clone();
        // It may have been replaced before the watch began.
        let mut is_changed = true;
        let mut show_at: Option<Timestamp> = None;
        loop {
            if !is_changed {
                let shown = async {
                    match show_at {
                        Some(time) => clock.until(time).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    change = changes.recv() => if change.is_none() {
                        return;
                    },
                    () = shown => {
                        self.show_next();
                        show_at = None;
                        continue;
                    }
                }
            }
            while tokio::time::timeout(PAUSE, changes.recv()).await.is_ok_and(|change| change.is_some()) {}
            is_changed = false;
            match read(&files, &self.host, clock.now()) {
                Ok(checked) if checked.key.cert == current.key.cert && checked.ca == current.ca => {}
                Ok(mut checked) => {
                    let before = std::mem::replace(&mut current, checked.clone());
                    if checked.ca != before.ca {
                        // Other replicas get the files at other times, and show the certificate before until then.
                        checked.ca = format!("{}\n{}", checked.ca.trim_end(), before.ca);
                    }
                    show_at = self.renewed(checked);
                }
                Err(error) => tracing::warn!("{error}; the old one stays in use"),
            }
        }
    }

    /// Has the API server trust a certificate, and shows it then. Returns when [`Self::show_next`] is to look after it.
    fn renewed(&self, checked: Checked) -> Option<Timestamp> {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = serving.as_mut()?;
        let (ca_bundle, valid_for) = (bundle(&checked.ca), checked.valid_for);
        let mut show_at = None;
        if serving.ca_bundle == ca_bundle && serving.next.is_none() {
            // It is trusted already.
            serving.show(checked);
        } else {
            serving.ca_bundle = Arc::clone(&ca_bundle);
            serving.next = Some(checked);
            show_at = self.clock.now().checked_add(SHOWN_ON).ok();
        }
        let certificate = WebhookCertificate { ca_bundle, valid_for };
        self.inbox.answer(Event::WebhookCertificateRenewed { certificate });
        show_at
    }

    /// Shows the next certificate, unless this operator has to tell the API server of it before.
    fn show_next(&self) {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(serving) = serving.as_mut().filter(|serving| !serving.tells) {
            serving.show_next();
        }
    }
}

/// Returns that the Secret is looked at now and then only.
fn unwatched(secret: &CertificateSecret, error: &WatchError) -> Failure {
    let message = format!("{} can't be watched: {error}", secret.title());
    Failure::new(FailureKind::Forbidden, message)
        .advise("allow the operator to get, list and watch Secrets of its namespace")
}
