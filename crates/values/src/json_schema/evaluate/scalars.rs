//! Keywords about texts and numbers.

use std::cmp::Ordering;

use serde_json::Number;

use super::Visit;
use crate::json_schema::decimal::Decimal;
use crate::json_schema::message;

impl Visit<'_, '_> {
    pub(super) fn check_text(&mut self, text: &str) {
        let texts = &self.node.texts;
        if texts.least.is_some() || texts.most.is_some() {
            let length = text.chars().count();
            if let Some(least) = texts.least.filter(|least| message::is_less(length, *least)) {
                self.report(|| message::count("minLength", length, least));
            }
            if let Some(most) = texts.most.filter(|most| message::is_more(length, *most)) {
                self.report(|| message::count("maxLength", length, most));
            }
        }
        if let Some((expression, written)) = &texts.pattern
            && !expression.is_match(text)
        {
            self.report(|| message::pattern(text, written));
        }
    }

    pub(super) fn check_number(&mut self, number: &Number) {
        let numbers = &self.node.numbers;
        let got = Decimal::of(number);
        let limits = [
            ("minimum", numbers.least, [Ordering::Less, Ordering::Less]),
            ("maximum", numbers.most, [Ordering::Greater, Ordering::Greater]),
            ("exclusiveMinimum", numbers.above, [Ordering::Less, Ordering::Equal]),
            ("exclusiveMaximum", numbers.below, [Ordering::Greater, Ordering::Equal]),
        ];
        for (keyword, limit, wrong) in limits {
            if let Some(limit) = limit.filter(|limit| wrong.contains(&got.order(*limit))) {
                self.report(|| message::limit(keyword, got, limit));
            }
        }
        if let Some(unit) = numbers.multiple.filter(|unit| !got.is_multiple_of(*unit)) {
            self.report(|| message::limit("multipleOf", got, unit));
        }
    }
}
