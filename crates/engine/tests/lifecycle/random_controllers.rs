//! Random lives of objects whose controller is a hook: edits by others, refused writes, lost answers, failures of the hook,
//! deletions, kinds that go and come, broken watches and restarts at any moment. Some are moved to another queue, have children in another namespace, too, and
//! follow related objects.
//!
//! While they live (`ControlPlane`): no key runs twice at once, no child that its parent wants is deleted, no object is let go
//! before its hook said that it is finalized, and none is finalized after that. At rest all is as the hook said.

use engine::snapshot::Key;
use serde_json::{Value, json};

use crate::build::files;
use crate::control_plane::{ControlPlane, LOST};
use crate::controllers::sites;
use crate::random::{Random, live, seeds};

/// Seeds that showed a fault.
const FAILED_ONCE: [u64; 8] = [1113, 3078, 4204, 5846, 7391, 10083, 105_500, 105_805];

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Returns a controller of which some children wake their object only when their spec changes, or always.
fn config(concurrency: u64, is_filtered: bool, is_wide: bool) -> String {
    let filter = if is_filtered { ", jqFilter: .spec" } else { "" };
    let related = if is_wide {
        ", related: [{name: teams, apiVersion: v1, kind: Team, parentLabel: example.com/site}]"
    } else {
        ""
    };
    format!(
        "reconcile: [{{name: site, apiVersion: example.com/v1, kind: Site, finalizer: example.com/site, concurrency: {concurrency}, \
         children: [{{apiVersion: v1, kind: ConfigMap{filter}}}, {{apiVersion: v1, kind: Service, update: Recreate}}]{related}}}]"
    )
}

/// Makes a ConfigMap in another namespace of each name in `spec.far` as well, and says what its Teams say.
fn wide(context: &Value) -> Result<Value, &'static str> {
    let mut result = sites(context)?;
    let spec = &context["object"]["spec"];
    let far = spec["far"].as_array().into_iter().flatten().map(|name| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "far"}, "spec": {"text": spec["text"]}})
    });
    if let Some(children) =
        result.get_mut("children").and_then(Value::as_array_mut).filter(|_| context["type"] == "Reconcile")
    {
        children.extend(far);
    }
    if let Some(status) = result.get_mut("status").and_then(Value::as_object_mut) {
        let teams = context["related"]["teams"].as_object().unwrap();
        status.insert("teams".to_owned(), teams.values().map(|team| team["spec"].clone()).collect());
    }
    Ok(result)
}

struct Life {
    plane: ControlPlane,
    random: Random,
    /// Whether there are children in another namespace, and related objects.
    is_wide: bool,
    config: String,
    /// Whether its queue has another name than at first.
    is_renamed: bool,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        // Of those that failed once only the last ones, which came after this, are among these.
        let (is_filtered, is_wide) = (matches!(seed % 5, 0 | 2), matches!(seed % 7, 2 | 3));
        let config = config(1 + random.below(3), is_filtered, is_wide);
        let files = files().global_hook("site.sh", &config);
        let mut plane = ControlPlane::new(&files, if is_wide { wide } else { sites });
        plane.random = Some(Random(seed ^ 0x5eed));
        plane.run_for(1);
        Self { plane, random, is_wide, config, is_renamed: false }
    }

    /// Gives the queue another name while the operator runs.
    fn rename_queue(&mut self) {
        self.is_renamed = !self.is_renamed;
        let queue = if self.is_renamed { "queue: other, concurrency" } else { "concurrency" };
        let config = self.config.replacen("concurrency", queue, 1);
        self.plane.reload(&files().global_hook("site.sh", &config));
    }

    fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    fn site(&mut self) -> &'static str {
        NAMES[usize::try_from(self.random.below(4)).unwrap()]
    }

    fn spec(&mut self, site: &str) -> Value {
        let mut names = |letter: char| -> Vec<String> {
            let mut names: Vec<String> = (0..4).map(|number| format!("{site}-{letter}{number}")).collect();
            names.retain(|_| self.random.below(2) == 0);
            if self.random.below(2) == 0 {
                names.reverse();
            }
            names
        };
        let (maps, services) = (names('m'), names('s'));
        let far = self.is_wide.then(|| names('f'));
        let mut spec = json!({"maps": maps, "services": services, "text": self.random.below(3).to_string()});
        spec.as_object_mut().unwrap().extend(far.map(|far| ("far".to_owned(), far.into())));
        for (field, of) in [("fails", 8), ("keeps", 8), ("orderly", 2)] {
            spec[field] = self.chance(of).into();
        }
        if self.chance(8) {
            spec["after"] = "90s".into();
        }
        spec
    }

    /// Draws one of the children that there are.
    fn child(&mut self) -> Option<(String, Key)> {
        let is_child = |kind: &str| !["Site", "Team"].contains(&kind);
        let children: Vec<_> =
            self.plane.objects.keys().filter(|(kind, _)| is_child(kind)).cloned().collect();
        let count = u64::try_from(children.len()).unwrap();
        if count == 0 {
            return None;
        }
        children.get(usize::try_from(self.random.below(count)).unwrap()).cloned()
    }

    fn edit(&mut self, address: &(String, Key), change: impl FnOnce(&mut Value)) {
        let Some(mut object) = self.plane.objects.get(address).cloned() else { return };
        change(&mut object);
        self.plane.put(address, object);
    }

    fn act(&mut self) {
        let name = self.site();
        let site = ("Site".to_owned(), Key::new("ns", name));
        match self.random.below(if self.is_wide { 18 } else { 15 }) {
            0..=3 => {
                let spec = self.spec(name);
                let new = json!({"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": name, "namespace": "ns"}});
                let mut object = self.plane.objects.get(&site).cloned().unwrap_or(new);
                let old = std::mem::replace(&mut object["spec"], spec);
                self.plane.put(&site, object.clone());
                if self.chance(4) && !old.is_null() {
                    // It is as it was before anybody looked.
                    self.edit(&site, |object| object["spec"] = old);
                }
            }
            4 => self.plane.delete("Site", &site.1),
            5 => self.edit(&site, |object| {
                if object["metadata"]["deletionTimestamp"].is_null() {
                    object["metadata"]["finalizers"] = json!([]);
                }
            }),
            6 | 7 => {
                let Some(child) = self.child() else { return };
                let text = self.random.below(3).to_string();
                self.edit(&child, |object| object["spec"]["text"] = text.into());
            }
            8 => {
                if let Some((kind, key)) = self.child() {
                    self.plane.delete(&kind, &key);
                }
            }
            9 => {
                let Some(child) = self.child() else { return };
                self.edit(&child, |object| {
                    // Nobody may add a finalizer to what is being deleted.
                    if object["metadata"]["deletionTimestamp"].is_null() {
                        object["metadata"]["finalizers"] = json!(["foreign/one"]);
                    }
                });
            }
            10 => self.free(),
            11 | 12 => {
                let refusal = [None, Some("refused"), Some(LOST)];
                let drawn = usize::try_from(self.random.below(3)).unwrap();
                self.plane.refusals.push_back(refusal[drawn]);
            }
            15 | 16 => {
                let team = ("Team".to_owned(), Key::new("ns", &format!("t{}", self.random.below(3))));
                let spec = self.random.below(9);
                let known = self.plane.objects.get(&team).map(|known| known["metadata"]["uid"].clone());
                let object = json!({"spec": spec, "metadata": {
                    "name": &*team.1.name, "namespace": "ns", "labels": {"example.com/site": name}, "uid": known}});
                self.plane.put(&team, object);
            }
            17 => {
                let team = Key::new("ns", &format!("t{}", self.random.below(3)));
                self.plane.delete("Team", &team);
            }
            13 if self.chance(3) => self.plane.restart(),
            13 => self.plane.relist(),
            _ if self.plane.missing_kinds.is_empty() => self.plane.lose("Service"),
            _ => self.plane.bring("Service"),
        }
    }

    /// Takes the finalizers of others away.
    fn free(&mut self) {
        let children: Vec<_> =
            self.plane.objects.keys().filter(|(kind, _)| kind != "Site").cloned().collect();
        for child in children {
            self.edit(&child, |object| object["metadata"]["finalizers"] = json!([]));
        }
    }

    /// Checks that all is as the hook says.
    fn check(&self, seed: u64) {
        let mut expected: Vec<(&str, &str, &str)> = Vec::new();
        let mut kept: Vec<&str> = Vec::new();
        for ((kind, key), object) in &self.plane.objects {
            if kind != "Site" {
                continue;
            }
            assert!(
                object["metadata"]["deletionTimestamp"].is_null() || object["spec"]["fails"] == true,
                "seed {seed}: {key} stays"
            );
            if object["spec"]["fails"] == true || object["spec"]["keeps"] == true {
                kept.push(&key.name);
                continue;
            }
            assert_eq!(object["metadata"]["finalizers"], json!(["example.com/site"]), "seed {seed}: {key}");
            let stalled = object["status"]["conditions"].as_array().map_or(0, Vec::len);
            assert_eq!(stalled, 0, "seed {seed}: {key} does not wait for a kind");
            assert_eq!(
                object["status"]["observedGeneration"], object["metadata"]["generation"],
                "seed {seed}: {key}"
            );
            let text = object["spec"]["text"].as_str().unwrap();
            let before = expected.len();
            for (field, kind) in [("maps", "ConfigMap"), ("services", "Service")] {
                let names = object["spec"][field].as_array().unwrap();
                expected.extend(names.iter().map(|name| (kind, name.as_str().unwrap(), text)));
            }
            let far = object["spec"]["far"].as_array().into_iter().flatten();
            expected.extend(far.map(|name| ("ConfigMap", name.as_str().unwrap(), text)));
            assert_eq!(object["status"]["children"], expected.len() - before, "seed {seed}: {key}");
            if self.is_wide {
                let teams = self.plane.objects.iter().filter(|((kind, _), _)| kind == "Team");
                let teams =
                    teams.filter(|(_, team)| team["metadata"]["labels"]["example.com/site"] == *key.name);
                let said: Value = teams.map(|(_, team)| team["spec"].clone()).collect();
                assert_eq!(object["status"]["teams"], said, "seed {seed}: {key}");
            }
        }
        expected.sort_unstable();
        let all =
            self.plane.objects.iter().filter(|((kind, _), _)| !["Site", "Team"].contains(&kind.as_str()));
        // Who takes the finalizer away leaves what is in another namespace behind, until there is an object of that name again.
        let is_left =
            |key: &Key| &*key.namespace == "far" && self.plane.get("Site", &key.name[..1]).is_none();
        let mut found: Vec<_> = all
            .filter(|((_, key), _)| !kept.iter().any(|site| key.name.starts_with(*site)) && !is_left(key))
            .map(|((kind, key), object)| {
                (kind.as_str(), &*key.name, object["spec"]["text"].as_str().unwrap())
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}");
    }
}

#[test]
fn whatever_happens_objects_become_what_their_hook_says() {
    live(FAILED_ONCE.into_iter().chain(seeds(100)), |seed| {
        let mut life = Life::new(seed);
        // A mistake is mended by much of what comes after it, so rests are many.
        for _ in 0..5 {
            for place in 0..6 {
                life.act();
                if seed % 5 == 0 && place == 3 {
                    life.rename_queue();
                }
                let millis = match life.random.below(20) {
                    0 => 10_000,
                    1..=4 => 0,
                    _ => life.random.below(60),
                };
                life.plane.run_for_millis(millis);
            }
            life.plane.refusals.clear();
            life.plane.bring("Service");
            life.free();
            // The longest wait is five minutes and a quarter.
            life.plane.run_for(400);
            life.check(seed);
        }
    });
}
