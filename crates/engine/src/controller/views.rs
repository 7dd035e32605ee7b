//! What people see of a controller.

use super::key_state::KeyState;
use super::single::Controller;
use crate::time::Time;
use crate::view::WatchView;

impl Controller {
    /// Returns how many objects it has, and how many things are kept.
    pub(super) fn sizes(&self) -> (usize, usize) {
        let strays = self.straying.strays.iter().map(|strays| &strays.watch);
        let watches = self.children.iter().chain(&self.related).chain(strays);
        let objects: usize = watches.map(|watch| watch.snapshot.len()).sum();
        let attempts: usize = self.keys.values().map(KeyState::entries).sum();
        (self.keys.len() + objects, self.metadata.len() + self.ends.len() + attempts + self.overdue.len())
    }

    /// Returns pictures of its watches, for people.
    pub(super) fn watch_views(&self, now: Time) -> impl Iterator<Item = WatchView> + '_ {
        let binding = move || (self.id.hook.clone(), self.binding.name.clone());
        let parents = std::iter::once((&self.parents, &self.binding.parent.kind));
        let children = self.children.iter().zip(self.binding.children.iter().map(|child| &child.kind.kind));
        let related = self.related.iter().zip(self.binding.related.iter().map(|it| &it.selection.kind));
        let all = parents.chain(children).chain(related);
        all.map(move |(watch, kind)| watch.view(kind.clone(), binding(), now))
    }
}
