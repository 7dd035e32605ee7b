//! Whether what is registered is what the status of an object tells of. A registry may be an older one: it was restored, or the operator
//! ended between the two.

use std::collections::BTreeMap;

use super::object::SourceObject;
use super::status::LINES;
use crate::addon::RegisteredAddon;
use crate::name::ModuleName;

/// Returns in words what is registered of an object that is ready otherwise than its status says; nothing if all is as it says. What the
/// status has no room for is not looked at.
pub(super) fn difference(registered: &[RegisteredAddon], object: &SourceObject) -> Option<String> {
    let status = object.status.without_retained();
    let modules = registered.iter().filter(|addon| addon.is_active && addon.is_registered());
    let mut modules: BTreeMap<&ModuleName, &RegisteredAddon> =
        modules.map(|addon| (&addon.bundle.name, addon)).collect();
    let is_current = status.observed_generation == object.generation;
    let is_switched = |addon: &&RegisteredAddon| is_current && addon.auto_enable != object.spec.auto_enable;
    if let Some(addon) = modules.values().copied().find(is_switched) {
        return Some(format!("{} is registered with another spec.autoEnable", addon.bundle.name));
    }
    for (line, module) in status.addons().filter_map(|line| Some((line, line.module.as_ref()?))) {
        let name = &module.name;
        let Some(addon) = modules.get(name) else {
            return Some(format!("{name} {} is not registered", line.version));
        };
        let bundle = &addon.bundle;
        if !module.state.is_held_back() && bundle.digest.as_str() != line.digest {
            return Some(format!("{name} {} is registered with {}", bundle.version, bundle.digest));
        }
    }
    for name in status.modules() {
        modules.remove(name);
    }
    let has_room = status.addons().count() < LINES;
    let untold = modules.values().next().filter(|_| has_room)?;
    Some(format!("{} {} is registered", untold.bundle.name, untold.bundle.version))
}
