//! The open connections of an HTTP server: which of them are idle, and which one goes when there are too many.
//!
//! ```text
//! accept ─▶ Connections::admit ─▶ Connection (idle) ─▶ busy ─▶ InFlight ─▶ until_sent: idle again when all is sent
//!                                      │                  └─▶ WriteTimeout: busy while bytes wait for their reader
//!                                      └─▶ ended: idle or unread for too long, or another one needs its place
//! ```

mod write_timeout;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

pub use write_timeout::WriteTimeout;

/// The most bytes of an answer that are handed over to be sent at a time.
///
/// HTTP/2 keeps what its reader has no room for, and does not ask for more meanwhile: the smaller the parts, the more
/// of a slow answer is known to be on its way.
const PART: usize = 16 * 1024;

/// How many connections are open at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many may ask for everything. One more closes the one that has been idle for the longest time.
    pub connections: usize,
    /// How many more may ask for probes, while none of the others is idle.
    pub probes: usize,
    /// How long one may be idle: from its beginning to its first whole request, and between two of them. A client may
    /// take as long to read the next part of an answer.
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
    /// What is being answered. Since when a part of the answer waits to be sent; `None` while the answer is awaited.
    requests: BTreeMap<u64, Option<Instant>>,
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
pub struct InFlight {
    connection: Arc<Connection>,
    id: u64,
}

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
        let known =
            Known { requests: BTreeMap::new(), idle: None, is_for_probes, closed: Arc::clone(&closed) };
        open.known.insert(id, known);
        open.rest(id);
        Some(Arc::new(Connection { id, all: self.clone(), is_for_probes, closed }))
    }

    /// Closes the connection that has been idle for the longest time.
    pub fn make_room(&self) {
        self.lock().close_oldest(true);
    }
}

impl Known {
    /// Returns since when nothing happens on the connection: it is idle, or no part of any answer is read.
    fn quiet_since(&self) -> Option<Instant> {
        if let Some((_, since)) = self.idle {
            return Some(since);
        }
        let waiting: Option<Vec<Instant>> = self.requests.values().copied().collect();
        waiting?.into_iter().max()
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

    /// Waits until the connection has to be closed: it was idle or nothing of it was read for too long, or another one
    /// needs its place.
    pub async fn ended(&self) {
        loop {
            let quiet_since = match self.all.lock().known.get(&self.id) {
                // A busy one is looked at again when it can't have been quiet for long enough before.
                Some(known) => known.quiet_since().unwrap_or_else(Instant::now),
                None => return,
            };
            let deadline = quiet_since + self.all.limits.idle;
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
        let id = open.number();
        let place = open.known.get_mut(&connection.id).and_then(|known| {
            known.requests.insert(id, None);
            known.idle.take()
        });
        if let Some((place, _)) = place {
            open.idle.remove(&place);
        }
        drop(open);
        Self { connection: Arc::clone(connection), id }
    }

    /// Returns the answer with a body that keeps its connection busy until all of it is sent.
    ///
    /// While parts of it are read, in whatever time. One that is not read at all is no reason to keep the connection.
    pub fn until_sent<B>(self, answer: Response<B>) -> Response<BusyBody<B>> {
        answer.map(|body| BusyBody { body, rest: Bytes::new(), in_flight: self })
    }

    /// Remembers since when a part of the answer waits to be sent.
    fn waits(&self, since: Option<Instant>) {
        let mut open = self.connection.all.lock();
        let request =
            open.known.get_mut(&self.connection.id).and_then(|known| known.requests.get_mut(&self.id));
        if let Some(waits) = request {
            *waits = since;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut open = self.connection.all.lock();
        let left = open.known.get_mut(&self.connection.id).map(|known| {
            known.requests.remove(&self.id);
            known.requests.is_empty()
        });
        if left == Some(true) {
            open.rest(self.connection.id);
        }
    }
}

/// The body of an answer, whose connection is busy until it is sent.
#[derive(Debug)]
pub struct BusyBody<B> {
    body: B,
    /// What is left of a frame that is sent in parts.
    rest: Bytes,
    in_flight: InFlight,
}

impl<B: Body<Data = Bytes> + Unpin> BusyBody<B> {
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let part = self.rest.split_to(self.rest.len().min(PART));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for BusyBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let next = self.next(context);
        // Who sends it asks for more as soon as there is room for it.
        self.in_flight.waits(next.is_ready().then(Instant::now));
        next
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper().and_then(|upper| upper.checked_add(rest)) {
            hint.set_upper(upper);
        }
        hint
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
        let answer = connection.busy().until_sent(Response::new(Full::new(Bytes::from_static(b"text"))));
        assert!(!ends_within(&connection, 3 * MINUTE).await);
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), &b"text"[..]);
        assert!(!ends_within(&connection, MINUTE / 2).await);
        assert!(ends_within(&connection, MINUTE).await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_no_reason_to_keep_its_connection() {
        let all = table();
        let connection = all.admit().unwrap();
        let whole = Bytes::from(vec![7; 3 * PART + 1]);
        let answer = connection.busy().until_sent(Response::new(Full::new(whole.clone())));
        assert_eq!(answer.size_hint().exact(), Some(3 * PART as u64 + 1));
        let mut body = answer.into_body();
        let mut read = Vec::new();
        for left in [2 * PART + 1, PART + 1, 1] {
            read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
            assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(left as u64), false));
            // As long as parts of it are read now and then, it is on its way.
            assert!(!ends_within(&connection, MINUTE * 2 / 3).await);
        }
        // Another request of the same connection that is being answered keeps it as well.
        let other = connection.busy();
        assert!(!ends_within(&connection, 3 * MINUTE).await);
        drop(other);
        assert!(ends_within(&connection, MINUTE).await);
        read.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert_eq!(read, whole);
    }
}
