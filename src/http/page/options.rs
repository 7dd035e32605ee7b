//! What a reader of the page can choose: how often it loads again, and how much of it is shown.

use std::collections::BTreeMap;

use engine::{Failure, ModuleName};

use super::html::Html;

/// How often the page loads again by default, in seconds.
const REFRESH: u16 = 5;

/// The intervals that the page offers, in seconds.
pub(super) const CHOICES: &[u16] = &[REFRESH, 15, 60];

/// How many ends of tasks are shown without `?journal=all`.
pub(super) const JOURNAL: usize = 50;

/// How many modules are drawn without `?graph=all`.
pub(super) const DRAWN: usize = 60;

/// Returns a failure as text without the values of its module, or of all modules if it has none.
pub(super) type ShowFailure<'a> = &'a dyn Fn(&Failure, Option<&ModuleName>) -> String;

/// The options of the page, from its query.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::http) struct PageOptions {
    /// Seconds until the page loads itself again; `None` for never.
    pub(super) refresh: Option<u16>,
    /// Whether the whole journal is shown.
    pub(super) whole_journal: bool,
    /// Whether the modules are drawn even if there are many.
    pub(super) drawing: bool,
}

impl PageOptions {
    /// Reads `?refresh=off&journal=all&graph=all`. What is not understood means the default.
    pub(in crate::http) fn of(query: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| query.get(key).map(String::as_str);
        let refresh = match text("refresh") {
            Some("off") => None,
            Some(seconds) => {
                seconds.parse().ok().filter(|seconds| CHOICES.contains(seconds)).or(Some(REFRESH))
            }
            None => Some(REFRESH),
        };
        let whole_journal = text("journal") == Some("all");
        Self { refresh, whole_journal, drawing: text("graph") == Some("all") }
    }

    /// Returns the query that asks for this.
    pub(super) fn query(self) -> String {
        let mut query = match self.refresh {
            None => "?refresh=off".to_owned(),
            Some(REFRESH) => "?".to_owned(),
            Some(seconds) => format!("?refresh={seconds}"),
        };
        for (on, text) in [(self.whole_journal, "journal=all"), (self.drawing, "graph=all")] {
            if on {
                query.push_str(if query.len() > 1 { "&" } else { "" });
                query.push_str(text);
            }
        }
        if query.len() > 1 { query } else { "/".to_owned() }
    }

    /// Writes a link to the page with these options.
    pub(super) fn link(self, page: &mut Html, text: &str) {
        page.raw("<a href=\"").text(&self.query()).raw("\">").text(text).raw("</a>");
    }
}
