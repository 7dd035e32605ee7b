//! Charts of files that a test says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use chart::chart::Chart;
use chart::environment::FixedEnvironment;
use chart::load::{Tree, from_directory};
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, RenderError, Rendered, Request};
use chart::render_cache::{Cache, render};
use chart::template::Limits;
use chart::warnings::Warnings;

/// Returns the chart of these files.
pub(crate) fn chart(files: &[(&str, &str)]) -> Chart {
    let tree: Tree =
        files.iter().map(|(path, text)| ((*path).to_owned(), Arc::from(text.as_bytes()))).collect();
    from_directory(&tree, &mut Warnings::default()).unwrap()
}

/// Renders a chart of these files as the first release, without values.
pub(crate) fn rendered(files: &[(&str, &str)], limits: Limits) -> Result<Rendered, RenderError> {
    let release = Release { name: "r".into(), namespace: "n".into(), revision: 1, is_upgrade: false };
    let request = Request {
        values: &serde_json::Map::new(),
        release: &release,
        capabilities: &Capabilities::without_cluster(KubeVersion::default()),
        limits,
        validate: true,
    };
    let mut environment = FixedEnvironment::default();
    render(&chart(files), &request, &mut Cache::default(), &mut environment, &mut Warnings::default())
}
