//! Renders the chart in a directory once, in one thread, as the first render of a process does.
//!
//! `cargo build --release -p chart --example first_render`, then `valgrind --tool=callgrind` before
//! `target/release/examples/first_render DIRECTORY` counts what it is spent on. It prints the objects. A number behind it
//! renders so many times, with nothing known of the time before, and prints how many bytes there were.

#![expect(clippy::disallowed_methods, reason = "it reads a chart, and the library does not use it")]
#![expect(clippy::print_stdout, reason = "it reports to people")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, thread};

use chart::environment::FixedEnvironment;
use chart::load::{Tree, from_directory};
use chart::object::{Capabilities, KubeVersion};
use chart::render::{Release, Request};
use chart::render_cache::{Cache, render};
use chart::template::Limits;
use chart::warnings::Warnings;

/// More stack than a render may use.
const STACK: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (directory, times) = match arguments.as_slice() {
        [directory] => (directory.clone(), None),
        [directory, times] => (directory.clone(), Some(times.parse::<usize>()?)),
        _ => return Err("expected DIRECTORY, or DIRECTORY TIMES".into()),
    };
    let rendering = thread::Builder::new().stack_size(STACK).spawn(move || {
        let mut text = String::new();
        for _ in 0..times.unwrap_or(1) {
            text = rendered(Path::new(&directory)).map_err(|error| error.to_string())?;
        }
        Ok::<String, String>(text)
    })?;
    let text = rendering.join().map_err(|_| "the render panicked")??;
    match times {
        None => println!("{text}"),
        Some(_) => println!("{} bytes", text.len()),
    }
    Ok(())
}

fn rendered(directory: &Path) -> Result<String, Box<dyn Error>> {
    let mut files = Tree::new();
    collect(directory, "", &mut files)?;
    let chart = from_directory(&files, &mut Warnings::default())?;
    let release = Release { name: "rel".into(), namespace: "ns".into(), revision: 1, is_upgrade: false };
    let capabilities = Capabilities::without_cluster(KubeVersion::default());
    let request = Request {
        values: &serde_json::Map::new(),
        release: &release,
        capabilities: &capabilities,
        limits: Limits::default(),
        validate: true,
    };
    let mut environment = FixedEnvironment::default();
    let rendered =
        render(&chart, &request, &mut Cache::default(), &mut environment, &mut Warnings::default())?;
    let mut text = String::new();
    for manifest in &rendered.manifests {
        writeln!(text, "--- {}\n{}", manifest.path, manifest.content)?;
    }
    for hook in &rendered.hooks {
        writeln!(text, "--- {}\n{}", hook.path, hook.manifest)?;
    }
    writeln!(text, "{}", rendered.notes)?;
    Ok(text)
}

fn collect(directory: &Path, below: &str, files: &mut Tree) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name, fs::read(entry.path())?.into());
        }
    }
    Ok(())
}
