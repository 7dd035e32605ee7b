//! Children of an object that is being deleted, and of a binding that is not there any more: nobody else would have them go.
//!
//! While the object lives, a binding takes over those that it names. At its end it takes over all that are of a kind that it makes.

use super::key_state::Pass;
use super::patches;
use super::progress::Go;
use super::single::Controller;
use super::step::Surroundings;
use crate::hook::snapshot::Key;
use crate::reconcile::Step;

impl Controller {
    /// Takes over the children of an object whose binding is not there any more. Returns how the work goes on if there are any.
    pub(super) fn take_over(&mut self, around: &mut Surroundings<'_, '_>, key: &Key) -> Option<Go> {
        let references = self.parent(key)?.references();
        let mut patches = Vec::new();
        for (watch, child) in self.children.iter().zip(&self.binding.children) {
            let Some(claim) = watch.claim() else { continue };
            for (place, by) in watch.foreign(&references) {
                if around.modules.may_have_controller(&by) {
                    continue;
                }
                if !around.is_converged {
                    let reason =
                        format!("the first converge: binding {by} of its children may be there then");
                    return Some(Go::Stop(Pass::Idle, Step::Wait(reason)));
                }
                patches.push(patches::take_over(&child.kind, &place, claim.own()));
            }
        }
        if patches.is_empty() {
            return None;
        }
        let step = self.write(around.lower.cx, patches);
        Some(Go::Stop(Pass::TakingOver, step))
    }
}
