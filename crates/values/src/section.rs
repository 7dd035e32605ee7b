//! The values of one module, or of `global`, with all their layers.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::checksum::Checksum;
use crate::document::{Keys, kind};
use crate::merge::{MergeError, merge};
use crate::patch::{ApplyPatchError, Dropped, Operation, Patch, Root, apply, compact, replay};
use crate::preset::{PickError, Preset, Presets, without_plan};
use crate::schema::{Schemas, Violations};

/// Why a change of a section is refused; the section stays as it was.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SectionError {
    /// The static values are not a map.
    #[error(
        "expect map[string]interface{{}} in module values: section \"{key}\" is {found}, write a map or leave it out"
    )]
    Static {
        /// The section's key.
        key: String,
        /// What it is instead.
        found: &'static str,
    },
    /// The config values are neither a map nor a list.
    #[error("{key} config should be array or map. Got: {found}")]
    Config {
        /// The section's key.
        key: String,
        /// What they are instead.
        found: &'static str,
    },
    /// The layers cannot be merged.
    #[error("section \"{key}\": {reason}")]
    Merge {
        /// The section's key.
        key: String,
        /// Why not.
        reason: MergeError,
    },
    /// The schemas have defaults for so many items that they would take too much memory.
    #[error(
        "section \"{key}\": the defaults of its schema would take more than 16 MiB, configure fewer items"
    )]
    Defaults {
        /// The section's key.
        key: String,
    },
    /// No plan is picked.
    #[error(transparent)]
    Plan(#[from] PickError),
    /// An operation of the patch does not apply.
    #[error(transparent)]
    Patch(#[from] ApplyPatchError),
    /// The config values do not fit their schema.
    #[error("config values are not valid: {0}")]
    InvalidConfig(Violations),
    /// The values do not fit their schema.
    #[error("values are not valid: {0}")]
    InvalidValues(Violations),
    /// The values for templates do not fit their schema.
    #[error("check helm values: {0}")]
    InvalidHelm(Violations),
}

/// The values of one module, or of `global`.
///
/// ```text
/// static values ◀ defaults of the config schema ◀ config values
///               ◀ defaults of the values schema ◀ patches of hooks  =  result
/// ```
///
/// With presets, the values of the one that the config values pick lie over the static values, and `plan` is no value.
/// Where none is picked there are none, and [`Section::check_plan`] says why.
///
/// A section never changes: every change returns another one or an error. Parts
/// that are equal are shared.
#[derive(Clone, PartialEq)]
pub struct Section {
    root: Root,
    schemas: Arc<Schemas>,
    presets: Arc<Presets>,
    statics: Arc<Value>,
    config: Option<Arc<Value>>,
    /// Sorted and compacted; tests are not among them.
    patches: Arc<Vec<Operation>>,
    result: Arc<Value>,
    checksum: Checksum,
    dropped: Arc<Vec<Dropped>>,
    /// What [`Section::check_plan`] found, since its last change.
    plan_check: PlanCheck,
}

/// The outcome of a check, once it was made. It follows from all else, so two are always equal.
#[derive(Clone, Default)]
struct PlanCheck(OnceLock<Result<(), SectionError>>);

impl PartialEq for PlanCheck {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Section {
    /// Returns the section of `root` with nothing but `statics`, its static
    /// values; `null` there is an error, `{}` is not. They are shared with
    /// whoever holds them.
    pub fn new(
        root: Root,
        statics: impl Into<Arc<Value>>,
        schemas: Arc<Schemas>,
    ) -> Result<Self, SectionError> {
        let statics = statics.into();
        if !statics.is_object() {
            return Err(SectionError::Static { key: root.key().to_owned(), found: kind(&statics) });
        }
        let empty = Arc::new(Value::Object(Map::new()));
        let section = Self {
            root,
            schemas,
            presets: Arc::default(),
            statics,
            config: None,
            patches: Arc::default(),
            checksum: Checksum::of(&*empty),
            result: empty,
            dropped: Arc::default(),
            plan_check: PlanCheck::default(),
        };
        section.computed()
    }

    /// Returns whose section it is.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the key of the section in documents.
    pub fn key(&self) -> &str {
        self.root.key()
    }

    /// Returns the schemas.
    pub fn schemas(&self) -> &Arc<Schemas> {
        &self.schemas
    }

    /// Returns the values from files.
    pub fn statics(&self) -> &Arc<Value> {
        &self.statics
    }

    /// Returns what the user wrote into the ConfigMap, and nothing else; `None`
    /// before anything was applied from it.
    pub fn config(&self) -> Option<&Arc<Value>> {
        self.config.as_ref()
    }

    /// Returns the config values as hooks see them: `null` when there are none.
    pub fn config_or_null(&self) -> Arc<Value> {
        self.config.clone().unwrap_or_default()
    }

    /// Returns the stored operations of hooks, sorted by path.
    pub fn patches(&self) -> &[Operation] {
        &self.patches
    }

    /// Returns the values that hooks and templates see.
    pub fn result(&self) -> &Arc<Value> {
        &self.result
    }

    /// Returns the checksum of [`Section::result`].
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Returns the stored operations that the last change made impossible; they
    /// are forgotten and worth a warning.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Returns the section with other static values and schemas, as after its
    /// files were read again; config values and patches stay.
    pub fn with_statics(
        &self,
        statics: impl Into<Arc<Value>>,
        schemas: Arc<Schemas>,
    ) -> Result<Self, SectionError> {
        let mut section = Self::new(self.root.clone(), statics, schemas)?;
        section.presets = Arc::clone(&self.presets);
        section.config.clone_from(&self.config);
        section.patches = Arc::clone(&self.patches);
        section.computed()
    }

    /// Returns the section with other presets. Config values stay; whether they pick one of these is not asked.
    pub fn with_presets(&self, presets: Arc<Presets>) -> Result<Self, SectionError> {
        let mut section = self.clone();
        section.presets = presets;
        section.computed()
    }

    /// Returns the preset that the config values pick; none without presets.
    pub fn preset(&self) -> Result<Option<&Preset>, SectionError> {
        Ok(self.presets.pick(self.config.as_deref())?)
    }

    /// Checks that a preset is picked, and the config values against its schema. Without presets all is well.
    pub fn check_plan(&self) -> Result<(), SectionError> {
        let check = || match self.preset()? {
            Some(preset) => preset.validate(self.config.as_deref()).map_err(SectionError::InvalidConfig),
            None => Ok(()),
        };
        // It is asked before each run of a module, and a schema is read anew for each check.
        self.plan_check.0.get_or_init(check).clone()
    }

    /// Returns the section with `config` as its config values, not validated:
    /// see [`Section::validate_config`].
    pub fn with_config(&self, config: Option<Arc<Value>>) -> Result<Self, SectionError> {
        if let Some(config) = config.as_deref()
            && !matches!(config, Value::Object(_) | Value::Array(_))
        {
            return Err(SectionError::Config { key: self.key().to_owned(), found: kind(config) });
        }
        self.presets.pick(config.as_deref())?;
        let mut section = self.clone();
        section.config = config;
        match section.completed()? {
            (section, false) if section.config.is_some() => {
                Err(SectionError::Defaults { key: section.key().to_owned() })
            }
            (section, _) => Ok(section),
        }
    }

    /// Returns the section without what hooks have put into it.
    pub fn without_patches(&self) -> Result<Self, SectionError> {
        let mut section = self.clone();
        section.patches = Arc::default();
        section.computed()
    }

    /// Returns the section after a hook's patch of its config values, which
    /// must apply and leave config values that fit the schema.
    ///
    /// Missing config values count as `{}`. The config values of the result are
    /// what has to be written into the ConfigMap, if they differ.
    pub fn with_config_patch(&self, patch: &Patch) -> Result<Self, SectionError> {
        if patch.operations().is_empty() {
            return Ok(self.clone());
        }
        let before = match &self.config {
            Some(config) if !config.is_null() => Arc::clone(config),
            _ => Arc::new(Value::Object(Map::new())),
        };
        let after = apply(&before, patch.operations(), &self.root)?;
        if after == *before {
            return Ok(self.clone());
        }
        self.validate_config(&after)?;
        self.with_config(Some(Arc::new(after)))
    }

    /// Returns the section after a hook's patch of its values, which must apply
    /// and leave values that fit the schema.
    pub fn with_values_patch(&self, patch: &Patch) -> Result<Self, SectionError> {
        if patch.operations().is_empty() {
            return Ok(self.clone());
        }
        let after = apply(&self.result, patch.operations(), &self.root)?;
        if after == *self.result {
            return Ok(self.clone());
        }
        let checked = self.schemas.validate_values(self.key(), &after, Some(&self.result));
        checked.map_err(SectionError::InvalidValues)?;
        let mut section = self.clone();
        section.patches = Arc::new(compact(&self.patches, patch.operations()));
        section.computed()
    }

    /// Checks `config` with the defaults of its schema against that schema, and against that of the preset it picks.
    pub fn validate_config(&self, config: &Value) -> Result<(), SectionError> {
        if let Some(preset) = self.presets.pick(Some(config))? {
            preset.validate(Some(config)).map_err(SectionError::InvalidConfig)?;
        }
        let old = self.config.as_deref().filter(|old| !old.is_null());
        self.schemas.validate_config(self.key(), config, old).map_err(SectionError::InvalidConfig)
    }

    /// Checks the result against the schema of values.
    pub fn validate(&self) -> Result<(), SectionError> {
        self.schemas.validate_values(self.key(), &self.result, None).map_err(SectionError::InvalidValues)
    }

    /// Checks the result against the schema for templates.
    pub fn validate_helm(&self) -> Result<(), SectionError> {
        self.schemas.validate_helm(self.key(), &self.result).map_err(SectionError::InvalidHelm)
    }

    /// Returns the section with its result computed from its layers.
    fn computed(self) -> Result<Self, SectionError> {
        self.completed().map(|(section, _)| section)
    }

    /// Returns the section with its result computed from its layers, and whether there was room for all defaults.
    fn completed(mut self) -> Result<(Self, bool), SectionError> {
        self.plan_check = PlanCheck::default();
        let mut result = Value::clone(&self.statics);
        let wrong = |reason| SectionError::Merge { key: self.root.key().to_owned(), reason };
        // A section without a plan has nothing for a chart, and what runs asks for it first.
        if let Ok(Some(preset)) = self.presets.pick(self.config.as_deref()) {
            merge(&mut result, &preset.values).map_err(wrong)?;
        }
        let mut is_complete = self.schemas.complete_config(&mut result);
        if let Some(config) = &self.config {
            let over = if self.presets.is_empty() {
                Cow::Borrowed(&**config)
            } else {
                Cow::Owned(without_plan(config))
            };
            merge(&mut result, &over).map_err(wrong)?;
        }
        is_complete &= self.schemas.complete_values(&mut result);
        let dropped = replay(&mut result, &self.patches);
        if !dropped.is_empty() {
            let patches = Arc::make_mut(&mut self.patches);
            patches.retain(|operation| dropped.iter().all(|gone| gone.operation != *operation));
        }
        self.dropped = Arc::new(dropped);
        if *self.result != result {
            self.checksum = Checksum::of(&result);
            // Most modules have nothing but their files until somebody configures them.
            let is_static = *self.statics == result;
            self.result = if is_static { Arc::clone(&self.statics) } else { Arc::new(result) };
        }
        Ok((self, is_complete))
    }
}

/// Values may be secrets: only keys and paths are printed.
impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section")
            .field("root", &self.root)
            .field("statics", &Keys(&self.statics))
            .field("config", &self.config.as_deref().map(Keys))
            .field("patches", &self.patches)
            .field("result", &Keys(&self.result))
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::patch::Target;

    const CONFIG: &str = "
type: object
properties:
  replicas: {type: integer, default: 1}
  tls:
    type: object
    default: {mode: auto}
    properties:
      mode: {type: string, default: manual}
";
    const VALUES: &str = "
x-extend: {schema: config-values.yaml}
type: object
properties:
  internal:
    type: object
    default: {}
    additionalProperties: true
";

    fn section(statics: Value) -> Section {
        let schemas =
            Schemas::compile(Some(("config-values.yaml", CONFIG)), Some(("values.yaml", VALUES))).unwrap();
        Section::new(Root::Module("m".to_owned()), statics, Arc::new(schemas)).unwrap()
    }

    #[test]
    fn rules_see_what_was_in_force_before() {
        let grows = "x-deckhouse-validations: [{expression: self.size >= oldSelf.size, message: it shrinks}]";
        let files = (format!("additionalProperties: true\n{grows}"), "additionalProperties: true".to_owned());
        for (config, values) in [(&*files.0, &*files.1), (&*files.1, &*files.0)] {
            let schemas = Schemas::compile(Some(("c", config)), Some(("v", values))).unwrap();
            let section = Section::new(Root::Module("m".to_owned()), json!({}), Arc::new(schemas)).unwrap();
            let (small, large) = (json!({"size": 1}), json!({"size": 2}));
            assert_eq!(section.validate_config(&small), Ok(()), "nothing was there before");
            let section = section.with_config(Some(Arc::new(large.clone()))).unwrap();
            assert_eq!(section.validate_config(&large), Ok(()));
            let (checked, patched) =
                (section.validate_config(&small), section.with_values_patch(&add("/m/size", 1)));
            let told = [checked.err(), patched.err()].into_iter().flatten().map(|error| error.to_string());
            let told: Vec<String> = told.collect();
            assert!(told.len() == 1 && told[0].ends_with("not valid: m: it shrinks"), "{told:?}");
        }
    }

    #[test]
    fn a_section_that_is_as_in_its_files_shares_them() {
        let statics = Arc::new(json!({"replicas": 2, "tls": {"mode": "auto"}, "internal": {}}));
        let schemas =
            Schemas::compile(Some(("config-values.yaml", CONFIG)), Some(("values.yaml", VALUES))).unwrap();
        let root = Root::Module("m".to_owned());
        let section = Section::new(root, Arc::clone(&statics), Arc::new(schemas)).unwrap();
        assert!(Arc::ptr_eq(section.statics(), &statics) && Arc::ptr_eq(section.result(), &statics));
        let changed = section.with_values_patch(&add("/m/internal/a", 1)).unwrap();
        assert_eq!((&changed.result()["internal"], &statics["internal"]), (&json!({"a": 1}), &json!({})));
        assert!(Arc::ptr_eq(changed.without_patches().unwrap().result(), &statics));
    }

    fn patch(operations: &Value) -> Patch {
        let root = Root::Module("m".to_owned());
        Patch::read(operations.to_string().as_bytes(), Target::Values, &root).unwrap()
    }

    fn add(path: &str, value: impl Into<Value>) -> Patch {
        patch(&json!({"op": "add", "path": path, "value": value.into()}))
    }

    #[test]
    fn layers_are_laid_one_over_the_other() {
        let section = section(json!({"static": 1, "replicas": 2}));
        assert_eq!(
            **section.result(),
            json!({"static": 1, "replicas": 2, "tls": {"mode": "auto"}, "internal": {}})
        );
        assert_eq!(*section.config_or_null(), json!(null));
        let section = section.with_config(Some(Arc::new(json!({"replicas": 3, "tls": {"x": 1}})))).unwrap();
        assert_eq!(
            **section.result(),
            json!({"static": 1, "replicas": 3, "tls": {"mode": "auto", "x": 1}, "internal": {}})
        );
        assert_eq!(*section.config_or_null(), json!({"replicas": 3, "tls": {"x": 1}}));
        let section = section.with_config(None).unwrap();
        assert_eq!(section.result()["replicas"], json!(2));
    }

    #[test]
    fn a_section_that_is_not_a_map_is_refused() {
        let root = Root::Module("m".to_owned());
        let error = Section::new(root, json!(null), Arc::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expect map[string]interface{} in module values: section \"m\" is null, write a map or leave it out"
        );
        let error = section(json!({})).with_config(Some(Arc::new(json!("x")))).unwrap_err();
        assert_eq!(error.to_string(), "m config should be array or map. Got: a string");
    }

    #[test]
    fn slip_05_defaults_for_too_many_items_are_refused() {
        let schema = "properties: {a: {type: array, items: {properties: {b: {default: {c: {d: 1}}}}}}}";
        let section = |config, values| {
            let schemas = Schemas::compile(Some(("c", config)), Some(("v", values))).unwrap();
            Section::new(Root::Module("m".to_owned()), json!({}), Arc::new(schemas)).unwrap()
        };
        let (few, many) = (json!({"a": vec![json!({}); 100]}), json!({"a": vec![json!({}); 100_000]}));
        let completed = section("", schema);
        assert_eq!(
            completed.with_config(Some(Arc::new(few.clone()))).unwrap().result()["a"][99]["b"]["c"]["d"],
            json!(1)
        );
        let error = completed.with_config(Some(Arc::new(many.clone()))).unwrap_err();
        assert_eq!(error, SectionError::Defaults { key: "m".to_owned() });
        let validated = section(schema, "");
        let error = validated.validate_config(&many).unwrap_err();
        assert!(error.to_string().contains("m in body has too many items that get defaults"), "{error}");
    }

    #[test]
    fn a_values_patch_returns_a_new_whole() {
        let before = section(json!({"replicas": 2}));
        let after = before.with_values_patch(&add("/m/internal/a", 1)).unwrap();
        assert!(before.result().pointer("/internal/a").is_none());
        assert_eq!(after.result()["internal"], json!({"a": 1}));
        assert_ne!(before.checksum(), after.checksum());
        assert_eq!(after.checksum(), Checksum::of(&**after.result()));
        assert_eq!(after.patches().len(), 1);
    }

    #[test]
    fn a_patch_that_changes_nothing_is_not_stored() {
        let before = section(json!({"replicas": 2}));
        let after = before.with_values_patch(&add("/m/replicas", 2.0)).unwrap();
        assert_eq!(before, after);
        assert!(Arc::ptr_eq(before.result(), after.result()));
    }

    #[test]
    fn an_invalid_values_patch_leaves_the_section_alone() {
        let before = section(json!({}));
        let error = before.with_values_patch(&add("/m/replicas", "many")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "values are not valid: 1 error occurred:\n\t* m.replicas in body must be of type integer: \"string\"\n\n"
        );
        let error =
            before.with_values_patch(&patch(&json!({"op": "remove", "path": "/m/nothing"}))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "remove operation does not apply: unable to remove nonexistent key: \"/m/nothing\""
        );
    }

    #[test]
    fn a_config_patch_makes_the_section_and_is_validated() {
        let before = section(json!({"replicas": 2}));
        let after = before.with_config_patch(&add("/m/replicas", 5)).unwrap();
        assert_eq!(*after.config_or_null(), json!({"replicas": 5}));
        assert_eq!(after.result()["replicas"], json!(5));
        let error = after.with_config_patch(&add("/m/unknown", 5)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "config values are not valid: 1 error occurred:\n\t* m.unknown in body is a forbidden property\n\n"
        );
    }

    #[test]
    fn a_stored_operation_without_a_place_is_dropped_with_a_warning() {
        let section = section(json!({})).with_config(Some(Arc::new(json!({"tls": {"deep": {}}})))).unwrap();
        let schemas = Arc::new(Schemas::default());
        let section = section.with_statics(json!({}), schemas).unwrap();
        let section = section
            .with_values_patch(&patch(&json!([
                {"op": "add", "path": "/m/tls/deep/a", "value": 1},
                {"op": "add", "path": "/m/b", "value": 2},
                {"op": "remove", "path": "/m/tls/deep/a"},
                {"op": "add", "path": "/m/tls/deep/c", "value": 3},
            ])))
            .unwrap();
        assert_eq!(section.patches().len(), 3);
        let section = section.with_config(None).unwrap();
        assert_eq!(**section.result(), json!({"b": 2}));
        assert_eq!(format!("{:?}", section.patches()), "[add /m/b, remove /m/tls/deep/a]");
        assert_eq!(section.dropped().len(), 1);
        assert_eq!(
            section.dropped()[0].reason.to_string(),
            "add operation does not apply: doc is missing path: \"/m/tls/deep/c\""
        );
        assert!(section.with_config(None).unwrap().dropped().is_empty());
    }

    #[test]
    fn tests_are_judged_on_receipt_and_not_stored() {
        let before = section(json!({"replicas": 2}));
        let after = before
            .with_values_patch(&patch(&json!([
                {"op": "test", "path": "/m/replicas", "value": 2},
                {"op": "add", "path": "/m/replicas", "value": 3},
            ])))
            .unwrap();
        assert_eq!(format!("{:?}", after.patches()), "[add /m/replicas]");
        assert!(after.with_config(Some(Arc::new(json!({"replicas": 9})))).is_ok());
        assert!(
            after
                .with_values_patch(&patch(&json!({"op": "test", "path": "/m/replicas", "value": 2})))
                .is_err()
        );
    }

    #[test]
    fn reloaded_files_keep_config_and_patches() {
        let before = section(json!({}))
            .with_config(Some(Arc::new(json!({"replicas": 4}))))
            .unwrap()
            .with_values_patch(&add("/m/internal/x", 1))
            .unwrap();
        let after = before.with_statics(json!({"new": true}), Arc::clone(before.schemas())).unwrap();
        assert_eq!(after.result()["replicas"], json!(4));
        assert_eq!(after.result()["internal"], json!({"x": 1}));
        assert_eq!(after.result()["new"], json!(true));
        assert_eq!(*after.without_patches().unwrap().result()["internal"].as_object().unwrap(), Map::new());
    }

    #[test]
    fn a_preset_lies_below_what_the_user_configures_and_its_name_is_no_value() {
        let preset = |name: &str, values: Value| Preset {
            name: name.into(),
            values: Arc::new(values),
            schema: Some(br#"{"properties": {"replicas": {"maximum": 9}}}"#.as_slice().into()),
        };
        let presets = Presets::new(vec![
            preset("big", json!({"replicas": 5, "tls": {"mode": "strict"}})),
            preset("micro", json!({"replicas": 1})),
        ]);
        let root = Root::Module("m".to_owned());
        let bare = Section::new(root, json!({}), Arc::default()).unwrap();
        let section = bare.with_presets(Arc::new(presets)).unwrap();
        assert_eq!(**section.result(), json!({}));
        let none = "no plan is picked; set plan to one of: big, micro";
        assert_eq!(section.check_plan().unwrap_err().to_string(), none);
        assert_eq!(section.with_config(None).unwrap_err().to_string(), none);
        assert_eq!(
            section.with_config(Some(Arc::new(json!({"replicas": 2})))).unwrap_err().to_string(),
            none
        );
        let big = section.with_config(Some(Arc::new(json!({"plan": "big", "tls": {"x": 1}})))).unwrap();
        assert_eq!(**big.result(), json!({"replicas": 5, "tls": {"mode": "strict", "x": 1}}));
        assert_eq!(*big.config_or_null(), json!({"plan": "big", "tls": {"x": 1}}));
        assert_eq!(big.preset().unwrap().unwrap().name.as_ref(), "big");
        assert_eq!(big.check_plan(), Ok(()));
        let many = json!({"plan": "micro", "replicas": 10});
        assert!(big.validate_config(&many).unwrap_err().to_string().contains("maximum: got 10, want 9"));
        let micro = big.with_config(Some(Arc::new(json!({"plan": "micro"})))).unwrap();
        assert_eq!(**micro.result(), json!({"replicas": 1}));
        // A new version of the bundle may have other plans.
        let gone = micro.with_presets(Arc::new(Presets::new(vec![preset("big", json!({}))]))).unwrap();
        assert!(gone.check_plan().unwrap_err().to_string().starts_with("there is no plan \"micro\""));
        assert_eq!(gone.with_statics(json!({}), Arc::default()).unwrap().check_plan(), gone.check_plan());
        let bare = micro.with_presets(Arc::default()).unwrap();
        assert_eq!((bare.check_plan(), &**bare.result()), (Ok(()), &json!({"plan": "micro"})));
    }

    #[test]
    fn debug_prints_no_values() {
        let section = section(json!({"password": "hunter2"}))
            .with_config(Some(Arc::new(json!({"token": "hunter3"}))))
            .unwrap();
        let section = section.with_statics(json!({"password": "hunter2"}), Arc::default()).unwrap();
        let section = section.with_values_patch(&add("/m/x", "hunter4")).unwrap();
        let printed = format!("{section:?}");
        assert!(printed.contains("password") && !printed.contains("hunter"), "{printed}");
    }
}
