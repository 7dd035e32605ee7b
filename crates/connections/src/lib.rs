//! The open connections of an HTTP server: which of them are idle, and which one goes when there are too many.
//!
//! ```text
//! accept ─▶ Connections::admit ─▶ Connection (idle) ─▶ busy ─▶ InFlight ─▶ until_sent: idle again when all is sent
//!                                      └─▶ ended: idle for too long, or another one needs its place
//! ```

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Response;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How many connections are open at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many may ask for everything. One more closes the one that has been idle for the longest time.
    pub connections: usize,
    /// How many more may ask for probes, while none of the others is idle.
    pub probes: usize,
    /// How long one may be idle: from its beginning to its first whole request, and between two of them.
    pub idle: Duration,
}

/// All open connections.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    known: BTreeMap<u64, Known>,
    /// The idle ones, in the order in which they became so.
    idle: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Known {
    requests: usize,
    /// Since when it is idle, with its place among the idle ones; `None` while it is busy.
    idle: Option<(u64, Instant)>,
    is_for_probes: bool,
    closed: Arc<Notify>,
}

/// An open connection. It is forgotten when this is dropped.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    all: Connections,
    is_for_probes: bool,
    closed: Arc<Notify>,
}

/// A request that is being answered. While there is one, its connection is not idle.
#[derive(Debug)]
pub struct InFlight(Arc<Connection>);

impl Connections {
    /// Returns a table without connections.
    pub fn new(limits: Limits) -> Self {
        Self { limits, open: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a new connection. Where there are too many, an idle one is closed; `None` if all are busy.
    pub fn admit(&self) -> Option<Arc<Connection>> {
        let mut open = self.lock();
        let is_full = open.known.len() >= self.limits.connections;
        let is_for_probes = is_full && !open.close_oldest(false);
        let is_over = open.known.len() >= self.limits.connections + self.limits.probes;
        if is_for_probes && is_over && !open.close_oldest(true) {
            return None;
        }
        let id = open.number();
        let closed = Arc::new(Notify::new());
        let known = Known { requests: 0, idle: None, is_for_probes, closed: Arc::clone(&closed) };
        open.known.insert(id, known);
        open.rest(id);
        Some(Arc::new(Connection { id, all: self.clone(), is_for_probes, closed }))
    }

    /// Closes the connection that has been idle for the longest time.
    pub fn make_room(&self) {
        self.lock().close_oldest(true);
    }
}

impl Open {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Makes a connection idle from now on.
    fn rest(&mut self, id: u64) {
        let place = self.number();
        if let Some(known) = self.known.get_mut(&id) {
            known.idle = Some((place, Instant::now()));
            self.idle.insert(place, id);
        }
    }

    fn forget(&mut self, id: u64) -> Option<Known> {
        let known = self.known.remove(&id)?;
        if let Some((place, _)) = known.idle {
            self.idle.remove(&place);
        }
        Some(known)
    }

    /// Closes the connection that has been idle for the longest time, those for probes `too`. Returns whether there is one.
    fn close_oldest(&mut self, too: bool) -> bool {
        let may_go = |id: &&u64| self.known.get(id).is_some_and(|known| too || !known.is_for_probes);
        let Some(id) = self.idle.values().find(may_go).copied() else { return false };
        if let Some(known) = self.forget(id) {
            known.closed.notify_one();
        }
        true
    }
}

impl Connection {
    /// Returns whether only probes are answered on it.
    pub fn is_for_probes(&self) -> bool {
        self.is_for_probes
    }

    /// Makes the connection busy: a whole request is being answered.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> InFlight {
        InFlight::new(self)
    }

    /// Waits until the connection has to be closed: it was idle for too long, or another one needs its place.
    pub async fn ended(&self) {
        loop {
            let idle_since = match self.all.lock().known.get(&self.id) {
                // A busy one is looked at again when it can't have been idle for long enough before.
                Some(known) => known.idle.map_or_else(Instant::now, |(_, since)| since),
                None => return,
            };
            let deadline = idle_since + self.all.limits.idle;
            if deadline <= Instant::now() {
                return;
            }
            tokio::select! {
                () = self.closed.notified() => return,
                () = sleep_until(deadline) => {}
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.lock().forget(self.id);
    }
}

impl InFlight {
    fn new(connection: &Arc<Connection>) -> Self {
        let mut open = connection.all.lock();
        let place = open.known.get_mut(&connection.id).and_then(|known| {
            known.requests += 1;
            known.idle.take()
        });
        if let Some((place, _)) = place {
            open.idle.remove(&place);
        }
        drop(open);
        Self(Arc::clone(connection))
    }

    /// Returns the answer with a body that keeps its connection busy until all of it is sent.
    pub fn until_sent<B>(self, answer: Response<B>) -> Response<BusyBody<B>> {
        answer.map(|body| BusyBody { body, _in_flight: self })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut open = self.0.all.lock();
        let left = open.known.get_mut(&self.0.id).map(|known| {
            known.requests = known.requests.saturating_sub(1);
            known.requests
        });
        if left == Some(0) {
            open.rest(self.0.id);
        }
    }
}

/// The body of an answer, whose connection is busy until it is sent.
#[derive(Debug)]
pub struct BusyBody<B> {
    body: B,
    _in_flight: InFlight,
}

impl<B: Body + Unpin> Body for BusyBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn table() -> Connections {
        Connections::new(Limits { connections: 2, probes: 1, idle: MINUTE })
    }

    /// Returns whether a connection has to be closed within `time`.
    async fn ends_within(connection: &Connection, time: Duration) -> bool {
        tokio::time::timeout(time, connection.ended()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_is_idle_for_the_longest_time_makes_room() {
        let all = table();
        let (first, second) = (all.admit().unwrap(), all.admit().unwrap());
        // The first was idle before, and is so again since a moment ago.
        drop(first.busy());
        let third = all.admit().unwrap();
        assert!(ends_within(&second, Duration::ZERO).await);
        assert!(!ends_within(&first, Duration::ZERO).await && !third.is_for_probes());
    }

    #[tokio::test(start_paused = true)]
    async fn when_all_are_busy_one_more_is_for_probes_and_the_next_is_refused() {
        let all = table();
        let busy: Vec<_> = (0..2).map(|_| all.admit().unwrap()).collect();
        let requests: Vec<_> = busy.iter().map(Connection::busy).collect();
        let probe = all.admit().unwrap();
        assert!(probe.is_for_probes());
        let asking = probe.busy();
        assert!(all.admit().is_none());
        // An idle one of probes makes room for another one.
        drop(asking);
        assert!(all.admit().unwrap().is_for_probes());
        drop(requests);
        assert!(!all.admit().unwrap().is_for_probes());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_busy_until_its_answer_is_sent_and_has_its_deadline_then() {
        let all = table();
        let connection = all.admit().unwrap();
        let answer = connection.busy().until_sent(Response::new(Full::new(&b"text"[..])));
        assert!(!ends_within(&connection, 3 * MINUTE).await);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), &b"text"[..]);
        assert!(!ends_within(&connection, MINUTE / 2).await);
        assert!(ends_within(&connection, MINUTE).await);
    }
}
