//! Compares `addon-operator template` with `helm template` on charts that ask much of one mechanism each.
//!
//! `cargo run --release -p chart --example large_charts -- DIRECTORY` writes the charts. With the two programs and a number of
//! runs behind it (`… DIRECTORY target/release/addon-operator helm 5`), it runs them in turn, compares what they print, and
//! prints a table of medians.

#![expect(clippy::disallowed_methods, reason = "it measures programs, and the library does not use it")]
#![expect(clippy::print_stdout, reason = "it reports to people")]

#[path = "../benches/large/mod.rs"]
mod large;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, fs};

use large::LargeChart;

/// The version of Kubernetes that both are told; their defaults differ.
const KUBE_VERSION: &str = "1.33.1";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (directory, programs) = match arguments.as_slice() {
        [directory] => (directory, None),
        [directory, ours, helm, runs] => {
            (directory, Some((ours, helm, runs.parse::<usize>()?.clamp(1, 100))))
        }
        _ => return Err("expected DIRECTORY, or DIRECTORY ADDON-OPERATOR HELM RUNS".into()),
    };
    let charts = large::all();
    for chart in &charts {
        write(chart, Path::new(directory))?;
    }
    let Some((ours, helm, runs)) = programs else { return Ok(()) };
    println!("| chart | addon-operator, ms | helm, ms | ratio |\n| --- | --- | --- | --- |");
    let (mut ratios, mut failed) = (Vec::new(), 0);
    for chart in &charts {
        let path = Path::new(directory).join(chart.name);
        match compared(chart, &path, ours, helm, runs) {
            Ok(ratio) => ratios.push((ratio, chart.name)),
            Err(error) => {
                failed += 1;
                println!("| {} | {error} | | |", chart.name);
            }
        }
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((median, _)), Some((worst, name))) = (ratios.get(ratios.len() / 2), ratios.last()) {
        println!("\nmedian {median:.3}, worst {worst:.3} ({name})");
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} charts could not be compared").into()) }
}

fn write(chart: &LargeChart, directory: &Path) -> Result<(), Box<dyn Error>> {
    for (name, text) in &chart.files {
        let path: PathBuf = directory.join(chart.name).join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// Runs both in turn, prints their medians, and returns the ratio of these.
fn compared(
    chart: &LargeChart,
    path: &Path,
    ours: &str,
    helm: &str,
    runs: usize,
) -> Result<f64, Box<dyn Error>> {
    let (here, there) = (rendered(ours, chart, path)?.1, rendered(helm, chart, path)?.1);
    if here != there {
        return Err(
            format!("{}: the outputs differ ({} and {} bytes)", chart.name, here.len(), there.len()).into()
        );
    }
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        here.push(rendered(ours, chart, path)?.0);
        there.push(rendered(helm, chart, path)?.0);
    }
    let (here, there) = (median(&mut here), median(&mut there));
    println!("| {} | {here:.1} | {there:.1} | {:.3} |", chart.name, here / there);
    Ok(here / there)
}

/// Returns how many milliseconds a program took, and what it printed.
fn rendered(program: &str, chart: &LargeChart, path: &Path) -> Result<(f64, Vec<u8>), Box<dyn Error>> {
    let begin = Instant::now();
    let output = Command::new(program)
        .args(["template", "rel"])
        .arg(path)
        .args(["--kube-version", KUBE_VERSION])
        .args(chart.flags)
        .stderr(Stdio::inherit())
        .output()?;
    let took = begin.elapsed().as_secs_f64() * 1_000.0;
    if !output.status.success() {
        return Err(format!("{program} template {}: {}", path.display(), output.status).into());
    }
    Ok((took, output.stdout))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
