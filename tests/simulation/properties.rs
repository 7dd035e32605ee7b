//! What holds in every run, whatever the network and people do. Each property returns what it found against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chart::record::{self, Record, Status};
use serde_json::Value;

use crate::hooks::Seen;
use crate::network::{Asked, Purpose};
use crate::people::Change;
use crate::run::{End, QUIET, Run, waits_for_ever};
use crate::scenario::{Extra, Kinds, Scenario};
use crate::ticks;

/// A property: its sentence, and what checks it.
pub(crate) type Property = (&'static str, fn(&Run) -> Vec<String>);

/// All properties.
pub(crate) const ALL: [Property; 11] = [
    ("what converges without faults converges with them once they end", converges),
    ("no event is lost or seen twice", events_are_seen_once),
    ("requests are bounded", requests_are_bounded),
    ("an operator that has nothing to do asks for nothing", a_converged_operator_is_quiet),
    ("health tells the truth", health_is_true),
    ("no secret gets out", secrets_stay_inside),
    ("nothing waits for what stands behind it in its queue", nothing_waits_for_what_is_behind),
    ("releases end deployed, in one chain of records", releases_are_whole),
    ("what people want is not deleted", what_is_wanted_stays),
    ("crontab lines fire once at each of their moments", ticks::fire_once),
    ("who reads slowly gets all, and who does not read is given up", slow_readers_get_all),
];

/// How many requests of one kind for one path may be sent within a minute.
const PATH_A_MINUTE: usize = 60;

/// How long before the end no Event may be written any more.
const LATE_EVENTS: Duration = Duration::from_secs(30);

/// How many requests may be sent within a minute.
const ALL_A_MINUTE: usize = 400;

/// Returns what of the properties does not hold, each with its sentence.
pub(crate) fn faults(run: &Run) -> Vec<String> {
    let check = |(sentence, check): &Property| {
        check(run)
            .into_iter()
            .map(move |found| format!("not true that {sentence}: {found}"))
            .collect::<Vec<_>>()
    };
    ALL.iter().flat_map(check).collect()
}

fn converges(run: &Run) -> Vec<String> {
    let mut found = run.unsettled.clone();
    let stuck = run.lives.iter().enumerate().filter(|(_, life)| life.end == End::Stuck);
    found.extend(stuck.map(|(nth, _)| format!("operator {nth} does not end")));
    found
}

fn events_are_seen_once(run: &Run) -> Vec<String> {
    let seen: Vec<&Seen> = run.seen.iter().filter(|seen| seen.hook.ends_with("items.sh")).collect();
    let history = &run.intent.changes;
    let mut found = Vec::new();
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    for seen in &seen {
        let Seen { event, name, version, at, .. } = seen;
        let mut wrong =
            |what: &str| found.push(format!("{:.3} {event} {name}@{version}: {what}", at.as_secs_f64()));
        match event.as_str() {
            "Synchronization" => {
                known.clear();
                continue;
            }
            "Added" if known.contains_key(&**name) => wrong("it was known already"),
            "Modified" | "Deleted" if !known.contains_key(&**name) => wrong("it was not known"),
            "Added" | "Modified" if last.get(&**name).is_some_and(|last| last >= version) => {
                wrong("this version or a later one was seen before");
            }
            _ => {}
        }
        let is_made =
            |change: &Change| !change.is_deletion && change.version == *version && change.name == *name;
        if *event != "Deleted" && !history.iter().any(is_made) {
            wrong("there was no such version");
        }
        if *event == "Deleted" {
            known.remove(&**name);
        } else {
            known.insert(name, *version);
            last.insert(name, *version);
        }
    }
    found.extend(lost(run, &seen));
    if run.intent.web_enabled && run.unsettled.is_empty() {
        let current = current(history);
        if known != current {
            found.push(format!("at the end the hook knows {known:?}, there is {current:?}"));
        }
    }
    found
}

/// Returns the versions of what is there at the end.
fn current(history: &[Change]) -> BTreeMap<&str, u64> {
    let mut current = BTreeMap::new();
    for change in history {
        if change.is_deletion {
            current.remove(&*change.name);
        } else {
            current.insert(&*change.name, change.version);
        }
    }
    current
}

/// Returns the versions that the hook never saw, though it saw later ones. Only a list may step over versions, which
/// were replaced before it.
fn lost(run: &Run, seen: &[&Seen]) -> Vec<String> {
    let is_list = |asked: &&Asked| {
        asked.purpose == Purpose::List && asked.path.ends_with("/namespaces/work/configmaps")
    };
    let lists: Vec<Duration> = run.asked.iter().filter(is_list).map(|asked| asked.at).collect();
    let versions: BTreeSet<u64> =
        seen.iter().filter(|seen| seen.event != "Deleted").map(|seen| seen.version).collect();
    let mut found = Vec::new();
    // Each time that the module is switched on the hook begins anew.
    let begins = seen.iter().enumerate().filter(|(_, seen)| seen.event == "Synchronization");
    for (place, begin) in begins {
        let events: Vec<&&Seen> =
            seen[place + 1..].iter().take_while(|seen| seen.event != "Synchronization").collect();
        for (place, change) in run.intent.changes.iter().enumerate() {
            if change.is_deletion || versions.contains(&change.version) || change.at <= begin.at {
                continue;
            }
            let later = events.iter().find(|seen| seen.event != "Deleted" && seen.version > change.version);
            let replaced = run.intent.changes[place + 1..].iter().find(|next| next.name == change.name);
            let Some(later) = later else { continue };
            let is_listed_over = replaced
                .is_some_and(|replaced| lists.iter().any(|list| replaced.at <= *list && *list <= later.at));
            if !is_listed_over {
                found.push(format!(
                    "{:.3} {}@{} was never seen, but {}@{} was",
                    change.at.as_secs_f64(),
                    change.name,
                    change.version,
                    later.name,
                    later.version
                ));
            }
        }
    }
    found
}

fn requests_are_bounded(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    // Each operator reads what there is anew.
    let mut all: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    let mut each: BTreeMap<(Purpose, &str, (usize, u64)), usize> = BTreeMap::new();
    for asked in &run.asked {
        let minute = (asked.life, asked.at.as_secs() / 60);
        *all.entry(minute).or_default() += 1;
        *each.entry((asked.purpose, &asked.path, minute)).or_default() += 1;
    }
    for (minute, count) in all.into_iter().filter(|(_, count)| *count > ALL_A_MINUTE) {
        found.push(format!("{count} requests in (operator, minute) {minute:?}"));
    }
    for ((purpose, path, minute), count) in each.into_iter().filter(|(_, count)| *count > PATH_A_MINUTE) {
        found.push(format!("{count} times {purpose:?} of {path} in (operator, minute) {minute:?}"));
    }
    found
}

fn a_converged_operator_is_quiet(run: &Run) -> Vec<String> {
    if !run.unsettled.is_empty() {
        return Vec::new();
    }
    let from = run.settled_at + Duration::from_secs(30);
    let to = run.settled_at + Duration::from_secs(QUIET);
    let is_quiet = |at: &Duration| from < *at && *at < to;
    let (mut found, mut looks, mut lists, mut renewals) = (Vec::new(), 0, 0, 0);
    for asked in run.asked.iter().filter(|asked| is_quiet(&asked.at)) {
        // Events are written one after the other, and nobody waits for them. Each may wait for its answer, and those that
        // are written together look once for the ConfigMap that they are about.
        let is_event =
            ["/events", "/configmaps/addon-operator"].iter().any(|path| asked.path.ends_with(path));
        let is_late_event = is_event && asked.at < to.saturating_sub(LATE_EVENTS);
        // Whoever waits for a kind looks for it once a minute: not all kinds come with a definition that can be watched.
        let is_look = waits_for_ever(run.seed, &run.intent) && ["/api", "/apis"].contains(&&*asked.path);
        // What may never be watched is listed about once a minute.
        let is_again = asked.purpose == Purpose::List
            && Scenario::of(run.seed).extra.never_watched() == Some(&*asked.path);
        looks += usize::from(is_look);
        lists += usize::from(is_again);
        // The Lease is renewed by one write, each ten seconds, and made once. It is read if the answer to a write was lost, and as long as
        // it is that of an operator that was killed.
        let leases = ["/leases/addon-operator-leader-election", "/leases"];
        let is_renewal = leases.iter().any(|path| asked.path.ends_with(path));
        renewals += u64::from(is_renewal);
        if asked.purpose != Purpose::Watch && !is_late_event && !is_look && !is_again && !is_renewal {
            found.push(format!("{:.3} {} {}", asked.at.as_secs_f64(), asked.method, asked.path));
        }
    }
    if renewals > QUIET / 10 + 3 {
        found.push(format!("{renewals} renewals of the Lease"));
    }
    if looks > 6 {
        found.push(format!("{looks} looks for a kind"));
    }
    // After half a minute at least.
    if lists > 4 {
        found.push(format!("{lists} lists of what can't be watched"));
    }
    let watches = run.asked.iter().filter(|asked| is_quiet(&asked.at) && asked.purpose == Purpose::Watch);
    if watches.count() > 60 {
        found.push("more than 60 watches are opened".to_owned());
    }
    let runs = run.hook_runs.iter().filter(|(at, hook)| is_quiet(at) && !hook.ends_with("tick.sh"));
    found.extend(runs.map(|(at, hook)| format!("hook {hook} runs at {at:?}")));
    found
}

fn health_is_true(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for answer in &run.answers {
        let mut wrong = |what: String| {
            found.push(format!("{:.3} {}: {what}", answer.at.as_secs_f64(), answer.route));
        };
        let life = &run.lives[answer.life];
        if answer.status == 503 && answer.body.starts_with("too many connections") {
            if answer.route == "/healthz" || answer.route == "/readyz" {
                wrong(answer.body.clone());
            }
            continue;
        }
        if life.started.is_none_or(|began| answer.at < began + Duration::from_secs(10)) {
            // Until the ConfigMap was read there is nothing to tell, but it is no reason to restart the operator.
            if answer.route == "/healthz" && answer.status != 200 {
                wrong(format!("status {} before the ConfigMap was read", answer.status));
            }
            continue;
        }
        if answer.status == 0 {
            wrong("there is no answer".to_owned());
        }
        let is_ready = life.ready.is_some_and(|ready| ready <= answer.at);
        match answer.route {
            "/healthz" if answer.status != 200 => wrong(answer.body.clone()),
            "/readyz" if (answer.status == 200) != is_ready => {
                wrong(format!("status {}, but ready is {is_ready}", answer.status));
            }
            "/status?output=json" => {
                let status: Value = serde_json::from_str(&answer.body).unwrap_or_default();
                if status["ready"] != is_ready {
                    wrong(format!("it says ready {}, but ready is {is_ready}", status["ready"]));
                }
                if run.unsettled.is_empty() && answer.at > run.settled_at {
                    for wrong_part in untrue_status(run, &status) {
                        wrong(wrong_part);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns what a status says that is not so, once all is as people want it.
fn untrue_status(run: &Run, status: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut problems = status["problems"].as_array().cloned().unwrap_or_default();
    if waits_for_ever(run.seed, &run.intent) {
        let told = problems.len();
        problems.retain(|problem| !problem.to_string().contains("Thing"));
        if problems.len() == told {
            found.push("it does not tell that a kind is missing".to_owned());
        }
    }
    if let Some((watch, hook)) = forbidden_watch(run) {
        let told = problems.len();
        let is_of_it = |problem: &Value| {
            let text = problem.to_string();
            text.contains(&format!("watch of {watch}")) && text.contains(hook)
        };
        problems.retain(|problem| !is_of_it(problem));
        if problems.len() == told {
            found.push(format!("it does not tell that {watch} can't be watched"));
        }
        // Who waits for the right is told as well.
        problems.retain(|problem| !problem.to_string().contains(&format!("watch kind {watch}")));
    }
    if !problems.is_empty() {
        found.push(format!("it tells of problems: {problems:?}"));
    }
    for (name, enabled) in modules(run) {
        let module = status["modules"].as_array().into_iter().flatten().find(|module| module["name"] == name);
        let phase = module.map_or("absent", |module| module["phase"].as_str().unwrap_or_default());
        let expected = if enabled { "running" } else { "disabled" };
        if phase != expected {
            found.push(format!("module {name} is {phase}, should be {expected}"));
        }
        let newest = chain(run, name).last().map(|record| record.version);
        let told = module.and_then(|module| module["revision"].as_u64());
        if enabled && told != newest.map(u64::from) {
            found.push(format!("module {name} has revision {told:?}, its records say {newest:?}"));
        }
    }
    found
}

/// Returns the kind of which a watch is forbidden for ever, and the hook that has it, if any.
fn forbidden_watch(run: &Run) -> Option<(&'static str, &'static str)> {
    match Scenario::of(run.seed).extra {
        Extra::UnwatchedConfig => Some(("ConfigMap ops/addon-operator", "")),
        // Without its module one hook is gone; the other is there when it awaits a kind.
        Extra::UnwatchedItems => (run.intent.web_enabled || Scenario::of(run.seed).kinds == Kinds::Awaited)
            .then_some(("ConfigMap", "(items)")),
        Extra::ForbiddenKeys => Some(("Secret", "keys.sh")),
        Extra::Nothing | Extra::ChartHook | Extra::Edits | Extra::NamespaceOnly | Extra::LateWatch => None,
    }
}

fn secrets_stay_inside(run: &Run) -> Vec<String> {
    let events = run.events.to_string();
    let end = Duration::MAX;
    let places = run
        .logs
        .iter()
        .map(|line| ("log", line.as_str(), end))
        .chain(run.answers.iter().map(|answer| (answer.route, answer.body.as_str(), answer.at)))
        .chain([("Events", events.as_str(), end)]);
    let mut found = BTreeSet::new();
    for (place, text, at) in places {
        for secret in &run.intent.secrets {
            if let Some(begin) = text.find(secret.text.as_str()) {
                let from = text.floor_char_boundary(begin.saturating_sub(80));
                let to = text.ceil_char_boundary((begin + secret.text.len() + 20).min(text.len()));
                let what = if secret.replaced.is_some_and(|replaced| replaced <= at) {
                    "replaced secret"
                } else {
                    "secret"
                };
                found.insert(format!("{place} shows the {what} {:?}: …{}…", secret.text, &text[from..to]));
            }
        }
    }
    found.into_iter().take(3).collect()
}

fn nothing_waits_for_what_is_behind(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for (at, view) in &run.views {
        for queue in &view.queues {
            // Any module may bring a kind.
            let first = queue.tasks.first().filter(|head| !head.is_aside);
            let kind =
                first.and_then(|head| head.waits_for.as_ref()).filter(|reason| reason.contains("kind "));
            let module = queue.tasks.iter().skip(1).find(|task| !task.is_aside && task.module.is_some());
            if let (Some(reason), Some(module)) = (kind, module) {
                let (at, behind) = (at.as_secs_f64(), &module.description);
                found.push(format!("{at:.3} queue {} waits: {reason}; behind is {behind}", queue.name));
            }
            let Some((head, behind)) = queue.tasks.split_first() else { continue };
            let Some(reason) = &head.waits_for else { continue };
            let long = head.blocked_for.unwrap_or_default();
            let cause = behind.iter().find(|task| {
                let hook = task.hook.as_ref().is_some_and(|hook| reason.contains(hook.name.as_str()));
                hook || task
                    .module
                    .as_ref()
                    .is_some_and(|module| reason.contains(&format!("module {module}")))
            });
            if let Some(cause) = cause {
                let at = at.as_secs_f64();
                found.push(format!(
                    "{at:.3} {} in queue {} waits for {reason}, which is {} behind it",
                    head.description, queue.name, cause.description
                ));
            }
            if long > Duration::from_mins(15) {
                found.push(format!(
                    "{} in queue {} waits {long:?} for {reason}",
                    head.description, queue.name
                ));
            }
        }
    }
    found.truncate(3);
    found
}

/// Returns the records of a release, the oldest first. What Helm can't read is left out.
fn chain(run: &Run, release: &str) -> Vec<Record> {
    let secrets = run.records["items"].as_array().into_iter().flatten();
    let mut records: Vec<Record> = secrets
        .filter(|secret| {
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            record::parse_secret_name(name).is_some_and(|(name, _)| name == release)
        })
        .filter_map(read)
        .collect();
    records.sort_by_key(|record| record.version);
    records
}

fn read(secret: &Value) -> Option<Record> {
    use base64::Engine as _;
    let data = secret["data"][record::DATA_KEY].as_str()?;
    record::decode(&base64::engine::general_purpose::STANDARD.decode(data).ok()?).ok()
}

fn releases_are_whole(run: &Run) -> Vec<String> {
    if !run.unsettled.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for secret in run.records["items"].as_array().into_iter().flatten() {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        if record::parse_secret_name(name).is_some() && read(secret).is_none() {
            found.push(format!("record {name} can't be read"));
        }
    }
    for (name, enabled) in modules(run) {
        let records = chain(run, name);
        let shown: Vec<String> = records
            .iter()
            .map(|record| format!("{} {}", record.version, record.info.status.name()))
            .collect();
        let gap = records.windows(2).any(|pair| pair[0].version + 1 != pair[1].version);
        let newest = records.last().map(|record| record.info.status);
        let deployed = records.iter().filter(|record| record.info.status == Status::Deployed).count();
        let rest = records.iter().rev().skip(1);
        let is_final = |record: &Record| matches!(record.info.status, Status::Superseded | Status::Failed);
        let is_whole = if enabled {
            !gap && newest == Some(Status::Deployed) && deployed == 1 && rest.clone().all(is_final)
        } else {
            records.is_empty()
        };
        if !is_whole {
            found.push(format!("release {name} (enabled: {enabled}) has the records {shown:?}"));
        }
    }
    found
}

/// Returns the modules, and whether people want them.
fn modules(run: &Run) -> Vec<(&'static str, bool)> {
    let mut modules = vec![("web", run.intent.web_enabled), ("db", run.intent.db_enabled)];
    if Scenario::of(run.seed).kinds == Kinds::Brought {
        modules.push(("gadgets", true));
        if Scenario::of(run.seed).extra == Extra::LateWatch {
            modules.extend([("viewer", true), ("kinds", true)]);
        }
    }
    modules
}

fn what_is_wanted_stays(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for asked in run.asked.iter().filter(|asked| asked.method == http::Method::DELETE) {
        let module = match asked.path.rsplit('/').next() {
            Some("web") => "web",
            Some("db") => "db",
            Some("g") => "gadgets",
            _ => continue,
        };
        let was_off = run.intent.switched_off.iter().any(|(at, name)| *name == module && *at <= asked.at);
        if !was_off {
            found.push(format!("{:.3} DELETE {}", asked.at.as_secs_f64(), asked.path));
        }
    }
    found
}

fn slow_readers_get_all(run: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for reading in &run.readings {
        let life = &run.lives[reading.life];
        let (began, route, habit) = (reading.began.as_secs_f64(), reading.route, reading.habit);
        if let Some((at, Some(wrong))) = &reading.ended
            && *at < life.ended_at
        {
            found.push(format!("{began:.3} {habit:?} reader of {route}, until {at:?}: {wrong}"));
        }
    }
    found
}
