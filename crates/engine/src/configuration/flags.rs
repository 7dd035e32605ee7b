//! The flags that switch modules on and off: of files, of global hooks and of the ConfigMap.

use std::collections::BTreeMap;
use std::sync::Arc;

use strum::VariantArray as _;

use super::Configuration;
use super::config_map::Flag;
use super::decision::{Decision, DynamicFlag, Opinion};
use super::hook_output::described;
use crate::catalog::{Hook, Module, Script};
use crate::cause::Cause;
use crate::context::Context;
use crate::event::HookOutput;
use crate::extenders::{Extender, Extenders};
use crate::failure::{Failure, FailureKind};
use crate::name::Scope;
use crate::notice::Notice;

/// How many flags of modules are remembered that are not there.
const ABSENT: usize = 1_000;

impl Configuration {
    /// Returns what flags say about a module, without its script.
    pub(crate) fn flags_of(&self, module: &Module) -> Decision {
        let mut opinions: Vec<Opinion> = self.opinions(module).collect();
        if let Some(source) = self.withdrawn_by(&module.name) {
            opinions.push(Opinion::Withdrawn(source.clone()));
        }
        let enabled = opinions.last().is_some_and(Opinion::is_yes);
        Decision { enabled, opinions }
    }

    /// Returns whether flags say that a module is on, but for the configuration that may withdraw it.
    pub(crate) fn is_on_unless_withdrawn(&self, module: &Module) -> bool {
        self.opinions(module).last().is_some_and(|opinion| opinion.is_yes())
    }

    fn opinions(&self, module: &Module) -> impl Iterator<Item = Opinion> {
        self.config.extenders.in_order().filter_map(|extender| self.opinion(module, extender))
    }

    /// Returns what one says about a module; `None` from a script, which is asked later.
    fn opinion(&self, module: &Module, extender: Extender) -> Option<Opinion> {
        match extender {
            Extender::Static => {
                let flag = self.static_flag(module)?;
                Some(Opinion::Static { on: flag.value, file: Arc::clone(&flag.source) })
            }
            Extender::DynamicallyEnabled => {
                let flag = self.dynamic_flags.get(&module.key)?;
                Some(Opinion::Dynamic { on: flag.on, hook: flag.hook.name.clone() })
            }
            Extender::KubeConfig => {
                let Flag { on, object } = self.config_map.flags.get(&*module.key).copied()?;
                Some(Opinion::Config { on, object, key: format!("{}Enabled", module.key) })
            }
            Extender::ScriptEnabled => None,
        }
    }

    /// Returns what those say about a module who are not asked.
    pub(crate) fn unasked(&self, module: &Module) -> Vec<Opinion> {
        let unasked = Extender::VARIANTS.iter().filter(|extender| !self.config.extenders.has(**extender));
        unasked.filter_map(|extender| self.opinion(module, *extender)).collect()
    }

    /// Returns why a flag in the ConfigMap would not make a module be `on`, if that is so: nobody asks what it says, or somebody else
    /// counts more.
    pub(crate) fn flag_refusal(&self, module: &Module, on: bool) -> Option<Failure> {
        if !self.config.extenders.has(Extender::KubeConfig) {
            let message = "KubeConfig is not among --applied-module-extenders: the ConfigMap switches nothing on or off";
            let advice = "add it, or switch the module in values.yaml or by a global hook";
            return Some(Failure::new(FailureKind::Values, message).advise(advice));
        }
        let opinion = self.outvoting(module, on)?;
        let message = format!(
            "{opinion}, and counts more than the ConfigMap, as --applied-module-extenders has it: nothing would change"
        );
        Some(Failure::new(FailureKind::Values, message).advise("change what that says"))
    }

    /// Returns who is asked whether modules are on.
    pub(crate) fn extenders(&self) -> &Extenders {
        &self.config.extenders
    }

    /// Returns who says something else about a module than `on`, and counts more than the ConfigMap.
    fn outvoting(&self, module: &Module, on: bool) -> Option<Opinion> {
        let behind = self.config.extenders.in_order().skip_while(|it| *it != Extender::KubeConfig).skip(1);
        let last = behind.filter_map(|extender| self.opinion(module, extender)).last();
        last.filter(|opinion| opinion.is_yes() != on)
    }

    /// Returns the enabled script of a module, if it has one and scripts are asked.
    pub(crate) fn script_of<'m>(&self, module: &'m Module) -> Option<&'m Script> {
        module.enabled_script.as_ref().filter(|_| self.config.extenders.has(Extender::ScriptEnabled))
    }

    /// Returns what a global hook says about the module with the key `key`.
    pub(crate) fn dynamic_flag(&self, key: &str) -> Option<&DynamicFlag> {
        self.dynamic_flags.get(key)
    }

    /// Records what a global hook says about modules. Returns whether that is something new.
    pub(super) fn set_dynamic_flags(
        &mut self,
        cx: &mut Context,
        hook: &Hook,
        output: &HookOutput,
        cause: &Cause,
    ) -> bool {
        let mut flags: BTreeMap<&String, &Option<bool>> = output.config_patch.enabled().iter().collect();
        flags.extend(output.values_patch.enabled());
        let mut is_new = false;
        for (key, flag) in flags {
            let known = self.dynamic_flags.get(key.as_str());
            if flag.is_some() && self.module_by_key(key).is_none() {
                let has_room = known.is_some() || self.dynamic_flags.len() < self.keys.len() + ABSENT;
                let kept = if has_room { "; it counts when one comes" } else { "" };
                let message = format!(
                    "{} sets {key}Enabled, but there is no module with the key {key}{kept}",
                    described(hook)
                );
                cx.notify(Notice::Warned { scope: Scope::Global, message });
                if !has_room {
                    continue;
                }
            }
            is_new |= known.map(|known| known.on) != *flag;
            match flag {
                // To say the same again is nothing new.
                Some(on) if known.is_some_and(|known| known.on == *on && known.hook == hook.id) => {}
                Some(on) => {
                    self.undecided.add_all();
                    let (hook, since, cause) = (hook.id.clone(), cx.now, cause.clone());
                    self.dynamic_flags
                        .insert(key.as_str().into(), DynamicFlag { on: *on, hook, since, cause });
                }
                None if known.is_none() => {}
                None => {
                    self.undecided.add_all();
                    self.dynamic_flags.remove(key.as_str());
                }
            }
        }
        is_new
    }

    /// Forgets what global hooks said that are not among `hooks`. Returns whether there was anything.
    pub(crate) fn retain_flags_of(&mut self, hooks: &[Arc<Hook>]) -> bool {
        let before = self.dynamic_flags.len();
        self.dynamic_flags.retain(|_, flag| hooks.iter().any(|hook| hook.id.name == flag.hook.name));
        let differs = before != self.dynamic_flags.len();
        if differs {
            self.undecided.add_all();
        }
        differs
    }
}
