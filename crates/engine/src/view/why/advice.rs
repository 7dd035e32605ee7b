//! What a person can do about a failure.

use crate::failure::{Failure, FailureKind};
use crate::name::{HookId, ModuleName, Scope};
use crate::notice::TaskInfo;
use crate::view::TaskView;

/// Returns what a person can do about the failure of a task.
pub(in crate::view) fn about(failure: &Failure, task: &TaskView) -> String {
    if let Some(advice) = &failure.advice {
        return advice.clone();
    }
    again(failure.kind, by_kind(failure.kind, task.module.as_ref(), task.hook.as_ref(), &task.id.to_string()))
}

/// Returns what a person can do about the failure of a module whose run waits for its next try.
pub(in crate::view) fn about_module(failure: &Failure, module: &ModuleName) -> String {
    let advice = || again(failure.kind, by_kind(failure.kind, Some(module), None, ""));
    failure.advice.clone().unwrap_or_else(advice)
}

/// Returns what a person can do about the failure of a module that was given up: it is not tried again by itself.
pub(in crate::view) fn about_given_up(failure: &Failure, module: &ModuleName) -> String {
    failure.advice.clone().unwrap_or_else(|| by_kind(failure.kind, Some(module), None, ""))
}

/// Returns what a person who reads the log can do about a failure. `is_final` says that what failed is not tried again.
pub fn in_log(failure: &Failure, task: Option<&TaskInfo>, is_final: bool) -> String {
    let module = task.and_then(|task| task.scope.module());
    let hook = task.and_then(|task| task.hook.as_ref());
    let number = task.map(|task| task.id.to_string()).unwrap_or_default();
    failure.advice.clone().unwrap_or_else(|| {
        let advice = by_kind(failure.kind, module, hook, &number);
        if is_final { advice } else { again(failure.kind, advice) }
    })
}

/// Returns an advice and that the operator goes on by itself, where people need not do that.
fn again(kind: FailureKind, advice: String) -> String {
    match kind {
        FailureKind::Cluster
        | FailureKind::Conflict
        | FailureKind::Files
        | FailureKind::Forbidden
        | FailureKind::HookExit
        | FailureKind::Storage
        | FailureKind::Terminating => advice + "; it is tried again by itself",
        FailureKind::HookOutput => advice + ", it is tried again by itself",
        FailureKind::MissingKind => advice + "; it is tried again by itself, after the other modules",
        FailureKind::Bug
        | FailureKind::Cancelled
        | FailureKind::Dropped
        | FailureKind::HookLimit
        | FailureKind::HookTimeout
        | FailureKind::Package
        | FailureKind::Release
        | FailureKind::Render
        | FailureKind::Values => advice,
    }
}

fn by_kind(kind: FailureKind, module: Option<&ModuleName>, hook: Option<&HookId>, task: &str) -> String {
    let module = module.map_or("MODULE", ModuleName::as_str);
    match kind {
        FailureKind::Cancelled => "nothing: it was ended with the operator, and runs again by itself".to_owned(),
        FailureKind::Bug => "report this together with the log of the last minute".to_owned(),
        FailureKind::Cluster => {
            "look whether the API server answers and what it refuses"
                .to_owned()
        }
        FailureKind::Conflict => {
            "nothing, unless it goes on: somebody else changed the object meanwhile".to_owned()
        }
        FailureKind::Dropped => {
            "add the fields to the schema of the kind, or leave them out".to_owned()
        }
        FailureKind::Files => "correct the file that the message names".to_owned(),
        FailureKind::Forbidden => {
            "grant the operator's ServiceAccount that right (RBAC)".to_owned()
        }
        FailureKind::HookExit => {
            let whose = match hook.map(|hook| &hook.scope) {
                Some(Scope::Global) => "the global hook".to_owned(),
                Some(Scope::Module(_)) | None => "the hook or script".to_owned(),
            };
            let grep = if task.is_empty() { String::new() } else { format!(" (task.id={task})") };
            format!("read in the log what {whose} printed{grep}, and correct it or what it needs")
        }
        FailureKind::HookLimit => {
            "correct what the hook needs so much for; settings.limits in its configuration or --hook-limits gives it more"
                .to_owned()
        }
        FailureKind::HookOutput => {
            "correct what the hook writes; nothing of it took effect".to_owned()
        }
        FailureKind::HookTimeout => {
            "find out what the hook waits for; settings.timeout in its configuration or --hook-timeout gives it more time"
                .to_owned()
        }
        FailureKind::MissingKind => {
            "install the CustomResourceDefinition, or switch the module on that brings it"
                .to_owned()
        }
        FailureKind::Package => {
            format!("`addon-operator why module {module}` shows what is wrong with its Chart; it goes on by itself when the package is there again")
        }
        FailureKind::Release => {
            format!("`addon-operator module history {module}` shows the revisions; correct the chart or the objects that are in its way")
        }
        FailureKind::Render => {
            format!("`addon-operator module render {module}` shows the error; correct the chart or its values")
        }
        FailureKind::Storage => {
            "make room on the disk that the message names, or give it to the operator's user".to_owned()
        }
        FailureKind::Terminating => {
            "look what keeps the namespace, if it stays (`kubectl describe namespace`)".to_owned()
        }
        FailureKind::Values => {
            format!("`addon-operator module values {module}` shows the values; correct them in the ConfigMap, the files or the hook that sets them")
        }
    }
}
