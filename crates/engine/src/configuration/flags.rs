//! The flags that switch modules on and off: of files, of global hooks and of the ConfigMap.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Configuration;
use super::config_map::Flag;
use super::decision::{Decision, DynamicFlag, Opinion};
use super::hook_output::described;
use crate::catalog::{Hook, Module};
use crate::cause::Cause;
use crate::context::Context;
use crate::event::HookOutput;
use crate::name::Scope;
use crate::notice::Notice;

/// How many flags of modules are remembered that are not there.
const ABSENT: usize = 1_000;

impl Configuration {
    /// Returns what flags say about a module, without its script.
    pub(crate) fn flags_of(&self, module: &Module) -> Decision {
        let mut opinions = Vec::new();
        if let Some(flag) = self.static_flag(module) {
            opinions.push(Opinion::Static { on: flag.value, file: Arc::clone(&flag.source) });
        }
        if let Some(flag) = self.dynamic_flags.get(&module.key) {
            opinions.push(Opinion::Dynamic { on: flag.on, hook: flag.hook.name.clone() });
        }
        if let Some(Flag { on, object }) = self.config_map.flags.get(&*module.key).copied() {
            opinions.push(Opinion::Config { on, object, key: format!("{}Enabled", module.key) });
        }
        if let Some(source) = self.withdrawn_by(&module.name) {
            opinions.push(Opinion::Withdrawn(source.clone()));
        }
        let enabled = opinions.last().is_some_and(Opinion::is_yes);
        Decision { enabled, opinions }
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
                    let (hook, since, cause) = (hook.id.clone(), cx.now, cause.clone());
                    self.dynamic_flags
                        .insert(key.as_str().into(), DynamicFlag { on: *on, hook, since, cause });
                }
                None => drop(self.dynamic_flags.remove(key.as_str())),
            }
        }
        is_new
    }

    /// Forgets what global hooks said that are not among `hooks`. Returns whether there was anything.
    pub(crate) fn retain_flags_of(&mut self, hooks: &[Arc<Hook>]) -> bool {
        let before = self.dynamic_flags.len();
        self.dynamic_flags.retain(|_, flag| hooks.iter().any(|hook| hook.id.name == flag.hook.name));
        before != self.dynamic_flags.len()
    }
}
