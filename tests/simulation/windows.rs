//! The times in which requests meet faults, and which faults. All is drawn from the seed.

use std::fmt;
use std::time::Duration;

use crate::network::Purpose;
use crate::seed::Seed;

/// What can happen to requests. Each window has some of these.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// It is carried out later, also when nobody waits for it any more.
    Delay,
    /// It is not carried out, and nobody says so.
    Lost,
    /// The connection ends before it is carried out.
    Cut,
    /// It is carried out, and the connection ends before the answer.
    CutAnswer,
    /// It is refused with this status.
    Refused(u16),
    /// It is refused because there are too many; the answer says for how many seconds, if it says.
    TooMany(Option<u64>),
    /// The connection ends in the middle of the answer, or of a line of a watch.
    HalfAnswer,
    /// The rest of the answer never comes: a watch is silent, and its connection stays.
    Silent,
    /// A watch says that its version is forgotten.
    Expired,
    /// A watch ends early, as an API server does that restarts.
    Ended,
}

/// Which requests a window is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    All,
    Watches,
    Lists,
    Writes,
    Reads,
    Path(&'static str),
}

/// A time in which some requests meet faults.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    from: Duration,
    to: Duration,
    percent: u64,
    scope: Scope,
    kinds: Vec<Kind>,
}

const KINDS: [Kind; 16] = [
    Kind::Delay,
    Kind::Delay,
    Kind::Lost,
    Kind::Cut,
    Kind::CutAnswer,
    Kind::Refused(403),
    Kind::Refused(409),
    Kind::Refused(410),
    Kind::Refused(500),
    Kind::Refused(503),
    Kind::TooMany(None),
    Kind::TooMany(Some(7)),
    Kind::HalfAnswer,
    Kind::Silent,
    Kind::Expired,
    Kind::Ended,
];

const SCOPES: [Scope; 9] = [
    Scope::All,
    Scope::All,
    Scope::Watches,
    Scope::Lists,
    Scope::Writes,
    Scope::Reads,
    Scope::Path("/secrets"),
    Scope::Path("/configmaps"),
    Scope::Path("/events"),
];

/// Returns the windows of a seed. Calm ones have none.
pub(crate) fn windows(seed: Seed) -> Vec<Window> {
    if seed.is_calm() {
        return Vec::new();
    }
    let count = seed.between("windows", 0, 1, 2 + seed.scale());
    let window = |nth| {
        let is_start = seed.chance("window at the start", nth, 35);
        let from = if is_start { 0 } else { seed.between("window from", nth, 0, seed.faults_end() - 5) };
        let long = seed.between("window long", nth, 2, 91);
        let kinds = seed.between("window kinds", nth, 1, 4);
        Window {
            from: Duration::from_secs(from),
            to: Duration::from_secs((from + long).min(seed.faults_end())),
            percent: seed.pick("window percent", nth, &[10, 30, 60, 100]),
            scope: seed.pick("window scope", nth, &SCOPES),
            kinds: (0..kinds).map(|kind| seed.pick("window kind", nth * 8 + kind, &KINDS)).collect(),
        }
    };
    (0..count).map(window).collect()
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, percent, scope, kinds } = self;
        write!(f, "{}-{} s: {percent} % of {scope:?} meet {kinds:?}", from.as_secs(), to.as_secs())
    }
}

impl Scope {
    fn has(self, purpose: Purpose, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Watches => purpose == Purpose::Watch,
            Self::Lists => purpose == Purpose::List,
            Self::Writes => purpose == Purpose::Write,
            Self::Reads => purpose != Purpose::Write,
            Self::Path(part) => path.contains(part),
        }
    }
}

impl Kind {
    /// Returns whether it can happen to such a request.
    fn fits(self, purpose: Purpose) -> bool {
        match self {
            Self::Refused(409) => purpose == Purpose::Write,
            Self::Expired | Self::Ended => purpose == Purpose::Watch,
            Self::Refused(410) => matches!(purpose, Purpose::Watch | Purpose::List),
            _ => true,
        }
    }
}

impl Window {
    /// Returns when it ends.
    pub(crate) fn end(&self) -> Duration {
        self.to
    }
}

/// Returns what happens at this moment to a request, the one with this number among those with the same question.
pub(crate) fn fault(
    seed: Seed,
    windows: &[Window],
    now: Duration,
    (question, nth): (&str, u64),
    (purpose, path): (Purpose, &str),
) -> Option<Kind> {
    let open = |window: &&Window| window.from <= now && now < window.to && window.scope.has(purpose, path);
    let window = windows.iter().find(open)?;
    let kinds: Vec<Kind> = window.kinds.iter().copied().filter(|kind| kind.fits(purpose)).collect();
    let is_hit = !kinds.is_empty() && seed.chance(&format!("hit {question}"), nth, window.percent);
    is_hit.then(|| seed.pick(&format!("kind {question}"), nth, &kinds))
}
