//! The picture as SVG: no script, no style sheet, no outside asset, in the colours of what it stands in.

use std::fmt::Write as _;

use super::{Rank, ranks};
use crate::view::{ModuleView, View};

/// How wide a box is.
const WIDTH: usize = 180;
/// How high a box is.
const HEIGHT: usize = 44;
/// The space between boxes.
const GAP: usize = 16;
/// How many boxes stand in one line.
const COLUMNS: usize = 5;
/// The space for the order number.
const MARGIN: usize = 90;
/// The space for the arrow between two order numbers.
const ARROW: usize = 32;
/// The longest name that fits a box.
const LONGEST: usize = 22;

/// Returns the order of modules as an SVG document, which may also stand inside of an HTML page.
///
/// Lines and letters have the colour of the text around them. The phase of a module is written, and shown by a bar.
pub fn svg(view: &View) -> String {
    let ranks = ranks(view);
    let lines = |rank: &Rank<'_>| rank.modules.len().div_ceil(COLUMNS);
    let height: usize =
        ranks.iter().map(|rank| lines(rank) * (HEIGHT + GAP) + ARROW).sum::<usize>().max(HEIGHT);
    let widest = ranks.iter().map(|rank| rank.modules.len().min(COLUMNS)).max().unwrap_or(1);
    let width = MARGIN + widest * (WIDTH + GAP);
    let on = view.modules.iter().filter(|module| module.enabled == Some(true)).count();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-labelledby=\"graph-title graph-about\" font-family=\"system-ui, sans-serif\" font-size=\"14\" color=\"#777\">\n\
         <title id=\"graph-title\">Module Scheduler's Graph</title>\n\
         <desc id=\"graph-about\">{} modules, {on} on, in the order in which they run, from top to bottom</desc>\n",
        view.modules.len()
    );
    let mut top = 0;
    for (place, rank) in ranks.iter().enumerate() {
        let bottom = top + lines(rank) * (HEIGHT + GAP);
        let middle = top + HEIGHT / 2 + 5;
        let _ =
            writeln!(text, "<text x=\"0\" y=\"{middle}\" fill=\"currentColor\">order {}</text>", rank.order);
        for (number, module) in rank.modules.iter().enumerate() {
            let x = MARGIN + (number % COLUMNS) * (WIDTH + GAP);
            let y = top + (number / COLUMNS) * (HEIGHT + GAP);
            draw(&mut text, module, x, y);
        }
        if place + 1 < ranks.len() {
            let (x, end) = (MARGIN + WIDTH / 2, bottom + ARROW - 6);
            let _ = writeln!(
                text,
                "<path d=\"M{x} {start}V{end}m-5 -6l5 6l5 -6\" fill=\"none\" stroke=\"currentColor\"/>",
                start = bottom - GAP + 4
            );
        }
        top = bottom + ARROW;
    }
    text.push_str("</svg>\n");
    text
}

fn draw(text: &mut String, module: &ModuleView, x: usize, y: usize) {
    let name = module.name.as_str();
    let shown = if name.chars().count() > LONGEST {
        let mut short: String = name.chars().take(LONGEST - 1).collect();
        short.push('…');
        short
    } else {
        name.to_owned()
    };
    let (full, shown) = (escaped(name), escaped(&shown));
    let (tx, name_y, phase_y) = (x + 14, y + 18, y + 36);
    let _ = writeln!(
        text,
        "<g><title>{full}: {phase}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" fill=\"none\" stroke=\"currentColor\"/>\
         <rect x=\"{x}\" y=\"{y}\" width=\"6\" height=\"{HEIGHT}\" rx=\"3\" fill=\"{color}\"/>\
         <text x=\"{tx}\" y=\"{name_y}\" fill=\"currentColor\">{shown}</text>\
         <text x=\"{tx}\" y=\"{phase_y}\" font-size=\"12\" fill=\"currentColor\">{phase}</text></g>",
        phase = module.phase,
        color = color(module),
    );
}

fn color(module: &ModuleView) -> &'static str {
    match module.phase {
        "failed" => "#c62828",
        "parked" => "#b26a00",
        "running" => "#2e7d32",
        "starting" | "deleting" => "#1565c0",
        _ => "#757575",
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
