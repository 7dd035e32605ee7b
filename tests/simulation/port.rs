//! Those who read the port of the operator, each on a connection of its own: probes, people, collectors of metrics, and
//! readers who are slow or stuck.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use addon_operator::http::Port;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout};

use crate::seed::Seed;
use crate::trace::Trace;

/// How many connections may be open at a time, and how many more for probes.
pub(crate) const ROOM: [usize; 2] = [8, 4];

/// How long a connection may be idle, or its answer not be read, with a second to spare.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(91);

/// What is on its way to a reader: as little as makes the operator wait for slow ones.
const ON_THE_WAY: usize = 512;

/// The routes that are asked. The first three are probes.
pub(crate) const ROUTES: [&str; 14] = [
    "/healthz",
    "/readyz",
    "/status?output=json",
    "/status",
    "/",
    "/queue",
    "/queue?output=json",
    "/journal",
    "/graph",
    "/status/converge?output=json",
    "/metrics",
    "/metrics/hooks",
    "/why/module/web",
    "/why/queue/main",
];

/// What one route said at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) at: Duration,
    /// Which operator answered, counted from 0.
    pub(crate) life: usize,
    pub(crate) route: &'static str,
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Returns the status and the body of an answer that was read to its end; `None` if it is not whole.
fn whole(text: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(text);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    let named = |line: &str| Some(line.to_lowercase().strip_prefix("content-length: ")?.to_owned());
    let length: Option<usize> = head.lines().find_map(named).and_then(|length| length.parse().ok());
    let is_whole = length.is_none_or(|length| length == body.len());
    is_whole.then(|| (status, body.to_owned()))
}

/// Returns the near end of a connection on which one route is asked for.
async fn request(port: &Port, route: &str, on_the_way: usize) -> DuplexStream {
    let (mut near, far) = duplex(on_the_way);
    port.admit(far);
    // A connection for which there was no room is closed.
    let _ = near.write_all(format!("GET {route} HTTP/1.0\r\n\r\n").as_bytes()).await;
    near
}

/// Asks one route. An operator that does not answer within ten seconds has status 0.
pub(crate) async fn ask(port: &Port, begun: Instant, life: usize, route: &'static str) -> Answer {
    let asked = async {
        let mut stream = request(port, route, 1 << 16).await;
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        whole(&text).unwrap_or_default()
    };
    let (status, body) = timeout(Duration::from_secs(10), asked).await.unwrap_or_default();
    Answer { at: begun.elapsed(), life, route, status, body }
}

/// How somebody reads who is not quick.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Habit {
    /// Connects and says nothing.
    Silent,
    /// Sends half of a request.
    Half,
    /// Asks, and does not read.
    Stuck,
    /// Reads so many bytes, and then nothing for so many seconds.
    Slow(usize, u64),
}

/// What became of a slow reader.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) began: Duration,
    pub(crate) life: usize,
    pub(crate) route: &'static str,
    pub(crate) habit: Habit,
    /// When the connection ended, and what is wrong with that; `None` while it is open.
    pub(crate) ended: Option<(Duration, Option<String>)>,
}

/// The slow readers of one run. Clones are the same readers.
#[derive(Clone, Default)]
pub(crate) struct Readers(Arc<Mutex<Vec<Reading>>>);

impl Readers {
    /// Returns what became of all of them.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        self.0.lock().unwrap().clone()
    }

    /// Has those connect that the seed says, each at its time.
    pub(crate) fn connect(
        &self,
        port: &Arc<Port>,
        (begun, life): (Instant, usize),
        seed: Seed,
        trace: &Trace,
    ) {
        let first = life as u64 * 100;
        for nth in first..first + seed.pick("readers", life as u64, &[0, 0, 0, 1, 2, 14]) {
            let habit = match seed.between("habit", nth, 0, 6) {
                0 => Habit::Silent,
                1 => Habit::Half,
                2 => Habit::Stuck,
                _ => Habit::Slow(
                    seed.pick("reader takes", nth, &[100, 1_000, 5_000]),
                    seed.between("reader waits", nth, 1, 40),
                ),
            };
            let route = seed.pick("reader route", nth, &ROUTES[3..]);
            let after = Duration::from_millis(seed.between("reader at", nth, 0, seed.faults_end() * 1000));
            let (port, trace, readings) = (Arc::clone(port), trace.clone(), Arc::clone(&self.0));
            tokio::spawn(async move {
                sleep(after).await;
                trace.note(|| format!("reader of {route}: {habit:?}"));
                let place = {
                    let mut readings = readings.lock().unwrap();
                    readings.push(Reading { began: begun.elapsed(), life, route, habit, ended: None });
                    readings.len() - 1
                };
                let wrong = read(&port, route, habit).await;
                readings.lock().unwrap()[place].ended = Some((begun.elapsed(), wrong));
            });
        }
    }
}

/// Reads as it is the habit. Returns what is wrong with the end of the connection.
async fn read(port: &Port, route: &str, habit: Habit) -> Option<String> {
    match habit {
        Habit::Silent | Habit::Half => {
            let (mut near, far) = duplex(ON_THE_WAY);
            port.admit(far);
            if habit == Habit::Half {
                let _ = near.write_all(b"GET / HTT").await;
            }
            let ended = timeout(GIVEN_UP_AFTER, near.read_to_end(&mut Vec::new())).await;
            ended.is_err().then(|| "it is not given up".to_owned())
        }
        Habit::Stuck => {
            let mut near = request(port, route, ON_THE_WAY).await;
            sleep(GIVEN_UP_AFTER).await;
            let ended = timeout(Duration::from_secs(1), near.read_to_end(&mut Vec::new())).await;
            ended.is_err().then(|| "it is not given up".to_owned())
        }
        Habit::Slow(bytes, seconds) => {
            let mut near = request(port, route, ON_THE_WAY).await;
            let (mut text, mut chunk) = (Vec::new(), vec![0; bytes]);
            loop {
                match near.read(&mut chunk).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => text.extend_from_slice(&chunk[..length]),
                }
                sleep(Duration::from_secs(seconds)).await;
            }
            // One for which there was no room is told so at once.
            (!text.is_empty() && whole(&text).is_none())
                .then(|| format!("it has got {} bytes and no more", text.len()))
        }
    }
}
