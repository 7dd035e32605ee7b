//! The picture in the language of Graphviz.

use std::fmt::Write as _;

use super::ranks;
use crate::view::{ModuleView, View};

/// Returns the order of modules in the language of Graphviz.
pub fn dot(view: &View) -> String {
    let mut text = String::from(
        "digraph {\n  graph [label=\"Module Scheduler's Graph\", labelloc=t, rankdir=TB];\n  node [shape=box, style=\"rounded,filled\"];\n",
    );
    let ranks = ranks(view);
    for rank in &ranks {
        let order = rank.order;
        let _ = writeln!(text, "  \"order {order}\" [shape=plaintext, style=\"\"];");
        for module in &rank.modules {
            let name = quoted(module.name.as_str());
            let label = quoted(&format!("{}\\n{}", module.name, module.phase));
            let _ = writeln!(text, "  {name} [label={label}, fillcolor={}];", color(module));
            let _ = writeln!(text, "  \"order {order}\" -> {name};");
        }
    }
    for (before, after) in ranks.iter().zip(ranks.iter().skip(1)) {
        for module in &before.modules {
            let _ = writeln!(text, "  {} -> \"order {}\";", quoted(module.name.as_str()), after.order);
        }
    }
    text.push_str("}\n");
    text
}

/// Returns a name in quotes; `\n` of a label stays.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\\\""))
}

fn color(module: &ModuleView) -> &'static str {
    match module.phase {
        "failed" => "\"#f4b6b6\"",
        "parked" => "\"#f6dca8\"",
        "running" => "\"#bfe3c0\"",
        "starting" | "deleting" => "\"#c3d9f2\"",
        _ => "\"#e4e4e4\"",
    }
}
