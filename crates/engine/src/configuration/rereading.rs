//! Reading the ConfigMap and the Secret over it once more, for modules that are new or changed, or for all.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Configuration;
use super::config_map::keys_of;
use crate::catalog::Module;
use crate::config_object::ConfigObject;
use crate::context::Context;
use crate::event::ConfigData;
use crate::name::ModuleName;

impl Configuration {
    /// Reads what the ConfigMap and the Secret say about modules that are new or whose files changed, once more. Nobody may have the
    /// keys of modules that are `gone`. Other keys are as they were read, and are not looked at.
    pub(crate) fn reread_config_map<'n>(
        &mut self,
        cx: &mut Context,
        names: impl IntoIterator<Item = &'n ModuleName>,
        gone: &[Arc<Module>],
    ) {
        let mut keys: BTreeSet<String> = gone.iter().flat_map(|module| keys_of(&module.key)).collect();
        let sections: Vec<String> = names
            .into_iter()
            .filter_map(|name| self.sections.get(name).map(|section| section.key().to_owned()))
            .collect();
        keys.extend(sections.iter().flat_map(|key| keys_of(key)));
        self.reread_sections(cx, &sections, &keys);
    }

    /// Reads all that the ConfigMap and the Secret say once more, when other values of files were put in place of all.
    pub(crate) fn reread_all(&mut self, cx: &mut Context) {
        let known = ConfigObject::ALL.map(|object| {
            let texts = self.config_map.of(object);
            texts.data().map(|data| texts.keys(data)).unwrap_or_default()
        });
        let sections: Vec<String> =
            self.keys.keys().map(|key| &**key).chain([values::name::GLOBAL]).map(str::to_owned).collect();
        // None of it is in force any more.
        self.config_map.good.clear();
        self.reread_sections(cx, &sections, &known.into_iter().flatten().collect());
    }

    /// Reads what the objects say in `keys` once more, among them those of `sections`.
    fn reread_sections(&mut self, cx: &mut Context, sections: &[String], keys: &BTreeSet<String>) {
        let data = ConfigObject::ALL.map(|object| (object, self.config_map.of(object).data().cloned()));
        if data.iter().all(|(_, data)| data.is_none()) {
            return;
        }
        let mut new = Vec::new();
        for key in sections {
            if !self.config_map.good.contains(key) {
                new.push(key);
            }
            let has_key =
                |data: &Option<Arc<ConfigData>>| data.as_ref().is_some_and(|data| data.0.contains_key(key));
            if !data.iter().any(|(_, data)| has_key(data)) {
                self.config_map.good.insert(key.clone());
            }
            for key in keys_of(key) {
                self.config_map.forget_texts(&key);
            }
        }
        for (object, data) in data {
            if let Some(data) = data {
                let _ = self.read_config_object(cx, object, (&data, None), keys.clone());
            }
        }
        // Good in one of the objects is not enough.
        for key in new {
            if self.config_map.problem(key).is_some() {
                self.config_map.good.remove(key);
            }
        }
        self.report_problems(cx);
    }
}
