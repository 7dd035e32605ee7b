//! Writes charts into directories for a `helm` program: the chart of a module, and one that renders to what was rendered before.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use chart::chart::Chart;
use chart::manifest::{Hook, Manifest};
use chart::metadata::Metadata;
use serde_json::{Map, Value};

/// Writes a chart with those that it holds into a new directory.
///
/// # Errors
///
/// When a file can't be written, or one of the chart has a name that leads out of it.
pub(super) fn write_chart(directory: &Path, chart: &Chart) -> io::Result<()> {
    make(directory)?;
    write_metadata(directory, &chart.metadata)?;
    if let Some(lock) = &chart.lock {
        write_file(directory, "Chart.lock", lock.to_string().as_bytes())?;
    }
    if let Some(values) = &chart.values {
        write_values(&directory.join("values.yaml"), values)?;
    }
    if let Some(schema) = &chart.schema {
        write_file(directory, "values.schema.json", schema)?;
    }
    for file in chart.templates.iter().chain(&chart.files) {
        // These were written from what was read of them.
        let is_written = ["Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", ".helmignore"];
        if !is_written.contains(&&*file.name) {
            write_file(directory, &file.name, &file.data)?;
        }
    }
    for (index, dependency) in chart.dependencies.iter().enumerate() {
        let name = format!(
            "charts/{index:03}-{}",
            Path::new(dependency.name())
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
        );
        write_chart(&directory.join(name), dependency)?;
    }
    Ok(())
}

/// Writes a chart that renders to these objects, hooks and notes, whatever values it is given: each template hands out a file.
pub(super) fn write_rendered(
    directory: &Path,
    metadata: &Metadata,
    (manifests, hooks): (&[Manifest], &[Hook]),
    notes: &str,
) -> io::Result<()> {
    make(directory)?;
    // The charts that it needs are in what they rendered to.
    write_metadata(directory, &Metadata { dependencies: Vec::new(), ..metadata.clone() })?;
    let objects = manifests.iter().map(|manifest| (manifest.path.as_str(), &*manifest.content));
    let hooks = hooks.iter().map(|hook| (hook.path.as_str(), hook.manifest.as_str()));
    for (index, (path, content)) in objects.chain(hooks).enumerate() {
        let name = path.rsplit('/').next().unwrap_or_default();
        // A template whose name begins so gives no objects.
        let name = format!("{index:05}-{}", name.trim_start_matches('_'));
        write_file(directory, &format!("rendered/{name}"), content.as_bytes())?;
        let mut template = String::new();
        let _ = writeln!(template, "{{{{ .Files.Get {} }}}}", Value::from(format!("rendered/{name}")));
        write_file(directory, &format!("templates/{name}"), template.as_bytes())?;
    }
    if !notes.is_empty() {
        write_file(directory, "rendered/NOTES.txt", notes.as_bytes())?;
        write_file(directory, "templates/NOTES.txt", b"{{ .Files.Get \"rendered/NOTES.txt\" }}")?;
    }
    Ok(())
}

/// Writes values into a file that nobody else can read.
pub(super) fn write_values(path: &Path, values: &Map<String, Value>) -> io::Result<()> {
    // JSON is YAML.
    write_private(path, serde_json::to_string(values)?.as_bytes())
}

/// Writes a new file that nobody else can read.
///
/// # Errors
///
/// When there is one already, or it can't be written.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

fn write_metadata(directory: &Path, metadata: &Metadata) -> io::Result<()> {
    let text = golang::json::to_vec(metadata).map_err(io::Error::other)?;
    write_file(directory, "Chart.yaml", &text)
}

fn write_file(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let inside = Path::new(name);
    if inside.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("the chart has a file {name:?}, which is not inside of it")));
    }
    let path: PathBuf = directory.join(inside);
    make(path.parent().unwrap_or(directory))?;
    write_private(&path, content)
}

fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    fs::metadata(directory).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use chart::chart::File;
    use chart::manifest::Head;
    use serde_json::json;

    use super::*;

    fn chart(files: &[&str]) -> Chart {
        let file = |name: &&str| File { name: Arc::from(*name), data: name.as_bytes().into() };
        let metadata = Metadata {
            name: "web".to_owned(),
            version: "1.0.0".to_owned(),
            api_version: "v2".to_owned(),
            ..Metadata::default()
        };
        let values = json!({"a": 1}).as_object().cloned().map(Arc::new);
        Chart { metadata, values, templates: files.iter().map(file).collect(), ..Chart::default() }
    }

    #[test]
    fn a_chart_is_written_with_those_in_it_and_nobody_else_can_read_it() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join("chart");
        let dependencies = vec![chart(&["templates/sub.yaml"])];
        write_chart(&directory, &Chart { dependencies, ..chart(&["templates/map.yaml"]) }).unwrap();
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        let metadata: Value = serde_json::from_str(&read("Chart.yaml")).unwrap();
        assert_eq!(metadata, json!({"name": "web", "version": "1.0.0", "apiVersion": "v2"}));
        assert_eq!(read("values.yaml"), r#"{"a":1}"#);
        assert_eq!(read("charts/000-web/templates/sub.yaml"), "templates/sub.yaml");
        for name in ["values.yaml", "templates/map.yaml"] {
            let mode = fs::metadata(directory.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_file_that_leads_out_of_its_chart_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        for name in ["../out", "/out", "templates/../../out"] {
            let error = write_chart(&temp.path().join(name.len().to_string()), &chart(&[name])).unwrap_err();
            assert!(error.to_string().contains("not inside of it"), "{error}");
        }
    }

    #[test]
    fn what_was_rendered_is_rendered_once_more() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join("chart");
        let manifest = Manifest {
            path: "web/templates/a.yaml".to_owned(),
            content: "{{ a: 1 }}".into(),
            head: Head::default(),
        };
        write_rendered(&directory, &chart(&[]).metadata, (&[manifest], &[]), "{{ hello }}\n").unwrap();
        let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(read("rendered/00000-a.yaml"), "{{ a: 1 }}");
        assert_eq!(read("templates/00000-a.yaml"), "{{ .Files.Get \"rendered/00000-a.yaml\" }}\n");
        assert_eq!(read("rendered/NOTES.txt"), "{{ hello }}\n");
        assert_eq!(read("templates/NOTES.txt"), "{{ .Files.Get \"rendered/NOTES.txt\" }}");
    }
}
