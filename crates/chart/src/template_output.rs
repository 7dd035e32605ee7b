//! What `template` prints.

use crate::load::pattern;
use crate::manifest::{self, HookEvent};
use crate::render::Rendered;

/// What is printed of a rendered chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateOutput {
    /// Whether the files of `crds/` come first.
    pub crds: bool,
    /// Whether hooks are left out.
    pub no_hooks: bool,
    /// Whether test hooks are left out.
    pub skip_tests: bool,
    /// Patterns of the templates to print; none means all.
    pub only: Vec<String>,
}

/// A template that was asked for rendered to nothing, or does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not find template {0} in chart")]
pub struct MissingTemplate(String);

impl TemplateOutput {
    /// Returns the text.
    pub fn of(&self, rendered: &Rendered) -> Result<String, MissingTemplate> {
        const HEAD: usize = 32;
        let crds = if self.crds { rendered.crds.as_slice() } else { &[] };
        let lengths = crds.iter().map(|crd| crd.path.len() + crd.file.data.len());
        let lengths = lengths.chain(rendered.manifests.iter().map(|one| one.path.len() + one.content.len()));
        let lengths = lengths.chain(rendered.hooks.iter().map(|hook| hook.path.len() + hook.manifest.len()));
        let mut text = String::with_capacity(lengths.map(|length| length + HEAD).sum());
        for crd in crds {
            manifest::push(&mut text, &crd.path, &crd.file.text());
        }
        for one in &rendered.manifests {
            manifest::push(&mut text, &one.path, &one.content);
        }
        // It begins with dashes, so that white space is at its end only.
        text.truncate(text.trim_end().len());
        text.push('\n');
        if !self.no_hooks {
            for hook in &rendered.hooks {
                if !(self.skip_tests && hook.events.contains(&HookEvent::Test)) {
                    manifest::push(&mut text, &hook.path, &hook.manifest);
                }
            }
        }
        if self.only.is_empty() { Ok(text) } else { self.selected(&text) }
    }

    /// Returns the documents that come from the templates asked for, in that order.
    fn selected(&self, text: &str) -> Result<String, MissingTemplate> {
        let documents = manifest::split(text);
        let mut shown = String::new();
        for wanted in &self.only {
            let before = shown.len();
            for document in &documents {
                let source =
                    document.lines().find_map(|line| line.split_once("# Source: ")?.1.split_once('/'));
                if source.is_some_and(|(_, path)| pattern::matches(wanted, path).unwrap_or(false)) {
                    shown.push_str("---\n");
                    shown.push_str(document);
                    shown.push('\n');
                }
            }
            if shown.len() == before {
                return Err(MissingTemplate(wanted.clone()));
            }
        }
        Ok(shown)
    }
}
