//! What a configuration of module sources would bring about, as data and as lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::format::Format;
use crate::addon::{Bundle, PlannedChange, PlannedModule, SourcePlan};
use crate::name::ModuleName;

/// What the release of a module would change, or why that can't be said.
pub type Diffs = BTreeMap<ModuleName, Result<String, String>>;

/// Returns a plan as data.
pub fn data(plan: &SourcePlan, diffs: &Diffs, format: Format<'_>) -> Value {
    let bundle = |bundle: &Option<Bundle>| {
        bundle.as_ref().map(|bundle| json!({"version": bundle.version, "digest": bundle.digest.as_str()}))
    };
    let module = |module: &PlannedModule| {
        let change: &str = module.change.into();
        let diff = diffs.get(&module.name);
        json!({
            "name": module.name.as_str(),
            "change": change,
            "from": bundle(&module.from),
            "to": bundle(&module.to),
            "on": module.is_on,
            "heldBack": module.held_back,
            "diff": diff.and_then(|diff| diff.as_ref().ok()).map(|diff| (format.show)(diff)),
            "problem": diff.and_then(|diff| diff.as_ref().err()).map(|problem| (format.show)(problem)),
        })
    };
    json!({
        "source": plan.source.address(),
        "problems": plan.problems.iter().map(|problem| (format.show)(problem)).collect::<Vec<_>>(),
        "changes": plan.has_changes(),
        "modules": plan.modules.iter().map(module).collect::<Vec<_>>(),
    })
}

/// Returns a plan as lines, each diff behind its module.
pub fn text(plan: &SourcePlan, diffs: &Diffs, format: Format<'_>) -> String {
    let mut text = String::new();
    for problem in &plan.problems {
        let _ = writeln!(text, "problem: {}", (format.show)(problem));
    }
    if !plan.problems.is_empty() {
        text.push_str("Nothing of it would be registered.\n");
    }
    for module in &plan.modules {
        let _ = writeln!(text, "{}", line(module));
        match diffs.get(&module.name) {
            Some(Ok(diff)) if diff.trim().is_empty() => text.push_str("  its release would be as it is\n"),
            Some(Ok(diff)) => text.push_str(&(format.show)(diff)),
            Some(Err(problem)) => {
                let _ =
                    writeln!(text, "  what its release would be can't be said: {}", (format.show)(problem));
            }
            None => {}
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    if plan.problems.is_empty() && !plan.has_changes() {
        text.push_str("Nothing would change.\n");
    }
    text
}

fn line(module: &PlannedModule) -> String {
    let PlannedModule { name, change, from, to, is_on, held_back } = module;
    let version = |bundle: &Option<Bundle>| bundle.as_ref().map_or("", |bundle| &bundle.version).to_owned();
    let mut line = match change {
        PlannedChange::Change => format!("{name} changes from {} to {}", version(from), version(to)),
        PlannedChange::Come => format!("{name} comes with {}", version(to)),
        PlannedChange::Go => format!("{name} goes with {}", version(from)),
        PlannedChange::Stay => format!("{name} stays with {}", version(from)),
    };
    line.push_str(match (change, is_on) {
        (PlannedChange::Come, true) => ", and is switched on",
        (PlannedChange::Come, false) => ", off until the ConfigMap switches it on",
        (PlannedChange::Go, true) => ", its release is removed",
        (_, true) => "",
        (_, false) => ", and is off",
    });
    if let Some(why) = held_back {
        let _ = write!(line, ": {why}");
    }
    line
}
