//! Templates by name, and the sets that `tpl` lays over them.

use std::sync::Arc;

use super::ast::Template;
use super::names::Names;

/// The templates that can be executed by name.
///
/// A clone is cheap and may go to another thread: a set is built once for a chart.
#[derive(Clone, Debug, Default)]
pub struct TemplateSet(Arc<Layer>);

#[derive(Clone, Debug, Default)]
struct Layer {
    templates: Names<Arc<Template>>,
    below: Option<TemplateSet>,
}

impl TemplateSet {
    /// Returns a set with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the templates of one source, as [`super::parse`] returned them.
    ///
    /// A later template takes the place of an earlier one of the same name, unless
    /// it is empty.
    pub fn add(&mut self, templates: &[Arc<Template>]) {
        for template in templates {
            if !template.is_empty() || self.get(template.name()).is_none() {
                let layer = Arc::make_mut(&mut self.0);
                layer.templates.insert(Arc::clone(&template.name), Arc::clone(template));
            }
        }
    }

    /// Returns the template `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Template>> {
        let mut set = Some(self);
        while let Some(TemplateSet(layer)) = set {
            if let Some(template) = layer.templates.get(name) {
                return Some(template);
            }
            set = layer.below.as_ref();
        }
        None
    }

    /// Returns a set over this one: what is added to it is not seen here.
    pub(super) fn layered(&self) -> Self {
        Self(Arc::new(Layer { templates: Names::default(), below: Some(self.clone()) }))
    }
}
