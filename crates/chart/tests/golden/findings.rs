//! Findings of schemas, which Helm prints in the random order of its maps.

/// A finding, and those below it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Finding(String, Vec<Finding>);

/// Takes the findings that are indented by `indent` from the front of `lines`.
fn findings(lines: &mut &[&str], indent: usize) -> Vec<Finding> {
    let mut found = Vec::new();
    while let Some((first, rest)) = lines.split_first() {
        if first.len() - first.trim_start().len() < indent || !first.trim_start().starts_with("- at ") {
            break;
        }
        *lines = rest;
        found.push(Finding(with_sorted_names(first), findings(lines, indent + 2)));
    }
    found.sort();
    found
}

/// Returns the text with the findings in it, and the names in each, in a fixed order.
pub(crate) fn canonical(text: &str) -> String {
    fn push(findings: &[Finding], out: &mut String) {
        for Finding(line, causes) in findings {
            out.push_str(line);
            out.push('\n');
            push(causes, out);
        }
    }
    let (mut out, lines) = (String::new(), text.lines().collect::<Vec<_>>());
    let mut rest = lines.as_slice();
    while let Some((first, behind)) = rest.split_first() {
        let found = findings(&mut rest, 0);
        if found.is_empty() {
            out.push_str(first);
            out.push('\n');
            rest = behind;
        }
        push(&found, &mut out);
    }
    out
}

fn with_sorted_names(line: &str) -> String {
    for words in ["additional properties ", "missing properties "] {
        if let Some((before, names)) = line.split_once(words) {
            let (names, behind) = names.split_once(" not allowed").unwrap_or((names, ""));
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            return format!("{before}{words}{}{behind}", names.join(", "));
        }
    }
    line.to_owned()
}
