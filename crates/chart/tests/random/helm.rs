//! What Helm makes of charts.
//!
//! `RANDOM_CHARTS_PROGRAM` can name a program that renders many charts without starting anew for each: it reads a chart in
//! each line, `{"files": {path: text}, "values": text}`, and answers with a line, `{"out": text}` or `{"err": text}`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::charts::Random;

/// What Helm prints, or why it refuses.
pub(crate) type Answer = Result<String, String>;

/// Returns the command of a Helm of version 3, if there is one.
pub(crate) fn find() -> Option<String> {
    let helm = std::env::var("HELM").unwrap_or_else(|_| "helm".to_owned());
    let version = Command::new(&helm).args(["version", "--short"]).output().ok()?;
    String::from_utf8_lossy(&version.stdout).starts_with("v3.").then_some(helm)
}

/// Renders all charts; `helm` is the command.
pub(crate) fn render(helm: &str, charts: &[Random], directory: &Path) -> Vec<Answer> {
    if let Ok(program) = std::env::var("RANDOM_CHARTS_PROGRAM") {
        return render_with(&program, charts, directory);
    }
    let half = charts.len().div_ceil(2).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = charts
            .chunks(half)
            .enumerate()
            .map(|(number, charts)| {
                let directory = directory.join(number.to_string());
                scope.spawn(move || {
                    charts.iter().map(|chart| template(helm, chart, &directory)).collect::<Vec<_>>()
                })
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

fn template(helm: &str, chart: &Random, directory: &Path) -> Answer {
    let _ = fs::remove_dir_all(directory);
    let root = directory.join("chart");
    for (path, text) in &chart.files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let values = directory.join("values.yaml");
    fs::write(&values, &chart.values).unwrap();
    let output = Command::new(helm)
        .args(["template", "rel", root.to_str().unwrap(), "-n", "ns", "--kube-version", "1.31.2", "-f"])
        .arg(&values)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn render_with(program: &str, charts: &[Random], directory: &Path) -> Vec<Answer> {
    fs::create_dir_all(directory).unwrap();
    let (input, output) = (directory.join("charts.jsonl"), directory.join("answers.jsonl"));
    let mut file = std::io::BufWriter::new(fs::File::create(&input).unwrap());
    for chart in charts {
        writeln!(file, "{}", json!({"files": chart.files, "values": chart.values})).unwrap();
    }
    file.flush().unwrap();
    let status = Command::new(program)
        .stdin(Stdio::from(fs::File::open(input).unwrap()))
        .stdout(Stdio::from(fs::File::create(&output).unwrap()))
        .env("TZ", "UTC")
        .status()
        .unwrap();
    assert!(status.success(), "{program}: {status}");
    let answers = fs::read_to_string(output).unwrap();
    answers
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            if answer.get("err").is_some() { Err(text("err")) } else { Ok(text("out")) }
        })
        .collect()
}
