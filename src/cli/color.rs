//! Colours on a terminal: words for states are highlighted.

use std::io::IsTerminal;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::config::Environment;

/// The words that get a colour where they stand alone.
static WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b(failed|failing|fails|broken|parked|orphaned|waits|waiting|starting|deleting|running|done|ready|disabled|error:|last error:)").ok()
});

/// Returns whether standard output is a terminal whose user wants colours.
pub(super) fn is_enabled() -> bool {
    let environment = Environment::of_process();
    let refused = environment.text("NO_COLOR").is_some_and(|text| !text.is_empty())
        || environment.text("TERM") == Some("dumb");
    std::io::stdout().is_terminal() && !refused
}

/// Returns `text` with its words for states in colours, if colours are enabled.
pub(super) fn highlight(text: &str) -> String {
    if is_enabled() { colored(text) } else { text.to_owned() }
}

fn colored(text: &str) -> String {
    let Some(words) = WORDS.as_ref() else { return text.to_owned() };
    let color = |found: &Captures<'_>| {
        let word = found.get(0).map_or("", |word| word.as_str());
        let code = match word {
            "running" | "done" | "ready" => "32",
            "starting" | "deleting" | "waits" | "waiting" | "held" | "parked" | "orphaned" => "33",
            "disabled" => "2",
            _ => "31",
        };
        format!("\u{1b}[{code}m{word}\u{1b}[0m")
    };
    words.replace_all(text, color).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_states_are_coloured_and_others_are_not() {
        assert_eq!(colored("web running x"), "web \u{1b}[32mrunning\u{1b}[0m x");
        assert_eq!(colored("module overrunning"), "module overrunning");
        assert!(colored("a failed").contains("\u{1b}[31mfailed"));
    }
}
