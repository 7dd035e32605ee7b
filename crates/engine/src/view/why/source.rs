//! Why a configuration of module sources is pending or failed, what it waits for, and when it is tried again.

use std::fmt::Write as _;

use super::answer::chain;
use super::{Answer, Unknown, advice};
use crate::addon::{AddonReason, RepositoryReason, SourceKey, SourceKind};
use crate::view::format::{Format, count, span, times};
use crate::view::problems;
use crate::view::sources::{RETAINED, find, phase};
use crate::view::{ModuleView, SourceAddonView, SourceRepositoryView, SourceView, TaskView, View};

/// How many addons are told one by one.
const SHOWN: usize = 20;

/// Returns why the configuration is in its phase.
pub fn source(view: &View, name: &str, format: Format<'_>) -> Result<Answer, Unknown> {
    let source = find(view, name)?;
    let mut answer = Answer { about: "source", name: source.address(), ..Answer::default() };
    judge(source, format, &mut answer);
    let mut told = format!("{} at generation {}", phase(source), source.observed_generation);
    if source.observed_generation != source.generation {
        let _ = write!(told, ", its object has {}", source.generation);
    }
    answer.facts.push(("phase", told));
    if !source.processed_at.is_empty() {
        answer.facts.push(("processed", source.processed_at.clone()));
    }
    if let Some(time) = source.processed_in {
        answer.facts.push(("processed again in", span(time)));
    }
    if let Some(work) = &source.work {
        answer.chain = chain(&work.chain);
        answer.facts.push(("task", task(work, format)));
    }
    let lists_all = source.addons().all(|addon| addon.unlisted == 0);
    for repository in &source.repositories {
        answer.facts.push(("repository", repository_text(repository, lists_all, format)));
        if let Ok(reason) = repository.reason.parse() {
            add(&mut answer.advice, about_repository(reason));
        }
    }
    addons(source, format, &mut answer);
    removals(view, source, format, &mut answer);
    unanswered(view, source, format, &mut answer);
    if !(source.is_deleting || source.is_suspended || source.phase == "Pending") {
        let sync = format!("`addon-operator source sync {}` has it processed at once", source.address());
        answer.advice.push(sync);
    }
    Ok(answer)
}

/// Tells of modules whose removal waits or fails, which the end of a configuration waits for.
fn removals(view: &View, source: &SourceView, format: Format<'_>, answer: &mut Answer) {
    let is_its = |module: &&ModuleView| {
        let is_of_it = module.origin.as_ref().is_some_and(|origin| origin.source == source.key);
        is_of_it && module.phase == "deleting"
    };
    for module in view.modules.iter().filter(is_its) {
        let name = &module.name;
        if let Some((what, advice)) = problems::removal_wait(view, name) {
            answer.facts.push(("module", format!("{name}: its removal waits for {}", (format.show)(what))));
            if let Some(advice) = advice {
                add(&mut answer.advice, advice);
            }
            continue;
        }
        let Some(error) = &module.last_error else { continue };
        answer.facts.push(("module", format!("{name}: its removal fails: {}", format.failure(error))));
        add(&mut answer.advice, &problems::way_out_of_removal(view, name, &source.key));
    }
}

/// Tells of modules of a configuration whose hooks can't be asked what they want.
fn unanswered(view: &View, source: &SourceView, format: Format<'_>, answer: &mut Answer) {
    let is_its = |module: &&ModuleView| module.origin.as_ref().is_some_and(|its| its.source == source.key);
    for module in view.modules.iter().filter(is_its) {
        let Some(failure) = &module.unanswered else { continue };
        let text =
            format!("{}: its hooks can't be asked what they want: {}", module.name, format.failure(failure));
        answer.facts.push(("module", text));
        add(&mut answer.advice, &problems::way_out_of_silence(failure));
    }
}

fn judge(source: &SourceView, format: Format<'_>, answer: &mut Answer) {
    let (key, message) = (&source.key, (format.show)(&source.message));
    let waits = source.work.as_ref().and_then(|work| work.waits_for.as_ref());
    let waits = waits.map(|reason| format!(", and waits for {}", (format.show)(reason))).unwrap_or_default();
    let failure = source.work.as_ref().and_then(|work| Some((work, work.last_failure.as_ref()?)));
    (answer.state, answer.verdict) = if source.is_deleting {
        ("deleting", format!("{key} is being deleted{waits}"))
    } else if source.is_left_alone {
        answer.advice.push("find who else writes its status: two operators may look after the same objects; an edit of its spec ends this".to_owned());
        ("left alone", format!("{key} is left alone: somebody else writes its status, too"))
    } else {
        match source.phase {
            "Ready" if source.is_suspended => {
                ("suspended", format!("{key} is suspended, and ready as it was: {message}"))
            }
            "Ready" => ("ready", format!("{key} is ready: {message}{waits}")),
            "Failed" => ("failed", format!("{key} is failed: {message}")),
            _ if source.is_suspended => ("suspended", format!("{key} is suspended")),
            _ => match &source.waits_for {
                Some(what) => ("pending", format!("{key} waits for {what}")),
                None => ("pending", format!("{key} was not processed yet{waits}")),
            },
        }
    };
    if source.is_suspended && !source.is_deleting {
        answer
            .advice
            .push(format!("`addon-operator source resume {}` has it looked after again", source.address()));
    }
    if let Some((work, failure)) = failure {
        answer.state = "failing";
        let _ = write!(
            answer.verdict,
            "; the work on it failed {}: {}",
            times(work.failures),
            format.failure(failure)
        );
        answer.advice.push(advice::about(failure, work));
    }
}

fn task(work: &TaskView, format: Format<'_>) -> String {
    let mut text = format!("{} {}", work.id, work.kind);
    let _ = match (work.running, work.retry_in, &work.waits_for) {
        (Some(running), _, _) => write!(text, " runs for {}", span(running)),
        (None, Some(retry), _) => write!(text, " begins in {}", span(retry)),
        (None, None, Some(reason)) => write!(text, " waits for {}", (format.show)(reason)),
        (None, None, None) => write!(text, " waits for a free worker (--source-workers)"),
    };
    text
}

/// Tells of a repository. `lists_all` says whether the status of its source has room for all addons.
fn repository_text(repository: &SourceRepositoryView, lists_all: bool, format: Format<'_>) -> String {
    let SourceRepositoryView { url, phase, reason, message, addons } = repository;
    if reason.is_empty() {
        let listed = addons.iter().filter(|addon| addon.unlisted == 0).count();
        format!("{url}: {phase}, {}{}", count(listed, "addon"), if lists_all { "" } else { " listed" })
    } else {
        format!("{url}: {reason}: {}", (format.show)(message))
    }
}

/// Tells of addons: those that failed first, then those whose modules go on, then the others.
fn addons(source: &SourceView, format: Format<'_>, answer: &mut Answer) {
    let is_retained =
        |addon: &SourceAddonView| addon.module.as_ref().is_some_and(|(_, state)| *state == RETAINED);
    let (mut addons, rest): (Vec<&SourceAddonView>, Vec<&SourceAddonView>) =
        source.addons().partition(|addon| addon.unlisted == 0);
    let held: Vec<&SourceAddonView> = source.held_back().collect();
    let is_held = |addon: &SourceAddonView| held.iter().any(|held| std::ptr::eq(*held, addon));
    addons.sort_by_key(|addon| (addon.reason.is_empty(), !is_held(addon), !is_retained(addon)));
    for addon in addons.iter().take(SHOWN) {
        let SourceAddonView { name, version, phase, reason, message, module, module_message, .. } = addon;
        let gap = if version.is_empty() { "" } else { " " };
        let mut text = format!("{name}{gap}{version}: ");
        if reason.is_empty() {
            text.push_str(phase);
        } else {
            let _ = write!(text, "{reason}: {}", (format.show)(message));
        }
        if let Some((module, state)) = module {
            let _ = write!(text, ", module {module} is {state}");
            if !module_message.is_empty() {
                let _ = write!(text, ": {}", (format.show)(module_message));
            }
        }
        answer.facts.push(("addon", text));
    }
    let unlisted: usize = rest.iter().map(|line| line.unlisted).sum();
    let hidden = addons.len().saturating_sub(SHOWN) + unlisted;
    if hidden > 0 {
        answer.facts.push(("addon", format!("… and {hidden} more")));
    }
    for addon in &addons {
        if let Ok(reason) = addon.reason.parse() {
            add(&mut answer.advice, about_addon(reason));
        }
    }
    for addon in &addons {
        if let Some((module, "Error")) = &addon.module {
            let text = format!("`addon-operator why module {module}` says why that fails, and what to do");
            add(&mut answer.advice, &text);
        }
    }
    held.iter().filter_map(|addon| approval(source, addon)).for_each(|text| add(&mut answer.advice, &text));
    if addons.iter().any(|addon| is_retained(addon)) {
        let text = "modules that are Retained go on as they are; switch them off in the ConfigMap, or let the source offer them again";
        add(&mut answer.advice, text);
    }
}

/// Returns what lets a version come that waits for an approval.
fn approval(source: &SourceView, addon: &SourceAddonView) -> Option<String> {
    let SourceAddonView { name, version, digest, module_message, .. } = addon;
    if !module_message.contains(SourceKey::APPROVED) {
        return None;
    }
    let is_same = |other: &SourceAddonView| other.name == *name && other.version == *version;
    // Other bytes under the version that runs are approved by their digest only.
    let is_alone = source.addons().filter(|other| is_same(other)).count() < 2;
    let value = if is_alone { format!("{name}={version}") } else { digest.clone() };
    let SourceKey { kind, namespace, name: object } = &source.key;
    let place = match kind {
        SourceKind::Cluster => format!("cac {object}"),
        SourceKind::Namespaced => format!("ac {object} -n {namespace}"),
    };
    Some(format!(
        "`kubectl annotate {place} {}={value} --overwrite` lets {name} {version} come",
        SourceKey::APPROVED
    ))
}

/// Adds an advice, once.
fn add(advice: &mut Vec<String>, text: &str) {
    if !advice.iter().any(|known| known == text) {
        advice.push(text.to_owned());
    }
}

fn about_repository(reason: RepositoryReason) -> &'static str {
    match reason {
        RepositoryReason::EmptyURLError => "write the URL of an index file into spec.repositories[].url",
        RepositoryReason::FetchingIndexError => {
            "look whether the URL answers with an index and whether its host may be asked (--source-allow); it is tried again by itself"
        }
        RepositoryReason::RegisteringError => {
            "see that the disk of --source-dir has room and may be written to; it is tried again by itself"
        }
        RepositoryReason::TemplatingURLError => {
            "make the Secret with that key, in a namespace that may be read (--source-secret-namespaces)"
        }
        RepositoryReason::LoadingError => {
            "correct spec.verify: it names public keys in PEM, and no git repository"
        }
    }
}

fn about_addon(reason: AddonReason) -> &'static str {
    match reason {
        AddonReason::ConflictInSpecifiedRepositories => {
            "offer one of the two only: spec.repositories[].include names what is wanted"
        }
        AddonReason::ConflictWithAlreadyRegisteredAddon => {
            "take it out of one of the two; this one is tried again when the other is gone"
        }
        AddonReason::FetchingError => "publish the bundle where the index says; it is tried again by itself",
        AddonReason::LoadingError => {
            "correct the bundle; `addon-operator source lint` shows the same problems before it is published"
        }
        AddonReason::RegisteringError => {
            "look whether the operator may write Secrets in its namespace, and whether the disk of --source-dir has room"
        }
        AddonReason::UnregisteringError => "nothing: it is removed when its module may go",
    }
}
