//! Keywords about arrays.

use serde_json::Value;

use super::{Segment, Visit};
use crate::json_schema::draft::Draft;
use crate::json_schema::equal::equal;
use crate::json_schema::message;
use crate::json_schema::node::Rest;

impl Visit<'_, '_> {
    pub(super) fn check_array(&mut self, items: &[Value]) {
        let arrays = &self.node.arrays;
        if let Some(least) = arrays.least.filter(|least| message::is_less(items.len(), *least)) {
            self.report(|| message::count("minItems", items.len(), least));
        }
        if let Some(most) = arrays.most.filter(|most| message::is_more(items.len(), *most)) {
            self.report(|| message::count("maxItems", items.len(), most));
        }
        let pairs = (items.len() as u64).saturating_mul(items.len() as u64) / 64;
        if arrays.unique
            && self.evaluation.spend(pairs)
            && let Some((first, second)) = twins(items)
        {
            self.report(|| message::twins(first, second));
        }
        for (index, (id, item)) in arrays.first.iter().zip(items).enumerate() {
            self.check_part(*id, item, Segment::Index(index));
        }
        let behind = items.get(arrays.first.len()..).unwrap_or_default();
        match arrays.rest {
            Some(Rest::Plain(false)) if !behind.is_empty() => {
                self.report(|| message::additional_items(behind.len()));
            }
            Some(Rest::Schema(id)) => {
                // Helm's library counts from zero again here.
                for (index, item) in behind.iter().enumerate() {
                    self.check_part(id, item, Segment::Index(index));
                }
            }
            Some(Rest::Plain(_)) | None => {}
        }
        if let Some(id) = arrays.contains {
            self.check_contains(id, items);
        }
    }

    fn check_contains(&mut self, id: usize, items: &[Value]) {
        let mut causes = Vec::new();
        let mut matched = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match self.part(id, item, Segment::Index(index)) {
                Ok(()) => {
                    matched.push(index);
                    if self.node.draft >= Draft::Twenty {
                        self.unevaluated.items.remove(&index);
                    }
                }
                Err(finding) => causes.push(finding),
            }
        }
        let arrays = &self.node.arrays;
        match arrays.contains_least {
            Some(least) if message::is_less(matched.len(), least) => {
                let finding = self.finding_with(|| message::too_few(least, &matched), causes);
                self.found.push(finding);
            }
            None if matched.is_empty() => {
                let finding = self.finding_with(|| "no items match contains schema".to_owned(), causes);
                self.found.push(finding);
            }
            Some(_) | None => {}
        }
        if let Some(most) = arrays.contains_most.filter(|most| message::is_more(matched.len(), *most)) {
            self.report(|| message::too_many(most, &matched));
        }
    }
}

fn twins(items: &[Value]) -> Option<(usize, usize)> {
    items.iter().enumerate().find_map(|(later, item)| {
        let earlier = items.iter().take(later).position(|other| equal(other, item))?;
        Some((earlier, later))
    })
}
