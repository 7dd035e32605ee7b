//! Random lives of chart repositories: three of them, one a registry, two of a group that comes and goes; charts that come, go and
//! are published again, archives that can't be had, maps that somebody removes, refused writes, failing releases and restarts at
//! any moment.
//!
//! While they live: no Chart says that it is synced before all its versions were kept, and no package is lost that a module
//! has pinned, unless a person removes it. At rest, when all can be had, every Chart is synced with its versions kept, the
//! module runs from what it has pinned, and nothing is fetched or written any more.

use engine::{Digest, ModuleName};
use serde_json::{Value, json};

use crate::build::Files;
use crate::chart_world::{Offered, charted, offered};
use crate::charts::{URL, cache, phase};
use crate::random::{Random, live, seeds};
use crate::repositories::digest;
use crate::world::World;

/// Seeds that showed a fault.
const FAILED_ONCE: [u64; 2] = [254, 322];

const VERSIONS: [&str; 4] = ["1.0", "1.1", "1.2", "2.0"];
const CONSTRAINTS: [&str; 5] = ["1", "1.0", "1.1", "*", "9"];
const CHARTS: [&str; 6] = ["module-cache", "alpha-corp", "mine", "beta-corp", "alpha-extra", "alpha-images"];

/// The Repositories of the group. The last one is a registry.
const EXTRA: (&str, &str) = ("extra", "https://extra/charts");
const IMAGES: (&str, &str) = ("images", "oci://images/charts");
const URLS: [&str; 3] = [URL, EXTRA.1, IMAGES.1];

struct Life {
    world: World,
    random: Random,
    /// What is offered, with the URL of its repository.
    offers: Vec<(&'static str, Offered)>,
    raised: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut world = charted(&cache("1", random.below(2) == 0));
        world.is_quiet = true;
        let mut life = Self { world, random, offers: Vec::new(), raised: 0 };
        for url in URLS {
            life.offer(url, "alpha", "1.0");
        }
        life
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let count = u64::try_from(of.len()).unwrap();
        of[usize::try_from(self.random.below(count)).unwrap()]
    }

    /// Publishes a version, or another archive of one that is there.
    fn offer(&mut self, url: &'static str, chart: &str, version: &str) {
        let digest = 1 + self.random.below(1_000_000);
        let is_it = |its: &Offered| (&*its.chart, &*its.version) == (chart, version);
        self.offers.retain(|(at, its)| *at != url || !is_it(its));
        let mut offer = offered(chart, version, digest);
        if chart == "beta" {
            // One may name a URL that no Repository has yet.
            offer.needs.push(("alpha".to_owned(), self.pick(&URLS).to_owned()));
        }
        self.offers.push((url, offer));
        self.publish(url);
    }

    fn publish(&mut self, url: &str) {
        let of_it = self.offers.iter().filter(|(at, _)| *at == url).map(|(_, its)| its.clone());
        self.world.charts.repositories.insert(url.to_owned(), of_it.collect());
    }

    /// Returns a Repository of the group as its list has it.
    fn member(&mut self, (name, url): (&str, &str), versions: &[&str]) -> Value {
        // A registry has to be asked for what is wanted.
        let is_open = self.random.below(3) == 0;
        let charts = if is_open { json!([]) } else { json!([{"name": "alpha", "versions": versions}]) };
        json!({"name": name, "url": url, "charts": charts})
    }

    /// Applies the group with some of its Repositories, or deletes it.
    fn group(&mut self) {
        if self.random.below(4) == 0 {
            if !self.world.chart_object("RepoGroup", "team").is_null() {
                self.world.deletes_chart("RepoGroup", "team");
            }
            return;
        }
        let mut repos = Vec::new();
        for member in [EXTRA, IMAGES] {
            if self.random.below(3) > 0 {
                let versions = self.constraints();
                repos.push(self.member(member, &versions));
            }
        }
        self.world.applies_chart("RepoGroup", "team", json!({"labelSelector": "team", "repos": repos}));
    }

    fn constraints(&mut self) -> Vec<&'static str> {
        let count = 1 + self.random.below(2);
        (0..count).map(|_| self.pick(&CONSTRAINTS)).collect()
    }

    fn raise(&mut self, chart: &str) {
        if !self.world.chart_object("Chart", chart).is_null() {
            self.raised += 1;
            let raised = self.raised.to_string();
            self.world.annotates_chart("Chart", chart, json!({"addon-operator.io/reprocess": raised}));
        }
    }

    fn act(&mut self) {
        match self.random.below(21) {
            0 | 1 => {
                let versions = self.constraints();
                let chart = self.pick(&["alpha", "beta"]);
                let listed = json!([{"name": chart, "versions": versions}]);
                let charts = if self.random.below(3) == 0 { json!([]) } else { listed };
                let spec = json!({"name": "corp", "url": URL, "charts": charts});
                self.world.applies_chart("Repository", "corp", spec);
            }
            2 => {
                let versions = self.constraints();
                let spec = json!({"name": self.pick(&["alpha", "beta"]), "repository": "corp", "versions": versions, "createDeps": true});
                self.world.applies_chart("Chart", "mine", spec);
            }
            3 => {
                let (kind, name) =
                    self.pick(&[("Chart", "mine"), ("Chart", "alpha-corp"), ("Repository", "corp")]);
                if !self.world.chart_object(kind, name).is_null() {
                    self.world.deletes_chart(kind, name);
                }
            }
            4 | 5 => {
                let (chart, version) = (self.pick(&["alpha", "alpha", "beta"]), self.pick(&VERSIONS));
                let url = if chart == "beta" { URL } else { self.pick(&URLS) };
                self.offer(url, chart, version);
            }
            6 => {
                let url = self.pick(&URLS);
                self.world.charts.repositories.remove(url);
            }
            7 => {
                let url = self.pick(&URLS);
                self.publish(url);
            }
            8 => drop(self.world.charts.broken.insert("alpha".to_owned())),
            9 => self.world.charts.broken.clear(),
            10 => {
                let chart = self.pick(&CHARTS);
                self.raise(chart);
            }
            11 => {
                let kept: Vec<(String, String, String)> = self.world.charts.stored.keys().cloned().collect();
                if !kept.is_empty() {
                    let place = self.random.below(u64::try_from(kept.len()).unwrap());
                    let (repository, chart, version) = &kept[usize::try_from(place).unwrap()];
                    let is_unseen = self.random.below(2) == 0;
                    self.world.loses_version_of((repository, chart, version), is_unseen);
                }
            }
            12 => {
                let failure = engine::Failure::new(engine::FailureKind::Cluster, "conflict");
                self.world.patching.push_back(Err(failure));
            }
            13 => self.world.restarts_charted(),
            14 => {
                let constraint = self.pick(&CONSTRAINTS);
                let follows = self.random.below(2) == 0;
                self.world.rereads_charted(&cache(constraint, follows));
            }
            15 => {
                let times = self.random.below(4);
                self.world.fails_releases("cache", times);
            }
            16 => drop(self.world.charts.refused.insert("alpha".to_owned())),
            17 => self.world.charts.refused.clear(),
            // Its directory is gone; 14 brings it back.
            18 => self.world.rereads_charted(&alone()),
            _ => self.group(),
        }
    }

    /// Everything can be had from now on, and people ask for it.
    fn heal(&mut self) {
        self.world.patching.clear();
        self.world.fails_releases("cache", 0);
        self.world.charts.broken.clear();
        self.world.charts.refused.clear();
        // What is being deleted is gone before it is made anew.
        self.world.run_for(7_200_000);
        for url in URLS {
            for version in VERSIONS {
                let is_it = |its: &Offered| (&*its.chart, &*its.version) == ("alpha", version);
                if !self.offers.iter().any(|(at, its)| *at == url && is_it(its)) {
                    self.offer(url, "alpha", version);
                }
            }
            self.publish(url);
        }
        self.offer(URL, "beta", "1.0");
        let repos = [EXTRA, IMAGES].map(
            |(name, url)| json!({"name": name, "url": url, "charts": [{"name": "alpha", "versions": ["1"]}]}),
        );
        self.world.applies_chart("RepoGroup", "team", json!({"labelSelector": "team", "repos": repos}));
        self.world.rereads_charted(&cache("1", true));
        let listed = json!([{"name": "beta", "versions": ["1"]}]);
        self.world.applies_chart("Repository", "corp", json!({"name": "corp", "url": URL, "charts": listed}));
        if !self.world.chart_object("Chart", "mine").is_null() {
            self.world.applies_chart(
                "Chart",
                "mine",
                json!({"name": "alpha", "repository": "corp", "versions": ["1"]}),
            );
        }
        self.world.run_for(7_200_000);
        for repository in ["corp", "extra", "images"] {
            self.raised += 1;
            let raised = self.raised.to_string();
            let annotation = json!({"addon-operator.io/reprocess": raised});
            self.world.annotates_chart("Repository", repository, annotation);
        }
        self.world.run_for(7_200_000);
        for chart in CHARTS {
            self.raise(chart);
        }
        self.world.run_for(7_200_000);
    }
}

/// Returns the files without the module that names a chart.
fn alone() -> Files {
    let mut files = cache("1", true);
    files.modules.retain(|module| module.name.as_str() != "cache");
    files
}

/// Returns the versions that a Chart says are kept, with their digests.
fn resolved(chart: &Value) -> Vec<(&str, &str)> {
    let lines = chart["status"]["resolved"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.iter().map(|line| (line["version"].as_str().unwrap(), line["digest"].as_str().unwrap())).collect()
}

fn check(seed: u64) {
    let mut life = Life::new(seed);
    for _ in 0..=life.random.below(30) {
        life.act();
        let most = [10, 200, 40_000, 400_000][usize::try_from(life.random.below(4)).unwrap()];
        let rest = 1 + life.random.below(most);
        life.world.run_for(rest);
        assert_eq!(life.world.charts.wrongs, [""; 0], "seed {seed}");
    }
    life.heal();
    let mut world = life.world;
    assert_eq!(world.charts.wrongs, [""; 0], "seed {seed}");
    for ((kind, name), object) in &world.charts.objects {
        let condition = &object["status"]["conditions"][0];
        assert_eq!(condition["status"], "True", "seed {seed}: {kind} {name}: {condition}");
        let group = &object["metadata"]["labels"]["yaho.soer3n.dev/repoGroup"];
        let of = object["spec"]["repository"].as_str().unwrap_or(name);
        if kind != "RepoGroup" {
            let expected = if of == "corp" { json!(null) } else { json!("team") };
            assert_eq!(*group, expected, "seed {seed}: {kind} {name}");
        }
        if kind != "Chart" {
            continue;
        }
        assert!(!resolved(object).is_empty(), "seed {seed}: {object}");
        for (version, says) in resolved(object) {
            let chart = object["spec"]["name"].as_str().unwrap().to_owned();
            let key = (of.to_owned(), chart, version.to_owned());
            let kept = world.charts.stored.get(&key).map(|number| digest(*number));
            assert_eq!(
                kept.as_ref().map(Digest::as_str),
                Some(says),
                "seed {seed}: {name} says that {version} is kept"
            );
        }
    }
    assert_eq!(phase(&world, "cache"), "running", "seed {seed}");
    let pin = &world.charts.pins[&ModuleName::from("cache")];
    assert!(world.charts.has(&pin.package.digest), "seed {seed}: {pin:?}");
    let before = (world.charts.writes.len(), world.charts.downloads);
    world.run_for(3_600_000);
    assert_eq!(
        (world.charts.writes.len(), world.charts.downloads),
        before,
        "seed {seed}: it goes on at rest"
    );
    // Nothing of a module outlives its directory and its release.
    world.restarts_with(&alone());
    world.run_for(7_200_000);
    assert_eq!(world.chart_object("Chart", "module-cache"), Value::Null, "seed {seed}");
    assert!(world.charts.pins.is_empty(), "seed {seed}: {:?}", world.charts.pins);
}

#[test]
fn whatever_happens_nothing_is_synced_that_is_not_kept_and_no_pinned_package_is_lost() {
    live(FAILED_ONCE.into_iter().chain(seeds(100)), check);
}
