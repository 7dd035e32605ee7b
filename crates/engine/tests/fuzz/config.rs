//! What must hold for everything that a hook prints for `--config`.

use engine::hook::{HookKind, HookSpec, RunContexts, Trigger, config, context};
use engine::snapshot::Snapshot;

/// Reads `bytes`; an error must say something, and every binding must make a context that is JSON.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for kind in [HookKind::Global, HookKind::Module] {
        match config::parse("hooks/fuzz.sh".into(), kind, text) {
            Ok(spec) => check(&spec),
            Err(error) => assert!(!error.to_string().trim().is_empty()),
        }
    }
}

fn check(spec: &HookSpec) {
    let lifecycle = spec.lifecycle.keys().map(|point| context::BindingContext::lifecycle(*point));
    let schedules = spec.schedules.iter().map(context::BindingContext::schedule);
    let kubernetes = spec.kubernetes.iter().enumerate();
    let synchronizations =
        kubernetes.map(|(index, binding)| context::BindingContext::synchronization(binding, index));
    let contexts: Vec<_> = lifecycle.chain(schedules).chain(synchronizations).collect();
    let count = contexts.len();
    assert!(contexts.iter().all(|context| match context.trigger {
        Trigger::Synchronization { binding } => binding < spec.kubernetes.len(),
        Trigger::Conversion { .. }
        | Trigger::Event { .. }
        | Trigger::Lifecycle(_)
        | Trigger::Reconcile(_)
        | Trigger::Review { .. }
        | Trigger::Schedule => true,
    }));
    let mut out = Vec::new();
    RunContexts::new(spec, contexts, |_| Snapshot::default()).write(&mut out).unwrap();
    let written: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
    assert_eq!(written.len(), count);
}
