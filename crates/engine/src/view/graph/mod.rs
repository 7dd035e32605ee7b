//! The order of modules as a picture.
//!
//! Modules of one order number stand side by side, those that run later below; an arrow leads from each
//! order number to the next.

mod dot;
mod svg;

use super::{ModuleView, View};

pub use dot::dot;
pub use svg::svg;

/// The modules of one order number.
struct Rank<'v> {
    order: u32,
    modules: Vec<&'v ModuleView>,
}

/// Returns the order numbers with their modules; orphans, which run no more, are left out.
fn ranks(view: &View) -> Vec<Rank<'_>> {
    let mut ranks: Vec<Rank<'_>> = Vec::new();
    for module in view.modules.iter().filter(|module| module.phase != "orphaned") {
        match ranks.last_mut().filter(|rank| rank.order == module.order) {
            Some(rank) => rank.modules.push(module),
            None => ranks.push(Rank { order: module.order, modules: vec![module] }),
        }
    }
    ranks
}
