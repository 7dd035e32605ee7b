//! Tests of a chart, which people run on its release: what is asked for, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which tests of a release are run, and how.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TestRequest {
    /// The names of those that are run; all if there are none.
    pub only: Vec<String>,
    /// The names of those that are left out.
    pub without: Vec<String>,
    /// How long one of them may take; what hooks of charts may take else, if nothing is said.
    pub timeout: Option<Duration>,
    /// Whether the logs of their Pods are read.
    pub logs: bool,
}

impl TestRequest {
    /// Returns whether the test of this name is run.
    pub fn takes(&self, name: &str) -> bool {
        let is_among = |names: &[String]| names.iter().any(|among| among == name);
        (self.only.is_empty() || is_among(&self.only)) && !is_among(&self.without)
    }
}

/// What came of the tests of a release. What Pods printed is in it, so it can hold secrets.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TestReport {
    /// The name of the release.
    pub release: String,
    /// Its namespace.
    pub namespace: String,
    /// The revision whose tests these are.
    pub revision: u32,
    /// When that was installed, if it is known.
    pub last_deployed: Option<String>,
    /// How many tests its chart has, whether they were run or not.
    pub known: usize,
    /// Those that were chosen, in their order. What comes behind one that failed did not run.
    pub tests: Vec<TestRun>,
    /// Which test failed, and why; `None` if none did.
    pub failure: Option<String>,
    /// What their Pods printed, by Pod and container: `pod/container`.
    pub logs: BTreeMap<String, PodLog>,
}

/// One test of a release.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct TestRun {
    /// The name of its object.
    pub name: String,
    /// The kind of its object.
    pub kind: String,
    /// `Succeeded`, `Failed`; empty if it did not run.
    pub phase: String,
    /// When it began.
    pub started: Option<String>,
    /// When it was done.
    pub completed: Option<String>,
}

/// What a container of a test printed.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct PodLog {
    /// The last lines.
    pub text: String,
    /// Whether there were more before them.
    pub is_cut: bool,
    /// Why they can't be read, if they can't.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_chosen_by_name_and_left_out_by_name() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let taken = |only: &[&str], without: &[&str]| {
            let request =
                TestRequest { only: names(only), without: names(without), ..TestRequest::default() };
            ["a", "b", "c"].into_iter().filter(|name| request.takes(name)).collect::<String>()
        };
        assert_eq!(taken(&[], &[]), "abc");
        assert_eq!(taken(&["b", "a"], &[]), "ab");
        assert_eq!(taken(&[], &["b"]), "ac");
        assert_eq!(taken(&["a", "b"], &["b"]), "a");
    }
}
