//! The charts that the chart of a module needs and does not hold: `dependencies` of its `Chart.yaml`. See docs/charts.md.

use std::fs;
use std::path::Path;

use engine::ChartDependency;
use serde_json::{Map, Value};

use super::mapping::read_mapping;

/// The most charts that a chart may need.
const MOST: usize = 100;

/// The longest text about one of them, in bytes.
const MAX_TEXT: usize = 2_048;

/// Where charts name what they need, each with its lock; the newer form first.
const FILES: [(&str, &str); 2] = [("Chart.yaml", "Chart.lock"), ("requirements.yaml", "requirements.lock")];

/// Returns the charts that the chart in a directory needs from a repository and does not hold in `charts/`, each once. Where
/// there is a lock, it says which version.
///
/// # Errors
///
/// If the lock can't be read, or there are too many. What is wrong with `Chart.yaml` is told when the chart is loaded.
pub(super) fn named(directory: &Path) -> Result<Vec<ChartDependency>, String> {
    for (file, lock) in FILES {
        let fields = read_mapping(&directory.join(file)).ok().flatten().unwrap_or_default();
        let listed: Vec<ChartDependency> = listed(&fields).filter(is_remote).collect();
        if listed.is_empty() {
            continue;
        }
        if listed.len() > MOST {
            return Err(format!(
                "{}: there are more than {MOST} dependencies",
                directory.join(file).display()
            ));
        }
        let path = directory.join(lock);
        let locked = read_mapping(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let locked: Vec<ChartDependency> = locked.iter().flat_map(self::listed).collect();
        let mut needed = Vec::new();
        for mut wanted in listed {
            let is_it =
                |its: &&ChartDependency| its.name == wanted.name && its.repository == wanted.repository;
            let mut of_it = locked.iter().filter(is_it);
            // One chart in two versions is told apart by its constraints.
            if let (Some(only), None) = (of_it.next(), of_it.next()) {
                wanted.version = only.version.clone();
            }
            if !needed.contains(&wanted) && !is_held(directory, &wanted.name) {
                needed.push(wanted);
            }
        }
        return Ok(needed);
    }
    Ok(Vec::new())
}

fn listed(fields: &Map<String, Value>) -> impl Iterator<Item = ChartDependency> + '_ {
    let all = fields.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|its| {
        let text = |name: &str| {
            let text = its.get(name).and_then(Value::as_str).unwrap_or_default();
            (text.len() <= MAX_TEXT).then(|| text.into())
        };
        Some(ChartDependency {
            name: text("name")?,
            version: text("version")?,
            repository: text("repository")?,
        })
    })
}

fn is_remote(dependency: &ChartDependency) -> bool {
    let schemes = ["https://", "http://", "oci://", "catalog://"];
    !dependency.name.is_empty() && schemes.iter().any(|scheme| dependency.repository.starts_with(scheme))
}

/// Returns whether a chart is below `charts/`, packed or not.
fn is_held(directory: &Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory.join("charts")) else { return false };
    entries.flatten().any(|entry| {
        let file = entry.file_name().to_string_lossy().into_owned();
        let packed = file.strip_suffix(".tgz").and_then(|file| file.strip_prefix(name)?.strip_prefix('-'));
        file == name
            || packed.is_some_and(|version| {
                version.starts_with(|digit: char| digit.is_ascii_digit() || digit == 'v')
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        let found = named(chart(files).path()).unwrap();
        found.into_iter().map(|its| format!("{} {} {}", its.name, its.version, its.repository)).collect()
    }

    const CHART: &str = "name: x\nversion: 1.0.0\ndependencies:\n\
        - {name: redis, version: ~1.2, repository: 'https://a.example/x'}\n\
        - {name: redis, version: ~1.2, repository: 'https://a.example/x', alias: other}\n\
        - {name: base, version: '1', repository: 'file://../base'}\n\
        - {name: own, version: '1'}\n\
        - {name: web, version: '*', repository: 'catalog://corp'}\n";

    #[test]
    fn what_is_not_there_and_comes_from_a_repository_is_named_once() {
        let all = ["redis ~1.2 https://a.example/x", "web * catalog://corp"];
        assert_eq!(names(&[("Chart.yaml", CHART)]), all);
        assert_eq!(names(&[("requirements.yaml", CHART)]), all);
        assert_eq!(names(&[("Chart.yaml", "name: x\n")]), [""; 0]);
        assert_eq!(names(&[("Chart.yaml", "- x\n")]), [""; 0]);
        let packed = [("Chart.yaml", CHART), ("charts/redis-1.2.3.tgz", ""), ("charts/web/Chart.yaml", "")];
        assert_eq!(names(&packed), [""; 0]);
        assert_eq!(names(&[("Chart.yaml", CHART), ("charts/redis-cluster-1.2.3.tgz", "")]), all);
    }

    #[test]
    fn a_lock_says_which_version() {
        let lock = "dependencies:\n- {name: redis, version: 1.2.7, repository: 'https://a.example/x'}\n";
        let found = names(&[("Chart.yaml", CHART), ("Chart.lock", lock)]);
        assert_eq!(found, ["redis 1.2.7 https://a.example/x", "web * catalog://corp"]);
        let error = named(chart(&[("Chart.yaml", CHART), ("Chart.lock", "- [")]).path()).unwrap_err();
        assert!(error.contains("Chart.lock"), "{error}");
    }

    #[test]
    fn too_many_are_refused() {
        let line =
            |number: usize| format!("- {{name: c{number}, version: '1', repository: 'https://a.example'}}\n");
        let chart_of = |count: usize| format!("dependencies:\n{}", (0..count).map(line).collect::<String>());
        assert_eq!(named(chart(&[("Chart.yaml", &chart_of(MOST))]).path()).unwrap().len(), MOST);
        let error = named(chart(&[("Chart.yaml", &chart_of(MOST + 1))]).path()).unwrap_err();
        assert!(error.contains("more than 100 dependencies"), "{error}");
    }
}
