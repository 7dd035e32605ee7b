//! Keywords that combine schemas.

use super::Visit;
use crate::json_schema::message;

impl Visit<'_, '_> {
    pub(super) fn check_conditions(&mut self) {
        let conditions = &self.node.conditions;
        if let Some(id) = conditions.not
            && self.same(id, None, true).is_ok()
        {
            self.report(|| "'not' failed".to_owned());
        }
        self.check_all();
        self.check_any();
        self.check_one();
        if let Some(id) = conditions.when {
            let branch =
                if self.same(id, None, true).is_ok() { conditions.then } else { conditions.otherwise };
            if let Some(id) = branch {
                self.check_same(id);
            }
        }
    }

    fn check_all(&mut self) {
        let mut causes = Vec::new();
        for id in &self.node.conditions.all {
            causes.extend(self.same(*id, None, false).err());
            if self.quick && !causes.is_empty() {
                break;
            }
        }
        if !causes.is_empty() {
            let finding = self.finding_with(|| "'allOf' failed".to_owned(), causes);
            self.found.push(finding);
        }
    }

    fn check_any(&mut self) {
        let any = &self.node.conditions.any;
        let mut causes = Vec::new();
        let mut matched = any.is_empty();
        for id in any {
            if let Err(finding) = self.same(*id, None, false) {
                causes.push(finding);
                continue;
            }
            matched = true;
            // The others may look at parts that nothing has looked at.
            if self.unevaluated.is_empty() {
                break;
            }
        }
        if !matched {
            let finding = self.finding_with(|| "'anyOf' failed".to_owned(), causes);
            self.found.push(finding);
        }
    }

    fn check_one(&mut self) {
        let one = &self.node.conditions.one;
        let mut causes = Vec::new();
        let mut matched = None;
        for (index, id) in one.iter().enumerate() {
            match (self.same(*id, None, matched.is_some()), matched) {
                (Err(finding), None) => causes.push(finding),
                (Err(_), Some(_)) => {}
                (Ok(()), None) => matched = Some(index),
                (Ok(()), Some(first)) => {
                    self.report(|| message::both(first, index));
                    break;
                }
            }
        }
        if matched.is_none() && !one.is_empty() {
            let finding = self.finding_with(|| "'oneOf' failed, none matched".to_owned(), causes);
            self.found.push(finding);
        }
    }
}
