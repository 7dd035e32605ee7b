//! The metrics of this process, under the names that clients of Prometheus give them in every language.

use std::fmt::Write as _;

use crate::process::usage;

/// Returns the metrics in the text format of Prometheus. What the system does not say is left out.
pub(super) fn text(started_at: Option<f64>) -> String {
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: f64| {
        let _ = write!(
            text,
            "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\nprocess_{name} {value}\n"
        );
    };
    if let Ok(used) = usage::usage() {
        #[expect(clippy::cast_precision_loss, reason = "all numbers of Prometheus are floats")]
        let number = |count: u64| count as f64;
        add(
            "cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            used.cpu_seconds,
        );
        if let Some(most) = used.max_files {
            add("max_fds", "gauge", "Maximum number of open file descriptors.", number(most));
        }
        add("open_fds", "gauge", "Number of open file descriptors.", number(used.open_files));
        add("resident_memory_bytes", "gauge", "Resident memory size in bytes.", number(used.resident_bytes));
        add("threads", "gauge", "Number of OS threads in the process.", number(used.threads));
        add("virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", number(used.virtual_bytes));
    }
    if let Some(at) = started_at {
        add("start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.", at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_help_its_type_and_a_value() {
        let text = text(Some(1_700_000_000.25));
        let lines: Vec<&str> = text.lines().collect();
        let mut names = Vec::new();
        for group in lines.chunks(3) {
            let (name, value) = group[2].split_once(' ').unwrap();
            assert!(group[0].starts_with(&format!("# HELP {name} ")), "{group:?}");
            assert!(group[1].starts_with(&format!("# TYPE {name} ")), "{group:?}");
            assert!(value.parse::<f64>().unwrap() > 0.0 || name == "process_cpu_seconds_total", "{group:?}");
            names.push(name.strip_prefix("process_").unwrap());
        }
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "cpu_seconds_total",
                "max_fds",
                "open_fds",
                "resident_memory_bytes",
                "start_time_seconds",
                "threads",
                "virtual_memory_bytes"
            ]
        );
        assert!(text.ends_with("\nprocess_start_time_seconds 1700000000.25\n"), "{text}");
    }
}
