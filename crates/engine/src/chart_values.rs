//! What a chart reads as values: which sections, and where they stand.

use serde_json::{Map, Value};
use values::merge::merged;
use values::name::GLOBAL;

use crate::catalog::ValuesLayout;
use crate::effect::ValuesInput;
use crate::failure::{Failure, FailureKind};

impl ValuesInput {
    /// Returns the values of a module's chart.
    ///
    /// With [`ValuesLayout::Section`] they are `global` and the section behind `key`, the one by which the chart knows it. With [`ValuesLayout::Root`] they are
    /// the section itself, with `global` below what the section says about it.
    ///
    /// # Errors
    ///
    /// A section that can't be the root: it is no mapping, or `global` is nested too deeply.
    pub fn for_chart(&self, layout: ValuesLayout, key: &str) -> Result<Map<String, Value>, Failure> {
        let mut global = (*self.global).clone();
        if let (Some(enabled), Value::Object(global)) = (&self.enabled_modules, &mut global) {
            let names = enabled.iter().map(|name| Value::from(name.as_str())).collect();
            global.insert("enabledModules".to_owned(), Value::Array(names));
        }
        let Some(section) = &self.module else {
            let message = "a defect of the operator: the values of a module are missing";
            return Err(Failure::new(FailureKind::Bug, message));
        };
        if layout == ValuesLayout::Section {
            let sections = [(GLOBAL.to_owned(), global), (key.to_owned(), (*section.values).clone())];
            return Ok(sections.into_iter().collect());
        }
        let wrong = |what: &str| {
            let failure = Failure::new(FailureKind::Values, format!("the values of {}: {what}", section.key));
            failure.advise("correct the section in the ConfigMap")
        };
        let Value::Object(mut values) = (*section.values).clone() else {
            return Err(wrong("the section should be a mapping, it is what the chart reads"));
        };
        let global = match values.remove(GLOBAL) {
            Some(own) => merged(&global, &own).map_err(|error| wrong(&error.to_string()))?,
            None => global,
        };
        // A chart whose schema names all of its values may not know of it.
        if global.as_object().is_none_or(|global| !global.is_empty()) {
            values.insert(GLOBAL.to_owned(), global);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::effect::ModuleValues;

    fn chart_values(layout: ValuesLayout, global: Value, section: Value) -> Result<Value, String> {
        let module = ModuleValues { key: "web".into(), values: Arc::new(section), config: Arc::default() };
        let global_config = Arc::default();
        let input = ValuesInput {
            secret: Arc::default(),
            global: Arc::new(global),
            global_config,
            module: Some(module),
            enabled_modules: None,
        };
        input.for_chart(layout, "web").map(Value::Object).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_section_stands_behind_its_key_or_is_the_root() {
        let (global, section) =
            (json!({"a": 1, "b": {"c": 2}}), json!({"size": 3, "global": {"b": {"d": 4}}}));
        assert_eq!(
            chart_values(ValuesLayout::Section, global.clone(), section.clone()),
            Ok(json!({"global": global, "web": section}))
        );
        assert_eq!(
            chart_values(ValuesLayout::Root, global, section),
            Ok(json!({"size": 3, "global": {"a": 1, "b": {"c": 2, "d": 4}}}))
        );
        assert_eq!(
            chart_values(ValuesLayout::Root, json!({}), json!({"size": 3})),
            Ok(json!({"size": 3})),
            "a chart that names its values need not know of global"
        );
    }

    #[test]
    fn what_is_no_mapping_can_not_be_the_root() {
        let failure = chart_values(ValuesLayout::Root, json!({}), json!(["hunter2"])).unwrap_err();
        assert_eq!(failure, "the values of web: the section should be a mapping, it is what the chart reads");
    }
}
