//! Answers in plain lines.

use std::fmt::Write as _;

use super::Answer;
use crate::view::format::columns;

impl Answer {
    /// Returns the answer for people, in plain lines.
    pub fn text(&self) -> String {
        let mut verdict = self.verdict.clone();
        if let Some(first) = verdict.get(..1).map(str::to_uppercase) {
            verdict.replace_range(..1, &first);
        }
        let mut text = format!("{verdict}.\n");
        if !self.chain.is_empty() {
            let title = if self.about == "module" { "Who said what, the last one wins:" } else { "Because:" };
            let _ = write!(text, "\n{title}\n{}", chain(self));
        }
        if !self.facts.is_empty() {
            let rows: Vec<Vec<String>> = self
                .facts
                .iter()
                .map(|(name, fact)| vec![format!("{name}:"), fact.replace('\n', "\n      ")])
                .collect();
            let _ = write!(text, "\n{}", columns(&["", ""], &rows, "  "));
        }
        if !self.behind.is_empty() {
            text.push_str("\nBehind it:\n");
            for line in &self.behind {
                let _ = writeln!(text, "  {line}");
            }
        }
        if !self.advice.is_empty() {
            text.push_str("\nWhat to do:\n");
            for line in &self.advice {
                let _ = writeln!(text, "  - {line}");
            }
        }
        text
    }
}

fn chain(answer: &Answer) -> String {
    let rows: Vec<Vec<String>> = answer
        .chain
        .iter()
        .enumerate()
        .map(|(place, link)| {
            let says = match link.says {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            let at = link.at.as_ref().map(|(at, _)| format!("at {at}")).unwrap_or_default();
            let reason = link.reason.clone().unwrap_or_default();
            vec![format!("{}.", place + 1), link.what.clone(), says.to_owned(), at, reason]
        })
        .collect();
    columns(&["", "", "", "", ""], &rows, "  ")
}
