//! What is wrong with what the repositories of a configuration offer. Everything is looked at, so that one status shows
//! all problems, and the same ones have the same words each time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::status::{AddonLine, ModuleLine, ModuleLineState, RepositoryLine, SourcePhase};
use crate::addon::{
    AddonProblem, AddonReason, Bundle, Digest, Fetched, FetchedAddon, RegisteredAddon, RepositoryReason,
    SourceKey, SourceSpec, shown_url,
};
use crate::name::ModuleName;

/// What became of what a configuration asks for.
#[derive(Debug, Default)]
pub(super) struct Assessment {
    /// One for each repository, in the order of the spec.
    pub(super) lines: Vec<RepositoryLine>,
    /// The addons to register, if nothing failed.
    pub(super) addons: Vec<RegisteredAddon>,
    /// Whether something failed.
    pub(super) is_failed: bool,
    /// Whether something could not be fetched.
    pub(super) is_unfetched: bool,
    /// Whether our own disk did not take something that was fetched.
    pub(super) is_unstored: bool,
    /// The configurations that have what this one would have.
    pub(super) blocked_by: BTreeSet<SourceKey>,
    /// The ids of all bundles that were fetched.
    pub(super) offered: BTreeSet<String>,
    /// Why it failed, if that is not in the lines.
    pub(super) problem: Option<String>,
}

/// What others have.
pub(super) struct Taken<'a> {
    /// The addons that other configurations registered, without those that are being deleted.
    pub(super) registered: &'a [&'a RegisteredAddon],
    /// Returns the directory of the built-in module of a name.
    pub(super) built_in: &'a dyn Fn(&ModuleName) -> Option<Arc<str>>,
}

/// A bundle of the configuration: its repository, its place there, and what it is.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    repository: usize,
    place: usize,
    url: &'a str,
    addon: &'a FetchedAddon,
    bundle: &'a Bundle,
}

impl Candidate<'_> {
    /// Versions of one addon of one repository are one addon.
    fn is_same_addon(&self, other: &Self) -> bool {
        let addon = |its: &Self| (its.repository, its.addon.name.clone());
        addon(self) == addon(other) && self.addon.version != other.addon.version
    }
}

impl Assessment {
    /// Returns the assessment of a spec that can't be read.
    pub(super) fn unreadable(problem: String) -> Self {
        Self { is_failed: true, problem: Some(problem), ..Self::default() }
    }

    /// Looks at everything that was fetched.
    pub(super) fn of(key: &SourceKey, spec: &SourceSpec, fetched: &Fetched, taken: &Taken<'_>) -> Self {
        let mut assessment = Self::default();
        let candidates = candidates(spec, fetched);
        assessment.offered = candidates.iter().map(|candidate| candidate.bundle.id.clone()).collect();
        let mut problems: BTreeMap<(usize, usize), AddonProblem> = duplicates(&candidates);
        for (candidate, problem) in conflicts(key, &candidates, taken, &mut assessment.blocked_by) {
            problems.entry((candidate.repository, candidate.place)).or_insert(problem);
        }
        for (repository, asked) in spec.repositories.iter().enumerate() {
            let outcome = fetched.repositories.get(repository).map(|its| &its.outcome);
            let mut line = RepositoryLine { url: asked.url.clone(), ..RepositoryLine::default() };
            match outcome {
                Some(Ok(addons)) => {
                    let lines = addons
                        .iter()
                        .enumerate()
                        .map(|(place, addon)| addon_line(addon, problems.get(&(repository, place))));
                    line.addons = lines.collect();
                    let failed = |reason: AddonReason| {
                        let is_it = |problem: &AddonProblem| problem.reason == reason;
                        addons.iter().any(|addon| addon.outcome.as_ref().is_err_and(is_it))
                    };
                    assessment.is_unfetched |= failed(AddonReason::FetchingError);
                    assessment.is_unstored |= failed(AddonReason::RegisteringError);
                }
                Some(Err(problem)) => {
                    assessment.is_unfetched |= problem.reason == RepositoryReason::FetchingIndexError;
                    assessment.is_unstored |= problem.reason == RepositoryReason::RegisteringError;
                    problem.reason.as_str().clone_into(&mut line.reason);
                    line.message.clone_from(&problem.message);
                }
                None => {
                    assessment.is_unfetched = true;
                    RepositoryReason::FetchingIndexError.as_str().clone_into(&mut line.reason);
                    "the repository was not fetched".clone_into(&mut line.message);
                }
            }
            assessment.lines.push(line);
        }
        assessment.judge();
        if !assessment.is_failed {
            let addon = |candidate: &Candidate<'_>| RegisteredAddon {
                is_active: candidate.addon.is_chosen,
                auto_enable: spec.auto_enable,
                ..RegisteredAddon::new(key.clone(), candidate.url.to_owned(), candidate.bundle.clone())
            };
            assessment.addons = candidates.iter().map(addon).collect();
        }
        assessment
    }

    /// Records that bundles could not be kept: the addon of each, or all if none is named.
    pub(super) fn not_kept(&mut self, problems: &BTreeMap<Digest, String>, general: Option<&str>) {
        // What was wrong before is told as well.
        let before = if self.is_failed { self.message() + "; " } else { String::new() };
        let told = general.map(|why| format!("{before}{why}"));
        for line in self.lines.iter_mut().flat_map(|line| &mut line.addons) {
            let own =
                problems.iter().find(|(digest, _)| digest.as_str() == line.digest).map(|(_, why)| &**why);
            if let Some(why) = own.or(general).filter(|_| line.status == SourcePhase::Ready) {
                fail(line, &AddonProblem { reason: AddonReason::RegisteringError, message: why.to_owned() });
            }
        }
        if told.is_some() {
            self.problem = told;
        } else if self.problem.is_none() {
            let of_line = |digest: &&Digest| {
                self.lines.iter().flat_map(|line| &line.addons).any(|line| line.digest == digest.as_str())
            };
            // The bundle of a version that goes on may be in no line.
            let unlisted = problems.iter().find(|(digest, _)| !of_line(digest)).map(|(_, why)| &**why);
            self.problem = unlisted.map(str::to_owned);
        }
        self.addons.clear();
        self.is_failed = true;
        self.judge();
    }

    /// Returns whether a repository of the spec may offer an addon still, for all that is known: its index or its bundle could
    /// not be had.
    pub(super) fn may_offer(&self, addon: &RegisteredAddon) -> bool {
        let is_its = |line: &AddonLine| line.name == addon.name();
        self.is_failed && self.lines.iter().any(|line| line.url == addon.url && self.is_unread(line, is_its))
    }

    /// Returns the repositories of the spec that may offer more than was found.
    pub(super) fn unread(&self) -> BTreeSet<String> {
        let unread = self.lines.iter().filter(|line| self.is_failed && self.is_unread(line, |_| true));
        unread.map(|line| line.url.clone()).collect()
    }

    /// Returns whether a repository, or the bundle of one of these addons, could not be had.
    fn is_unread(&self, repository: &RepositoryLine, is_its: impl Fn(&AddonLine) -> bool) -> bool {
        let is_unread = |line: &AddonLine| {
            line.reason == AddonReason::FetchingError.as_str()
                || self.is_unstored && line.reason == AddonReason::RegisteringError.as_str()
        };
        !repository.reason.is_empty() || repository.addons.iter().any(|line| is_its(line) && is_unread(line))
    }

    /// Returns whether what is offered is not known: it could not be fetched, or our own disk did not take it. Nothing is removed
    /// because of that.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unfetched || self.is_unstored
    }

    /// Sets the status of each repository, and of all. If anything failed nothing is registered, and no line has a module.
    fn judge(&mut self) {
        for line in &mut self.lines {
            let is_failed = |addon: &AddonLine| addon.status == SourcePhase::Failed;
            let failed = !line.reason.is_empty() || line.addons.iter().any(is_failed);
            line.status = if failed { SourcePhase::Failed } else { SourcePhase::Ready };
            self.is_failed |= failed;
        }
        if self.is_failed {
            self.lines.iter_mut().flat_map(|line| &mut line.addons).for_each(|line| line.module = None);
        }
    }

    /// Returns everything that failed, one line each.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.problem.iter().cloned().collect();
        for (number, line) in self.lines.iter().enumerate() {
            if !line.reason.is_empty() {
                problems.push(format!("repository {}: {}: {}", number + 1, line.reason, line.message));
            }
            let failed = line.addons.iter().filter(|addon| addon.status == SourcePhase::Failed);
            problems.extend(failed.map(addon_problem));
        }
        problems
    }

    /// Returns in one line what failed, if anything did.
    pub(super) fn message(&self) -> String {
        if let Some(problem) = &self.problem {
            return problem.clone();
        }
        let of_addons = self.count_addons(|addon| addon.status == SourcePhase::Failed);
        let of_repositories = self.lines.iter().filter(|line| !line.reason.is_empty()).count();
        match (of_repositories, of_addons) {
            (0, 0) => match self.count_addons(|_| true) {
                1 => "1 addon is registered".to_owned(),
                count => format!("{count} addons are registered"),
            },
            (repositories, addons) => {
                let count = |count, one: &str, many: &str| match count {
                    0 => None,
                    1 => Some(format!("1 {one}")),
                    count => Some(format!("{count} {many}")),
                };
                let repositories = count(repositories, "repository", "repositories");
                let addons = count(addons, "addon", "addons");
                let both: Vec<String> = repositories.into_iter().chain(addons).collect();
                let first = self.first_problem().unwrap_or_default();
                format!("{} failed, nothing is registered; {first}", both.join(" and "))
            }
        }
    }
}

impl Assessment {
    /// Counts the addons of which a line is like this: versions of one in one repository are one.
    fn count_addons(&self, is: impl Fn(&AddonLine) -> bool) -> usize {
        let of = |line: &RepositoryLine| -> usize {
            let names: BTreeSet<&str> =
                line.addons.iter().filter(|addon| is(addon)).map(|addon| addon.name.as_str()).collect();
            names.len()
        };
        self.lines.iter().map(of).sum()
    }

    /// Returns the first problem, with what it is about.
    fn first_problem(&self) -> Option<String> {
        self.lines.iter().enumerate().find_map(|(number, line)| {
            let failed = |addon: &&AddonLine| addon.status == SourcePhase::Failed;
            match (line.reason.as_str(), line.addons.iter().find(failed)) {
                ("", None) => None,
                ("", Some(addon)) => Some(addon_problem(addon)),
                (reason, _) => Some(format!("repository {}: {reason}: {}", number + 1, line.message)),
            }
        })
    }
}

fn addon_problem(AddonLine { name, version, reason, message, .. }: &AddonLine) -> String {
    let gap = if version.is_empty() { "" } else { " " };
    format!("{name}{gap}{version}: {reason}: {message}")
}

fn candidates<'a>(spec: &'a SourceSpec, fetched: &'a Fetched) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for (repository, (asked, its)) in spec.repositories.iter().zip(&fetched.repositories).enumerate() {
        for (place, addon) in its.outcome.iter().flatten().enumerate() {
            if let Ok(bundle) = &addon.outcome {
                candidates.push(Candidate { repository, place, url: &asked.url, addon, bundle });
            }
        }
    }
    candidates
}

/// Returns a problem for every bundle that shares its id or its module with another addon of the configuration.
fn duplicates(candidates: &[Candidate<'_>]) -> BTreeMap<(usize, usize), AddonProblem> {
    let mut by_id: BTreeMap<&str, Vec<&Candidate<'_>>> = BTreeMap::new();
    let mut by_name: BTreeMap<&ModuleName, Vec<&Candidate<'_>>> = BTreeMap::new();
    for candidate in candidates {
        by_id.entry(&candidate.bundle.id).or_default().push(candidate);
        if candidate.addon.is_chosen {
            by_name.entry(&candidate.bundle.name).or_default().push(candidate);
        }
    }
    let mut problems = BTreeMap::new();
    let groups = by_id.into_values().map(|group| ("id", group));
    for (what, group) in groups.chain(by_name.into_values().map(|group| ("name", group))) {
        // Two differ from every other: the first that is another addon than the first, and the first itself.
        let Some(first) = group.first() else { continue };
        let Some(second) = group.iter().find(|other| !is_one(first, other)) else { continue };
        for candidate in &group {
            let other = if is_one(first, candidate) { second } else { first };
            let message = format!(
                "its {what} is that of {}:{} in {}, too; offer one of them only",
                other.addon.name,
                other.addon.version,
                shown_url(other.url)
            );
            let problem = AddonProblem { reason: AddonReason::ConflictInSpecifiedRepositories, message };
            problems.entry((candidate.repository, candidate.place)).or_insert(problem);
        }
    }
    problems
}

/// Returns whether two are the same line, or versions of one addon.
fn is_one(a: &Candidate<'_>, b: &Candidate<'_>) -> bool {
    (a.repository, a.place) == (b.repository, b.place) || a.is_same_addon(b)
}

/// Returns the bundles whose id or module others have, and records which configurations have it.
fn conflicts<'c, 'a>(
    key: &SourceKey,
    candidates: &'c [Candidate<'a>],
    taken: &Taken<'_>,
    blocked_by: &mut BTreeSet<SourceKey>,
) -> Vec<(&'c Candidate<'a>, AddonProblem)> {
    let others = || taken.registered.iter().filter(|addon| addon.source != *key);
    let in_scope = || others().filter(|addon| addon.source.shares_scope_with(key));
    let by_id: BTreeMap<&str, &RegisteredAddon> =
        in_scope().map(|addon| (&*addon.bundle.id, *addon)).collect();
    let active = others().filter(|addon| addon.is_active && !addon.source.yields_to(key));
    let by_name: BTreeMap<&ModuleName, &RegisteredAddon> =
        active.map(|addon| (&addon.bundle.name, *addon)).collect();
    let mut conflicts = Vec::new();
    for candidate in candidates {
        let name = &candidate.bundle.name;
        let mut conflict = |message| {
            let reason = AddonReason::ConflictWithAlreadyRegisteredAddon;
            conflicts.push((candidate, AddonProblem { reason, message }));
        };
        if let Some(path) = candidate.addon.is_chosen.then(|| (taken.built_in)(name)).flatten() {
            conflict(format!("its module is the built-in module {path}; give the addon another name"));
            continue;
        }
        let same_name = by_name.get(name).filter(|_| candidate.addon.is_chosen).map(|other| ("name", other));
        let same_id = by_id.get(&*candidate.bundle.id).map(|other| ("id", other));
        if let Some((what, other)) = same_id.or(same_name) {
            blocked_by.insert(other.source.clone());
            // An id is of an addon, whose module has another name in a namespace.
            let name = if same_id.is_some() { other.name() } else { other.bundle.name.as_str() };
            conflict(format!(
                "its {what} is registered by {}: {}:{} in {}",
                other.source,
                name,
                other.bundle.version,
                shown_url(&other.url)
            ));
        }
    }
    conflicts
}

fn addon_line(addon: &FetchedAddon, problem: Option<&AddonProblem>) -> AddonLine {
    let mut line = AddonLine {
        name: addon.name.clone(),
        version: addon.version.clone(),
        status: SourcePhase::Ready,
        ..AddonLine::default()
    };
    match &addon.outcome {
        Err(problem) => fail(&mut line, problem),
        Ok(bundle) => {
            line.id.clone_from(&bundle.id);
            line.digest = bundle.digest.to_string();
            match problem {
                Some(problem) => fail(&mut line, problem),
                None if addon.is_chosen => {
                    let state = ModuleLineState::Registered;
                    let (name, message) = (bundle.name.clone(), String::new());
                    line.module = Some(ModuleLine { name, state, message });
                }
                None => {}
            }
        }
    }
    line
}

fn fail(line: &mut AddonLine, problem: &AddonProblem) {
    line.status = SourcePhase::Failed;
    problem.reason.as_str().clone_into(&mut line.reason);
    line.message.clone_from(&problem.message);
    line.module = None;
}
