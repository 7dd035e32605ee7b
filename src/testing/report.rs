//! Reports the results of tests: lines for people, the XML of `JUnit` for machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use engine::view::escaped;

use super::check::Mismatch;

/// The result of a test.
#[derive(Debug)]
pub(super) struct TestResult {
    pub(super) file: usize,
    pub(super) name: String,
    pub(super) mismatches: Vec<Mismatch>,
    pub(super) lines: Vec<String>,
    pub(super) took: Duration,
    pub(super) hooks_took: Duration,
}

/// Writes lines for people.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    /// Whether colours are shown.
    pub(super) is_on: bool,
}

impl Paint {
    fn color(self, code: &str, text: &str) -> String {
        let text = escaped(text);
        if self.is_on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into_owned() }
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.color("31", text)
    }

    /// Returns the line of one test, followed by the differences if it failed.
    pub(super) fn result(self, path: &Path, ended: &TestResult) -> String {
        let is_good = ended.mismatches.is_empty();
        let word = if is_good { self.color("32", "ok    ") } else { self.bad("FAILED") };
        let took =
            format!("({} ms, {} ms of them hooks)", ended.took.as_millis(), ended.hooks_took.as_millis());
        let names = format!("{} {}", shown(path), ended.name);
        let mut text = format!("{word} {} {}\n", escaped(&names), self.color("2", &took));
        for mismatch in &ended.mismatches {
            for line in mismatch.message.lines() {
                let line = match line.get(..2) {
                    Some("- ") => self.bad(line),
                    Some("+ ") => self.color("32", line),
                    Some(_) | None => escaped(line).into_owned(),
                };
                let _ = writeln!(text, "    {line}");
            }
        }
        if !is_good && !ended.lines.is_empty() {
            text.push_str("    what hooks printed:\n");
            for line in &ended.lines {
                let _ = writeln!(text, "      {}", escaped(line));
            }
        }
        text
    }

    pub(super) fn summary(self, all: usize, failed: usize) -> String {
        let tests = if all == 1 { "test" } else { "tests" };
        let text = format!("{all} {tests}, {failed} failed");
        let hint = if failed == 0 {
            ""
        } else {
            " (- expected, + what came; --update writes what came into the files)"
        };
        if failed == 0 { self.color("32", &text) + "\n" } else { self.bad(&text) + hint + "\n" }
    }
}

/// Returns a path relative to the current directory, if it is below that.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().and_then(std::fs::canonicalize).unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// Returns the results as `JUnit` writes them: a suite for each file, those that can't be used too, with what is wrong with them.
pub(super) fn junit<'a>(
    results: impl Iterator<Item = (&'a Path, &'a TestResult)>,
    broken: &[(&Path, String)],
) -> String {
    let mut suites: BTreeMap<String, Vec<&TestResult>> = BTreeMap::new();
    for (path, ended) in results {
        suites.entry(shown(path)).or_default().push(ended);
    }
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for (file, tests) in suites {
        let failed = tests.iter().filter(|test| !test.mismatches.is_empty()).count();
        let took: Duration = tests.iter().map(|test| test.took).sum();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{0}\" tests=\"{1}\" failures=\"{failed}\" errors=\"0\" time=\"{2:.3}\">",
            xml_text(&file),
            tests.len(),
            took.as_secs_f64()
        );
        for test in tests {
            let _ = write!(
                xml,
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                xml_text(&file),
                xml_text(&test.name),
                test.took.as_secs_f64()
            );
            if test.mismatches.is_empty() {
                xml.push_str("/>\n");
                continue;
            }
            xml.push_str(">\n");
            for mismatch in &test.mismatches {
                let first = mismatch.message.lines().next().unwrap_or_default();
                let _ = writeln!(
                    xml,
                    "      <failure message=\"{}\">{}</failure>",
                    xml_text(first),
                    xml_text(&mismatch.message)
                );
            }
            let _ = writeln!(xml, "      <system-out>{}</system-out>", xml_text(&test.lines.join("\n")));
            xml.push_str("    </testcase>\n");
        }
        xml.push_str("  </testsuite>\n");
    }
    for (file, error) in broken {
        let (file, error) = (xml_text(&shown(file)), xml_text(error));
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{file}\" tests=\"1\" failures=\"0\" errors=\"1\" time=\"0.000\">\n    \
             <testcase classname=\"{file}\" name=\"the file\" time=\"0.000\">\n      \
             <error message=\"it can't be used\">{error}</error>\n    </testcase>\n  </testsuite>"
        );
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// Returns text escaped for XML, without characters that XML does not allow.
fn xml_text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' | '\t' => safe.push(char),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => {}
            char => safe.push(char),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slip_14_nothing_of_a_test_that_failed_moves_the_cursor() {
        let evil = "\u{1b}]0;title\u{7}\u{9b}31m";
        let message = format!("- {evil}\n+ {evil}\n{evil}");
        let ended = TestResult {
            file: 0,
            name: evil.to_owned(),
            mismatches: vec![Mismatch { pointer: String::new(), key: "log", message, actual: None }],
            lines: vec![evil.to_owned()],
            took: Duration::ZERO,
            hooks_took: Duration::ZERO,
        };
        let path = std::path::PathBuf::from(format!("/x/{evil}.test.yaml"));
        let text = Paint { is_on: false }.result(&path, &ended);
        assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
        assert_eq!(text.matches("\\u001b]0;title").count(), 6, "{text}");
        let colored = Paint { is_on: true }.bad(evil);
        assert_eq!(colored.matches('\u{1b}').count(), 2, "{colored:?}");
    }

    #[test]
    fn a_failure_is_text_in_xml_whatever_it_holds() {
        let mismatch = Mismatch {
            pointer: String::new(),
            key: "log",
            message: "a < b & \"c\"\u{1b}[0m\nmore".to_owned(),
            actual: None,
        };
        let ended = TestResult {
            file: 0,
            name: "it's".to_owned(),
            mismatches: vec![mismatch],
            lines: vec!["]]>".to_owned()],
            took: Duration::from_millis(1500),
            hooks_took: Duration::ZERO,
        };
        let broken = (Path::new("/x/b.test.yaml"), "b.test.yaml:1:1: <bad>".to_owned());
        let xml = junit([(Path::new("/x/a.test.yaml"), &ended)].into_iter(), &[broken]);
        assert!(
            xml.contains(
                "<testsuite name=\"/x/a.test.yaml\" tests=\"1\" failures=\"1\" errors=\"0\" time=\"1.500\">"
            ),
            "{xml}"
        );
        assert!(
            xml.contains("<failure message=\"a &lt; b &amp; &quot;c&quot;[0m\">a &lt; b &amp; &quot;c&quot;[0m\nmore</failure>"),
            "{xml}"
        );
        assert!(xml.contains("<system-out>]]&gt;</system-out>"), "{xml}");
        assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
        assert!(
            xml.contains("<error message=\"it can't be used\">b.test.yaml:1:1: &lt;bad&gt;</error>"),
            "{xml}"
        );
    }
}
